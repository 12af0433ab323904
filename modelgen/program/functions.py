"""The program of a robot: one expression graph and the functions that every artifact offers.

A function is a list of argument entries and of output entries; all functions' nodes are of one graph.
No SymPy here: `lowering` makes the graph from SymPy's expressions, `differentiate` the functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelgen.program.graph import Graph, Node

MOST_OPERATIONS = 1_500_000  # of a build, unless its user allows more


@dataclass(frozen=True)
class Argument:
    """One array argument; for every sample it is the row of these input nodes."""

    name: str
    entries: tuple[Node, ...]


@dataclass(frozen=True)
class Output:
    """One array result; `entries` are its nodes in row-major order, `shape` without the sample axis."""

    name: str
    shape: tuple[int, ...]
    entries: tuple[Node, ...]


@dataclass(frozen=True)
class Function:
    """One kernel: arguments in the order of the call, outputs in the order of the result."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]

    @property
    def roots(self) -> list[Node]:
        return [entry for output in self.outputs for entry in output.entries]


@dataclass(frozen=True)
class Mechanism:
    """The equations of motion as nodes; what `differentiate` makes the functions from."""

    graph: Graph
    x: Argument  # (n,)
    u: Argument  # (m,)
    costate: Argument  # (n,)
    theta: Argument  # (p,)
    coordinate_rates: tuple[Node, ...]  # (n_q,)
    mass_matrix: tuple[tuple[Node, ...], ...]  # (n_v, n_v)
    force: tuple[Node, ...]  # (n_v,)
    input_columns: tuple[tuple[Node, ...], ...]  # (m, n_v)
    state_cost: Node
    w: Argument  # (m,) B^T dV/dx
    input_costs: tuple[Node, ...]  # (m,) g(u) of each input
    optimal_inputs: tuple[Node, ...]  # (m,) grad g~(w)
    optimal_input_costs: tuple[Node, ...]  # (m,) g(grad g~(w))


@dataclass(frozen=True)
class Program:
    """The functions of one robot."""

    graph: Graph
    functions: tuple[Function, ...]

    def function(self, name: str) -> Function:
        return next(function for function in self.functions if function.name == name)

    def operations(self) -> dict[str, int]:
        """Arithmetic operations and calls of each function, constants and names not counted."""
        free = {"constant", "input", "solution"}
        return {
            function.name: sum(
                self.graph.operations[node].kind not in free for node in self.graph.reachable(function.roots)
            )
            for function in self.functions
        }
