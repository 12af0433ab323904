"""Checks of a derived model on sampled states and parameters, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sympy import Matrix, Symbol

from modelgen.derivation.compiled import evaluator
from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.sampling import samples
from modelgen.derivation.sketch import sketch
from modelgen.errors import ModelError, Place, abridged
from modelgen.statement.declarations import Joint
from modelgen.statement.robot import Robot, fixed_values, model_expressions

Array = NDArray[np.float64]

SINGULAR = 1e-10  # smallest eigenvalue of M, its diagonal scaled to ones
ROUNDING = 1e-9  # beside the largest sampled cost or entry, a smaller one counts as zero


def check_domain(robot: Robot, equations: EquationsOfMotion) -> None:
    """Raise ModelError, with the line of the file, at the first quantity that no robot or task can have.

    Every coordinate has inertia, and every input and parameter an effect. At every sample all quantities are finite
    and M is positive definite; the equations of a continuous joint repeat after a whole turn; the state cost is
    zero at the target.
    """
    _check_used(robot, equations)
    sampled = _Samples((*equations.state, *equations.parameters), *samples(robot))
    functions = [
        evaluator(sampled.symbols, each, equations.definitions)
        for each in (equations.coordinate_rates, equations.mass_matrix, equations.force, equations.input_matrix)
    ]
    rates, mass_matrix, force, input_matrix = (function(sampled.at) for function in functions)
    rows = [
        joint.symbol if speed == joint.symbol.rate else speed
        for joint, speed in zip(robot.joints, equations.velocities, strict=True)
    ]
    for what, batch, symbols in (
        ("the rate", rates, equations.coordinates),
        ("the mass matrix", mass_matrix, rows),
        ("the force", force, rows),
        ("the input matrix", input_matrix, rows),
    ):
        _check_finite(what, batch, symbols, sampled, robot)
    _check_positive_definite(mass_matrix, robot.joints, sampled)
    _check_periodic(robot.joints, functions[1:], sampled)
    _check_cost(robot, equations, sampled)
    _check_points(robot, sampled)


@dataclass(frozen=True)
class _Samples:
    """States and parameters over the whole domain."""

    symbols: tuple[Symbol, ...]  # of x and theta
    x: Array  # (N, n)
    theta: Array  # (N, p)

    @property
    def at(self) -> Array:
        """The values (N, n + p) of the symbols."""
        return self.with_states(self.x)

    def with_states(self, x: Array) -> Array:
        """The same with other states (N, n)."""
        return np.hstack([x, self.theta])

    def words(self, number: int) -> str:
        """One sample, for a message."""
        values = [*self.x[number], *self.theta[number]]
        return ", ".join(f"{symbol} = {value:.4g}" for symbol, value in zip(self.symbols, values, strict=True))


def _check_used(robot: Robot, equations: EquationsOfMotion) -> None:
    """Every declared coordinate has inertia, every input a force, every parameter an effect."""
    for row, joint in enumerate(robot.joints):
        if equations.mass_matrix[row, :].is_zero_matrix:
            raise ModelError(
                f"nothing has inertia along `{joint.symbol}`: no kinetic energy contains "
                f"`{joint.symbol}.rate`. Add a body that moves with it: robot.point_mass(mass, position), "
                "robot.body(...), robot.link(...) or robot.kinetic_energy(...).",
                joint.place,
            )
    for column, each in enumerate(robot.inputs):
        if equations.input_matrix[:, column].is_zero_matrix:
            raise ModelError(
                f"the input `{each.symbol}` acts on nothing. Write robot.apply(coordinate, {each.symbol}), "
                "or remove the line that declares it.",
                each.place,
            )
    declared = [energy.value for energy in (*robot.kinetic, *robot.potential)]
    declared += [load.force for load in robot.loads] + [load.displacement for load in robot.loads]
    declared += [robot.declared_task.state_cost]
    declared += [term for link in robot.links for term in link.terms]
    declared += [robot.downward_acceleration] if robot.links else []
    declared += robot.system.terms if robot.system else ()
    effective = [equations.mass_matrix, equations.force, equations.input_matrix, equations.state_cost]
    effective += [*equations.coordinate_rates, *(value for _, value in equations.definitions)]
    for parameter in robot.parameters:
        if not any(parameter.symbol in term.free_symbols for term in (declared if parameter.fixed else effective)):
            raise ModelError(
                f"the parameter `{parameter.symbol}` has no effect on the equations of motion or the state "
                "cost. Use it in an energy, a body or a force, or remove the line that declares it.",
                parameter.place,
            )


def _check_finite(what: str, batch: Array, symbols: Sequence[Symbol], sampled: _Samples, robot: Robot) -> None:
    bad = np.argwhere(~np.isfinite(batch))
    if len(bad):
        sample, row = bad[0][:2]
        reason, place = _source(robot, sampled, sample)
        raise ModelError(
            f"{what} in the row of `{symbols[row]}` is {batch[tuple(bad[0])]} at {sampled.words(sample)}{reason}. Look "
            "for a division by zero, a logarithm or a root of a negative number, or a number beyond 1e308 such as "
            "exp(1000); or narrow the limits and bounds.",
            place,
        )


def _source(robot: Robot, sampled: _Samples, sample: int) -> tuple[str, Place]:
    """The first expression of the file that is not finite at a sample and at full inputs, in words, and its line.

    The line of the robot where each is finite, and only what follows from several is not.
    """
    inputs, known = [each.symbol for each in robot.inputs], fixed_values(robot)
    at = np.hstack([sampled.at[sample], [each.limit for each in robot.inputs]])
    rates = [symbol for joint in robot.joints for symbol in (joint.symbol, joint.symbol.rate)]
    for stated in model_expressions(robot):
        for entry in stated.entries:
            slopes = [entry.diff(symbol) for symbol in rates] if stated.slopes > 1 else []
            column = Matrix([entry, *slopes]).xreplace(known)
            values = evaluator((*sampled.symbols, *inputs), column)(at[None])[0, :, 0]
            for value, whose in zip(values, ["", *["a slope of "] * len(slopes)], strict=True):
                if not np.isfinite(value):
                    return f", because {whose}`{abridged(str(entry))}` is {value} there", stated.place
    return "", robot.place


def _check_points(robot: Robot, sampled: _Samples) -> None:
    """Every point that is named or drawn is finite at every sample, at the target and at the mean start."""
    task, drawn = robot.declared_task.numbers, sketch(robot)
    ends = np.repeat([task.target, task.start_mean], len(sampled.theta), axis=0)
    every = _Samples(sampled.symbols, np.vstack([sampled.x, ends]), np.tile(sampled.theta, (3, 1)))
    for point in robot.points:
        position = point.position.T.xreplace(fixed_values(robot))
        _check_place(f"the point `{point.name}`", position, (), every, "State", [point.place])
    advice = "Draw"
    if not robot.lines:
        advice = "It is of a body's rod, which shows a robot without a drawing: write robot.draw(line=[...]) with"
    _check_place("a point that is drawn,", Matrix(drawn.points), drawn.definitions, every, advice, drawn.places)


def _check_place(
    what: str,
    points: Matrix,
    definitions: Sequence[Definition],
    sampled: _Samples,
    advice: str,
    places: Sequence[Place],
) -> None:
    """Every row of `points` is finite at every sample; `places` has the line of each."""
    found = evaluator(sampled.symbols, points, definitions)(sampled.at)
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        sample, row, column = bad[0]
        raise ModelError(
            f"{what} ({', '.join(map(str, points.row(row)))}) is {found[sample, row, column]} at "
            f"{sampled.words(sample)}. {advice} what is finite on the whole domain.",
            places[row],
        )


def _check_positive_definite(mass_matrix: Array, joints: Sequence[Joint], sampled: _Samples) -> None:
    """M symmetric positive definite at every sample, its diagonal scaled to ones to leave out units."""
    diagonal = np.einsum("nii->ni", mass_matrix)
    negative = np.argwhere(diagonal <= 0)
    if len(negative):
        sample, row = negative[0]
        raise ModelError(
            f"the mass matrix is not positive definite: the inertia along `{joints[row].symbol}` is "
            f"{diagonal[sample, row]:.3g} at {sampled.words(sample)}. Masses and inertias must be positive there; "
            "check the signs of the energies and the bounds of the parameters.",
            joints[row].place,
        )
    scale = 1 / np.sqrt(diagonal)
    scaled = mass_matrix * scale[:, :, None] * scale[:, None, :]
    asymmetry = np.abs(scaled - np.swapaxes(scaled, 1, 2)).max(axis=(1, 2))
    eigenvalues, vectors = np.linalg.eigh(scaled)
    if asymmetry.max() > ROUNDING:
        raise ModelError(
            f"the mass matrix is not symmetric at {sampled.words(int(asymmetry.argmax()))}.", joints[0].place
        )
    sample = int(eigenvalues[:, 0].argmin())
    if eigenvalues[sample, 0] < SINGULAR:
        moving = vectors[sample, :, 0]
        names = ", ".join(f"`{joints[int(row)].symbol}`" for row in np.flatnonzero(np.abs(moving) > 0.1))
        raise ModelError(
            f"the mass matrix is not positive definite: a motion of {names} has no inertia at "
            f"{sampled.words(sample)}. Add the missing body or inertia (a rod has inertia about its own centre; a "
            "point mass has none), or a rotor inertia to the joint.",
            joints[int(np.abs(moving).argmax())].place,
        )


def _check_periodic(joints: Sequence[Joint], functions: Sequence[Callable[[Array], Array]], sampled: _Samples) -> None:
    """A continuous joint's equations repeat after a whole turn."""
    for row, joint in enumerate(joints):
        if not joint.continuous:
            continue
        turned = sampled.x + 2 * np.pi * (np.arange(sampled.x.shape[1]) == row)
        for function in functions:
            before, after = function(sampled.at), function(sampled.with_states(turned))
            if np.abs(after - before).max() > 1e-6 * max(np.abs(before).max(), 1e-300):
                raise ModelError(
                    f"the joint `{joint.symbol}` is continuous, but its equations change after a whole turn. "
                    "Use it only inside sin, cos and the like, or give it a limit: "
                    f'robot.revolute("{joint.symbol}", limit=..., ...).',
                    joint.place,
                )


def _check_cost(robot: Robot, equations: EquationsOfMotion, sampled: _Samples) -> None:
    """The state cost is finite, without a jump and zero at the target; `modelgen.proof` shows its sign."""
    place, x = robot.declared_task.place, sampled.x
    function = evaluator(sampled.symbols, equations.state_cost)
    cost = function(sampled.at)
    if not np.isfinite(cost).all():
        sample = int(np.flatnonzero(~np.isfinite(cost))[0])
        raise ModelError(
            f"the state cost is {cost[sample]} at {sampled.words(sample)}; write a cost that is finite on the whole "
            "domain.",
            place,
        )
    if cost.max() <= 0:
        raise ModelError("the state cost is zero everywhere; write what the robot is to avoid.", place)
    for row in (row for row, joint in enumerate(robot.joints) if joint.continuous):
        turned = [np.where(np.arange(x.shape[1]) == row, end, x) for end in (np.pi, -np.pi)]
        ends = [function(sampled.with_states(each)) for each in turned]
        if np.abs(ends[0] - ends[1]).max() > 1e-6 * cost.max():
            name = robot.joints[row].symbol
            raise ModelError(
                f"the state cost jumps where the continuous joint `{name}` passes from pi to -pi. Write a cost that "
                f"repeats after a whole turn, such as (pi * sin(({name} - target) / 2))**2.",
                place,
            )
    target = np.tile(robot.declared_task.numbers.target, (len(x), 1))
    at_target = function(sampled.with_states(target))
    sample = int(np.abs(at_target).argmax())
    if not abs(at_target[sample]) <= ROUNDING * cost.max():
        named = ", ".join(f"{symbol} = {value:g}" for symbol, value in zip(equations.state, target[0], strict=True))
        raise ModelError(
            f"the state cost is {at_target[sample]:.4g} at the target ({named}), where it must be zero. "
            "Subtract that value, or state the right target=dict(coordinate=value).",
            place,
        )
