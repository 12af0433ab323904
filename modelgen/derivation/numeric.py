"""Numbers for the expressions of a robot: samples of its domain, and expressions as functions of arrays.

There are two evaluators. `compiled_evaluator` uses the graph of a program and takes expressions of any length.
`numpy_evaluator` uses neither the graph nor a kernel, so that it can verify them. It is slow to make, and Python's
compiler refuses its sums of more than some thousand terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sympy import Expr, Matrix, Symbol, lambdify

from modelgen.arrays import Array, on_sphere
from modelgen.backends.casadi import compiled
from modelgen.derivation.equations import Definition, used
from modelgen.derivation.lowering import scalars
from modelgen.program.functions import Argument, Function, Output
from modelgen.statement.robot import Robot

SAMPLES = 400


def compiled_evaluator(
    arguments: Sequence[Symbol], expression: Expr | Matrix, definitions: Sequence[Definition] = ()
) -> Callable[[Array], Array]:
    """A function of values (N, arguments) that returns (N, rows, columns), or (N,) for a scalar.

    Raises ModelError for a function of SymPy that kernels cannot evaluate.
    """
    entries = list(expression) if isinstance(expression, Matrix) else [expression]
    shape = expression.shape if isinstance(expression, Matrix) else ()
    graph, inputs, nodes = scalars(arguments, entries, used(definitions, entries))
    values = Function("values", (Argument("at", inputs),), (Output("values", (len(nodes),), nodes),))
    function = compiled(graph, values, "sampled")

    def evaluate(at: Array) -> Array:
        return np.asarray(function(at.T)).T.reshape(len(at), *shape)

    return evaluate


def numpy_evaluator(
    arguments: Sequence[Symbol], expression: Expr | Matrix, definitions: Sequence[Definition] = ()
) -> Callable[..., Array]:
    """A NumPy function of one array per symbol that returns (..., rows, columns), or (...) for a scalar."""
    entries = list(expression) if isinstance(expression, Matrix) else [expression]
    shape = expression.shape if isinstance(expression, Matrix) else ()
    # dummify: a parameter may have the name `exp` or `pi`
    raw = lambdify(list(arguments), entries, modules="numpy", cse=shared(definitions), dummify=True)

    def evaluate(*values: Array) -> Array:
        with np.errstate(all="ignore"):
            columns = np.broadcast_arrays(values[0], *raw(*values))[1:]
        stacked = np.stack(columns, axis=-1) if columns else np.empty((*values[0].shape, 0))
        return np.asarray(stacked, np.float64).reshape(*values[0].shape, *shape)

    return evaluate


def shared(definitions: Sequence[Definition]) -> Callable[[Sequence[Expr]], tuple[object, object]] | bool:
    """The argument `cse` of lambdify: the definitions if there are any, otherwise SymPy's own search."""
    return (lambda expressions: (used(definitions, expressions), expressions)) if definitions else True


def samples(robot: Robot, count: int = SAMPLES, seed: int = 0) -> tuple[Array, Array]:
    """States (count, n) and parameters (count, p), uniform over the domain.

    Three groups of count/8 rows lie on the boundary: the first has states at their limits, the second states and
    parameters, the third parameters. Raises ModelError for a coordinate without a rate_limit.
    """
    random = np.random.default_rng(seed)
    limits = np.array(list(robot.limits.values()))
    bounds = np.array([parameter.bounds for parameter in robot.parameters if not parameter.fixed]).reshape(-1, 2)
    x = random.uniform(-limits, limits, (count, len(limits)))
    theta = random.uniform(bounds[:, 0], bounds[:, 1], (count, len(bounds)))
    edge = count // 4
    x[:edge] = limits * random.choice((-1, 1), (edge, len(limits)))
    on_sphere(x, robot.quaternions)
    theta[edge // 2 : edge + edge // 2] = bounds[np.arange(len(bounds)), random.integers(0, 2, (edge, len(bounds)))]
    return x, theta
