"""The number of Runge-Kutta steps in a control period, chosen at the build by comparison with half the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import MOST_STEPS, SAMPLES, SHARES, Array, resolving_steps
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


NEAR = 2.0  # times the limits; a state without finite rates farther out is not reported as the cause


def integration_steps(program: Program, robot: Metadata, lines: Lines, warn: Callable[[str], None]) -> int:
    """The smallest power of two of classical Runge-Kutta steps in a control period whose error is below TOLERANCE.

    The error is the difference to twice as many steps, over SAMPLES states of the whole domain with every input at a
    limit, at the parameters of the model file. The solver compares again for others. If MOST_STEPS are not enough, for
    example because an input throws a joint far out of its domain, smaller inputs are tried, and `warn` gets a message.
    Raises ModelError, with the line of the strongest force, if MOST_STEPS are not enough for the smallest of SHARES.
    """
    function, theta = program.function("dynamics"), np.array([[entry.value for entry in robot.parameters]]).T
    evaluate = compiled(program.graph, function, robot.name).map(SAMPLES)
    seconds, unresolved, advice, place = 1.0 / robot.task.control_rate, "", "", lines.robot

    def dynamics(x: Array, u: Array) -> Array:
        return np.asarray(evaluate(x.T, u.T, np.repeat(theta, SAMPLES, 1))).T

    for share in SHARES:
        steps, worst, rates, x = resolving_steps(robot, dynamics, share, SAMPLES)
        if steps and unresolved:
            warn(
                f"{place}: {unresolved} The {steps} steps of the artifact suffice for inputs up to {share:.0%} of "
                "their limits. Lower the limits of the inputs, add the motor's inertia (robot.rotor), or raise "
                "control_rate."
            )
        if steps:
            return steps
        unresolved, advice, place = _cause(_gap(rates, x, seconds, robot), worst, seconds, robot, lines)
    raise ModelError(f"{unresolved} {advice}", place)


def _cause(
    gap: Array | None, worst: int, seconds: float, robot: Metadata, lines: Lines
) -> tuple[str, str, Place | None]:
    """The cause of too many steps, the advice, and the line of the file. gap: a state without finite rates."""
    if gap is not None:
        at = ", ".join(f"{state.name} = {value:.6g}" for state, value in zip(robot.states, gap, strict=True))
        return (
            f"a motion leaves the limits within a control period of {seconds:.3g} s, and at {at} the equations have no "
            "finite value.",
            "Write forces and energies that are finite also somewhat beyond the limits, or narrow the limits.",
            lines.not_finite(gap) or lines.robot,
        )
    strongest = lines.too_fast(worst)
    named = " The force of this line is the strongest on it." if strongest else ""
    return (
        f"within a control period of {seconds:.3g} s, `{robot.states[worst].name}` moves too fast to be simulated: "
        f"{MOST_STEPS} Runge-Kutta steps are not enough.{named}",
        "Raise control_rate, lower the rate limits or the input limits, or leave out a stiff term.",
        strongest or lines.robot,
    )


def _gap(rates: Callable[[Array], Array], x: Array, seconds: float, robot: Metadata) -> Array | None:
    """A state (n,) near the limits, on a motion from x (N, n), without a finite rate; None if there is none."""
    h, limits = seconds / MOST_STEPS, np.array([state.limit for state in robot.states])
    with np.errstate(all="ignore"):
        for _ in range(MOST_STEPS):
            slopes = rates(x)
            lost = (np.abs(x) <= NEAR * limits).all(axis=1) & ~np.isfinite(slopes).all(axis=1)
            if lost.any():
                state: Array = x[lost][0]
                return state
            x = x + h * slopes
    return None
