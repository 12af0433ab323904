"""Equations of motion written by hand, independent of every derivation of the package."""

from __future__ import annotations

from typing import Literal

import sympy as sp
from sympy import Matrix, cos, sin

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.metadata import Input, Metadata, NamedActionCost, Parameter, State, Task
from modelgen.statement.action_costs import LogCos, Tanh


def pendulum() -> EquationsOfMotion:
    """A uniform rod: M = m l^2 / 3."""
    angle, rate, torque = sp.symbols("angle rate torque", real=True)
    mass, length = sp.symbols("mass length", positive=True)
    return EquationsOfMotion(
        coordinates=(angle,),
        velocities=(rate,),
        inputs=(torque,),
        parameters=(mass, length),
        definitions=(),
        coordinate_rates=Matrix([rate]),
        mass_matrix=Matrix([[mass * length**2 / 3]]),
        force=Matrix([sp.Float(9.81) * mass * length * sin(angle) / 2]),
        input_matrix=Matrix([[1]]),
        state_cost=sp.pi**2 * sin(angle / 2) ** 2 + rate**2 / 10,
        input_costs=(LogCos(1.0).of_input(torque, 1.0, 1.0),),
    )


def dense() -> EquationsOfMotion:
    """Three coordinates, two inputs, a full mass matrix, definitions, and every function of a model file."""
    q = sp.symbols("x u theta", real=True)  # names that emitted code uses itself
    v = sp.symbols("t1 lambda v3", real=True)
    inputs = sp.symbols("left right", real=True)
    p, r = sp.symbols("p1 c1", positive=True)
    first, second, third = sp.symbols("first second third", real=True)
    definitions = (
        (first, sin(q[0]) * cos(q[1]) * p),
        (second, first**2 + sp.exp(-(q[2] ** 2)) * r),
        (third, sp.sqrt(1 + second**2) + sp.tanh(q[0] - v[1])),
    )
    factor = Matrix([[2 + second, 0, 0], [first, 3, 0], [cos(q[2]) * p, first * r, 2]])
    force = Matrix(
        [
            third * v[1] + sp.log(2 + q[0] ** 2) - sp.atan2(q[1], 2 + q[2] ** 2) + sp.tan(q[0] / 4),
            sp.Abs(v[0] - 3) * p - v[1] / (r + q[0] ** 2) + sp.Max(q[0], q[1] - 5) + sp.Min(v[2], 7),
            sp.atan(v[2]) * (1 + q[1] ** 2) ** sp.Rational(3, 2) - sp.cosh(q[0] / 3) + sp.asin(q[1] / 20) * v[0] ** 3,
        ]
    )
    return EquationsOfMotion(
        coordinates=q,
        velocities=v,
        inputs=inputs,
        parameters=(p, r),
        definitions=definitions,
        coordinate_rates=Matrix(v),
        mass_matrix=(factor * factor.T).applyfunc(sp.expand),
        force=force,
        input_matrix=Matrix([[1, first], [0, cos(q[1])], [p, 0]]),
        state_cost=sum(entry**2 for entry in (*q, *v)) + sp.log(1 + q[0] ** 2),
        input_costs=(LogCos(1.0).of_input(inputs[0], 1.0, 1.0), Tanh(1.0).of_input(inputs[1], 1.0, 1.0)),
    )


def metadata(name: str, equations: EquationsOfMotion) -> Metadata:
    """Metadata for the equations, with all parameters at 1 within +-50 %."""
    n, m, n_q = len(equations.state), len(equations.inputs), len(equations.coordinates)
    kinds: list[Literal["position", "velocity"]] = ["position" if i < n_q else "velocity" for i in range(n)]
    zeros = (0.0,) * n
    return Metadata(
        name=name,
        description="made by hand",
        states=tuple(
            State(symbol.name, kind, "", 2.0, False, "") for symbol, kind in zip(equations.state, kinds, strict=True)
        ),
        inputs=tuple(Input(symbol.name, "", 1.0, "", None) for symbol in equations.inputs),
        parameters=tuple(Parameter(symbol.name, 1.0, "", 0.5, 1.5, "") for symbol in equations.parameters),
        task=Task(zeros, zeros, zeros, NamedActionCost("log_cos", (1.0,) * m), 5.0, 0.8, 125, 250),
    )
