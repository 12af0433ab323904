"""Checks of a derived model at sampled states and parameters, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sympy import Matrix, Symbol

from modelgen.arrays import Array
from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.frames import sketch
from modelgen.derivation.loops import definitions
from modelgen.derivation.numeric import compiled_evaluator, samples
from modelgen.derivation.trim import task_at_rest
from modelgen.errors import ModelError, Place, abridged
from modelgen.statement.joints import Ball
from modelgen.statement.robot import Robot, fixed_values, model_expressions

SINGULAR = 1e-10  # smallest eigenvalue of M with its diagonal scaled to ones
LARGEST_COST = 1e16  # of a state, whose sums single precision can square
ROUNDING = 1e-9  # a value below this share of the largest sampled cost or entry counts as zero


def check_domain(robot: Robot, equations: EquationsOfMotion) -> None:
    """Raise ModelError, with the line of the file, at the first quantity that a robot or task cannot have.

    Every coordinate must have inertia, every input and parameter an effect, and no reference may act on the motion. At
    every sample all quantities must be finite and M positive definite. The equations of a continuous joint must repeat
    after a whole turn, and the state cost must be zero at the target.
    """
    _check_used(robot, equations)
    sampled = _Samples((*equations.state, *equations.parameters), *samples(robot))
    matrices = [equations.coordinate_rates, equations.mass_matrix, equations.force, equations.input_matrix]
    matrices += [equations.flow, equations.flow_matrix] if equations.internal else []
    functions = [compiled_evaluator(sampled.symbols, matrix, equations.definitions) for matrix in matrices]
    rates, mass_matrix, force, input_matrix, *flows = (function(sampled.at) for function in functions)
    owners = {joint.symbol.rate: joint for joint in robot.independent}
    rows = [owners[speed].symbol if speed in owners else speed for speed in equations.velocities]
    for what, batch, symbols in (
        ("the rate", rates, equations.coordinates),
        ("the mass matrix", mass_matrix, rows),
        ("the force", force, rows),
        ("the input matrix", input_matrix, rows),
        *(("the flow", flow, equations.internal) for flow in flows),
    ):
        _check_finite(what, batch, symbols, sampled, robot)
    if rows:
        _check_positive_definite(mass_matrix, rows, [speed.place for speed in robot.velocities], sampled)
    _check_periodic(robot, functions, sampled)
    _check_cost(robot, equations, sampled)
    _check_points(robot, sampled)


@dataclass(frozen=True)
class _Samples:
    """States and parameters over the whole domain, with their symbols."""

    symbols: tuple[Symbol, ...]  # of x and theta
    x: Array  # (N, n)
    theta: Array  # (N, p)

    @property
    def at(self) -> Array:
        """The values (N, n + p) of the symbols."""
        return self.with_states(self.x)

    def with_states(self, x: Array) -> Array:
        """The values (N, n + p) of the symbols with other states (N, n)."""
        return np.hstack([x, self.theta])

    def text(self, number: int) -> str:
        """The symbols and values of one sample, for a message."""
        values = [*self.x[number], *self.theta[number]]
        return ", ".join(f"{symbol} = {value:.4g}" for symbol, value in zip(self.symbols, values, strict=True))


def _check_used(robot: Robot, equations: EquationsOfMotion) -> None:
    """Raise ModelError for a coordinate without inertia, or an input or parameter without an effect."""
    owners = {joint.symbol.rate: joint.symbol for joint in robot.independent}
    for row, speed in enumerate(robot.velocities):
        if equations.mass_matrix[row, :].is_zero_matrix:
            named = owners.get(speed.symbol, speed.symbol)
            rate = f"{named}.rate" if speed.symbol in owners else str(named)
            raise ModelError(
                f"nothing has inertia along `{named}`: no kinetic energy contains `{rate}`. Add a body that moves with "
                "it: robot.point_mass(mass, position), robot.body(...), robot.link(...) or robot.kinetic_energy(...).",
                speed.place,
            )
    for column, declared_input in enumerate(robot.inputs):
        if equations.input_matrix[:, column].is_zero_matrix and equations.flow_matrix[:, column].is_zero_matrix:
            raise ModelError(
                f"the input `{declared_input.symbol}` acts on nothing. Write robot.apply(coordinate, "
                f"{declared_input.symbol}), or remove the line that declares it.",
                declared_input.place,
            )
    moved = [equations.force, equations.input_matrix, equations.state_cost]
    for row, state in enumerate(robot.internal):
        others = equations.flow.row_join(equations.flow_matrix)
        others.row_del(row)
        if not any(state.symbol in term.free_symbols for term in (*moved, others)):
            raise ModelError(
                f"the state `{state.symbol}` acts on nothing. Use it in a force, in another flow or in the state cost, "
                "or remove the line that declares it.",
                state.place,
            )
    written = [each.value for each in model_expressions(robot)]
    effective = [equations.mass_matrix, equations.force, equations.input_matrix, equations.state_cost]
    effective += [equations.flow, equations.flow_matrix, *equations.coordinate_rates]
    effective += [value for _, value in equations.definitions]
    _check_references(robot)
    for parameter in robot.parameters:
        if parameter.reference:
            continue
        if not any(parameter.symbol in term.free_symbols for term in (written if parameter.fixed else effective)):
            raise ModelError(
                f"the parameter `{parameter.symbol}` has no effect on the equations of motion or the state "
                "cost. Use it in an energy, a body or a force, or remove the line that declares it.",
                parameter.place,
            )


def _check_references(robot: Robot) -> None:
    """Raise ModelError for a reference that acts on the motion, or that neither target nor state cost contains."""
    task, references = robot.declared_task, {each.symbol for each in robot.parameters if each.reference}
    for written in model_expressions(robot):
        acting = sorted(written.value.free_symbols & references, key=str)
        if acting and written.value != task.state_cost:
            raise ModelError(
                f"`{abridged(str(written.value))}` contains the reference `{acting[0]}`. A reference is a set-point of "
                "the policy and acts on no motion: it belongs into target, start and state_cost of robot.task. Write "
                f'robot.parameter("{acting[0]}", ...) for a quantity of the robot.',
                written.place,
            )
    moved = {each.name for each in task.numbers.references if any(each.target)}
    for each in robot.parameters:
        if each.reference and each.symbol.name not in moved and each.symbol not in task.state_cost.free_symbols:
            raise ModelError(
                f"the reference `{each.symbol}` is used nowhere. Write it into the target and the state cost, such as "
                f"robot.task(target=dict(x={each.symbol}), state_cost=(x - {each.symbol})**2, ...), or remove the line "
                "that declares it.",
                each.place,
            )


def _check_finite(what: str, batch: Array, symbols: Sequence[Symbol], sampled: _Samples, robot: Robot) -> None:
    bad = np.argwhere(~np.isfinite(batch))
    if len(bad):
        sample, row = bad[0][:2]
        reason, place = _source(robot, sampled, sample)
        raise ModelError(
            f"{what} in the row of `{symbols[row]}` is {batch[tuple(bad[0])]} at {sampled.text(sample)}{reason}. Look "
            "for a division by zero, a logarithm or a root of a negative number, or a number beyond 1e308 such as "
            "exp(1000); or narrow the limits and bounds.",
            place,
        )


def _source(robot: Robot, sampled: _Samples, sample: int) -> tuple[str, Place]:
    """The first expression of the file that is not finite at a sample and at full inputs, as text, and its line.

    Without such an expression, an empty text and the line of the robot: only their combination is not finite.
    """
    inputs, known = [declared.symbol for declared in robot.inputs], fixed_values(robot)
    at = np.hstack([sampled.at[sample], [declared.range[1] for declared in robot.inputs]])
    rates = [symbol for joint in robot.joints for symbol in (joint.symbol, joint.symbol.rate)]
    for written in model_expressions(robot):
        for entry in written.entries:
            slopes = [entry.diff(symbol) for symbol in rates] if written.slopes > 1 else []
            column = Matrix([entry, *slopes]).xreplace(known)
            values = compiled_evaluator((*sampled.symbols, *inputs), column, definitions(robot))(at[None])[0, :, 0]
            for value, owner in zip(values, ["", *["a slope of "] * len(slopes)], strict=True):
                if not np.isfinite(value):
                    return f", because {owner}`{abridged(str(entry))}` is {value} there", written.place
    return "", robot.place


def _check_points(robot: Robot, sampled: _Samples) -> None:
    """Raise ModelError for a named or drawn point that is not finite at a sample, at the target or the mean start."""
    task, drawn, closed = robot.declared_task.numbers, sketch(robot), definitions(robot)
    ends = np.repeat([task.target, task.start_mean], len(sampled.theta), axis=0)
    extended = _Samples(sampled.symbols, np.vstack([sampled.x, ends]), np.tile(sampled.theta, (3, 1)))
    for point in robot.points:
        position = point.position.T.xreplace(fixed_values(robot))
        _check_position(f"the point `{point.name}`", position, closed, extended, "Write", [point.place])
    advice = "Draw"
    if not robot.lines:
        advice = "It belongs to the rod of a body, which is drawn by default: write robot.draw(line=[...]) with"
    drawing = (*closed, *drawn.definitions)
    _check_position("a drawn point,", Matrix(drawn.points), drawing, extended, advice, drawn.places)


def _check_position(
    what: str,
    points: Matrix,
    named: Sequence[Definition],
    sampled: _Samples,
    advice: str,
    places: Sequence[Place],
) -> None:
    """Raise ModelError unless every row of `points` is finite at every sample. places: the line of each row."""
    values = compiled_evaluator(sampled.symbols, points, named)(sampled.at)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        sample, row, column = bad[0]
        raise ModelError(
            f"{what} ({', '.join(map(str, points.row(row)))}) is {values[sample, row, column]} at "
            f"{sampled.text(sample)}. {advice} points that are finite on the whole domain.",
            places[row],
        )


def _check_positive_definite(
    mass_matrix: Array, rows: Sequence[Symbol], places: Sequence[Place], sampled: _Samples
) -> None:
    """Raise ModelError unless M is symmetric positive definite at every sample; its diagonal is scaled to ones.

    rows, places: the coordinate or speed of every row, and its line.
    """
    diagonal = np.einsum("nii->ni", mass_matrix)
    negative = np.argwhere(diagonal <= 0)
    if len(negative):
        sample, row = negative[0]
        raise ModelError(
            f"the mass matrix is not positive definite: the inertia along `{rows[row]}` is "
            f"{diagonal[sample, row]:.3g} at {sampled.text(sample)}. Masses and inertias must be positive there; "
            "check the signs of the energies and the bounds of the parameters.",
            places[row],
        )
    scale = 1 / np.sqrt(diagonal)
    scaled = mass_matrix * scale[:, :, None] * scale[:, None, :]
    asymmetry = np.abs(scaled - np.swapaxes(scaled, 1, 2)).max(axis=(1, 2))
    eigenvalues, vectors = np.linalg.eigh(scaled)
    if asymmetry.max() > ROUNDING:
        raise ModelError(f"the mass matrix is not symmetric at {sampled.text(int(asymmetry.argmax()))}.", places[0])
    sample = int(eigenvalues[:, 0].argmin())
    if eigenvalues[sample, 0] < SINGULAR:
        moving = vectors[sample, :, 0]
        names = ", ".join(f"`{rows[int(row)]}`" for row in np.flatnonzero(np.abs(moving) > 0.1))
        raise ModelError(
            f"the mass matrix is not positive definite: a motion of {names} has no inertia at "
            f"{sampled.text(sample)}. Add the missing body or inertia (a rod has inertia about its own centre; a "
            "point mass has none), or a rotor inertia to the joint.",
            places[int(np.abs(moving).argmax())],
        )


def _opposite(robot: Robot, x: Array) -> Iterator[tuple[Ball, Array, NDArray[np.bool_]]]:
    """Each ball joint, the states x (N, n) with the other quaternion of its rotation, and which entries (n,) it has."""
    for ball, entries in zip(robot.balls, robot.quaternions, strict=True):
        own = np.isin(np.arange(x.shape[1]), range(entries.start, entries.stop))
        yield ball, np.where(own, -x, x), own


def _differ(before: Array, after: Array) -> bool:
    """Whether a row of matrices (N, rows, columns) differs by more than rounding. Rows have units of their own, and one
    that is zero has the rounding of the others."""
    size = np.abs(before).max(axis=(0, 2), initial=1e-300)
    size = np.maximum(size, 1e-6 * size.max(initial=0.0))
    return bool((np.abs(after - before).max(axis=(0, 2), initial=0.0) > 1e-6 * size).any())


def _check_periodic(robot: Robot, functions: Sequence[Callable[[Array], Array]], sampled: _Samples) -> None:
    """Raise ModelError if the equations of a continuous joint do not repeat after a whole turn, or if those of a ball
    joint depend on the sign of its quaternion, which is the same rotation with both."""
    for ball, opposite, own in _opposite(robot, sampled.x):
        for function in functions:
            before, after = function(sampled.at), function(sampled.with_states(opposite))
            if function is functions[0]:  # the rates of the coordinates, of which those of the quaternion change
                before, after = (rates[:, ~own[: rates.shape[1]]] for rates in (before, after))
            if _differ(before, after):
                raise ModelError(
                    f"the equations depend on the sign of the quaternion of `{ball.name}`, and q and -q are the same "
                    f"rotation. Write forces and energies with {ball.name}.rotation, its rotation matrix.",
                    ball.place,
                )
    for row, joint in enumerate(robot.joints):
        if not joint.continuous:
            continue
        turned = sampled.x + 2 * np.pi * (np.arange(sampled.x.shape[1]) == row)
        for function in functions:
            before, after = function(sampled.at), function(sampled.with_states(turned))
            if _differ(before, after):
                raise ModelError(
                    f"the joint `{joint.symbol}` is continuous, but its equations change after a whole turn. "
                    "Use it only inside sin, cos and the like, or give it a limit: "
                    f'robot.revolute("{joint.symbol}", limit=..., ...).',
                    joint.place,
                )


def _check_cost(robot: Robot, equations: EquationsOfMotion, sampled: _Samples) -> None:
    """Raise ModelError unless the state cost is finite, without a jump and zero at the target.

    `modelgen.proof` checks its sign.
    """
    place, x = robot.declared_task.place, sampled.x
    function = compiled_evaluator(sampled.symbols, equations.state_cost, equations.definitions)
    cost = function(sampled.at)
    if not np.isfinite(cost).all():
        sample = int(np.flatnonzero(~np.isfinite(cost))[0])
        raise ModelError(
            f"the state cost is {cost[sample]} at {sampled.text(sample)}; write a cost that is finite on the whole "
            "domain.",
            place,
        )
    if cost.max() <= 0:
        if cost.min() < 0:
            sample = int(cost.argmin())
            raise ModelError(
                f"the state cost is {cost[sample]:.4g} at {sampled.text(sample)}, and positive nowhere. Turn its "
                "sign: the smaller the cost, the better the state.",
                place,
            )
        raise ModelError("the state cost is zero everywhere; write a cost of the states to avoid.", place)
    if cost.max() > LARGEST_COST:
        sample = int(cost.argmax())
        raise ModelError(
            f"the state cost is {cost[sample]:.4g} at {sampled.text(sample)}, and a training in single precision takes "
            f"at most {LARGEST_COST:g}; divide all costs by the same number.",
            place,
        )
    for row in (row for row, joint in enumerate(robot.joints) if joint.continuous):
        turned = [np.where(np.arange(x.shape[1]) == row, end, x) for end in (np.pi, -np.pi)]
        ends = [function(sampled.with_states(end)) for end in turned]
        if np.abs(ends[0] - ends[1]).max() > ROUNDING * cost.max():
            name = robot.joints[row].symbol
            raise ModelError(
                f"the state cost jumps where the continuous joint `{name}` passes from pi to -pi. Write a cost that "
                f"repeats after a whole turn, such as (pi * sin(({name} - target) / 2))**2.",
                place,
            )
    for ball, opposite, _ in _opposite(robot, x):
        if np.abs(function(sampled.with_states(opposite)) - cost).max() > ROUNDING * cost.max():
            raise ModelError(
                f"the state cost depends on the sign of the quaternion of `{ball.name}`, and q and -q are the same "
                f"rotation. Write squares, such as away.dot(away) with away = {ball.name}.away().",
                place,
            )
    task = task_at_rest(robot, equations.rest)
    target = np.tile(task.target, (len(x), 1))
    columns = {symbol.name: column for column, symbol in enumerate(equations.parameters)}
    for reference in task.references:
        target += np.outer(sampled.theta[:, columns[reference.name]], reference.target)
    at_target = function(sampled.with_states(target))
    sample = int(np.abs(at_target).argmax())
    if not abs(at_target[sample]) <= ROUNDING * cost.max():
        values = dict(zip(map(str, equations.state), target[sample], strict=True))
        values |= {each.name: sampled.theta[sample, columns[each.name]] for each in task.references}
        named = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        raise ModelError(
            f"the state cost is {at_target[sample]:.4g} at the target ({named}), where it must be zero. "
            "Subtract that value, or write the right target=dict(coordinate=value).",
            place,
        )
