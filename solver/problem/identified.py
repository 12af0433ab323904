"""What `modelgen identify` found, as a training takes it: nominal parameters and admissible sets.

The confidence set is made to fit the bounds of the model file by scaling, never by clipping: a scaled ellipsoid keeps
its exact minimiser. What is identified and what is not are scaled apart, so that a direction that the recordings do
not see does not shrink what they know.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot
from solver.errors import SolverError

Array = NDArray[np.float64]

LEAST = 0.01  # share of the set that must fit into the bounds: less, and its centre lies at one of them
RADII = ("state", "action", "observation")
ROUNDING = 1e-6  # of the largest entry of a shape: how far it may be from symmetric and positive semidefinite


@dataclass(frozen=True)
class Identified:
    """Parameters and sets of one file, in the order of the robot's names."""

    source: str  # the file
    sha256: str  # of its content
    nominal: tuple[float, ...]  # (p,)
    shape: tuple[tuple[float, ...], ...]  # (p, p), P of the ellipsoid about `nominal`, within the declared bounds
    share: float  # of the identified semi-axes, after they were scaled into the bounds
    share_unidentified: float  # of the others
    radii: dict[str, tuple[float, ...]]  # of every adversary but that of the parameters: (n,), (m,), (n,)

    @staticmethod
    def of(content: Mapping[str, Any]) -> Identified:
        """From run.json. Raises TypeError, KeyError or ValueError for what is none."""
        source, sha256 = content["source"], content["sha256"]
        if set(content) != set(Identified.__dataclass_fields__) or not isinstance(source + sha256, str):
            raise ValueError("its entry `identified` has other keys or types")
        nominal = _vector(content["nominal"], len(content["nominal"]))
        share, share_unidentified = _vector([content["share"], content["share_unidentified"]], 2)
        return Identified(
            source,
            sha256,
            nominal,
            tuple(_vector(row, len(nominal)) for row in content["shape"]),
            share,
            share_unidentified,
            {name: _vector(content["radii"][name], len(content["radii"][name])) for name in RADII},
        )

    def largest(self, name: str) -> float:
        """The largest component of an adversary's radii: its setting alpha_NAME."""
        return max(self.radii[name], default=0.0)

    def proportions(self, name: str) -> tuple[float, ...] | None:
        """The radii of an adversary divided by the largest one; None for one that the file says nothing of."""
        largest = self.largest(name) if name in self.radii else 0.0
        return tuple(each / largest for each in self.radii[name]) if largest > 0.0 else None

    def settings(self) -> dict[str, Any]:
        """The radii as settings of a training."""
        return {"alpha_parameters": 1.0} | {f"alpha_{name}": self.largest(name) for name in RADII}

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
        for parameter, value, width in zip(robot.metadata.parameters, self.nominal, widths, strict=True):
            spread = f" +- {width:.3g}" if robust else ""
            lines.append(f"  {parameter.name:<{wide}}  {value:.6g}{spread} {parameter.unit}")
        if not robust:
            return "\n".join(lines)
        for share, what in ((self.share, "the set was"), (self.share_unidentified, "what is not identified was")):
            if share < 1.0:
                lines.append(f"  {what} scaled by {share:.3g} into the bounds of the model file")
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
        nominal, ellipsoid, directions, radii = _parts(content, robot)
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
    shape, share, other = _within(np.array(nominal), ellipsoid, directions, robot, path)
    digest = hashlib.sha256(data).hexdigest()
    return Identified(str(path), digest, nominal, tuple(map(tuple, shape.tolist())), share, other, radii)


def _parts(content: Any, robot: CompiledRobot) -> tuple[tuple[float, ...], Array, Array, dict[str, tuple[float, ...]]]:
    """Nominal parameters (p,), shape (p, p), directions not identified (p, k) and radii. ValueError where they are
    none."""
    names, sizes = list(robot.parameter_names), (len(robot.state_names), len(robot.input_names), len(robot.state_names))
    for key in ("robot", "model_hash"):
        if not isinstance(content[key], str):
            raise ValueError(f"its {key} is {content[key]!r}")
    if content["model_hash"] != robot.model_hash:  # said by the caller, with no more of the file read
        return (), np.zeros((0, 0)), np.zeros((0, 0)), {}
    if content["ellipsoid"]["names"] != names:
        raise ValueError(f"its ellipsoid is not of {', '.join(names)}")
    nominal = _vector(content["ellipsoid"]["centre"], len(names))
    shape = np.array([_vector(row, len(names)) for row in content["ellipsoid"]["shape"]])
    if shape.shape != (len(names), len(names)):
        raise ValueError(f"its shape is not a matrix of {len(names)} rows")
    for name, value in zip(names, nominal, strict=True):
        if content["parameters"][name]["value"] != value:
            raise ValueError(f"its value of {name} is not the centre of its ellipsoid")
    directions = [
        _vector([each["direction"][name] for name in names], len(names)) for each in content["unidentifiable"]
    ]
    radii = {}
    for name, size in zip(RADII, sizes, strict=True):
        given = content["radii"][name]
        radii[name] = _vector([0.0 if each is None else each for each in given], size)  # no sensor, no error of it
        if min(radii[name], default=0.0) < 0.0:
            raise ValueError(f"a radius of {name} is negative")
    return nominal, shape, np.array(directions).reshape(-1, len(names)).T, radii


def _vector(values: Any, size: int) -> tuple[float, ...]:
    """Finite numbers. ValueError for anything else."""
    if not isinstance(values, list) or len(values) != size:
        raise ValueError(f"{str(values)[:60]} is not a list of {size} numbers")
    for value in values:
        if type(value) not in (int, float) or not abs(value) < 1e30:
            raise ValueError(f"{str(value)[:60]} is not a finite number")
    return tuple(float(value) for value in values)


def _within(
    centre: Array, shape: Array, directions: Array, robot: CompiledRobot, path: Path
) -> tuple[Array, float, float]:
    """The shape within the bounds, and the shares of its identified and unidentified semi-axes.

    Raises SolverError for a set without members, and for one whose centre lies at a bound.
    """
    lower, upper = np.array([(each.lower, each.upper) for each in robot.metadata.parameters]).reshape(-1, 2).T
    half = (upper - lower) / 2
    scaled = shape / np.outer(half, half)
    size = float(np.abs(scaled).max(initial=0.0))
    if np.abs(scaled - scaled.T).max(initial=0.0) > ROUNDING * size:
        raise SolverError(f"the ellipsoid in {path} is no set: its shape is not symmetric.")
    if np.linalg.eigvalsh(scaled).min(initial=0.0) < -ROUNDING * size:
        raise SolverError(f"the ellipsoid in {path} is empty: its shape is not positive semidefinite.")
    outside = (centre < lower) | (centre > upper)
    if outside.any():
        name = robot.parameter_names[int(outside.argmax())]
        raise SolverError(f"the set in {path} is empty: its {name} is not within the bounds of the model file.")
    room = np.minimum(centre - lower, upper - centre) / half
    null = np.linalg.qr(directions / half[:, None])[0]
    known = np.eye(len(half)) - null @ null.T
    seen, unseen = known @ scaled @ known, null @ null.T @ scaled @ null @ null.T
    moved = np.diag(unseen) > (ROUNDING * room) ** 2
    squared, widths = room**2, np.maximum(np.diag(seen), 0.0)
    # Where both move a parameter, what is identified takes at most half of the squared room.
    limit = np.where(moved, squared / 2, squared)
    share = min(1.0, math.sqrt((limit / np.maximum(widths, 1e-300)).min(initial=1.0)))
    left = (squared - share**2 * widths)[moved] / np.diag(unseen)[moved]
    other = min(1.0, math.sqrt(max(0.0, left.min(initial=1.0))))
    if min(share, other) < LEAST:
        worst = int(np.where((widths > 0) | moved, room, np.inf).argmin())
        name = robot.parameter_names[worst]
        raise SolverError(
            f"the set in {path} is empty within the bounds of the model file: {name} was identified as "
            f"{centre[worst]:.6g}, at its declared bound ({lower[worst]:g} to {upper[worst]:g}). Widen the bounds of "
            f"{name} in the model file, or fix it there, build, and identify again."
        )
    return (share**2 * seen + other**2 * unseen) * np.outer(half, half), share, other
