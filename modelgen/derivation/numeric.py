"""SymPy's expressions as NumPy functions of arrays: slow to make, and independent of the program and its kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Matrix, Symbol, lambdify

from modelgen.derivation.equations import Definition, used

Array = NDArray[np.float64]


def evaluator(
    arguments: Sequence[Symbol], what: Expr | Matrix, definitions: Sequence[Definition] = ()
) -> Callable[..., Array]:
    """A NumPy function of one array per symbol, returning (..., rows, columns), or (...) for a scalar."""
    entries = list(what) if isinstance(what, Matrix) else [what]
    shape = what.shape if isinstance(what, Matrix) else ()
    # dummify, because a parameter may be called `exp` or `pi`
    raw = lambdify(list(arguments), entries, modules="numpy", cse=shared(definitions), dummify=True)

    def evaluate(*values: Array) -> Array:
        with np.errstate(all="ignore"):
            columns = np.broadcast_arrays(values[0], *raw(*values))[1:]
        stacked = np.stack(columns, axis=-1) if columns else np.empty((*values[0].shape, 0))
        return np.asarray(stacked, np.float64).reshape(*values[0].shape, *shape)

    return evaluate


def shared(definitions: Sequence[Definition]) -> Callable[[Sequence[Expr]], tuple[object, object]] | bool:
    """The argument `cse` of lambdify: the definitions where there are any, else SymPy's own search."""
    return (lambda expressions: (used(definitions, expressions), expressions)) if definitions else True
