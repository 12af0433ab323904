"""Check that values and derivatives are finite at states of every task: target, start, corners of the domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.backends.casadi import compiled
from modelgen.errors import ModelError, Place
from modelgen.metadata import Metadata
from modelgen.program.functions import Program

CALLS = ("jacobians", "affine_dynamics", "state_cost")  # the functions to check, where the program has them


@dataclass(frozen=True)
class Lines:
    """The robot's line, and searches for the line of an expression; each gives None if no line is known."""

    robot: Place | None = None
    not_finite: Callable[[NDArray[np.float64]], Place | None] = lambda _: None  # the expression, at a state (n,)
    too_fast: Callable[[int], Place | None] = lambda _: None  # the force that moves the state of this index


NO_LINES = Lines()


def check_regular(program: Program, robot: Metadata, lines: Lines) -> None:
    """Raise ModelError for the first entry that is not finite at the nominal parameters, with its line."""
    theta = [parameter.value for parameter in robot.parameters]
    for function in program.functions:
        if function.name not in CALLS:
            continue
        evaluate = compiled(program.graph, function, robot.name)
        for where, x in _points(robot):
            for output, result in zip(function.outputs, evaluate(x, theta), strict=True):
                bad = np.argwhere(~np.isfinite(np.asarray(result).reshape(output.shape)))
                if len(bad):
                    named = ", ".join(f"{s.name} = {value:.4g}" for s, value in zip(robot.states, x, strict=True))
                    raise ModelError(
                        f"{_entry(output.name, bad[0], robot)} is not finite {where} ({named}). Look for a division by "
                        "zero there, or for a root or a power without a slope at zero: write sqrt(r**2 + 1e-6) "
                        "instead of sqrt(r**2), or move the target, the start or the limits away from it.",
                        lines.not_finite(np.array(x)) or lines.robot,
                    )


def _points(robot: Metadata) -> list[tuple[str, list[float]]]:
    """The states (n,) to check, each with its name for a message."""
    limits = [state.limit for state in robot.states]
    corner = "in a corner of the state domain"
    limits, lower = list(limits), [-limit for limit in limits]
    for rotation in robot.rotations:
        limits[rotation.quaternion], lower[rotation.quaternion] = [0.5] * 4, [-0.5] * 4
    points = [("at the target", list(robot.task.target)), ("at the start", list(robot.task.start_mean))]
    return [*points, (corner, limits), (corner, lower)]


def _entry(output: str, index: NDArray[np.int64], robot: Metadata) -> str:
    """The name of one entry of an output of the program, for a message."""
    states = [state.name for state in robot.states]
    if output == "q":
        return "the state cost"
    quantity, _, variable = output.partition("_d")
    if not variable:
        return f"the rate of change of `{states[index[0]]}`"
    names = states if variable == "x" else [parameter.name for parameter in robot.parameters]
    of = "the state cost" if quantity == "dq" else f"the rate of change of `{states[index[0]]}`"
    return f"the derivative of {of} by `{names[index[-1]]}`"
