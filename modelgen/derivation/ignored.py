"""Ignorable coordinates: those on which neither the equations of motion nor the cost depend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sympy import Expr, Matrix, S, Symbol

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import compiled_evaluator, samples
from modelgen.errors import ModelError
from modelgen.statement.joints import Floating, Joint
from modelgen.statement.robot import Robot

SAMPLES = 64  # states at which a coordinate is moved
ROUNDING = 1e-9  # of the largest sampled value: a smaller change is rounding


def moved_by(robot: Robot, equations: EquationsOfMotion, joints: Sequence[Joint]) -> dict[Symbol, str]:
    """For each of the joints' coordinates, what depends on it; the empty text where nothing does.

    Each coordinate is moved at random states. A quantity that is not finite counts as one that does not depend.
    """
    named = dict(_quantities(robot, equations))
    x, theta = samples(robot, SAMPLES, seed=5)
    outside = [joint for joint in joints if joint.symbol not in equations.state]
    symbols = [*equations.state, *equations.parameters, *(joint.symbol for joint in outside)]
    random = np.random.default_rng(5)
    limits = np.array([joint.limit for joint in outside])
    at = np.hstack([x, theta, random.uniform(-limits, limits, (len(x), len(limits)))])
    entries = Matrix([entry for expressions in named.values() for entry in expressions])
    owners = np.array([name for name, expressions in named.items() for _ in expressions])
    function = compiled_evaluator(symbols, entries, equations.definitions)
    before, result = function(at)[..., 0], {}
    size = np.abs(np.where(np.isfinite(before), before, 0.0)).max(axis=0)
    for name in named:  # an entry that cancels up to rounding is as large as the others of its row
        size[owners == name] = size[owners == name].max(initial=0.0)
    for joint in joints:
        other = at.copy()
        other[:, symbols.index(joint.symbol)] = random.uniform(-joint.limit, joint.limit, len(at))
        with np.errstate(invalid="ignore"):
            change = np.nan_to_num(np.abs(function(other)[..., 0] - before)).max(axis=0)
        changed = change > ROUNDING * size
        result[joint.symbol] = str(owners[changed.argmax()]) if changed.any() else ""
    return result


def _quantities(robot: Robot, equations: EquationsOfMotion) -> list[tuple[str, list[Expr]]]:
    """Every quantity of the motion and the cost, with its name in a message.

    The entries of one have about the same unit: a force is beside the largest forces of its inputs.
    """
    rows = list(enumerate(equations.velocities))
    largest = [max(map(abs, entry.range)) for entry in robot.inputs]
    rates = zip(equations.coordinates, equations.coordinate_rates, strict=True)
    named = [(f"the rate of `{q}`", [rate]) for q, rate in rates]
    named += [(f"the inertia along `{speed}`", list(equations.mass_matrix.row(row))) for row, speed in rows]
    named += [
        (f"the force along `{speed}`", [equations.force[row], *_scaled(equations.input_matrix.row(row), largest)])
        for row, speed in rows
    ]
    named += [
        (f"the flow of `{z}`", [equations.flow[row], *_scaled(equations.flow_matrix.row(row), largest)])
        for row, z in enumerate(equations.internal)
    ]
    return [*named, ("the state cost", [equations.state_cost])]


def _scaled(row: Matrix, sizes: Sequence[float]) -> list[Expr]:
    return [entry * size for entry, size in zip(row, sizes, strict=True)]


def without_ignored(robot: Robot, equations: EquationsOfMotion) -> EquationsOfMotion:
    """The equations at zero of all ignored coordinates. Raises ModelError if anything depends on one of these."""
    if not robot.ignored:
        return equations
    for symbol, quantity in moved_by(robot, equations, robot.ignored).items():
        if quantity:
            raise ModelError(
                f"robot.ignore({symbol}) leaves `{symbol}` out of the state, but {quantity} depends on it. Remove "
                "robot.ignore, or the dependence.",
                next(joint.place for joint in robot.ignored if joint.symbol == symbol),
            )
    return equations.xreplace({joint.symbol: S.Zero for joint in robot.ignored})


def ignorable(robot: Robot, equations: EquationsOfMotion) -> str:
    """A message on coordinates of the state on which neither the equations nor the cost depend; empty without any."""
    joints = [joint for joint in robot.joints if joint.kind != "quaternion"]
    names = [symbol.name for symbol, quantity in moved_by(robot, equations, joints).items() if not quantity]
    if not names:
        return ""
    free = robot.declared_task.numbers.free
    left = [name for name in names if name not in free]
    bodies = [ball for ball in robot.balls if isinstance(ball, Floating)]
    place = {entry.name: f"{body.name}.position[{i}]" for body in bodies for i, entry in enumerate(body.position)}
    calls = " and ".join(f"robot.ignore({place.get(name, name)})" for name in names)
    them, aim = ("them", "their targets") if len(names) > 1 else ("it", "its target")
    reason = f", so that no policy brings {them} to {aim}" if left else ""
    advice = f" Otherwise write free={[*free, *left]!r}, or give {them} a state cost." if left else ""
    return (
        f"{robot.declared_task.place}: nothing depends on {', '.join(f'`{name}`' for name in names)}: the equations "
        f"are the same everywhere along {them}, and the state cost does not see {them}{reason}. Write {calls} before "
        f"robot.task, to leave {them} out of the state: a smaller domain has fewer states to learn.{advice}"
    )
