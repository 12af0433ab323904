"""What the functions of mechanics should give, with 50 digits and derivatives by central differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray
from sympy import Expr

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.mechanics import mechanics_expressions
from modelgen.statement.robot import Robot
from modelgen.verification.points import Points
from modelgen.verification.reference import DIGITS, Numbers, exact, slope

Array = NDArray[np.float64]


def mechanics_quantities(robot: Robot, equations: EquationsOfMotion, points: Points) -> dict[str, Array]:
    """Every output of the functions of mechanics that the robot states, one row a sample, flattened, in float64."""
    stated = mechanics_expressions(robot, equations)
    arguments = [*equations.state, *equations.parameters]
    definitions = (*equations.definitions, *stated.definitions)
    q = range(len(equations.coordinates))

    known = stated.potential is not None and stated.weight is not None
    positions = [entry for position in stated.points.values() for entry in position]
    rates = equations.coordinate_rates.jacobian(equations.velocities)  # G
    groups: dict[str, Sequence[Expr]] = {
        "M": list(equations.mass_matrix),
        "force": list(equations.force),
        "S": list(equations.input_matrix),
        "T": [stated.kinetic],
        "positions": positions,
        "U": [stated.potential] if known else [],
        "weight": [stated.weight] if known else [],
        "G": list(rates),
    }
    functions = {name: exact(arguments, entries, definitions) for name, entries in groups.items()}

    def slopes(name: str, point: Numbers) -> list[Numbers]:
        """One list a coordinate."""
        return [slope(lambda at: functions[name](*at), point, column) for column in q]

    rows: dict[str, list[Numbers]] = {}
    with mpmath.workdps(DIGITS):
        theta = np.broadcast_to(points.theta, (len(points.x), len(equations.parameters)))
        for sample in np.hstack([points.x, theta]):
            point = [mpf(float(value)) for value in sample]
            found = {name: functions[name](*point) for name in groups}
            moved = slopes("positions", point)
            found["bias"] = [-entry for entry in found.pop("force")]
            found["dp_dq"] = [column[i] for i in range(len(positions)) for column in moved]
            G, weight = found.pop("G"), found.pop("weight")
            if weight:
                along = [each for (each,) in slopes("weight", point)]
                columns = range(rates.cols)
                found["gravity"] = [mpmath.fsum(G[i * rates.cols + j] * along[i] for i in q) for j in columns]
            for name, entries in found.items():
                rows.setdefault(name, []).append(entries)
    return {name: np.array([[_real(entry) for entry in row] for row in each]) for name, each in rows.items()}


def _real(value: Any) -> float:
    """NaN where a root or a logarithm is not real."""
    return float(mpmath.re(value)) if mpmath.im(value) == 0 else float("nan")
