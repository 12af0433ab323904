"""What an exciting input makes visible, in words; and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modelgen.files import replacing
from modelgen.identification.excitation import Excitation, Task
from modelgen.identification.identifiability import in_words
from modelgen.loader import CompiledRobot
from modelgen.metadata import TIME

Array = NDArray[np.float64]

HIDDEN = 1.05  # a combination whose half width shrinks by a smaller factor stays as it was


def text(robot: CompiledRobot, task: Task, found: Excitation) -> str:
    """Half widths of the set before and after, combinations from the one that shrinks most, and the motion's extent."""
    before, after = (np.sqrt(np.diag(shape)) for shape in (task.shape, found.shape))
    wide = max(len(name) for name in robot.parameter_names)
    lines = [f"{'half width of':<{wide + 2}}  {'before':>10}  {'expected':>10}"]
    for parameter, old, new in zip(robot.metadata.parameters, before, after, strict=True):
        lines.append(f"  {parameter.name:<{wide}}  {old:>10.3g}  {new:>10.3g} {parameter.unit}")
    for factor, change in combinations(task.shape, found.shape):
        words = in_words(robot.parameter_names, change, task.centre)
        shown = f"{factor:.3g} times narrower" if factor > HIDDEN else "not seen in this motion"
        lines.append(f"{words}: {shown}")
    largest = np.abs(found.states).max(axis=0)
    reached = zip(robot.metadata.states, largest, found.states[-1], strict=True)
    lines += [
        f"{state.name} reaches {most:.3g} {state.unit}{'' if state.continuous else f' of {state.limit:g}'}, ends at "
        f"{last:.3g}"
        for state, most, last in reached
    ]
    return "\n".join(lines)


def combinations(before: Array, after: Array) -> list[tuple[float, Array]]:
    """How many times narrower the set becomes along its own axes relative to the old set: factor, change (p,)."""
    root = np.linalg.cholesky(before)
    inverse = np.linalg.inv(root)
    sizes, vectors = np.linalg.eigh(inverse @ after @ inverse.T)
    return [
        (float(1 / np.sqrt(max(size, 1e-300))), root @ vector) for size, vector in zip(sizes, vectors.T, strict=True)
    ]


def write(path: Path, robot: CompiledRobot, found: Excitation) -> None:
    """Time and inputs as CSV; the input of a row is held until the next row. ModelError where it cannot be written."""
    with replacing(path) as beside:
        header = ",".join((TIME, *robot.input_names))
        table = np.column_stack([found.time, found.inputs])
        np.savetxt(beside, table, "%.9g", ",", header=header, comments="", encoding="utf-8")
