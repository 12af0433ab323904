"""A robot stated by its links as numbers, for an engine to build: nothing of the recursion or its derivatives.

What acts besides the links' weights (forces, springs, motors) is virtual work of the file's expressions, and the
engine takes it as generalized forces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Matrix, S, Symbol, hessian

from modelgen.derivation.domain_checks import evaluator
from modelgen.errors import ModelError
from modelgen.statement.links import Kind
from modelgen.statement.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Movement:
    """One coordinate: a turn about, or a slide along, an axis of the body's frame."""

    coordinate: str
    kind: Kind
    axis: Array  # (3,), of length one


@dataclass(frozen=True)
class Body:
    """One link at given parameters, in its own frame."""

    name: str
    parent: int | None  # None: the ground
    position: Array  # (3,), in the parent's frame
    rotation: Array  # (3, 3), to the parent's frame, all coordinates at zero
    movements: tuple[Movement, ...]
    mass: float
    centre: Array  # (3,)
    inertia: Array  # (3, 3), about the centre


@dataclass(frozen=True)
class Tree:
    """The mechanism: parents stand before children."""

    name: str
    coordinates: tuple[str, ...]
    bodies: tuple[Body, ...]
    gravity: float  # along -z
    armature: Array  # (n_q,), rotor inertias


class Mechanism(Protocol):
    """A tree in another engine, its coordinates in the order of the model file, moved by generalized forces."""

    label: str

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q)."""

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q) under the generalized forces u (N, n_q)."""

    def derivative(self, x: Array, u: Array) -> Array:
        """dvdot/dx (N, n_q, n) at the same forces."""


class Forces(Protocol):
    """Generalized forces besides the weights."""

    def value(self, x: Array, u: Array) -> Array:
        """(N, n_q)."""

    def slope(self, x: Array, u: Array) -> Array:
        """By the state, (N, n_q, n)."""


class Driven:
    """An `Engine`: a mechanism and what drives it."""

    def __init__(self, mechanism: Mechanism, forces: Forces) -> None:
        self.label = mechanism.label
        self._mechanism = mechanism
        self._forces = forces

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q)."""
        return self._mechanism.mass_matrix(q)

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q)."""
        return self._mechanism.acceleration(x, self._forces.value(x, u))

    def derivative(self, x: Array, u: Array) -> Array:
        """dvdot/dx (N, n_q, n)."""
        fixed = self._mechanism.derivative(x, self._forces.value(x, u))
        matrix = self._mechanism.mass_matrix(x[:, : x.shape[1] // 2])
        return fixed + np.asarray(np.linalg.solve(matrix, self._forces.slope(x, u)), np.float64)


class Description:
    """The links and forces of a robot as functions of theta.

    Raises ModelError for a robot that has kinetic energies besides its links which are no rotors of its joints.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._q = [joint.symbol for joint in robot.joints]
        self._v = [symbol.rate for symbol in self._q]
        self._constants = [constant.symbol for constant in robot.constants]
        terms = [entry for link in robot.links for term in link.terms for entry in _entries(term)]
        numbers = [*terms, *self._rotors(), robot.downward_acceleration]
        self._numbers = evaluator(self._constants or [Symbol("none")], Matrix([numbers]))
        potential = sum((energy.value for energy in robot.potential), S.Zero)
        applied = Matrix(
            [
                sum((load.force * load.displacement.diff(q) for load in robot.loads), S.Zero) - potential.diff(q)
                for q in self._q
            ]
        )
        arguments = [*self._q, *self._v, *(drive.symbol for drive in robot.drives), *self._constants]
        self._value = evaluator(arguments, applied)
        self._slope = evaluator(arguments, applied.jacobian([*self._q, *self._v]))

    def _rotors(self) -> list[Expr]:
        """The inertia that the kinetic energies besides the links add to each joint."""
        energy = sum((each.value for each in self._robot.kinetic), S.Zero)
        still = dict.fromkeys(self._v, S.Zero)
        matrix = hessian(energy, self._v)
        rest = [energy.xreplace(still), *(energy.diff(rate).xreplace(still) for rate in self._v)]
        moving = {*self._q, *self._v}
        if any(each != 0 for each in rest) or not matrix.is_diagonal() or matrix.free_symbols & moving:
            raise ModelError(
                f"`{self._robot.name}` has bodies or kinetic energies besides its links that are no rotors on its "
                "joints, and the other engine cannot be given those. Describe the robot in MJCF: --mjcf PATH."
            )
        return [matrix[i, i] for i in range(len(self._v))]

    def _all(self, theta: Array) -> list[float]:
        """The values of all constants, fixed ones included."""
        free = iter(theta)
        return [constant.value if constant.fixed else float(next(free)) for constant in self._robot.constants]

    def tree(self, theta: Array) -> Tree:
        """The mechanism at the parameters theta (p,)."""
        numbers = iter(self._numbers(*(np.array([value]) for value in self._all(theta) or [0.0])).ravel())

        def take(*shape: int) -> Array:
            return np.array([next(numbers) for _ in range(int(np.prod(shape)))]).reshape(shape)

        bodies = []
        for link in self._robot.links:
            position, rotation, mass, centre, inertia = take(3), take(3, 3), take(1)[0], take(3), take(3, 3)
            movements = tuple(
                Movement(each.coordinate.name, each.kind, np.array(each.axis, np.float64).ravel())
                for each in link.motions
            )
            parent = self._robot.links.index(link.parent) if link.parent else None
            bodies.append(Body(link.name, parent, position, rotation, movements, float(mass), centre, inertia))
        armature = take(len(self._q))
        names = tuple(symbol.name for symbol in self._q)
        return Tree(self._robot.name, names, tuple(bodies), float(next(numbers)), armature)

    def forces(self, theta: Array) -> Forces:
        """What acts besides the weights, at the parameters theta (p,)."""
        return _Applied(self._value, self._slope, self._all(theta))


class _Applied:
    """The model file's forces at one set of constants."""

    def __init__(self, value: Callable[..., Array], slope: Callable[..., Array], constants: Sequence[float]) -> None:
        self._functions = value, slope
        self._constants = constants

    def value(self, x: Array, u: Array) -> Array:
        return self._evaluated(self._functions[0], x, u)[:, :, 0]

    def slope(self, x: Array, u: Array) -> Array:
        return self._evaluated(self._functions[1], x, u)

    def _evaluated(self, function: Callable[..., Array], x: Array, u: Array) -> Array:
        return function(*x.T, *u.T, *(np.full(len(x), value) for value in self._constants))


def _entries(term: Expr | Matrix) -> list[Expr]:
    return list(term) if isinstance(term, Matrix) else [term]
