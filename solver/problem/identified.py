"""Nominal parameters and admissible sets for a training, from a file of `modelgen identify`.

The confidence ellipsoid may exceed the bounds of the model file. It is then scaled and not clipped, because a linear
function has an exact minimiser on an ellipsoid. It is scaled only in the direction that exceeds the bounds: a direction
that the recordings cannot determine must not shrink those that they determine well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification import identified_file
from modelgen.loader import CompiledRobot
from solver.errors import SolverError

LEAST = 0.01  # share of a half width that must fit into the bounds; below it the centre counts as lying at a bound
RADII = ("state", "action", "observation")  # the adversaries whose radii are in the file


@dataclass(frozen=True)
class IdentifiedSet:
    """Parameters and sets of one file, in the order of the robot's names."""

    source: str  # path of the file
    sha256: str  # of its content
    nominal: tuple[float, ...]  # (p,)
    shape: tuple[tuple[float, ...], ...]  # (p, p), P of the ellipsoid about `nominal`, within the declared bounds
    shares: tuple[float, ...]  # (p,) half widths within the bounds, as shares of those in the file
    radii: dict[str, tuple[float, ...]]  # of the adversaries in RADII: (n,), (m,), (n,)

    @staticmethod
    def of(content: Mapping[str, Any]) -> IdentifiedSet:
        """From the entry `identified` of run.json.

        Raises TypeError, KeyError or ValueError if an entry is missing, unknown or of another type.
        """
        source, sha256 = content["source"], content["sha256"]
        if set(content) != set(IdentifiedSet.__dataclass_fields__) or not isinstance(source + sha256, str):
            raise ValueError("its entry `identified` has other keys or types")
        nominal = _vector(content["nominal"], len(content["nominal"]))
        return IdentifiedSet(
            source,
            sha256,
            nominal,
            tuple(_vector(row, len(nominal)) for row in content["shape"]),
            _vector(content["shares"], len(nominal)),
            {name: _vector(content["radii"][name], len(content["radii"][name])) for name in RADII},
        )

    def largest(self, name: str) -> float:
        """Largest component of an adversary's radii, which a training uses as its radius alpha."""
        return max(self.radii[name], default=0.0)

    def proportions(self, name: str) -> tuple[float, ...] | None:
        """Radii of an adversary divided by the largest one. None if the file has no radii for it, or only zeros."""
        largest = self.largest(name) if name in self.radii else 0.0
        return tuple(radius / largest for radius in self.radii[name]) if largest > 0.0 else None

    def adversaries(self) -> dict[str, float]:
        """Radii of the adversaries of a training with these sets, by name."""
        return {"parameters": 1.0} | {name: self.largest(name) for name in RADII}

    def semi_axes(self) -> Array:
        """Semi-axes (p, k) of the ellipsoid as changes of the parameters, k <= p.

        The longest comes first, where each parameter is measured in units of its nominal value.
        """
        unit = np.abs(self.nominal) + (np.array(self.nominal) == 0.0)
        sizes, vectors = np.linalg.eigh(np.array(self.shape) / np.outer(unit, unit))
        axes: Array = (unit[:, None] * vectors * np.sqrt(np.maximum(sizes, 0.0)))[:, ::-1]
        return axes[:, sizes[::-1] > 0.0]

    def scaled(self, share: float) -> IdentifiedSet:
        """Copy with all semi-axes multiplied by `share`."""
        return replace(self, shape=tuple(tuple(share**2 * entry for entry in row) for row in self.shape))

    def text(self, robot: CompiledRobot, robust: bool) -> str:
        """Summary for a terminal. robust: whether the adversaries play, so that the sets matter too."""
        widths = np.sqrt(np.maximum(np.diag(np.array(self.shape).reshape(len(self.nominal), -1)), 0.0))
        wide = max((len(name) for name in robot.parameter_names), default=0)
        lines = [f"nominal parameters of {self.source}" + (" and half widths of the set" if robust else "")]
        for parameter, value, width, share in zip(
            robot.metadata.parameters, self.nominal, widths, self.shares, strict=True
        ):
            spread = f" +- {width:.3g}" if robust else ""
            left = f"  ({share:.2g} of the half width is within the declared bounds)" if robust and share < 1.0 else ""
            lines.append(f"  {parameter.name:<{wide}}  {value:.6g}{spread} {parameter.unit}{left}")
        if not robust:
            return "\n".join(lines)
        for name, values in self.radii.items():
            names = robot.input_names if name == "action" else robot.state_names
            listed = ", ".join(f"{variable} {value:.3g}" for variable, value in zip(names, values, strict=True))
            lines.append(f"  {name} adversary: {listed}")
        return "\n".join(lines)


def read(path: Path, robot: CompiledRobot) -> IdentifiedSet:
    """Content of a file of `modelgen identify` for a robot with kernels on the CPU.

    Raises SolverError if the file cannot be read, is damaged, belongs to another model, or has an empty set.
    """
    try:
        content, sha256 = identified_file.read(path, robot)
    except ModelError as error:
        raise SolverError(str(error)) from error
    shape, shares = _within(content.centre, content.shape, robot, path)
    radii = {
        name: tuple(float(size or 0.0) for size in getattr(content.radii, name))  # no error where there is no sensor
        for name in RADII
    }
    nominal = tuple(map(float, content.ellipsoid.centre))
    return IdentifiedSet(str(path), sha256, nominal, tuple(map(tuple, shape.tolist())), tuple(shares.tolist()), radii)


def _vector(values: Any, size: int) -> tuple[float, ...]:
    """Tuple of a list of `size` finite numbers. Raises ValueError for anything else."""
    if not isinstance(values, list) or len(values) != size:
        raise ValueError(f"{str(values)[:60]} is not a list of {size} numbers")
    for value in values:
        if type(value) not in (int, float) or not abs(value) < 1e30:
            raise ValueError(f"{str(value)[:60]} is not a finite number")
    return tuple(float(value) for value in values)


def _within(centre: Array, shape: Array, robot: CompiledRobot, path: Path) -> tuple[Array, Array]:
    """Shape (p, p) of the ellipsoid within the bounds, and the remaining shares (p,) of its half widths.

    If the bounds allow parameter i less than sqrt(P_ii), the set is scaled along P e_i, the direction in which the
    other parameters change with parameter i. P - (1 - k^2) P e_i e_i' P / P_ii has k times the half width in parameter
    i and lies within the original set. Its section at a fixed value of parameter i is unchanged.

    Raises SolverError if the centre lies at a bound.
    """
    declared = robot.metadata.parameters
    lower, upper = np.array([(parameter.lower, parameter.upper) for parameter in declared]).reshape(-1, 2).T
    half = (upper - lower) / 2
    P = shape / np.outer(half, half)
    room, squared = np.minimum(centre - lower, upper - centre) / half, np.diag(P).copy()
    for index, (most, width) in enumerate(zip(room**2, squared, strict=True)):
        if most < LEAST**2 * width:
            name = robot.parameter_names[index]
            raise SolverError(
                f"the set in {path} is empty within the bounds of the model file: {name} was identified as "
                f"{centre[index]:.6g}, at its declared bound ({lower[index]:g} to {upper[index]:g}). Widen the bounds "
                f"of {name} in the model file, or fix it there, build, and identify again."
            )
        if P[index, index] > most:
            P = P - (1 - most / P[index, index]) * np.outer(P[:, index], P[:, index]) / P[index, index]
    shares = np.sqrt(np.maximum(np.diag(P), 0.0) / np.where(squared > 0, squared, 1.0))
    return P * np.outer(half, half), np.where(squared > 0, shares, 1.0)
