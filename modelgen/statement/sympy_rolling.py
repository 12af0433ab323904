"""Rolling in a system of `sympy.physics.mechanics`: dependent speeds, and velocities that hide a rolling condition.

Kane's equations hold with both: they project the forces on the possible motions. Lagrange's equations do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from sympy import Expr, Float, Matrix, Symbol, simplify, trigsimp
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import Point, ReferenceFrame

from modelgen.errors import calling_place, mistake
from modelgen.statement.sympy_checks import TIME

DIGITS = 50
ATTEMPTS = 3  # sets of random numbers at which the velocities are examined
ROUNDING = 1e-20  # a smaller difference is a rounding error


def following_speeds(method: Any) -> Matrix:
    """A (dependent, independent) with u_dependent = A u_independent, by the velocity constraints of a KanesMethod.

    Raises ModelError for constraints that are not homogeneous, and for dependent speeds that do not follow.
    """
    count = len(method._udep)
    free = len(method.u) - count
    if not count:
        return Matrix.zeros(0, free)
    # SymPy has no public names for k and f of the constraints k u + f = 0
    k, f = method._k_nh, method._f_nh
    if any(simplify(entry) != 0 for entry in f):
        conditions = ", ".join(str(entry) for entry in k * method.u + f)
        raise mistake(
            f"the velocity constraints {conditions} = 0 do not vanish at rest; a model file holds constraints that "
            "are linear in the speeds, without a part of their own."
        )
    own = k[:, free:]
    if simplify(own.det()) == 0:
        names = ", ".join(map(str, method._udep))
        raise mistake(f"the dependent speeds {names} do not follow from the constraints; choose others.")
    solved: Matrix = -own.inv(method="ADJ") * k[:, :free]
    return solved.applyfunc(lambda entry: simplify(trigsimp(entry)))


def independent_equations(method: Any, follow: Matrix, rates_of: Mapping[Any, Expr]) -> tuple[Matrix, Matrix]:
    """M (p, p) and forcing (p, 1) of the independent speeds. With dependent speeds, SymPy's M has columns for all."""
    free = follow.cols
    matrix, forcing = method.mass_matrix[:free, :], method.forcing[:free, :]
    if not follow.rows:
        return matrix, forcing
    speeds = Matrix(list(method.u)[:free])
    change = follow.diff(TIME).xreplace(dict(rates_of)) * speeds
    return matrix[:, :free] + matrix[:, free:] * follow, forcing - matrix[:, free:] * change


def independent_rows(slopes: Matrix) -> list[int]:
    """As many rows of a matrix (n_q, n_u) as it has columns, linearly independent at random numbers.

    Rows with one entry come first, because they are the rates of coordinates.
    """
    numbers = _random(slopes.atoms(AppliedUndef, Symbol) - {TIME}, Random(0))
    values = slopes.xreplace(numbers).evalf(DIGITS)
    order = sorted(range(slopes.rows), key=lambda row: sum(entry != 0 for entry in slopes[row, :]) > 1)
    kept: list[int] = []
    for row in order:
        if Matrix([values[other, :] for other in (*kept, row)]).rank(iszerofunc=lambda x: abs(x) < ROUNDING) > len(
            kept
        ):
            kept.append(row)
    return sorted(kept)


def _random(symbols: Iterable[Any], random: Random) -> dict[Any, Float]:
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
        numbers = _random(used, random)
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
