"""An experiment: what is known of the parameters before it, what its input makes visible, and the input's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.files import replacing
from modelgen.identification import identified_file
from modelgen.identification.excitation import Excitation, Task
from modelgen.identification.identifiability import in_words
from modelgen.loader import CompiledRobot
from modelgen.metadata import TIME

SENSOR = 1e-3  # of its limit: a coordinate's standard deviation where no file and no option gives another
LEAST = 1e-8  # of half of a parameter's range: a set has at least this semi-axis, so that it can be inverted
HIDDEN = 1.05  # a combination whose half width shrinks by a smaller factor stays as it was


@dataclass(frozen=True)
class Known:
    """A set of parameters, the deviations of the sensors, and the weight of a sample."""

    centre: Array  # (p,)
    shape: Array  # (p, p)
    deviations: Array  # (n,), NaN where a state is not measured
    weight: float  # of a sample, at most 1


def bounds(robot: CompiledRobot) -> Known:
    """The largest ellipsoid in the declared bounds, and sensors of all coordinates."""
    low, high = np.asarray(robot.parameter_bounds).T
    limits, count = np.asarray(robot.state_limits, float), robot.metadata.nq
    sensors = np.where(np.arange(len(limits)) < count, SENSOR * limits, np.nan)
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


def with_sensors(known: Known, robot: CompiledRobot, sensors: Mapping[str, float]) -> Known:
    """Standard deviations of some sensors (SI units) replaced. Raises ModelError for one that is not above zero."""
    deviations = known.deviations.copy()
    for name, value in sensors.items():
        if value <= 0:
            raise ModelError(f"--noise {name}={value:g} is no standard deviation; write a number above 0.")
        deviations[robot.state_names.index(name)] = value
    return Known(known.centre, known.shape, deviations, known.weight)


def text(robot: CompiledRobot, task: Task, excitation: Excitation) -> str:
    """Half widths of the set before and after, combinations from the one that shrinks most, and the motion's extent."""
    before, after = (np.sqrt(np.diag(shape)) for shape in (task.shape, excitation.shape))
    wide = max(len(name) for name in robot.parameter_names)
    lines = [f"{'half width of':<{wide + 2}}  {'before':>10}  {'expected':>10}"]
    for parameter, old, new in zip(robot.metadata.parameters, before, after, strict=True):
        lines.append(f"  {parameter.name:<{wide}}  {old:>10.3g}  {new:>10.3g} {parameter.unit}")
    for factor, change in combinations(task.shape, excitation.shape):
        words = in_words(robot.parameter_names, change, task.centre)
        shown = f"{factor:.3g} times narrower" if factor > HIDDEN else "not seen in this motion"
        lines.append(f"{words}: {shown}")
    largest = np.abs(excitation.states).max(axis=0)
    reached = zip(robot.metadata.states, largest, excitation.states[-1], strict=True)
    lines += [
        f"{state.name} reaches {most:.3g} {state.unit}{'' if state.continuous else f' of {state.limit:g}'}, ends at "
        f"{last:.3g}"
        for state, most, last in reached
    ]
    return "\n".join(lines)


def combinations(before: Array, after: Array) -> list[tuple[float, Array]]:
    """Pairs of a factor, by which the set becomes narrower, and the change (p,) of the parameters along that axis."""
    root = np.linalg.cholesky(before)
    inverse = np.linalg.inv(root)
    sizes, vectors = np.linalg.eigh(inverse @ after @ inverse.T)
    return [
        (float(1 / np.sqrt(max(size, 1e-300))), root @ vector) for size, vector in zip(sizes, vectors.T, strict=True)
    ]


def write(path: Path, robot: CompiledRobot, excitation: Excitation) -> None:
    """Time and inputs as CSV; the input of a row is held until the next row. ModelError where it cannot be written."""
    with replacing(path) as unfinished:
        header = ",".join((TIME, *robot.input_names))
        table = np.column_stack([excitation.time, excitation.inputs])
        np.savetxt(unfinished, table, "%.9g", ",", header=header, comments="", encoding="utf-8")
