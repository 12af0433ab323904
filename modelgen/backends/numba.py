"""Numba: scalar straight-line code per sample in one loop, which LLVM vectorises across samples.

The loop is serial and releases the GIL; with `parallel` the samples are cut into one chunk a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from modelgen.backends.host import Array, HostKernels
from modelgen.backends.modules import emitted_module
from modelgen.backends.source import Dialect, listing
from modelgen.backends.threads import chunk_count, run_chunks
from modelgen.graph import Graph, Node
from modelgen.manifest import Manifest
from modelgen.metadata import Metadata
from modelgen.program import Function, Program

#: Functions that are not in `math`: built in, or in the prelude.
_HELPERS = ("abs", "minimum", "maximum", "sign")
#: Results at least this wide go through a block of columns: to set one column of a wide array for many samples
#: at once is a scatter, which costs more than all the arithmetic, and much more when the array is not in cache.
_WIDE = 8
_BLOCK = 64  # samples


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """One module that needs only Numba."""
    prelude = Path(__file__).with_name("numba_prelude.py").read_text(encoding="utf-8")
    _, _, helpers = prelude.partition('"""\n\n')
    parts = [f'"""{robot.name}: kernels for Numba, made by modelgen; not to be edited."""\n\n{helpers.rstrip()}\n']
    parts += [_kernel(program, function) for function in program.functions]
    return {"numba.py": "\n\n".join(parts).encode()}


def _kernel(program: Program, function: Function) -> str:
    graph = program.graph
    literals: dict[float, str] = {}

    def literal(value: float) -> str:
        return literals.setdefault(value, f"c{len(literals) + 1}")

    lines = listing(graph, function, Dialect(literal, _call, sincos=lambda a: f"sincos({a}, real, half_pi)"))
    unused = _unused(graph, function)
    used = {*graph.reachable(function.roots), *unused.values()}
    body = [
        f"{graph.operations[node].name} = "
        f"load({argument.name}, {'row' if argument.name == 'theta' else 'i'}, {len(argument.entries)}, {j})"
        for argument in function.arguments
        for j, node in enumerate(argument.entries)
        if node in used
    ]
    body += [f"{name} = {text}" for name, text in lines.assignments]
    copies: list[str] = []
    columns = 0
    for output in function.outputs:
        width = len(output.entries)
        for j, node in enumerate(output.entries):
            value = lines.roots[node]
            if (output.name, j) in unused:
                name = graph.operations[unused[output.name, j]].name
                value = f"{name} - {name}"
            if width >= _WIDE and graph.operations[node].kind != "constant":
                body.append(f"store(block, i - first, 1, {columns * _BLOCK}, {value})")
                value = f"load(block, i - first, 1, {columns * _BLOCK})"
                columns += 1
            (copies if width >= _WIDE else body).append(f"store({output.name}, i, {width}, {j}, {value})")
    names = [argument.name for argument in function.arguments] + [output.name for output in function.outputs]
    head = [
        f"def {function.name}({', '.join(names)}):",
        "    real = x.dtype.type",
        "    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64",
        "    step = 0 if theta.ndim == 1 else 1",
        *(f"    {name} = real({value!r})" for value, name in literals.items()),
    ]
    return "\n".join(["@kernel", *head, *_loops(body, copies, columns)]) + "\n"


def _loops(body: list[str], copies: list[str], columns: int) -> list[str]:
    """The loop over samples, or over blocks of samples whose wide results are copied row by row at the end."""
    if not copies:
        return ["    for i in range(x.shape[0]):", "        row = step * i", *(f"        {line}" for line in body)]
    return [
        f"    block = np.empty({columns * _BLOCK}, x.dtype)",
        f"    for first in range(0, x.shape[0], {_BLOCK}):",
        f"        last = min(first + {_BLOCK}, x.shape[0])",
        "        for i in range(first, last):",
        "            row = step * i",
        *(f"            {line}" for line in body),
        "        for i in range(first, last):",
        "            one_by_one()",
        *(f"            {line}" for line in copies),
    ]


def _call(name: str, arguments: list[str]) -> str:
    if name in ("sin", "cos"):
        return f"sincos({arguments[0]}, real, half_pi)[{int(name == 'cos')}]"
    return f"{name if name in _HELPERS else f'math.{name}'}({', '.join(arguments)})"


def _unused(graph: Graph, function: Function) -> dict[tuple[str, int], Node]:
    """Zero entries of a gradient by x, with the entry of x that nothing else uses: they are written x_j - x_j.

    So NaN gives NaN there too; and LLVM, which finds whole rows of x read, loads and shuffles vectors instead
    of gathering single numbers (measured: a fifth of the time of furuta's Hamiltonian gradient).
    """
    used = set(graph.reachable(function.roots))
    x = next(argument for argument in function.arguments if argument.name == "x")
    return {
        (output.name, j): node
        for output in function.outputs
        if output.name in ("dH_dx", "dq_dx")
        for j, (node, entry) in enumerate(zip(x.entries, output.entries, strict=True))
        if entry == graph.zero and node not in used
    }


def load(folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> NumbaKernels:
    """The compiled functions; machine code is made, or read from the cache, at a function's first call."""
    (name,) = manifest.files["numba"]
    return NumbaKernels(emitted_module(folder / name), manifest, dtype, parallel)


class NumbaKernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, module: ModuleType, manifest: Manifest, dtype: str, parallel: bool) -> None:
        super().__init__(manifest, dtype)
        self._module = module
        self._parallel = parallel

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        kernel = getattr(self._module, function)
        inputs = [arrays[name] for name in self._signatures[function].arguments]

        def chunk(start: int, stop: int) -> None:
            rows = [array if array is theta else array[start:stop] for array in inputs]
            kernel(*rows, *(result[start:stop] for result in results))

        theta = arrays["theta"] if arrays["theta"].ndim == 1 else None
        count = chunk_count(samples) if self._parallel else 1
        if count > 1:
            run_chunks(chunk, samples, count)
        elif samples:
            kernel(*inputs, *results)
