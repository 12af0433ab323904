"""The program `solver`: a table of its commands. Each is a file in solver.commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from modelgen.commandline.program import Command, CommandLine
from modelgen.errors import ModelError
from solver.errors import DivergenceError, SolverError


@contextmanager
def _serial() -> Iterator[None]:
    """Torch on one thread; imported here, since help does not need Torch."""
    from solver.streams import serial_torch

    with serial_torch():
        yield


#: The commands, what they do, and the arguments of an example. Each is a module of `solver.commands`.
COMMANDS = (
    ("train", "Train a policy, or continue an interrupted run.", "pendulum --seed 1 --out runs/demo"),
    (
        "baseline",
        "Train SAC, DDPG or PPO of Stable-Baselines3 on the same robot.",
        "pendulum --algorithm sac --randomize",
    ),
    ("classical", "Build a control engineer's controller of the same robot.", "pendulum --algorithm energy"),
    (
        "evaluate",
        "Roll out a policy, also on another plant than the nominal one.",
        "runs/demo --plant harsh --set mass=1.3x",
    ),
    ("limit", "Look for the best return of any controller, by optimisation.", "runs/demo"),
    (
        "robustness",
        "Roll out policies over a range of one or two parameters.",
        "runs/demo --parameter mass --from 0.5x --to 1.5x",
    ),
    ("certify", "Bound how often a policy fails, and look for its worst case.", "runs/demo --html certificate.html"),
    ("prove", "Prove that the states around the target are brought to it.", "pendulum-rfvi --spread 0.05"),
    ("check", "Check a proof with other code.", "pendulum.proof.json --all"),
    ("replay", "Play the worst case that `solver certify` found.", "pendulum.counterexample.json"),
    ("plot", "Draw value function, policy, rollouts and learning curve.", "runs/demo"),
    ("animate", "Draw a rollout of several runs side by side, as a GIF.", "runs/demo --set mass=1.5x"),
    ("page", "Write a page in which one can push the robot, for any browser.", "runs/demo --out page.html"),
    ("export", "Write a policy in C99, ONNX, JavaScript or as an FMU.", "runs/demo --c firmware"),
    ("policies", "List the trained policies that ship with the package.", ""),
    (
        "sweep",
        "Train robots x settings x seeds, on this machine or a cluster.",
        "sweep.toml --cluster tcp://10.0.0.1:8786",
    ),
    ("reproduce", "Make a table or figure of the paper, with all trainings.", "table1 --budget small"),
)
PROGRAM = CommandLine(
    "solver",
    about="solver trains a policy that is robust on the whole state domain of a built robot, and tests it.",
    commands={
        name: Command(f"solver.commands.{name}", summary, f"solver {name} {example}".strip())
        for name, summary, example in COMMANDS
    },
    read_on="how-to/train.md",
    mistakes=(SolverError, ModelError),
    failures=(DivergenceError,),
    around=_serial,
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
