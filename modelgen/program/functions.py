"""The program of a robot: one expression graph and the functions that every artifact offers.

A function is a list of argument entries and of output entries; all functions' nodes are of one graph.
No SymPy here: `lowering` makes the graph from SymPy's expressions, `differentiate` the functions, `stored` their file.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from modelgen.program.graph import Graph, Node

MOST_OPERATIONS = 1_500_000  # of a build, unless its user allows more

#: Arguments and results of every function that an artifact may hold.
SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "affine_dynamics": (("x", "theta"), ("a", "B")),
    "dynamics": (("x", "u", "theta"), ("xdot",)),
    "jacobians": (("x", "theta"), ("a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta")),
    "hamiltonian_gradient": (("x", "u", "costate", "theta"), ("dH_dx", "dH_du", "dH_dtheta")),
    "state_cost": (("x", "theta"), ("q", "dq_dx")),
    "action_cost": (("u",), ("g", "dg_du", "d2g_du2")),
    "optimal_input": (("w",), ("u_optimal",)),
    "optimal_input_cost": (("w",), ("g_optimal",)),
    "mass_matrix": (("x", "theta"), ("M",)),
    "bias": (("x", "theta"), ("bias",)),
    "gravity": (("x", "theta"), ("gravity",)),
    "input_map": (("x", "theta"), ("S",)),
    "reaction": (("x", "u", "theta"), ("R",)),
    "kinetic_energy": (("x", "theta"), ("T",)),
    "potential_energy": (("x", "theta"), ("U",)),
    "forward_kinematics": (("x", "theta"), ("positions", "dp_dq")),
}

#: Names with a meaning of their own in emitted code, which a model's symbols therefore do not get there.
_RESERVED = (
    "x u costate theta step i row first last block real load store half_pi a B xdot da_dx dB_dx da_dtheta "
    "dB_dtheta dH_dx dH_du dH_dtheta u0 du0_dtheta q dq_dx w g dg_du d2g_du2 u_optimal g_optimal "
    "abs min range math np ir types signature torch njit warnings kernel "
    "sincos exp log log1p tanh sign minimum maximum points SEGMENTS len "
    # C99's words, and what its mathematics and complex headers define
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while R I complex "
    "sin cos tan asin acos atan atan2 sinh cosh sqrt pow fabs NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL "
    "sinf cosf asinf acosf atanf atan2f sinhf coshf tanhf expf logf log1pf sqrtf powf fabsf isnan "
    "math_errhandling MATH_ERRNO MATH_ERREXCEPT FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL FP_FAST_FMA "
    "FP_FAST_FMAF FP_FAST_FMAL FP_ILOGB0 FP_ILOGBNAN "
    # what compilers define unless an option forbids it
    "asm typeof linux unix M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 "
    "M_SQRT1_2"
)
#: Names that listings make: of intermediate results, and of constants in float32.
_TEMPORARY = re.compile(r"[tc]\d+[sc]?|_number\d+")


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
    def arrays(self) -> list[str]:
        """Names of the arguments, then of the outputs."""
        return [*(argument.name for argument in self.arguments), *(output.name for output in self.outputs)]

    @property
    def roots(self) -> list[Node]:
        return [entry for output in self.outputs for entry in output.entries]


@dataclass(frozen=True)
class EquationNodes:
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
    flow: tuple[Node, ...]  # (n_z,) zdot at u = 0
    flow_columns: tuple[tuple[Node, ...], ...]  # (m, n_z)
    w: Argument  # (m,) B^T dV/dx
    input_costs: tuple[Node, ...]  # (m,) g(u) of each input
    optimal_inputs: tuple[Node, ...]  # (m,) grad g~(w)
    optimal_input_costs: tuple[Node, ...]  # (m,) g(grad g~(w))


@dataclass(frozen=True)
class Program:
    """The functions of one robot, and its drawing."""

    graph: Graph
    functions: tuple[Function, ...]
    drawing: Function | None = None  # (x, theta) -> points (P, 2), of the same graph
    segments: tuple[tuple[int, int], ...] = ()  # pairs of points that the drawing joins
    digest: str = ""  # sha256 of the file that it was read from

    def function(self, name: str) -> Function:
        return next(function for function in self.functions if function.name == name)

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """The arguments of all functions by name; an argument has the same entries in every function."""
        functions = (*self.functions, *([self.drawing] if self.drawing else []))
        return {argument.name: argument for function in functions for argument in function.arguments}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Entries per sample of every array argument."""
        return {name: len(argument.entries) for name, argument in self.arguments.items()}

    @cached_property
    def operations(self) -> dict[str, int]:
        """Arithmetic operations and calls of each function, constants and names not counted."""
        free = {"constant", "input", "solution"}
        return {
            function.name: sum(
                self.graph.operations[node].kind not in free for node in self.graph.reachable(function.roots)
            )
            for function in self.functions
        }


def unique_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """ASCII identifiers, mutually different and different from what emitted code uses itself; deterministic."""
    used = {*_RESERVED.split(), *taken}
    result = []
    for name in names:
        identifier = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not identifier or identifier[0].isdigit():
            identifier = f"_{identifier}"
        while identifier in used or keyword.iskeyword(identifier) or _TEMPORARY.fullmatch(identifier):
            identifier += "_"
        used.add(identifier)
        result.append(identifier)
    return result
