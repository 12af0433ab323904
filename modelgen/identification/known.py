"""What is known of the parameters before an experiment: the set of a file, or the declared bounds; and the sensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

SENSOR = 1e-3  # of its limit: a coordinate's standard deviation where nothing else is said
LEAST = 1e-8  # of half of a parameter's range: a set has at least this semi-axis, so that it can be inverted


@dataclass(frozen=True)
class Known:
    """A set of parameters, and what the residuals of an identification say of a sample's worth."""

    centre: Array  # (p,)
    shape: Array  # (p, p)
    deviations: Array  # (n,), NaN where a state is not measured
    weight: float  # of a sample, at most 1


def bounds(robot: CompiledRobot) -> Known:
    """The largest ellipsoid in the declared bounds, and sensors of all coordinates."""
    low, high = np.asarray(robot.parameter_bounds).T
    limits, count = np.asarray(robot.state_limits, float), len(robot.metadata.coordinates)
    sensors = np.where(np.arange(len(limits)) < count, SENSOR * limits, np.nan)
    return Known((low + high) / 2, np.diag(((high - low) / 2) ** 2), sensors, 1.0)


def load(path: Path, robot: CompiledRobot) -> dict[str, Any]:
    """What the file of `modelgen identify` holds.

    Raises ModelError for a file that cannot be read, that is none, or that is of another model.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        model = str(data["model_hash"])
    except OSError as error:
        raise ModelError(
            f"cannot read {path}: {error.strerror}. Write it with `modelgen identify {robot.name} LOG.csv`."
        ) from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _no_file(path, robot, error) from error
    if model != robot.model_hash:
        raise ModelError(
            f"{path} is of another model: it was identified for {model[:12]}, and the built `{robot.name}` is "
            f"{robot.model_hash[:12]}. Identify again with `modelgen identify {robot.name} LOG.csv`."
        )
    return data


def _no_file(path: Path, robot: CompiledRobot, error: Exception) -> ModelError:
    return ModelError(
        f"{path} is not a file of `modelgen identify` ({' '.join(str(error).split())[:200]}). Write it with "
        f"`modelgen identify {robot.name} LOG.csv`."
    )


def read(path: Path, robot: CompiledRobot) -> Known:
    """The set of the file of `modelgen identify`. Raises ModelError as `load` and `known_by`."""
    return known_by(load(path, robot), path, robot)


def known_by(data: dict[str, Any], path: Path, robot: CompiledRobot) -> Known:
    """The set of what a file holds. A sample counts less the longer the residuals are correlated.

    Raises ModelError for a set or residuals that do not fit the robot.
    """
    try:
        residual = data["residual"]
        centre, shape = (np.array(data["ellipsoid"][key], float) for key in ("centre", "shape"))
        sensors = np.array(residual["root_mean_square"], float)
        lasting = float(residual["correlation_seconds"]) * robot.metadata.task.control_rate
        weight = 1 / (max(1.0, lasting) * max(1.0, float(residual["inflation"])))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _no_file(path, robot, error) from error
    p, n = len(robot.parameter_names), len(robot.state_names)
    fits = centre.shape == (p,) and shape.shape == (p, p) and sensors.shape == (n,)
    if not (fits and np.isfinite(centre).all() and np.isfinite(shape).all() and (np.nan_to_num(sensors) >= 0).all()):
        raise ModelError(f"{path} was edited: its set or its residual does not fit `{robot.name}`. Identify again.")
    half = np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
    sizes, vectors = np.linalg.eigh(shape / np.outer(half, half))
    scaled = (vectors * np.maximum(sizes, LEAST**2)) @ vectors.T
    return Known(centre, scaled * np.outer(half, half), sensors, weight)


def with_sensors(known: Known, robot: CompiledRobot, stated: Mapping[str, float]) -> Known:
    """Standard deviations of sensors (SI units) replaced. Raises ModelError for one that is not above zero."""
    deviations = known.deviations.copy()
    for name, value in stated.items():
        if value <= 0:
            raise ModelError(f"--noise {name}={value:g} is no standard deviation; write a number above 0.")
        deviations[robot.state_names.index(name)] = value
    return Known(known.centre, known.shape, deviations, known.weight)
