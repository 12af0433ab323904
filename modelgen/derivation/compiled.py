"""SymPy's expressions as compiled functions of arrays, by the graph of a program: for expressions of any length.

`numeric` makes the same functions without the graph, for proofs of it. That takes much longer, and a sum is one line of
Python there, which Python's compiler refuses beyond some thousand terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Matrix, Symbol

from modelgen.backends.casadi import compiled
from modelgen.derivation.equations import Definition, used
from modelgen.derivation.lowering import scalars
from modelgen.program.functions import Argument, Function, Output

Array = NDArray[np.float64]


def evaluator(
    arguments: Sequence[Symbol], what: Expr | Matrix, definitions: Sequence[Definition] = ()
) -> Callable[[Array], Array]:
    """A function of values (N, arguments), returning (N, rows, columns), or (N,) for a scalar.

    Raises ModelError for a function of SymPy that no kernel can evaluate.
    """
    entries = list(what) if isinstance(what, Matrix) else [what]
    shape = what.shape if isinstance(what, Matrix) else ()
    graph, inputs, nodes = scalars(arguments, entries, used(definitions, entries))
    values = Function("values", (Argument("at", inputs),), (Output("values", (len(nodes),), nodes),))
    function = compiled(graph, values, "sampled")

    def evaluate(at: Array) -> Array:
        return np.asarray(function(at.T)).T.reshape(len(at), *shape)

    return evaluate
