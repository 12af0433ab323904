"""Refuses a system of `sympy.physics.mechanics` with constraints: stated ones, and those that hide in a velocity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from sympy import Expr, Float, Matrix, Symbol
from sympy.core.function import AppliedUndef

from modelgen.errors import ModelError, Place
from modelgen.statement.system_symbols import TIME

DIGITS = 50
CHANCES = 3  # random numbers at which the velocities are examined
CLOSED = 1e-20  # a smaller difference is rounding


def refuse_constraints(constraints: Iterable[Expr], auxiliary: Iterable[Expr], place: Place) -> None:
    """Raise ModelError for the first constraint (an expression that must be 0), or the first auxiliary speed."""
    for constraint in constraints:
        raise ModelError(
            f"the system has a constraint, {constraint} = 0: a closed loop or a rolling condition. Model files state "
            "robots without constraints: choose independent coordinates, or cut the loop and add a stiff spring there.",
            place,
        )
    for speed in auxiliary:
        raise ModelError(
            f"the system has the auxiliary speed {speed}, which finds reactions and is no state; leave it out.", place
        )


def refuse_rolling(method: Any, slopes: Matrix, turned: Mapping[Any, Expr], place: Place) -> None:
    """Raise ModelError for a velocity of a mass centre that is the rate of no position: a hidden rolling condition.

    With velocity = A(q) qdot + ..., column i of A is the derivative of the position by q_i, so that dA_i/dq_j must be
    dA_j/dq_i. Both are computed at random numbers with 50 digits. A body whose velocity cannot be written along the
    axes of the inertial frame is left to `modelgen verify`.
    """
    frame, q, u = method._inertial, list(method.q), list(method.u)
    random = Random(0)
    for body in method.bodies:
        point = getattr(body, "masscenter", None) or body.point
        try:
            velocity = Matrix([point.vel(frame).dot(axis) for axis in frame]).xreplace(dict(turned))
        except ValueError:
            continue
        along = velocity.jacobian(u)
        changes = [(along.diff(each), slopes.diff(each)) for each in q]
        used = set().union(*(entry.atoms(AppliedUndef, Symbol) for entry in (along, slopes)))
        for _ in range(CHANCES):
            numbers = {each: Float(random.uniform(0.5, 1.5), DIGITS) for each in sorted(used - {TIME}, key=str)}
            A, G = (matrix.xreplace(numbers).evalf(DIGITS) for matrix in (along, slopes))
            back = G.inv()
            slopes_of_A = [
                (dA.xreplace(numbers) - A * back * dG.xreplace(numbers)).evalf(DIGITS) * back for dA, dG in changes
            ]
            bent = [
                abs(slopes_of_A[j][row, i] - slopes_of_A[i][row, j])
                for i in range(len(q))
                for j in range(i)
                for row in range(3)
            ]
            if max(bent, default=0) > CLOSED:
                raise ModelError(
                    f"the velocity of the point {point} is the rate of no position in these coordinates: a rolling or "
                    "sliding condition hides in it, such as contact.set_vel(frame, 0). Model files state robots "
                    "without constraints: let the contact move, with coordinates of its own, and hold it by stiff "
                    "friction there, or choose coordinates in which the robot only rolls along a line.",
                    place,
                )
