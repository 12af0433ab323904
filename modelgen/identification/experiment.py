"""Task of an experiment: its start, length and sensors, and the set of parameters that is known before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification import identified_file
from modelgen.identification.recordings import OFF_SPHERE
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent

SENSOR = 1e-3  # of its limit: a coordinate's standard deviation where no file and no option gives another
LEAST = 1e-8  # of half of a parameter's range: a set has at least this semi-axis, so that it can be inverted


@dataclass(frozen=True)
class Known:
    """A set of parameters, the deviations of the sensors, and the weight of a sample."""

    centre: Array  # (p,)
    shape: Array  # (p, p) of the set, in the parameters' units
    deviations: Array  # (nt,) of the sensors; NaN where an error is not measured
    weight: float  # of a sample, at most 1: less where residuals are correlated


@dataclass(frozen=True)
class Task(Known):
    """An experiment to be found, with what is known before it."""

    start: Array  # (n,)
    seconds: float
    window: float  # s, of the identification
    highest: float  # Hz
    share: float  # of the inputs' limits


def bounds(robot: CompiledRobot) -> Known:
    """The largest ellipsoid in the declared bounds, and sensors of all coordinates."""
    low, high = np.asarray(robot.parameter_bounds).T
    limits = Tangent(robot.metadata).limits
    sensors = np.where(np.arange(len(limits)) < robot.metadata.pose, SENSOR * limits, np.nan)
    return Known((low + high) / 2, np.diag(((high - low) / 2) ** 2), sensors, 1.0)


def read(path: Path, robot: CompiledRobot) -> Known:
    """The set in a file of `modelgen identify`. A sample counts less the longer the residuals are correlated.

    Raises ModelError as `identified_file.read` does.
    """
    content, _ = identified_file.read(path, robot)
    residual = content.residual
    lasting = residual.correlation_seconds * robot.metadata.task.control_rate
    half = np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
    sizes, vectors = np.linalg.eigh(content.shape / np.outer(half, half))
    scaled = (vectors * np.maximum(sizes, LEAST**2)) @ vectors.T
    return Known(
        content.centre,
        scaled * np.outer(half, half),
        np.array([np.nan if size is None else size for size in residual.root_mean_square]),
        1 / (max(1.0, lasting) * max(1.0, residual.inflation)),
    )


def experiment(
    robot: CompiledRobot,
    *,
    identified: Path | None = None,
    seconds: float = 10.0,
    window: float = 0.5,
    highest: float = 3.0,
    share: float = 0.8,
    start: Mapping[str, float] = MappingProxyType({}),
    noise: Mapping[str, float] = MappingProxyType({}),
) -> Task:
    """Task of `excite` for a robot.

    identified: file of `modelgen identify` with the set that is known, by default the bounds of the model file. start:
    initial states by name in SI units, for the others the mean start of the task. noise: standard deviations of sensors
    by name, for the others as in the file or SENSOR. The rest is as in `Task`. Raises ModelError for a robot without
    parameters or inputs, and for numbers that do not fit the robot or each other.
    """
    rate = robot.metadata.task.control_rate
    if window > seconds:
        raise ModelError(
            f"--seconds {seconds:g} is shorter than a window of the identification, {window:g} s. Write longer "
            f"--seconds, or a shorter --window here and in `modelgen identify`."
        )
    if not (sought(robot) and robot.input_names):
        raise ModelError(f"`{robot.name}` has no parameters to identify, or no inputs to excite it with.")
    if highest > rate / 4:
        raise ModelError(
            f"--highest {highest:g} Hz is too fast: the input changes {rate} times a second. Write at most "
            f"--highest {rate / 4:g}."
        )
    known = read(identified, robot) if identified else bounds(robot)
    deviations = known.deviations.copy()
    for name, value in noise.items():
        if value <= 0:
            raise ModelError(f"--noise {name}={value:g} is no standard deviation; write a number above 0.")
        deviations[Tangent(robot.metadata).names.index(name)] = value
    first = _start(robot, start)
    return Task(known.centre, known.shape, deviations, known.weight, first, seconds, window, highest, share)


def _start(robot: CompiledRobot, changed: Mapping[str, float]) -> Array:
    """Mean start (n,) of the task with some states changed; ModelError for a quaternion that is not of length 1."""
    start = np.array(robot.metadata.task.start_mean)
    for name, value in changed.items():
        start[robot.state_names.index(name)] = value
    for rotation in robot.metadata.rotations:
        length = float(np.linalg.norm(start[rotation.quaternion]))
        if not abs(length - 1.0) <= OFF_SPHERE:
            raise ModelError(
                f"--start gives `{rotation.name}` a quaternion of the length {length:.4g}, and a rotation has 1. Give "
                f"all of {', '.join(robot.state_names[rotation.quaternion])}."
            )
        start[rotation.quaternion] /= length
    return start


def sought(robot: CompiledRobot) -> list[int]:
    """Indices of the parameters that are no references, which no recording shows."""
    return [i for i, name in enumerate(robot.parameter_names) if name not in robot.metadata.references]
