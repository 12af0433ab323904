"""Where searches for the best motion begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solver.oracles.trajectory import Guess, NonlinearProgram

Array = NDArray[np.float64]


def idle(program: NonlinearProgram, start: Array) -> Guess:
    """The robot stays at its start, with no input."""
    k, m = program.periods, len(program.input_limits)
    return Guess("an idle robot", np.tile(start, (k + 1, 1)), np.zeros((k, m)))


def straight(program: NonlinearProgram, start: Array) -> Guess:
    """At the target after a third of the horizon, by the shortest way."""
    return _motion(program, start, "the straight way", program.task.horizon / 3.0, np.zeros(program.coordinates), 0.0)


def pumped(program: NonlinearProgram, start: Array, share: float) -> Guess:
    """Inputs of a share of their limits, each along what it moves, as one pumps a swing: up to where the motion comes
    nearest to the target, and at the target from there."""
    limits, target = program.state_limits, np.array(program.task.target)
    q, m = program.coordinates, len(program.input_limits)
    x, u = np.tile(target, (program.periods + 1, 1)), np.zeros((program.periods, m))
    x[0], away = start, np.full(program.periods + 1, np.inf)
    for k in range(program.periods):
        along = np.sign(x[k, q:] @ program.control_matrix(x[k])[q:])
        u[k] = share * program.input_limits * np.where(along == 0.0, 1.0, along)
        x[k + 1] = np.asarray(program.step(x[k], u[k])[0]).ravel()
        if not (np.abs(x[k + 1]) < np.where(program.clipped, limits, np.inf)).all():
            break
        error = x[k + 1] - target
        error[:q] -= 2.0 * np.pi * ~program.clipped[:q] * np.round(error[:q] / (2.0 * np.pi))
        away[k + 1] = np.linalg.norm(error / limits)
    nearest = int(away.argmin())
    turns = 2.0 * np.pi * ~program.clipped[:q] * np.round((x[nearest] - target)[:q] / (2.0 * np.pi))
    x[nearest + 1 :], u[nearest:] = target, 0.0
    x[nearest + 1 :, :q] += turns
    return Guess(f"pumped with {share:g} of the inputs", x, u)


def random_motions(program: NonlinearProgram, start: Array, count: int, seed: int | tuple[int, ...]) -> list[Guess]:
    """Swings that grow and fade on the way to the target, by either way round: random in size, rate and duration."""
    rng = np.random.default_rng(seed)
    q = program.coordinates
    wraps = ~program.clipped[:q]
    found = []
    for i in range(count):
        seconds = rng.uniform(0.12, 0.8) * program.periods / program.rate
        swing = rng.uniform(-0.6, 0.6, q) * program.state_limits[:q]
        either = rng.choice([-1.0, 0.0, 1.0], q)  # from beside the target; from behind it there are but two ways
        turns: Array = wraps * np.where(
            np.abs(start[:q]) < np.pi / 2, either, np.sign(start[:q]) * np.maximum(either, 0)
        )
        cycles = rng.uniform(0.5, 3.0)
        found.append(_motion(program, start, f"random motion {i + 1}", seconds, swing, cycles, turns))
    return found


def _motion(
    program: NonlinearProgram,
    start: Array,
    name: str,
    seconds: float,
    swing: Array,
    cycles: float,
    turns: Array | float = 0.0,
) -> Guess:
    """From the start to the target in so many seconds, plus `cycles` of a sine of amplitude `swing` (q,); no input."""
    q, period = program.coordinates, 1.0 / program.rate
    share = np.minimum(np.arange(program.periods + 1) * period / seconds, 1.0)[:, None]
    goal = np.array(program.task.target)[:q] + 2.0 * np.pi * turns
    position = start[:q] + share**2 * (3.0 - 2.0 * share) * (goal - start[:q])
    position = position + swing * np.sin(np.pi * share) * np.sin(2.0 * np.pi * cycles * share)
    x = np.hstack([position, np.gradient(position, period, axis=0)])
    bound = np.where(program.clipped, program.state_limits, np.inf)
    return Guess(name, np.clip(x, -bound, bound), np.zeros((program.periods, len(program.input_limits))))
