"""Simulated recordings of robots with known parameters: of the model with a delay, and of the harsh plant.

    python benchmarks/simulated_logs.py pendulum --out logs

writes recordings of the harsh plant as CSV files, for who wants to try `modelgen identify` without a robot.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import modelgen
from modelgen.identification.columns import columns
from modelgen.identification.recordings import Recording, read
from modelgen.loader import CompiledRobot
from solver.plants.harsh import make
from solver.problem import Problem

Array = NDArray[np.float64]
Simulator = Callable[[Array], tuple[Array, Array]]  # inputs (K, N, m) -> states (K, N, n), measured positions (K, N, q)

SINES, HIGHEST = 6, 2.0  # of an input, up to Hz
#: Of the input limits; the largest that keeps the states within their limits is taken.
SHARES: Array = np.array([0.8 * 0.7**power for power in range(14)])
STUCK = 10  # shares tried on the harsh plant: with smaller ones stiction holds the robot
COUNTS = 4096  # of an encoder in a turn, or over twice the limit of a coordinate that does not wrap
NOISE = 2.0  # standard deviation of a sensor, in counts
RATE = 100  # Hz of a recording of the model
DRAWS = 5  # of all inputs, where one of them moves a robot out of its limits however small it is
FINER = 8  # Runge-Kutta steps between rows
MIDDLE = 0.6  # share of every parameter's range that the truth is drawn from
EFFECTS = ("saturation", "backlash", "stiction", "encoder", "noise")


def main() -> None:
    """Parse, simulate, write, say what the truth is."""
    parser = argparse.ArgumentParser(description="Write recordings of the harsh plant.")
    parser.add_argument("robot")
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a recording")
    parser.add_argument("--delay", type=int, default=2, help="control periods")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    options = parser.parse_args()
    robot = modelgen.load(options.robot, parallel=False)
    truth = drawn(robot, np.random.default_rng(options.seed))
    options.out.mkdir(parents=True, exist_ok=True)
    of_harsh(robot, truth, options.count, options.seconds, options.delay, options.seed, options.out)
    values = (f"{name} {value:.5g}" for name, value in zip(robot.parameter_names, truth, strict=True))
    print(f"{options.count} recordings in {options.out}: {', '.join(values)}, delay {options.delay} control periods")


def drawn(robot: CompiledRobot, random: np.random.Generator) -> Array:
    """True parameters (p,)."""
    low, high = np.asarray(robot.parameter_bounds).T
    return np.asarray((low + high) / 2 + MIDDLE * (high - low) / 2 * random.uniform(-1, 1, len(low)))


def of_model(
    robot: CompiledRobot, theta: Array, count: int, seconds: float, delay: float, random: np.random.Generator
) -> list[Recording]:
    """Recordings in which the model is right: encoders with noise of NOISE counts, whose positions are `delay` s late.
    They begin at rest at the task's mean start."""
    step = counted(robot)

    def simulated(inputs: Array) -> tuple[Array, Array]:
        states = motion(robot, theta, inputs, 1 / RATE)
        late = np.maximum(FINER * np.arange(len(inputs)) - round(delay * RATE * FINER), 0)
        return states[::FINER], states[late][..., : len(step)]

    at, inputs, positions = excited(robot, simulated, count, seconds, RATE, random)
    noisy = positions + NOISE * step * random.normal(size=positions.shape)
    return recordings(robot, at, inputs, step * np.round(noisy / step))


def of_harsh(
    robot: CompiledRobot,
    theta: Array,
    count: int,
    seconds: float,
    periods: int,
    seed: int,
    folder: Path | None = None,
) -> list[Recording]:
    """Recordings of the harsh plant with stiction, backlash, a weak drive, encoders and noise, one row a control
    period; inputs reach the drive `periods` control periods late."""
    problem = Problem(modelgen.load(robot.name, dtype="float32", parallel=False))
    plant = make(problem, torch.as_tensor(theta, dtype=torch.float32), (*EFFECTS, f"delay={periods}x"), seed)
    q = len(robot.metadata.coordinates)

    def simulated(inputs: Array) -> tuple[Array, Array]:
        start = torch.as_tensor(np.tile(robot.metadata.task.start_mean, (inputs.shape[1], 1)), dtype=torch.float32)
        with torch.no_grad():
            simulation = plant.begin(start)
            states, seen = [simulation.x.double().numpy()], [simulation.measured.double().numpy()]
            for u in torch.as_tensor(inputs[:-1], dtype=torch.float32):
                simulation.step(u)
                states.append(simulation.x.double().numpy())
                seen.append(simulation.measured.double().numpy())
        return np.stack(states), np.stack(seen)[..., :q]

    random, rate = np.random.default_rng(seed), robot.metadata.task.control_rate
    at, inputs, positions = excited(robot, simulated, count, seconds, rate, random, SHARES[:STUCK])
    return recordings(robot, at, inputs, positions, folder)


def excited(
    robot: CompiledRobot,
    simulated: Simulator,
    count: int,
    seconds: float,
    rate: int,
    random: np.random.Generator,
    shares: Array = SHARES,
) -> tuple[Array, Array, Array]:
    """Times (K,), inputs (K, N, m): sums of sines, as large as the states' limits allow, and positions (K, N, q)."""
    m = len(robot.input_names)
    at = np.arange(round(seconds * rate) + 1) / rate
    bound = np.where([s.continuous for s in robot.metadata.states], np.inf, np.asarray(robot.state_limits))
    for _ in range(DRAWS):
        phases = random.uniform(0, 2 * np.pi, (count, SINES, m))
        speeds = 2 * np.pi * random.uniform(0.1, HIGHEST, phases.shape)
        waves = np.sin(speeds * at[:, None, None, None] + phases).sum(2) / np.sqrt(SINES)
        tried = shares[:, None, None] * (waves * np.asarray(robot.input_limits))[:, None]  # (K, shares, N, m)
        states, positions = simulated(tried.reshape(len(at), -1, m))
        stays = (np.abs(states) <= bound * (1 - 1e-6)).all(axis=(0, 2)).reshape(len(shares), count)
        if stays.any(axis=0).all():
            best, many = stays.argmax(axis=0), np.arange(count)
            positions = positions.reshape(len(at), len(shares), count, -1)
            return at, tried[:, best, many], positions[:, best, many]
    raise SystemExit(f"no input keeps {robot.name} within its limits")


def motion(robot: CompiledRobot, theta: Array, inputs: Array, period: float) -> Array:
    """States (FINER (K - 1) + 1, N, n) under inputs (K, N, m) that are held for a period, by classical Runge-Kutta."""
    x = np.tile(np.asarray(robot.metadata.task.start_mean, float), (inputs.shape[1], 1))
    states, h = [x], period / FINER
    with np.errstate(all="ignore"):
        for u in inputs[:-1]:
            for _ in range(FINER):
                k1 = robot.dynamics(x, u, theta)
                k2 = robot.dynamics(x + h / 2 * k1, u, theta)
                k3 = robot.dynamics(x + h / 2 * k2, u, theta)
                k4 = robot.dynamics(x + h * k3, u, theta)
                x = np.asarray(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
                states.append(x)
    return np.stack(states)


def counted(robot: CompiledRobot) -> Array:
    """The width of a count, (q,)."""
    states = robot.metadata.states[: len(robot.metadata.coordinates)]
    return np.array([2 * np.pi if state.continuous else 2 * state.limit for state in states]) / COUNTS


def recordings(
    robot: CompiledRobot, at: Array, inputs: Array, positions: Array, folder: Path | None = None
) -> list[Recording]:
    """Written as CSV files, to `folder` if they are to stay, and read as a user's are."""
    names: Sequence[str] = ("time", *robot.state_names[: positions.shape[2]], *robot.input_names)
    found = []
    with tempfile.TemporaryDirectory() as passing:
        for number in range(inputs.shape[1]):
            path = (folder or Path(passing)) / f"log{number + 1}.csv"
            table = np.column_stack([at, positions[:, number], inputs[:, number]])
            np.savetxt(path, table, "%.12g", ",", header=",".join(names), comments="")
            found.append(read(path, robot.metadata, columns((), robot.metadata)))
    return found


if __name__ == "__main__":
    main()
