"""Type of the NumPy arrays in signatures, and integration on them: a step, and how many a control period needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import warn
from modelgen.metadata import Metadata

Array = NDArray[np.float64]


def on_sphere(x: Array, quaternions: Sequence[slice]) -> None:
    """Scale the quaternions in the states x (N, n) to length one, in place."""
    for entries in quaternions:
        x[:, entries] /= np.linalg.norm(x[:, entries], axis=1, keepdims=True)


def runge_kutta_step(rate: Callable[[Array, float], Array], x: Array, time: float, step: float) -> Array:
    """States (N, n) after one step of the classical Runge-Kutta method of fourth order, for xdot = rate(x, time)."""
    first = rate(x, time)
    second = rate(x + step / 2 * first, time + step / 2)
    third = rate(x + step / 2 * second, time + step / 2)
    fourth = rate(x + step * third, time + step)
    return x + step / 6 * (first + 2 * second + 2 * third + fourth)


TOLERANCE = 1e-4  # largest change of a state, as a share of its limit, when the step in a control period is halved
MOST_STEPS = 64
SAMPLES, CORNERS = 512, 2048  # states at which steps are compared, for one robot and for several
SHARES = (1.0, 0.1, 0.01)  # of the way from the trim to the inputs' limits, until a motion is resolved


def sufficient_steps(rates: Callable[[Array], Array], x: Array, seconds: float, limits: Array) -> tuple[int, int]:
    """The least power of two of Runge-Kutta steps in `seconds` after which no state changes by more than TOLERANCE of
    its limit if their length is halved; and the index of the worst state. 0 if MOST_STEPS are not enough.

    rates: from states (N, n) to their rates. x (N, n): the states before.
    """
    coarse, steps, worst = _after(rates, x, seconds, 1), 1, 0
    while steps <= MOST_STEPS:
        fine = _after(rates, x, seconds, 2 * steps)
        with np.errstate(all="ignore"):
            error = np.abs(fine - coarse) / limits
        if error.max() <= TOLERANCE:  # false where a state is not finite
            return steps, worst
        if np.isfinite(error).all():  # if the states diverge, keep the last comparison that was finite
            worst = int(error.max(0).argmax())
        coarse, steps = fine, 2 * steps
    return 0, worst


def _after(rates: Callable[[Array], Array], x: Array, seconds: float, steps: int) -> Array:
    """The states (N, n) after `seconds`, with constant inputs."""
    h = seconds / steps
    with np.errstate(all="ignore"):
        for _ in range(steps):
            x = runge_kutta_step(lambda at, _: rates(at), x, 0.0, h)
    return x


def resolving_steps(
    robot: Metadata, dynamics: Callable[[Array, Array], Array], share: float = 1.0, samples: int = SAMPLES
) -> tuple[int, int, Callable[[Array], Array], Array]:
    """`sufficient_steps` of a control period at random states of the whole domain with every input at a limit.

    dynamics: from x (N, n) and u (N, m) to xdot (N, n). share: of the way from the trim to the limits that inputs go.
    Also returns the rates at these inputs as a function, and the states (N, n).
    """
    random, limits = np.random.default_rng(0), np.array([state.limit for state in robot.states])
    x = random.uniform(-1.0, 1.0, (samples, len(limits))) * limits
    on_sphere(x, [rotation.quaternion for rotation in robot.rotations])
    middle, reach, trim = np.array([[u.middle, u.limit, u.trim] for u in robot.inputs]).reshape(-1, 3).T
    u = middle + random.choice([-1.0, 1.0], (samples, len(reach))) * reach
    u = trim + share * (u - trim)

    def rates(at: Array) -> Array:
        return dynamics(at, u)

    return *sufficient_steps(rates, x, 1.0 / robot.task.control_rate, limits), rates, x


def least_steps(robot: Metadata, dynamics: Callable[[Array, Array], Array], samples: int = SAMPLES) -> tuple[int, int]:
    """The number of `resolving_steps` with the largest of SHARES of the inputs for which MOST_STEPS are enough, or 0 if
    there is none; and the index of the worst state."""
    steps, worst = 0, 0
    for share in SHARES:
        steps, worst, *_ = resolving_steps(robot, dynamics, share, samples)
        if steps:
            break
    return steps, worst


def robust_steps(robot: Metadata, dynamics: Callable[[Array, Array, Array], Array]) -> int:
    """Integration steps in a control period that suffice at CORNERS random corners of the parameters' bounds.

    They are MOST_STEPS, with a ReliabilityWarning, where no number does.
    dynamics: from x (N, n), u (N, m) and theta (N, p) to xdot (N, n).
    """
    sides = np.random.default_rng(0).choice([0, 1], (CORNERS, len(robot.parameters)))
    lower, upper = np.array([[entry.lower, entry.upper] for entry in robot.parameters]).reshape(-1, 2).T
    theta = np.where(sides, upper, lower)
    steps, worst = least_steps(robot, lambda x, u: dynamics(x, u, theta), CORNERS)
    if not steps:
        warn(
            f"{robot.states[worst].name} of {robot.name} moves too fast to be simulated at some bounds of its "
            f"parameters: {MOST_STEPS} Runge-Kutta steps in a control period are not enough. Narrow the bounds in the "
            "model file, or raise its control_rate"
        )
    return max(steps or MOST_STEPS, robot.task.integration_steps)
