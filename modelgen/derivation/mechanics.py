"""Quantities of mechanics besides the dynamics: energies and positions of named points, and functions built on request.

The energies follow from positions in the world frame. They are independent of the recursion in `newton_euler`.
M(q) vdot + bias(q, v) = S(q) u are the equations of motion with v = (v_1, ...), whose rates of coordinates are
qdot = G(q) v; for most robots qdot = v. Gradients are formed on the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sympy import Expr, Matrix, S, zeros

from modelgen.derivation.equations import Definition, EquationsOfMotion, used
from modelgen.derivation.frames import Intermediates, frames_of, world_frames
from modelgen.errors import ModelError
from modelgen.program.differentiate import forward, reverse
from modelgen.program.functions import SIGNATURES, Argument, Function, Output, Program
from modelgen.program.graph import Graph, Node
from modelgen.statement.bodies import Link
from modelgen.statement.joints import Motion
from modelgen.statement.robot import Robot, fixed_values


def link_energies(
    links: Sequence[Link], gravity: Expr, taken: Iterable[str]
) -> tuple[tuple[Definition, ...], Expr, Expr]:
    """Definitions, kinetic energy and potential energy of a tree of links. No definition has a name in `taken`."""
    names = Intermediates(taken)
    frames = frames_of(links, names)
    moved_by: list[list[tuple[Motion, Expr, Matrix, Matrix]]] = []  # per frame: rate, axis and origin in the world
    kinetic = potential = S.Zero
    for frame, (rotation, origin) in zip(frames, world_frames(frames, names), strict=True):
        joints = list(moved_by[frame.parent]) if frame.parent is not None else []
        ball = frame.joint.ball if frame.joint else None
        speeds = ball.spin if ball else [motion.speed for motion in frame.motions]  # by rates of coordinates
        for motion, rate in zip(frame.motions, speeds, strict=True):
            axis = names.vector(f"{frame.name}_axis{motion.suffix}", rotation * motion.axis)
            joints.append((motion, rate, axis, origin))
        moved_by.append(joints)
        omega, velocity = zeros(3, 1), zeros(3, 1)  # of the frame and of its origin
        for motion, rate, axis, centre in joints:
            if motion.turns:
                omega += rate * axis
                velocity += rate * axis.cross(origin - centre)
            else:
                velocity += rate * axis
        omega = names.vector(f"{frame.name}_omega", rotation.T * omega)
        velocity = names.vector(f"{frame.name}_velocity", rotation.T * velocity)
        kinetic += frame.mass * velocity.dot(velocity) / 2 + velocity.dot(omega.cross(frame.first_moment))
        kinetic += omega.dot(frame.inertia * omega) / 2
        potential += gravity * (frame.mass * origin[2] + (rotation * frame.first_moment)[2])
    return used(names.definitions, [kinetic, potential]), kinetic, potential


@dataclass(frozen=True)
class MechanicsExpressions:
    """Expressions of state, parameters and definitions. The definitions of the equations of motion come first.

    A system of sympy.physics.mechanics without a potential energy may have its weights among its loads: `potential`
    and `weight` are then None.
    """

    definitions: tuple[Definition, ...]
    kinetic: Expr  # J
    potential: Expr | None  # J
    weight: Expr | None  # J, the potential energy without springs and couplings
    points: Mapping[str, Matrix]  # name -> position in the world (3, 1), m: origins of the links, then named points
    places: int  # number of the coordinates, the first entries of the state


def mechanics_expressions(robot: Robot, equations: EquationsOfMotion) -> MechanicsExpressions:
    """Energies of the links and of the file, independent of the equations of motion, and positions of the points."""
    taken = {*robot.symbols, *(symbol.name for symbol, _ in equations.definitions)}
    definitions, kinetic, potential = link_energies(robot.links, robot.downward_acceleration, taken)
    kinetic = sum((energy.value for energy in robot.kinetic), kinetic)
    elastic = sum((energy.value for energy in robot.potential if energy.elastic), S.Zero)
    weight = sum((energy.value for energy in robot.potential if not energy.elastic), potential)
    system = robot.system
    if system:
        kinetic, weight = kinetic + system.kinetic, weight + system.potential
    known = not (system and system.potential == 0)
    placed, points = _points(robot, {*taken, *(symbol.name for symbol, _ in definitions)})
    _refuse_moving_points(robot, placed, points)
    fixed = fixed_values(robot)

    def final(expression: Expr | Matrix) -> Expr | Matrix:
        return expression.xreplace(fixed)

    return MechanicsExpressions(
        definitions=tuple((symbol, final(value)) for symbol, value in (*definitions, *placed)),
        kinetic=final(kinetic),
        potential=final(weight + elastic) if known else None,
        weight=final(weight) if known else None,
        points={name: final(position) for name, position in points.items()},
        places=len(robot.joints),
    )


def _points(robot: Robot, taken: set[str]) -> tuple[list[Definition], dict[str, Matrix]]:
    """Definitions, and the position of each point in the world frame."""
    names = Intermediates(taken)
    placed = world_frames(frames_of(robot.links, names), names)
    ends = accumulate(max(1, len(link.axes)) for link in robot.links)  # the last frame of a link is its own
    worlds = {link.name: placed[end - 1] for link, end in zip(robot.links, ends, strict=True)}
    points = {link.name: worlds[link.name][1] for link in robot.links}
    for point in robot.points:
        rotation, origin = worlds[point.link.name] if point.link else (Matrix.eye(3), Matrix.zeros(3, 1))
        points[point.name] = origin + rotation * point.position
    return names.definitions, points


def _refuse_moving_points(robot: Robot, placed: Sequence[Definition], points: Mapping[str, Matrix]) -> None:
    """Raise ModelError for a point whose position depends on a coordinate that the state leaves out."""
    ignored = {joint.symbol for joint in robot.ignored}
    for name, position in points.items() if ignored else ():
        terms = [*position, *(value for _, value in used(placed, position))]
        moving = next((symbol for term in terms for symbol in term.free_symbols & ignored), None)
        if moving is not None:
            places = {each.name: each.place for each in robot.links} | {each.name: each.place for each in robot.points}
            raise ModelError(
                f"the point `{name}` moves with `{moving}`, which robot.ignore leaves out of the state. Remove the "
                "point, or robot.ignore.",
                places[name],
            )


def point_hashes(robot: Robot) -> dict[str, str]:
    """Name of a point -> SHA-256 of its line; empty for a link, which is part of the robot's content hash.

    Points are not part of the content hash: a further point leaves the artifact valid.
    """
    hashes = {point.name: hashlib.sha256(point.statement().encode()).hexdigest() for point in robot.points}
    return {**dict.fromkeys((link.name for link in robot.links), ""), **hashes}


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
    places: int  # n_q, also of a kinematic robot, which has no v

    @property
    def coordinates(self) -> tuple[Node, ...]:
        return self.x.entries[: self.places]

    @property
    def size(self) -> int:
        return len(self.force)

    @property
    def velocities(self) -> tuple[Node, ...]:
        return self.x.entries[self.places : self.places + self.size]


def _gravity(of: Mechanics) -> tuple[Output, ...]:
    """G' dU/dq of the weights: the part of the bias that holds the robot up."""
    if of.weight is None:
        return ()
    graph, q = of.graph, of.coordinates
    slopes = reverse(graph, {of.weight: graph.one}, q)
    columns = [forward(graph, of.coordinate_rates, velocity) for velocity in of.velocities]
    return (Output("gravity", (len(columns),), tuple(graph.dot(column, slopes) for column in columns)),)


def _forward_kinematics(of: Mechanics) -> tuple[Output, ...]:
    if not of.points:
        return ()
    count, q = len(of.points) // 3, of.coordinates
    columns = [forward(of.graph, of.points, coordinate) for coordinate in q]
    jacobian = tuple(column[i] for i in range(len(of.points)) for column in columns)
    return Output("positions", (count, 3), of.points), Output("dp_dq", (count, 3, len(q)), jacobian)


#: The one table of these functions: name -> outputs, none where the robot does not state what they need.
MECHANICS: dict[str, Callable[[Mechanics], tuple[Output, ...]]] = {
    "mass_matrix": lambda of: (Output("M", (of.size, of.size), of.mass_matrix),),
    "bias": lambda of: (Output("bias", (of.size,), tuple(map(of.graph.negative, of.force))),),
    "gravity": _gravity,
    "input_map": lambda of: (Output("S", (of.size, len(of.input_map) // of.size), of.input_map),),
    "reaction": lambda of: (Output("R", (len(of.reaction),), of.reaction),) if of.reaction else (),
    "kinetic_energy": lambda of: (Output("T", (), (of.kinetic,)),),
    "potential_energy": lambda of: () if of.potential is None else (Output("U", (), (of.potential,)),),
    "forward_kinematics": _forward_kinematics,
}
#: Names in emitted code that no state or parameter gets.
OUTPUTS = ("M", "bias", "gravity", "S", "R", "T", "U", "positions", "dp_dq")

_WEIGHTS = (
    "the weights of a system of SymPy's without a potential energy are among its loads, and are not known apart. Give "
    "it as a LagrangesMethod whose Lagrangian holds the potential energy"
)
_UNSTATED = {
    "reaction": "no acceleration is commanded. Write robot.accelerate(coordinate, command) in the model file",
    "gravity": _WEIGHTS,
    "potential_energy": _WEIGHTS,
    "forward_kinematics": 'no point has a name. Write robot.point("tip", (x, height)) in the model file',
}


def unstated(name: str, kinematic: bool) -> str:
    """Why a robot, perhaps a kinematic one, does not have the function of this name."""
    if kinematic and name != "forward_kinematics":
        return "robot.flow gives the rates of its coordinates, so that it has no masses and no forces"
    return _UNSTATED[name]


def program(mechanics: Mechanics, names: Collection[str]) -> Program:
    """The named functions of state and parameters. If all are named, the ones that the robot has.

    Raises ModelError for a named function that the robot does not have. A kinematic robot has points only.
    """
    functions = []
    for name in (name for name in MECHANICS if name in names):
        outputs = MECHANICS[name](mechanics) if mechanics.size or name == "forward_kinematics" else ()
        if outputs:
            with_input = (mechanics.u,) if "u" in SIGNATURES[name][0] else ()
            functions.append(Function(name, (mechanics.x, *with_input, mechanics.theta), outputs))
        elif not MECHANICS.keys() <= set(names):
            raise ModelError(f"there is no `{name}` of this robot: {unstated(name, not mechanics.size)}.")
    return Program(mechanics.graph, tuple(functions))
