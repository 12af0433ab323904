"""Pinocchio as the other engine: the mechanism from an MJCF file as Pinocchio reads it, the actuators as read here.

Pinocchio knows bodies, joints and rotor inertias of an MJCF file, but no actuators.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.engines import matched
from modelgen.errors import ModelError
from modelgen.metadata import Metadata

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Drive:
    """gear (gain * input + bias . (1, gear q, gear v)) on one joint."""

    joint: str
    gear: float
    gain: float
    bias: tuple[float, float, float]


class Pinocchio:
    """One mechanism, evaluated one sample after the other."""

    def __init__(self, pinocchio: Any, model: Any, names: Sequence[str], drives: Sequence[Drive]) -> None:
        self.label = f"pinocchio {pinocchio.__version__}"
        self._pinocchio = pinocchio
        self._model = model
        self._data = model.createData()
        self._order = [int(model.joints[model.getJointId(name)].idx_v) for name in names]
        self._drives = [(names.index(drive.joint), drive) for drive in drives]

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q), rotor inertias (armature) included."""
        result = np.empty((len(q), q.shape[1], q.shape[1]))
        for sample, position in enumerate(q):
            upper = np.triu(self._pinocchio.crba(self._model, self._data, self._sorted(position)))
            result[sample] = (upper + np.triu(upper, 1).T)[np.ix_(self._order, self._order)]
        return result

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q) with the joints' damping and the actuators, without contacts, limits and dry friction."""
        size = x.shape[1] // 2
        result = np.empty((len(x), size))
        damping = np.asarray(self._model.damping)[self._order]
        for sample, (state, inputs) in enumerate(zip(x, u, strict=True)):
            q, v = state[:size], state[size:]
            force = -damping * v
            for (row, drive), value in zip(self._drives, inputs, strict=True):
                bias = np.dot(drive.bias, (1.0, drive.gear * q[row], drive.gear * v[row]))
                force[row] += drive.gear * (drive.gain * value + bias)
            arguments = (self._sorted(each) for each in (q, v, force))
            result[sample] = self._pinocchio.aba(self._model, self._data, *arguments)[self._order]
        return result

    def _sorted(self, values: Array) -> Array:
        """From the order of the model file to Pinocchio's."""
        result = np.empty(len(values))
        result[self._order] = values
        return result


def load(path: Path, metadata: Metadata) -> Pinocchio:
    """The robot of an MJCF file; one joint a body, a joint for every coordinate and an actuator for every input."""
    try:
        pinocchio: Any = import_module("pinocchio")
    except ImportError as error:
        raise ModelError(
            "Pinocchio is not installed, so there is nothing to compare with. Install it with `pip install pin`."
        ) from error
    try:
        root = ElementTree.parse(path).getroot()
        model = pinocchio.buildModelFromMJCF(str(path))
    except (ValueError, OSError, RuntimeError, ElementTree.ParseError) as error:
        raise ModelError(f"Pinocchio cannot read {path}: {' '.join(str(error).split())}") from error
    coordinates = [state.name for state in metadata.states if state.kind == "position"]
    joints = [name for name in model.names if name != "universe"]
    if any(name.startswith("Composite_") for name in joints):
        raise ModelError(
            f"a body of {path} has several joints; give Pinocchio a body for each, or use --against mujoco."
        )
    matched(coordinates, joints, "joint", path)
    if model.nq != len(coordinates) or model.nv != len(coordinates):
        raise ModelError(f"{path} has a joint that is neither a hinge nor a slide; write it as a row of bodies.")
    if root.find(".//include") is not None or root.find(".//default") is not None:
        raise ModelError(f"{path} has <include> or <default>, which are not read here; use --against mujoco.")
    drives = [_drive(each, path) for each in root.findall("./actuator/*")]
    names = [str(each.get("name")) for each in root.findall("./actuator/*")]
    order = matched([each.name for each in metadata.inputs], names, "actuator", path)
    return Pinocchio(pinocchio, model, coordinates, [drives[place] for place in order])


def _drive(element: ElementTree.Element, path: Path) -> Drive:
    """A motor or general actuator on a joint; anything else is refused rather than misread."""
    name, joint = element.get("name"), element.get("joint")
    kinds = (element.get("gaintype", "fixed"), element.get("biastype", "none"), element.get("dyntype", "none"))
    if (
        element.tag not in ("motor", "general")
        or not joint
        or kinds
        not in (
            ("fixed", "none", "none"),
            ("fixed", "affine", "none"),
        )
    ):
        raise ModelError(
            f"the actuator `{name}` of {path} is not one that is understood here: a motor or general on a joint, with "
            "a fixed gain and an affine bias. MuJoCo itself understands all: --against mujoco."
        )
    bias = _numbers(element, "biasprm", (0.0, 0.0, 0.0)) if kinds[1] == "affine" else [0.0, 0.0, 0.0]
    gain, gear = _numbers(element, "gainprm", (1.0,))[0], _numbers(element, "gear", (1.0,))[0]
    return Drive(joint, gear, gain, (bias[0], bias[1], bias[2]))


def _numbers(element: ElementTree.Element, attribute: str, default: Sequence[float]) -> list[float]:
    """The numbers of an attribute, the missing last ones by default."""
    try:
        given = [float(word) for word in element.get(attribute, "").split()]
    except ValueError:
        raise ModelError(f"the {attribute} of actuator `{element.get('name')}` is no row of numbers.") from None
    return [*given, *default[len(given) :]]
