"""The links and forces of a robot at given parameters: a tree of numbers, and generalized forces for an engine.

Forces, springs and motors are virtual work of the file's expressions. Nothing here uses the recursion of `derivation`,
so that an engine made from this is an independent check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from sympy import Expr, Matrix, S, Symbol, hessian

from modelgen.arrays import Array
from modelgen.derivation.description import metadata
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.engines import ENGINES, Body, Engine, ForcedEngine, GeneralizedForces, Movement, Tree
from modelgen.errors import ModelError
from modelgen.statement.robot import Robot, entries
from modelgen.tangent import Tangent


class Expressions:
    """The links and forces of a robot as functions of theta.

    Raises ModelError for a robot with a kinetic energy that belongs neither to a link nor to a rotor on one joint.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._q = [joint.symbol for joint in robot.joints]
        moved = [*(joint.symbol for joint in robot.independent), *robot.turns]
        zero = {joint.symbol: S.Zero for joint in robot.ignored}
        self._v = [speed.symbol for speed in robot.velocities]
        self._tangent = Tangent(metadata(robot))
        self._parameters = [parameter.symbol for parameter in robot.parameters]
        terms = [entry for link in robot.links for term in link.terms for entry in entries(term)]
        numbers = [*terms, *self._rotors(), robot.downward_acceleration]
        self._numbers = numpy_evaluator(self._parameters or [Symbol("none")], Matrix([numbers]))
        potential = sum((energy.value for energy in robot.potential), S.Zero)
        applied = Matrix(
            [
                sum((load.force * load.displacement.diff(q) for load in robot.loads), S.Zero) - potential.diff(q)
                for q in moved
            ]
        ).xreplace(zero)
        rates = Matrix([symbol.rate for symbol in moved]).xreplace(robot.rates)
        applied = rates.jacobian(self._v).T * applied.xreplace(robot.rates)
        arguments = [*self._q, *self._v, *(declared.symbol for declared in robot.inputs), *self._parameters]
        self._value = numpy_evaluator(arguments, applied)
        self._slope = numpy_evaluator(arguments, applied.jacobian([*self._q, *self._v]))

    def _rotors(self) -> list[Expr]:
        """The inertia that rotors add to each joint."""
        energy = sum((energy.value for energy in self._robot.kinetic), S.Zero)
        still = dict.fromkeys(self._v, S.Zero)
        matrix = hessian(energy, self._v)
        rest = [energy.xreplace(still), *(energy.diff(rate).xreplace(still) for rate in self._v)]
        moving = {*self._q, *self._v}
        if (
            energy.free_symbols & self._robot.rates.keys()
            or any(term != 0 for term in rest)
            or not matrix.is_diagonal()
            or matrix.free_symbols & moving
        ):
            raise ModelError(
                f"`{self._robot.name}` has bodies or kinetic energies besides its links and the rotors on its joints, "
                "which the other engine cannot represent. Describe the robot in MJCF: --mjcf PATH."
            )
        return [matrix[i, i] for i in range(len(self._v))]

    def _all(self, theta: Array) -> list[float]:
        """The values of all parameters, including fixed ones."""
        free = iter(theta)
        return [parameter.value if parameter.fixed else float(next(free)) for parameter in self._robot.parameters]

    def tree(self, theta: Array) -> Tree:
        """The mechanism at the parameters theta (p,)."""
        numbers = iter(self._numbers(*(np.array([value]) for value in self._all(theta) or [0.0])).ravel())

        def take(*shape: int) -> Array:
            return np.array([next(numbers) for _ in range(int(np.prod(shape)))]).reshape(shape)

        bodies = []
        for link in self._robot.links:
            position, rotation, mass, centre, inertia = take(3), take(3, 3), take(1)[0], take(3), take(3, 3)
            movements = tuple(
                Movement(
                    axis.name,
                    axis.kind,
                    np.array(axis.motions[0].axis, np.float64).ravel(),
                    tuple(coordinate.name for coordinate in axis.coordinates),
                    tuple(motion.speed.name for motion in axis.motions),
                )
                for axis in link.axes
            )
            parent = self._robot.links.index(link.parent) if link.parent else None
            bodies.append(Body(link.name, parent, position, rotation, movements, float(mass), centre, inertia))
        armature = take(len(self._v))
        names, speeds = (tuple(symbol.name for symbol in symbols) for symbols in (self._q, self._v))
        return Tree(self._robot.name, names, speeds, self._tangent, tuple(bodies), float(next(numbers)), armature)

    def forces(self, theta: Array) -> GeneralizedForces:
        """All forces except the weights, at the parameters theta (p,)."""
        return _AppliedForces((self._value, self._slope), self._all(theta), self._tangent)


@dataclass(frozen=True)
class _AppliedForces:
    """The forces of the model file at one set of parameters."""

    functions: tuple[Callable[..., Array], Callable[..., Array]]  # value and slope
    parameters: Sequence[float]
    tangent: Tangent

    def value(self, x: Array, u: Array) -> Array:
        return self._evaluated(self.functions[0], x, u)[:, :, 0]

    def slope(self, x: Array, u: Array) -> Array:
        return self._evaluated(self.functions[1], x, u) @ self.tangent.basis(x)

    def _evaluated(self, function: Callable[..., Array], x: Array, u: Array) -> Array:
        return function(*x.T, *u.T, *(np.full(len(x), value) for value in self.parameters))


def builder(engine: str, robot: Robot) -> Callable[[Array], Engine]:
    """A function of theta (p,) that makes the robot in an engine from its links.

    Raises ModelError for a robot with bodies that the engine cannot represent.
    """
    expressions, module = Expressions(robot), import_module(ENGINES[engine])
    return lambda theta: ForcedEngine(module.build(expressions.tree(theta)), expressions.forces(theta))
