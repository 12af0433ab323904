"""Recordings of a simulated robot (SciPy's DOP853 on `dynamics`, inputs held) as CSV files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from modelgen.identification.columns import columns
from modelgen.identification.recordings import Recording, read
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

HOLD = 0.1  # s that an input is held


def log(
    robot: CompiledRobot,
    theta: Any,
    start: Any,
    seconds: float,
    rate: int,
    seed: int,
    share: float = 0.6,
    push: Any = 0.0,
    gains: Any = 1.0,
) -> Any:
    """Time (K,), states (K, n) and inputs (K, m) under random inputs of up to `share` of the limits.

    push: (n,), added to the rates of the states; gains: (m,), of the inputs that act.
    """
    random, limits = np.random.default_rng(seed), np.asarray(robot.input_limits)
    time = np.arange(round(seconds * rate) + 1) / rate
    held = random.uniform(-share, share, (int(seconds / HOLD) + 1, len(limits))) * limits
    inputs = held[(time / HOLD + 1e-9).astype(int)]
    states, rows = [np.asarray(start, float)], round(HOLD * rate)
    for first in range(0, len(time) - 1, rows):
        last = min(first + rows, len(time) - 1)

        def slope(_: float, x: Array, u: Array = inputs[first : first + 1]) -> Array:
            return np.asarray(robot.dynamics(np.ascontiguousarray(x[None]), u * gains, theta))[0] + push

        reached = solve_ivp(
            slope,
            (time[first], time[last]),
            states[-1],
            "DOP853",
            time[first + 1 : last + 1],
            rtol=1e-11,
            atol=1e-11,
        )
        states.extend(reached.y.T)
    return time, np.array(states), inputs


def play(robot: CompiledRobot, theta: Any, start: Any, inputs: Array, rate: int, finer: int = 4) -> Array:
    """States (K + 1, n) under inputs (K, m), each held for 1 / rate s, by Runge-Kutta with `finer` steps."""
    states = [np.asarray(start, float)]
    for u in inputs[:, None]:
        x, h = states[-1][None], 1 / (rate * finer)
        for _ in range(finer):
            k1 = robot.dynamics(x, u, theta)
            k2 = robot.dynamics(x + h / 2 * k1, u, theta)
            k3 = robot.dynamics(x + h / 2 * k2, u, theta)
            k4 = robot.dynamics(x + h * k3, u, theta)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(x[0])
    return np.array(states)


def write(path: Path, robot: CompiledRobot, time: Array, states: Array, inputs: Array, rates: bool = False) -> Path:
    """A CSV file with the robot's names, and with the velocities only if `rates`."""
    kept = len(robot.state_names) if rates else len(robot.metadata.coordinates)
    header = ",".join(("time", *robot.state_names[:kept], *robot.input_names))
    table = np.column_stack([time, states[:, :kept], inputs])
    np.savetxt(path, table, "%.17g", ",", header=header, comments="")
    return path


@cache
def _swung(robot: CompiledRobot, theta: tuple[float, ...], seed: int) -> Any:
    """What `log` gives for 3 s at 100 Hz: many tests look at the same motions."""
    return log(robot, np.array(theta), [3.0, 0.0], 3.0, 100, seed)


def recordings(
    robot: CompiledRobot, folder: Path, theta: Any, count: int, noise: float, seed: int = 0
) -> list[Recording]:
    """Recordings of 3 s of positions at 100 Hz, each with a different input."""
    random = np.random.default_rng(seed)
    recordings = []
    for number in range(count):
        time, states, inputs = _swung(robot, tuple(theta), 100 * seed + number)
        states = states + noise * random.normal(size=states.shape)
        path = write(folder / f"log{seed}-{number}.csv", robot, time, states, inputs)
        recordings.append(read(path, robot.metadata, columns((), robot.metadata)))
    return recordings


def silent(_: str) -> None:
    """Ignore a line of progress."""
