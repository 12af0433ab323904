"""Pinocchio as an engine: a mechanism made from links, or a robot from an MJCF file.

Pinocchio reads bodies, joints and rotor inertias of an MJCF file, but not the actuators. They are read here.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.engines.engine import ForcedEngine, Tree, package
from modelgen.engines.mujoco import matched
from modelgen.errors import ModelError
from modelgen.metadata import Metadata


@dataclass(frozen=True)
class JointActuator:
    """An actuator on one joint: the force gear (gain * input + bias . (1, gear q, gear v))."""

    joint: str
    gear: float
    gain: float
    bias: tuple[float, float, float]


class Pinocchio:
    """A mechanism in Pinocchio, moved by forces along its joints, one sample at a time."""

    def __init__(
        self,
        pinocchio: Any,
        model: Any,
        names: Sequence[str],
        rows: tuple[list[int], list[int]] | None = None,
        ignored: int = 0,
    ) -> None:
        """names: of the joints. rows: places of the coordinates and speeds. ignored: number of the last speeds whose
        coordinates stay at zero."""
        self.label = f"pinocchio {pinocchio.__version__}"
        self._pinocchio = pinocchio
        self._model = model
        self._data = model.createData()
        self._order = [int(model.joints[model.getJointId(name)].idx_v) for name in names] if rows is None else rows[1]
        self._places = self._order if rows is None else rows[0]  # of the coordinates; the same without rotations
        self._moving = self._order[: len(self._order) - ignored]

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_v, n_v), including rotor inertias (armature)."""
        result = np.empty((len(q), len(self._order), len(self._order)))
        for sample, position in enumerate(q):
            whole = self._pinocchio.crba(self._model, self._data, _sorted(position, self._places, self._model.nq))
            result[sample] = whole[np.ix_(self._order, self._order)]
        return result

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_v) under the forces u (N, n_v), without contacts, limits or friction."""
        result = np.empty(u.shape)
        for sample, arguments in enumerate(self._arguments(x, u)):
            result[sample] = self._pinocchio.aba(self._model, self._data, *arguments)[self._order]
        return result

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        """dvdot/de (N, n_v, nt) at constant forces, by Pinocchio's own derivatives."""
        size = u.shape[1]
        result = np.empty((len(x), size, size + len(self._moving)))
        by_q, by_v = (np.ix_(self._order, columns) for columns in (self._moving, self._order))
        for sample, arguments in enumerate(self._arguments(x, u)):
            self._pinocchio.computeABADerivatives(self._model, self._data, *arguments)
            result[sample] = np.hstack([self._data.ddq_dq[by_q], self._data.ddq_dv[by_v]])
        return result, np.zeros_like(result)

    def _arguments(self, x: Array, u: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Position, velocity and forces of each sample, in Pinocchio's order."""
        size = len(self._places)
        for state, forces in zip(x, u, strict=True):
            q, v = state[:size], state[size:]
            speeds, pushed = (_sorted(each, self._order, self._model.nv) for each in (v, forces))
            yield _sorted(q, self._places, self._model.nq), speeds, pushed


def _sorted(values: Array, order: list[int], size: int) -> Array:
    """The values (size,) in Pinocchio's order, from the order of the model file; zero for others."""
    result = np.zeros(size)
    result[order] = values
    return result


class ActuatorForces:
    """Forces of an MJCF file on the joints: damping and actuators, all affine in the state.

    coordinates: number of the joints whose coordinates are in the state, the first ones.
    """

    def __init__(self, damping: Array, actuators: Sequence[tuple[int, JointActuator]], coordinates: int) -> None:
        self._damping, self._coordinates = damping, coordinates
        self._actuators = actuators

    def value(self, x: Array, u: Array) -> Array:
        """The forces (N, n_v)."""
        v = x[:, self._coordinates :]
        q = np.hstack([x[:, : self._coordinates], np.zeros((len(x), len(self._damping) - self._coordinates))])
        force = -self._damping * v
        for (row, actuator), value in zip(self._actuators, u.T, strict=True):
            constant, by_q, by_v = actuator.bias
            bias = constant + by_q * actuator.gear * q[:, row] + by_v * actuator.gear * v[:, row]
            force[:, row] += actuator.gear * (actuator.gain * value + bias)
        return force

    def slope(self, x: Array, _u: Array) -> Array:
        """The derivative by the state (N, n_v, n)."""
        size = len(self._damping)
        slope = np.hstack([np.zeros((size, size)), -np.diag(self._damping)])
        for row, actuator in self._actuators:
            _, by_q, by_v = actuator.bias
            slope[row, row] += actuator.gear**2 * by_q
            slope[row, size + row] += actuator.gear**2 * by_v
        kept = np.delete(slope, np.arange(self._coordinates, size), axis=1)
        return np.tile(kept, (len(x), 1, 1))


def load(path: Path, metadata: Metadata) -> ForcedEngine:
    """The robot of an MJCF file with one joint per body. Raises ModelError for elements that are not supported."""
    pinocchio = package("pinocchio")
    try:
        root = ElementTree.parse(path).getroot()
        model = pinocchio.buildModelFromMJCF(str(path))
    except (ValueError, OSError, RuntimeError, ElementTree.ParseError) as error:
        raise ModelError(f"Pinocchio cannot read {path}: {' '.join(str(error).split())}") from error
    coordinates = (*metadata.coordinates, *metadata.ignored)
    joints = [name for name in model.names if name != "universe"]
    if any(name.startswith("Composite_") for name in joints):
        raise ModelError(
            f"a body of {path} has several joints; write one body per joint for Pinocchio, or use --against mujoco."
        )
    matched(coordinates, joints, "joint", path)
    if model.nq != len(coordinates) or model.nv != len(coordinates):
        raise ModelError(f"{path} has a joint that is neither a hinge nor a slide; write it as a series of bodies.")
    if root.find(".//include") is not None or root.find(".//default") is not None:
        raise ModelError(f"{path} has <include> or <default>, which are not supported here; use --against mujoco.")
    elements = root.findall("./actuator/*")
    actuators = [_actuator(element, path) for element in elements]
    names = [str(element.get("name")) for element in elements]
    order = matched([entry.name for entry in metadata.inputs], names, "actuator", path)
    order_v = [int(model.joints[model.getJointId(name)].idx_v) for name in coordinates]
    mechanism = Pinocchio(pinocchio, model, coordinates, (order_v[: metadata.nq], order_v), len(metadata.ignored))
    damping = np.asarray(model.damping)[order_v]
    rows = [(coordinates.index(actuators[place].joint), actuators[place]) for place in order]
    return ForcedEngine(mechanism, ActuatorForces(damping, rows, metadata.nq))


def build(tree: Tree) -> Pinocchio:
    """The mechanism of a tree, with one joint per coordinate."""
    pinocchio = package("pinocchio")
    model = pinocchio.Model()
    model.name = tree.name
    model.gravity.linear = np.array([0, 0, -tree.gravity])
    kinds = {"revolute": pinocchio.JointModelRevoluteUnaligned, "prismatic": pinocchio.JointModelPrismaticUnaligned}
    placed: dict[int | None, tuple[int, Any]] = {None: (0, pinocchio.SE3.Identity())}  # joint, pose of the frame on it
    for number in _depth_first(tree, None):
        body = tree.bodies[number]
        joint, frame = placed[body.parent]
        frame = frame * pinocchio.SE3(body.rotation, body.position)
        for movement in body.movements:
            own = pinocchio.JointModelSpherical() if movement.kind == "ball" else kinds[movement.kind](movement.axis)
            added = model.addJoint(joint, own, frame, movement.name)
            joint, frame = added, frame.Identity()
        model.appendBodyToJoint(joint, pinocchio.Inertia(body.mass, body.centre, body.inertia), frame)
        placed[number] = (joint, frame)
    q, v = dict[str, int](), dict[str, int]()
    for movement in (movement for body in tree.bodies for movement in body.movements):
        own = model.joints[model.getJointId(movement.name)]
        order = (3, 0, 1, 2) if movement.kind == "ball" else (0,)  # Pinocchio's quaternions end with w
        q |= {name: int(own.idx_q) + k for name, k in zip(movement.coordinates, order, strict=True)}
        v |= {name: int(own.idx_v) + k for k, name in enumerate(movement.speeds)}
    rows = [q[name] for name in tree.coordinates], [v[name] for name in tree.speeds]
    mechanism = Pinocchio(pinocchio, model, tree.coordinates, rows, len(tree.tangent.metadata.ignored))
    armature = np.empty(model.nv)
    armature[rows[1]] = tree.armature
    model.armature = armature
    return mechanism


def _depth_first(tree: Tree, root: int | None) -> Iterator[int]:
    """The indices of the bodies depth first, as Pinocchio's algorithms need."""
    for number, body in enumerate(tree.bodies):
        if body.parent == root:
            yield number
            yield from _depth_first(tree, number)


def _actuator(element: ElementTree.Element, path: Path) -> JointActuator:
    """A motor or general actuator on a joint. Raises ModelError for any other actuator."""
    name, joint = element.get("name"), element.get("joint")
    kinds = (element.get("gaintype", "fixed"), element.get("biastype", "none"), element.get("dyntype", "none"))
    supported = ("fixed", "none", "none"), ("fixed", "affine", "none")
    if element.tag not in ("motor", "general") or not joint or kinds not in supported:
        raise ModelError(
            f"the actuator `{name}` of {path} is not supported here; only a motor or general on a joint is, with a "
            "fixed gain and an affine bias. MuJoCo supports all: --against mujoco."
        )
    bias = _numbers(element, "biasprm", (0.0, 0.0, 0.0)) if kinds[1] == "affine" else [0.0, 0.0, 0.0]
    gain, gear = _numbers(element, "gainprm", (1.0,))[0], _numbers(element, "gear", (1.0,))[0]
    return JointActuator(joint, gear, gain, (bias[0], bias[1], bias[2]))


def _numbers(element: ElementTree.Element, attribute: str, default: Sequence[float]) -> list[float]:
    """The numbers of an attribute, completed from `default`. Raises ModelError for other text."""
    try:
        given = [float(word) for word in element.get(attribute, "").split()]
    except ValueError:
        raise ModelError(f"the {attribute} of actuator `{element.get('name')}` is not a list of numbers.") from None
    return [*given, *default[len(given) :]]
