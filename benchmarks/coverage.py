"""How often the set of `modelgen identify` holds the truth: simulated recordings of robots with known parameters.

    python benchmarks/coverage.py --robot pendulum --sets 100 --json

Every set draws true parameters, makes recordings in which the model is right (noise of the sensors and the counts of
encoders), and identifies from them. The oracle knows the noise, and takes the residuals for independent.

Where only a product of two parameters shows, all factors of that product move alike. The set holds the truth when it
holds parameters that move alike: those of the truth after a fit that gives the directions which are left open their
value at the set's centre. Directions left open are not counted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import null_space
from scipy.special import chdtri

import modelgen
from modelgen.errors import ModelError
from modelgen.identification.confidence import LEVEL
from modelgen.identification.identify import Identified, identify
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording, columns, read
from modelgen.identification.starts import settle, weights
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

RATE = 100  # Hz of a recording
SINES, HIGHEST = 6, 2.0  # of an input, up to Hz
COUNTS = 4096  # of an encoder in a turn, or over twice the limit of a coordinate that does not wrap
NOISE = 2.0  # standard deviation of a sensor, in counts
WINDOWS, STEPS = 24, 3  # of a fit that follows the curve of parameters that move alike
MIDDLE = 0.6  # share of every parameter's range that the truth is drawn from


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", default="pendulum")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--recordings", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a recording")
    parser.add_argument("--window", type=float, default=0.5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    robot = modelgen.load(options.robot, parallel=False)
    began, held, refused = time.perf_counter(), 0, 0
    ratios: list[float] = []
    directions: list[int] = []
    for seed in range(options.first, options.first + options.sets):
        try:
            truth, found = one_set(robot, options, seed)
        except ModelError:
            refused += 1
            continue
        half = np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
        seen = null_space(found.ellipsoid.unidentified.T)  # orthonormal, in units of half of each range
        away = seen.T @ ((truth - found.ellipsoid.centre) / half) - bend(found, truth, seen)
        shape = seen.T @ (found.ellipsoid.shape / np.outer(half, half)) @ seen
        held += bool(away @ np.linalg.solve(shape, away) <= 1.0)
        ratios += (np.sqrt(np.diag(shape)) / oracle(found, truth, half[:, None] * seen)).tolist()
        directions.append(seen.shape[1])
    report = {
        "robot": options.robot,
        "sets": options.sets,
        "recordings": options.recordings,
        "seconds_of_a_recording": options.seconds,
        "held": held,
        "refused": refused,
        "median_half_width_by_oracle": float(np.median(ratios)),
        "largest_half_width_by_oracle": float(np.max(ratios)),
        "directions_identified": float(np.mean(directions)),
        "parameters": len(robot.parameter_names),
        "seconds_a_set": (time.perf_counter() - began) / options.sets,
    }
    print(json.dumps(report, indent=1) if options.json else report)


def one_set(robot: CompiledRobot, options: argparse.Namespace, seed: int) -> tuple[Array, Identified]:
    """The truth, and what is identified from its recordings."""
    random = np.random.default_rng(seed)
    low, high = np.asarray(robot.parameter_bounds).T
    truth = (low + high) / 2 + MIDDLE * (high - low) / 2 * random.uniform(-1, 1, len(low))
    with tempfile.TemporaryDirectory() as folder:
        logs = [recorded(robot, truth, options.seconds, random, Path(folder)) for _ in range(options.recordings)]
    return truth, identify(Model(robot), logs, options.window, lambda _: None)


def recorded(
    robot: CompiledRobot, theta: Array, seconds: float, random: np.random.Generator, folder: Path
) -> Recording:
    """One recording from rest at the task's mean start; the input is as large as the robot's limits allow."""
    start = np.asarray(robot.metadata.task.start_mean, float)
    at = np.arange(round(seconds * RATE) + 1) / RATE
    phases = random.uniform(0, 2 * np.pi, (SINES, len(robot.input_names)))
    speeds = 2 * np.pi * random.uniform(0.1, HIGHEST, phases.shape)
    inputs = np.sin(speeds * at[:, None, None] + phases).sum(1) / np.sqrt(SINES) * np.asarray(robot.input_limits)
    share = 0.8
    while True:
        states = motion(robot, theta, start, share * inputs)
        if states is not None:
            break
        share *= 0.7
    count = len(robot.metadata.coordinates)
    step = np.array([2 * np.pi if s.continuous else 2 * s.limit for s in robot.metadata.states[:count]]) / COUNTS
    noisy = states[:, :count] + NOISE * step * random.normal(size=(len(at), count))
    table = np.column_stack([at, step * np.round(noisy / step), share * inputs])
    path = folder / f"{random.integers(2**62)}.csv"
    header = ",".join(("time", *robot.state_names[:count], *robot.input_names))
    np.savetxt(path, table, "%.12g", ",", header=header, comments="")
    return read(path, robot.metadata, columns((), robot.metadata))


def motion(robot: CompiledRobot, theta: Array, start: Array, inputs: Array) -> Array | None:
    """States (K, n) under inputs (K, m) that are held; None where one leaves its limit."""
    bound = np.where([s.continuous for s in robot.metadata.states], np.inf, np.asarray(robot.state_limits))
    states = [start]
    for u in inputs[:-1]:

        def slope(_: float, x: Array, u: Array = u[None]) -> Array:
            return np.asarray(np.asarray(robot.dynamics(np.ascontiguousarray(x[None]), u, theta))[0])

        states.append(solve_ivp(slope, (0, 1 / RATE), states[-1], "DOP853", rtol=1e-8, atol=1e-10).y[:, -1])
        if (np.abs(states[-1]) > bound).any():
            return None
    return np.array(states)


def bend(found: Identified, truth: Array, seen: Array) -> Array:
    """How far (r,) the fit moves in the directions seen when the others take the truth's values in place of theirs."""
    half, windows = np.ptp(found.model.bounds, axis=1) / 2, found.windows
    some = np.unique(np.linspace(0, len(windows.recording) - 1, WINDOWS).round().astype(int))
    windows, across = windows.chosen(some), null_space(seen.T)
    deviations = np.where(np.isnan(found.residual), 1.0, found.residual)

    def fitted(theta: Array) -> Array:
        for _ in range(STEPS):
            settled = settle(found.model, windows, windows.starts, theta, deviations, robust=True)
            J, weight = (settled.sensitivity * half) @ seen, weights(settled.residuals, robust=True)
            normal = np.einsum("kwia,kwi,kwib->ab", J, weight, J, optimize=True)
            gradient = np.einsum("kwia,kwi->a", J, weight * settled.residuals)
            theta = theta - half * (seen @ np.linalg.solve(normal, gradient))
        return np.asarray(seen.T @ ((theta - found.ellipsoid.centre) / half))

    away = half * (across @ (across.T @ ((truth - found.ellipsoid.centre) / half)))
    return fitted(found.ellipsoid.centre + away) - fitted(found.ellipsoid.centre)


def oracle(found: Identified, truth: Array, directions: Array) -> Array:
    """Half widths (r,) along directions (p, r) of the set that knows the noise, in the same windows."""
    robot, windows = found.model.robot, found.windows
    count = len(robot.metadata.coordinates)
    step = np.array([2 * np.pi if s.continuous else 2 * s.limit for s in robot.metadata.states[:count]]) / COUNTS
    deviations = np.ones(len(robot.state_names))
    deviations[:count] = step * np.sqrt(NOISE**2 + 1 / 12)
    J = settle(found.model, windows, windows.starts, truth, deviations, robust=False).sensitivity @ directions
    information = np.einsum("kwia,kwib->ab", J, J)
    return np.asarray(np.sqrt(chdtri(directions.shape[1], 1 - LEVEL) * np.diag(np.linalg.inv(information))))


if __name__ == "__main__":
    main()
