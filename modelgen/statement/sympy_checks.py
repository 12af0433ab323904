"""Checks of a system of `sympy.physics.mechanics`: its symbols, which the robot's replace, its constraints, and
velocities that hide a rolling condition.

Kane's equations hold with rolling: they project the forces on the possible motions. Lagrange's equations do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from random import Random
from typing import Any

from sympy import Basic, Derivative, Dummy, Expr, Float, Matrix, S, Symbol, simplify
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import Point, ReferenceFrame, dynamicsymbols

from modelgen.errors import calling_place, mistake, suggestion
from modelgen.statement.joints import Coordinate, Speed

TIME = dynamicsymbols._t
DIGITS = 50
ATTEMPTS = 3  # sets of random numbers at which the velocities are examined
ROUNDING = 1e-20  # a smaller difference is a rounding error


class Names:
    """Replaces the symbols of the system by the robot's. Raises ModelError for a symbol without a replacement."""

    def __init__(self, coordinates: Mapping[Any, Coordinate], replaced: Mapping[Any, Expr]) -> None:
        self.coordinates = coordinates
        self.known: dict[Any, Expr] = {**coordinates, **replaced}
        derivatives = [key for key in replaced if isinstance(key, Derivative)]
        #: Specified velocity -> its symbol here, and its acceleration, which is an input.
        self.specified = {_lower(key)[0]: (Dummy(real=True), replaced[key]) for key in derivatives}
        self._lower = [lower for key in derivatives for lower in _lower(key)]

    def with_more(self, replaced: Mapping[Any, Expr]) -> Names:
        """The same with more replacements."""
        names = copy(self)
        names.known = {**self.known, **replaced}
        return names

    def moving(self, expression: Expr, what: str) -> Expr:
        """The same for an energy, a velocity or a load, with symbols for specified velocities, at zero positions."""
        names = self.with_more({v: symbol for v, (symbol, _) in self.specified.items()})
        return names(expression.xreplace({**dict.fromkeys(self._lower, S.Zero), **names.known}), what)

    def at_rest(self, expression: Expr) -> Expr:
        """The result of `moving` at zero specified velocities."""
        return expression.xreplace({symbol: S.Zero for symbol, _ in self.specified.values()})

    def _without_specified(self, expression: Expr) -> Expr:
        """The expression at zero specified velocities and positions if it does not depend on them."""
        for lower in self._lower:
            if lower not in self.known and expression.has(lower):
                other = expression.xreplace(self.known)
                if simplify(other.diff(lower)) == 0:
                    expression = other.xreplace({lower: S.Zero})
        return expression

    def __call__(self, expression: Expr, what: str) -> Expr:
        expression = self._without_specified(expression)
        changing = expression.atoms(Derivative) - self.known.keys()
        for function in sorted(changing or expression.atoms(AppliedUndef) - self.known.keys(), key=str):
            self._refuse(function, what)
        result: Expr = expression.xreplace(self.known)
        if TIME in result.free_symbols:
            self._refuse(TIME, what)
        replacements = set().union(*(value.free_symbols for value in self.known.values()))
        for symbol in sorted(result.free_symbols - replacements, key=str):
            if str(symbol) in map(str, self.known):
                raise mistake(
                    f"the {what} of the system contains another symbol `{symbol}` than the mappings, in which it is a "
                    "string or has other assumptions. Write the script's own symbol there."
                )
            raise mistake(
                f"the {what} of the system contains `{symbol}`, which the mappings do not replace."
                f"{suggestion(str(symbol), map(str, self.known))} Write "
                f'parameters={{{symbol}: robot.parameter("{symbol}", value, "unit", ...)}}, or inputs={{...}}.'
            )
        return result

    def _refuse(self, what: Basic, where: str) -> None:
        if what == TIME:
            reason = "depends on time itself; only coordinates, speeds and inputs may change with time."
        elif isinstance(what, Derivative) and what not in self._lower:
            reason = (
                f"contains {what}: an acceleration, or the derivative of something that is not a coordinate of the "
                "system. If it is commanded, make it an input: "
                f'inputs={{{what}: robot.input("acceleration", limit, "m/s^2")}}.'
            )
        elif what in self._lower:
            reason = (
                f"depends on {what}, whose derivative is an input, so that it is a state. Give it a coordinate in the "
                "system, and command that: robot.accelerate(coordinate, input)."
            )
        else:
            reason = (
                f"contains {what}, which changes with time and is not declared. If it drives the system, write "
                f'inputs={{{what.func}: robot.input("{what.func}", limit, "unit")}}; if it follows a command late, '
                f"inputs={{{what.func}: robot.lag(command, seconds=...)}}; if it has an equation of first order, as a "
                f'current has, inputs={{{what.func}: robot.state("{what.func}", limit=..., unit="A")}} and '
                "robot.flow(...); if it is a coordinate, pass it to the method as one."
            )
        raise mistake(f"the {where} of the system {reason}")


def _lower(derivative: Derivative) -> list[Expr]:
    """What a derivative by time is the derivative of, and what that is the derivative of."""
    order = derivative.derivative_count
    return [derivative.expr.diff(TIME, lower) if lower else derivative.expr for lower in reversed(range(order))]


def assigned(
    q: Sequence[Expr], u: Sequence[Expr], slopes: Matrix, drift: Matrix, names: Names, speeds: Any
) -> tuple[list[Symbol], dict[Coordinate, Speed | None]]:
    """The robot's symbol for each speed of the system: the rate of a coordinate, or a declared speed.

    Also gives the declared speeds by the coordinate whose rate they replace, None where there are fewer. Raises
    ModelError for missing or superfluous coordinates and speeds.
    """
    _check_keys("coordinates", q, names.coordinates, "robot.revolute(...) or robot.prismatic(...)")
    if len(q) < len(u):
        raise mistake(
            f"the system has {len(q)} coordinates and {len(u)} speeds; a speed changes a coordinate, so that there are "
            "no more speeds than coordinates."
        )
    result: list[Symbol | None] = [None] * len(u)
    left = []
    for i, coordinate in enumerate(q):
        column = next((j for j in range(len(u)) if slopes[i, j] == 1), None)
        if column is not None and drift[i] == 0 and sum(entry != 0 for entry in slopes[i, :]) == 1:
            result[column] = names.coordinates[coordinate].rate
        else:
            left.append(names.coordinates[coordinate])
    missing = [speed for speed, symbol in zip(u, result, strict=True) if symbol is None]
    _check_keys("speeds", missing, speeds, 'robot.speed(name, limit=..., unit="rad/s")')
    taken = iter([speeds[speed] for speed in missing])
    own = {coordinate: next(taken, None) for coordinate in left}
    symbols = iter([speeds[speed].symbol for speed in missing])
    return [next(symbols) if symbol is None else symbol for symbol in result], own


def _check_keys(what: str, wanted: Sequence[Expr], given: Mapping[Any, Any], write: str) -> None:
    """Raise ModelError unless the keys are exactly the system's and all values differ."""
    for symbol in wanted:
        if symbol not in given:
            raise mistake(f"{what}={{...}} does not contain {symbol} of the system. Add {symbol}: {write}.")
    for symbol in given:
        if symbol not in wanted:
            known = ", ".join(map(str, wanted)) or "none"
            why = " A coordinate's rate needs no speed of its own." if what == "speeds" else ""
            raise mistake(f"{what}={{...}} contains {symbol}, but the system's are {known}.{why}")
    if len(set(map(str, given.values()))) < len(given):
        raise mistake(f"{what}={{...}} has the same value twice, for {', '.join(map(str, given))}.")


def refuse_constraints(constraints: Iterable[Expr], auxiliary: Iterable[Expr]) -> None:
    """Raise ModelError for the first constraint (an expression that must be 0) or the first auxiliary speed."""
    for constraint in constraints:
        raise mistake(
            f"the system has a constraint of its coordinates, {constraint} = 0: a closed loop. Close it by "
            "robot.loop(...), with the bodies written by robot.body or robot.link, or choose independent coordinates."
        )
    for speed in auxiliary:
        raise mistake(f"the system has the auxiliary speed {speed}, which only yields reaction forces; leave it out.")


def random_numbers(symbols: Iterable[Any], random: Random) -> dict[Any, Float]:
    """Random numbers in place of symbols, with DIGITS digits."""
    return {symbol: Float(random.uniform(0.5, 1.5), DIGITS) for symbol in sorted(symbols, key=str)}


def hidden_rolling(
    bodies: Iterable[Any], loads: Iterable[Any] | None, frame: Any, q: Sequence[Expr], u: Sequence[Expr], slopes: Matrix
) -> str | None:
    """The point or frame whose velocity is not the rate of a position or rotation: a hidden rolling condition.

    u: speeds, with qdot = slopes u, square. With velocity = A(q) qdot, column i of A is the derivative of the position
    by q_i, so that dA_i/dq_j equals dA_j/dq_i; of an angular velocity, dA_i/dq_j - dA_j/dq_i + A_i x A_j is zero. They
    are computed at random numbers with 50 digits. A velocity that cannot be written along the axes of the inertial
    frame is skipped.
    """
    moving: list[Any] = []
    for body in bodies or ():
        moving.append(getattr(body, "masscenter", None) or body.point)
        moving += [body.frame] if getattr(body, "frame", None) else []
    moving += [where for where, _ in loads or ()]
    for what in dict.fromkeys(moving):
        turns = isinstance(what, ReferenceFrame)
        if what == frame or not (turns or isinstance(what, Point)):
            continue
        try:
            vector = what.ang_vel_in(frame) if turns else what.vel(frame)
            velocity = Matrix([vector.dot(axis) for axis in frame])
        except ValueError:
            continue
        if _hides(velocity, turns, q, u, slopes):
            return f"the {'frame' if turns else 'point'} {what}"
    return None


def _hides(velocity: Matrix, turns: bool, q: Sequence[Expr], u: Sequence[Expr], slopes: Matrix) -> bool:
    rates = dict(zip((coordinate.diff(TIME) for coordinate in q), slopes * Matrix(u), strict=True))
    along = velocity.xreplace(rates).jacobian(u)
    changes = [(along.diff(coordinate), slopes.diff(coordinate)) for coordinate in q]
    used = set().union(*(entry.atoms(AppliedUndef, Symbol) for entry in (along, slopes))) - {TIME}
    random = Random(0)
    for _ in range(ATTEMPTS):
        numbers = random_numbers(used, random)
        A, G = (matrix.xreplace(numbers).evalf(DIGITS) for matrix in (along, slopes))
        back = G.inv()
        columns = A * back
        by_q = [(dA.xreplace(numbers) - columns * dG.xreplace(numbers)).evalf(DIGITS) * back for dA, dG in changes]
        for i in range(len(q)):
            for j in range(i):
                difference = by_q[j][:, i] - by_q[i][:, j]
                if turns:
                    difference += columns[:, i].cross(columns[:, j])
                if max(abs(entry) for entry in difference) > ROUNDING:
                    return True
    return False


def unseen_bodies(method: Any) -> str:
    """A warning about a LagrangesMethod of several coordinates that does not name its bodies; empty for others."""
    if len(method.q) < 2 or (method.inertial is not None and getattr(method, "_bodies", None)):
        return ""
    return (
        f"{calling_place()}: the LagrangesMethod does not name its bodies, so that their velocities cannot be checked. "
        "If one of them rolls without slip, Lagrange's equations are wrong: write it as a KanesMethod. If none does, "
        "write LagrangesMethod(..., bodies=[...], frame=N) to have it checked."
    )


def refuse_rolling_lagrangian(method: Any) -> None:
    """Raise ModelError for a LagrangesMethod with constraints, or with velocities that hide a rolling condition."""
    advice = (
        "Write the system as a KanesMethod, with u_dependent=[...] and velocity_constraints=[...]; or write its bodies "
        "by robot.body or robot.link, and the rolling by robot.roll(...)."
    )
    for constraint in method.coneqs:
        raise mistake(f"the LagrangesMethod has a constraint, {constraint} = 0. {advice}")
    frame = method.inertial
    if frame is None:
        return
    q = list(method.q)
    u = [coordinate.diff(TIME) for coordinate in q]
    what = hidden_rolling(getattr(method, "_bodies", None) or (), method.forcelist, frame, q, u, Matrix.eye(len(q)))
    if what:
        raise mistake(
            f"the velocity of {what} is not the rate of a position or rotation in these coordinates: it hides a "
            f"rolling condition, with which Lagrange's equations are wrong. {advice}"
        )
