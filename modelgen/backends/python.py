"""Plain Python: the emitted module of functions of one sample, which the backends `llvm` and `numba` compile.

Anyone can read, copy and run it. It needs nothing but Python.
"""

from __future__ import annotations

import inspect
import re

from modelgen.backends import helpers
from modelgen.backends.listing import Dialect, listing
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program
from modelgen.program.graph import Graph, Node

#: Functions that Python's `math` lacks: they are written into the module when they are used.
_HELPERS = {each.__name__: each for each in (helpers.sign, helpers.minimum, helpers.maximum)}
_NAME = re.compile(r"\bt\d+[sc]?\b")


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """The module `kernels.py`: one function of the program after the other, and the helpers that they call."""
    kernels = [_kernel(program, function) for function in program.functions]
    used = [inspect.getsource(each) for name, each in _HELPERS.items() if any(f"{name}(" in text for text in kernels)]
    head = (
        f'"""{robot.name}: functions of one sample, made by modelgen; not to be edited.\n\n'
        "x (n,), u (m,), costate (n,), theta (p,) are read; the other arguments are filled, row by row.\n"
        'numba.njit compiles them as they are; modelgen.load makes kernels for batches of them.\n"""\n\nimport math\n'
    )
    return {"kernels.py": "\n\n".join([head, *used, *kernels]).encode()}


def _kernel(program: Program, function: Function) -> str:
    """Store every result as soon as it is known, so that no register has to keep it."""
    graph = program.graph
    lines = listing(graph, function, Dialect(repr, _call, sincos=lambda a: f"math.sin({a}), math.cos({a})"))
    unused = _unused(graph, function)
    used = {*graph.reachable(function.roots), *unused.values()}
    body = [
        f"{graph.operations[node].name} = {argument.name}[{j}]"
        for argument in function.arguments
        for j, node in enumerate(argument.entries)
        if node in used
    ]
    made = {name: k for k, (names, _) in enumerate(lines.assignments) for name in names.split(", ")}
    ready: list[list[str]] = [[] for _ in range(len(lines.assignments) + 1)]
    for output in function.outputs:
        for j, node in enumerate(output.entries):
            value = lines.roots[node]
            if (output.name, j) in unused:
                name = graph.operations[unused[output.name, j]].name
                value = f"{name} - {name}"
            last = max((made[name] + 1 for name in _NAME.findall(value)), default=0)
            ready[last].append(f"{output.name}[{j}] = {value}")
    body += ready[0]
    for (names, text), results in zip(lines.assignments, ready[1:], strict=True):
        body += [f"{names} = {text}", *results]
    names = ", ".join([*(each.name for each in function.arguments), *(each.name for each in function.outputs)])
    return "\n".join([f"def {function.name}({names}):", *(f"    {line}" for line in body)]) + "\n"


def _call(name: str, arguments: list[str]) -> str:
    return f"{name if name == 'abs' or name in _HELPERS else f'math.{name}'}({', '.join(arguments)})"


def _unused(graph: Graph, function: Function) -> dict[tuple[str, int], Node]:
    """Entries of a gradient by x that are zero, each with its entry of x, where nothing else uses that entry.

    They are written x_j - x_j, so that NaN in x gives NaN in the gradient.
    """
    used = set(graph.reachable(function.roots))
    return {
        (output.name, j): node
        for output in function.outputs
        if output.name in ("dH_dx", "dq_dx")
        for x in function.arguments
        if x.name == "x"
        for j, (node, entry) in enumerate(zip(x.entries, output.entries, strict=True))
        if entry == graph.zero and node not in used
    }
