"""The functions that a model file may use in its expressions."""

from __future__ import annotations

#: SymPy's functions, by class name, and the operation of the program's graph that each becomes.
CALLS = {
    "sin": "sin",
    "cos": "cos",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "log1p": "log1p",
    "Abs": "abs",
    "sign": "sign",
    "atan2": "atan2",
    "Min": "minimum",
    "Max": "maximum",
}
#: The functions, by SymPy's class names, that a model may be written with; tan becomes sin / cos.
FUNCTIONS = frozenset({*CALLS, "tan"})
