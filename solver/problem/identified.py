"""What `modelgen identify` found, as a training takes it: nominal parameters and admissible sets.

The confidence set is made to fit the bounds of the model file by scaling, never by clipping: a scaled ellipsoid keeps
its exact minimiser. It is scaled only in the direction in which it leads out, so that a direction that the recordings
do not see does not shrink what they know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot
from solver.errors import SolverError

Array = NDArray[np.float64]

LEAST = 0.01  # share of a half width that must fit into the bounds: less, and the centre lies at one of them
RADII = ("state", "action", "observation")
ROUNDING = 1e-6  # of the largest entry of a shape: how far it may be from symmetric and positive semidefinite


@dataclass(frozen=True)
class Identified:
    """Parameters and sets of one file, in the order of the robot's names."""

    source: str  # the file
    sha256: str  # of its content
    nominal: tuple[float, ...]  # (p,)
    shape: tuple[tuple[float, ...], ...]  # (p, p), P of the ellipsoid about `nominal`, within the declared bounds
    shares: tuple[float, ...]  # (p,) of every half width, that were left of it within the bounds
    radii: dict[str, tuple[float, ...]]  # of every adversary but that of the parameters: (n,), (m,), (n,)

    @staticmethod
    def of(content: Mapping[str, Any]) -> Identified:
        """From run.json. Raises TypeError, KeyError or ValueError for what is none."""
        source, sha256 = content["source"], content["sha256"]
        if set(content) != set(Identified.__dataclass_fields__) or not isinstance(source + sha256, str):
            raise ValueError("its entry `identified` has other keys or types")
        nominal = _vector(content["nominal"], len(content["nominal"]))
        return Identified(
            source,
            sha256,
            nominal,
            tuple(_vector(row, len(nominal)) for row in content["shape"]),
            _vector(content["shares"], len(nominal)),
            {name: _vector(content["radii"][name], len(content["radii"][name])) for name in RADII},
        )

    def largest(self, name: str) -> float:
        """The largest component of an adversary's radii: the radius that a training takes."""
        return max(self.radii[name], default=0.0)

    def proportions(self, name: str) -> tuple[float, ...] | None:
        """The radii of an adversary divided by the largest one; None for one that the file says nothing of."""
        largest = self.largest(name) if name in self.radii else 0.0
        return tuple(each / largest for each in self.radii[name]) if largest > 0.0 else None

    def adversaries(self) -> dict[str, float]:
        """Radii of the adversaries of a training, by name."""
        return {"parameters": 1.0} | {name: self.largest(name) for name in RADII}

    def semi_axes(self) -> Array:
        """(p, k) the semi-axes of the ellipsoid as changes of the parameters, longest first beside their values."""
        unit = np.abs(self.nominal) + (np.array(self.nominal) == 0.0)
        sizes, vectors = np.linalg.eigh(np.array(self.shape) / np.outer(unit, unit))
        axes: Array = (unit[:, None] * vectors * np.sqrt(np.maximum(sizes, 0.0)))[:, ::-1]
        return axes[:, sizes[::-1] > 0.0]

    def scaled(self, share: float) -> Identified:
        """The same with semi-axes times `share`."""
        return replace(self, shape=tuple(tuple(share**2 * entry for entry in row) for row in self.shape))

    def text(self, robot: CompiledRobot, robust: bool) -> str:
        """What a training takes from the file, for a terminal. robust: whether the adversaries play."""
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
            listed = ", ".join(f"{each} {value:.3g}" for each, value in zip(names, values, strict=True))
            lines.append(f"  adversary of the {name}: {listed}")
        return "\n".join(lines)


def read(path: Path, robot: CompiledRobot) -> Identified:
    """The file of a robot with kernels on the CPU. Raises SolverError for a file that is none, of another model, or
    whose set is empty."""
    try:
        data = path.read_bytes()
        content = json.loads(data)
        nominal, ellipsoid, radii = _parts(content, robot)
    except OSError as error:
        raise SolverError(
            f"cannot read {path}: {error.strerror}. Write it with `modelgen identify {robot.name}`."
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"it has no entry {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise SolverError(
            f"{path} is not a file of `modelgen identify`, or was edited ({reason[:200]}). Write it again with "
            f"`modelgen identify {robot.name} LOG.csv ...`."
        ) from error
    if content["model_hash"] != robot.model_hash:
        raise SolverError(
            f"{path} is of another model: it was identified for {content['robot']} {str(content['model_hash'])[:12]}, "
            f"and the built one is {robot.name} {robot.model_hash[:12]}. Identify again with "
            f"`modelgen identify {robot.name} LOG.csv ...`."
        )
    shape, shares = _within(np.array(nominal), ellipsoid, robot, path)
    digest = hashlib.sha256(data).hexdigest()
    return Identified(str(path), digest, nominal, tuple(map(tuple, shape.tolist())), tuple(shares.tolist()), radii)


def _parts(content: Any, robot: CompiledRobot) -> tuple[tuple[float, ...], Array, dict[str, tuple[float, ...]]]:
    """Nominal parameters (p,), shape (p, p) and radii. ValueError where they are none."""
    names, sizes = list(robot.parameter_names), (len(robot.state_names), len(robot.input_names), len(robot.state_names))
    for key in ("robot", "model_hash"):
        if not isinstance(content[key], str):
            raise ValueError(f"its {key} is {content[key]!r}")
    if content["model_hash"] != robot.model_hash:  # said by the caller, with no more of the file read
        return (), np.zeros((0, 0)), {}
    if content["ellipsoid"]["names"] != names:
        raise ValueError(f"its ellipsoid is not of {', '.join(names)}")
    nominal = _vector(content["ellipsoid"]["centre"], len(names))
    shape = np.array([_vector(row, len(names)) for row in content["ellipsoid"]["shape"]])
    if shape.shape != (len(names), len(names)):
        raise ValueError(f"its shape is not a matrix of {len(names)} rows")
    for name, value in zip(names, nominal, strict=True):
        if content["parameters"][name]["value"] != value:
            raise ValueError(f"its value of {name} is not the centre of its ellipsoid")
    radii = {}
    for name, size in zip(RADII, sizes, strict=True):
        given = content["radii"][name]
        radii[name] = _vector([0.0 if each is None else each for each in given], size)  # no sensor, no error of it
        if min(radii[name], default=0.0) < 0.0:
            raise ValueError(f"a radius of {name} is negative")
    return nominal, shape, radii


def _vector(values: Any, size: int) -> tuple[float, ...]:
    """Finite numbers. ValueError for anything else."""
    if not isinstance(values, list) or len(values) != size:
        raise ValueError(f"{str(values)[:60]} is not a list of {size} numbers")
    for value in values:
        if type(value) not in (int, float) or not abs(value) < 1e30:
            raise ValueError(f"{str(value)[:60]} is not a finite number")
    return tuple(float(value) for value in values)


def _within(centre: Array, shape: Array, robot: CompiledRobot, path: Path) -> tuple[Array, Array]:
    """The shape (p, p) within the bounds, and the shares (p,) of its half widths that are left.

    Where parameter i may move less than sqrt(P_ii), the set is scaled along P e_i, the change of all parameters that
    goes with that one: P - (1 - k^2) P e_i e_i' P / P_ii has k times the half width there, lies in the set, and its
    section at a fixed parameter i is the same. Raises SolverError for a set without members, and for one whose centre
    lies at a bound.
    """
    lower, upper = np.array([(each.lower, each.upper) for each in robot.metadata.parameters]).reshape(-1, 2).T
    half = (upper - lower) / 2
    P = shape / np.outer(half, half)
    size = float(np.abs(P).max(initial=0.0))
    if np.abs(P - P.T).max(initial=0.0) > ROUNDING * size:
        raise SolverError(f"the ellipsoid in {path} is no set: its shape is not symmetric.")
    if np.linalg.eigvalsh(P).min(initial=0.0) < -ROUNDING * size:
        raise SolverError(f"the ellipsoid in {path} is empty: its shape is not positive semidefinite.")
    outside = (centre < lower) | (centre > upper)
    if outside.any():
        name = robot.parameter_names[int(outside.argmax())]
        raise SolverError(f"the set in {path} is empty: its {name} is not within the bounds of the model file.")
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
