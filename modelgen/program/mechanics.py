"""The functions of mechanics that are built on request: M, bias, gravity, S, energies and the positions of points.

M(q) vdot + bias(q, v) = S(q) u are the equations of motion with v = (v_1, ...), whose rates of coordinates are
qdot = G(q) v; for most robots qdot = v. Gradients are formed on the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from modelgen.errors import ModelError
from modelgen.program.differentiate import forward, reverse
from modelgen.program.functions import SIGNATURES, Argument, Function, Output, Program
from modelgen.program.graph import Graph, Node


@dataclass(frozen=True)
class Mechanics:
    """The quantities of mechanics as nodes, from which the functions are made."""

    graph: Graph
    x: Argument  # (n,)
    theta: Argument  # (p,)
    coordinate_rates: tuple[Node, ...]  # (n_q,)
    mass_matrix: tuple[Node, ...]  # (n_v n_v), row by row
    force: tuple[Node, ...]  # (n_v,) at u = 0
    input_map: tuple[Node, ...]  # (n_v m), row by row
    kinetic: Node
    potential: Node | None
    weight: Node | None
    points: tuple[Node, ...]  # (k 3), row by row
    u: Argument  # (m,) where accelerations are commanded, otherwise empty
    reaction: tuple[Node, ...]  # (k,) the forces of the drives that command accelerations

    @property
    def coordinates(self) -> tuple[Node, ...]:
        return self.x.entries[: len(self.coordinate_rates)]

    @property
    def velocities(self) -> tuple[Node, ...]:
        first = len(self.coordinate_rates)
        return self.x.entries[first : first + len(self.force)]


def _mass_matrix(of: Mechanics) -> tuple[Output, ...]:
    rows = len(of.force)
    return (Output("M", (rows, rows), of.mass_matrix),)


def _bias(of: Mechanics) -> tuple[Output, ...]:
    return (Output("bias", (len(of.force),), tuple(map(of.graph.negative, of.force))),)


def _gravity(of: Mechanics) -> tuple[Output, ...]:
    """G' dU/dq of the weights: the part of the bias that holds the robot up."""
    if of.weight is None:
        return ()
    graph, q = of.graph, of.coordinates
    slopes = reverse(graph, {of.weight: graph.one}, q)
    columns = [forward(graph, of.coordinate_rates, velocity) for velocity in of.velocities]
    return (Output("gravity", (len(columns),), tuple(graph.dot(column, slopes) for column in columns)),)


def _input_map(of: Mechanics) -> tuple[Output, ...]:
    rows = len(of.force)
    return (Output("S", (rows, len(of.input_map) // rows), of.input_map),)


def _reaction(of: Mechanics) -> tuple[Output, ...]:
    return (Output("R", (len(of.reaction),), of.reaction),) if of.reaction else ()


def _kinetic_energy(of: Mechanics) -> tuple[Output, ...]:
    return (Output("T", (), (of.kinetic,)),)


def _potential_energy(of: Mechanics) -> tuple[Output, ...]:
    return () if of.potential is None else (Output("U", (), (of.potential,)),)


def _forward_kinematics(of: Mechanics) -> tuple[Output, ...]:
    if not of.points:
        return ()
    count, q = len(of.points) // 3, of.coordinates
    columns = [forward(of.graph, of.points, coordinate) for coordinate in q]
    jacobian = tuple(column[i] for i in range(len(of.points)) for column in columns)
    return Output("positions", (count, 3), of.points), Output("dp_dq", (count, 3, len(q)), jacobian)


#: The one table of these functions: name -> outputs, none where the robot does not state what they need.
MECHANICS: dict[str, Callable[[Mechanics], tuple[Output, ...]]] = {
    "mass_matrix": _mass_matrix,
    "bias": _bias,
    "gravity": _gravity,
    "input_map": _input_map,
    "reaction": _reaction,
    "kinetic_energy": _kinetic_energy,
    "potential_energy": _potential_energy,
    "forward_kinematics": _forward_kinematics,
}
#: Names in emitted code that no state or parameter gets.
OUTPUTS = ("M", "bias", "gravity", "S", "R", "T", "U", "positions", "dp_dq")

_WEIGHTS = (
    "the weights of a system of SymPy's without a potential energy are among its loads, and are not known apart. Give "
    "it as a LagrangesMethod whose Lagrangian holds the potential energy"
)
#: Why a robot may not have a function.
UNSTATED = {
    "reaction": "no acceleration is commanded. Write robot.accelerate(coordinate, command) in the model file",
    "gravity": _WEIGHTS,
    "potential_energy": _WEIGHTS,
    "forward_kinematics": 'no point has a name. Write robot.point("tip", (x, height)) in the model file',
}


def program(mechanics: Mechanics, names: Collection[str]) -> Program:
    """The named functions of state and parameters. If all are named, the ones that the robot has.

    Raises ModelError for a named function that the robot does not have.
    """
    functions = []
    for name in (name for name in MECHANICS if name in names):
        outputs = MECHANICS[name](mechanics)
        if outputs:
            with_input = (mechanics.u,) if "u" in SIGNATURES[name][0] else ()
            functions.append(Function(name, (mechanics.x, *with_input, mechanics.theta), outputs))
        elif not MECHANICS.keys() <= set(names):
            raise ModelError(f"there is no `{name}` of this robot: {UNSTATED[name]}.")
    return Program(mechanics.graph, tuple(functions))
