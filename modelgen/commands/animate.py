"""`modelgen animate`: a moving picture of a robot without a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from modelgen.errors import ModelError

SECONDS = 5.0


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("animate", help="draw how a robot moves by itself or with simple inputs")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--output", type=Path, metavar="FILE", help=".gif or .mp4 (default: NAME.gif)")
    parser.add_argument("--start", nargs="+", default=(), metavar="STATE=VALUE", help="the rest is at the target")
    parser.add_argument("--input", nargs="+", default=(), metavar="INPUT=VALUE[@HERTZ]", help="zero unless stated")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"default: {SECONDS:g}")
    parser.add_argument("--directory", help="folder of artifacts (default: generated, then the shipped one)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Roll out, draw, say where."""
    import numpy as np

    from modelgen.commands.assignments import assigned, number
    from modelgen.loader import load
    from modelgen.report.animation import animate, leaning, rollout, signal

    if not 0 < options.seconds <= 600:
        raise ModelError(f"--seconds {options.seconds:g} cannot be drawn; write a number above 0, at most 600.")
    robot = load(options.name, backend="casadi", directory=options.directory, parallel=False)
    start = np.array(robot.metadata.task.target) if options.start else leaning(robot)
    for name, text in assigned("--start", options.start, robot.state_names, f"state of `{robot.name}`").items():
        start[robot.state_names.index(name)] = number("--start", name, text)
    inputs = assigned("--input", options.input, robot.input_names, f"input of `{robot.name}`")
    states = rollout(robot, start, {name: signal(name, text) for name, text in inputs.items()}, options.seconds)
    path = options.output or Path(f"{robot.name}.gif")
    animate(robot, states, path)
    print(f"{path}: {options.seconds:g} s of {robot.name}, {path.stat().st_size / 1024:.0f} KiB")
    return 0
