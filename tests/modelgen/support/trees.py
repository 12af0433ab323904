"""Random kinematic trees in three dimensions, as robots of this package and as models of Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from modelgen import LogCos, Robot

AXES = {
    name: np.eye(3)["xyz".index(name[-1])] * (-1 if name[0] == "-" else 1) for name in ("x", "y", "z", "-x", "-y", "-z")
}
PLANES = {"x": ("y", "z"), "y": ("x", "z"), "z": ("x", "y")}  # normal -> forward and upward of a floating link
COORDINATES = 4


@dataclass(frozen=True)
class Bar:
    """One random link."""

    name: str
    kind: str
    on: int  # which of the links before it carries it; -1: the ground
    at: tuple[float, ...]
    turned: tuple[float, ...]
    axis: Any
    mass: float
    free: bool  # whether its mass is a parameter
    centre: tuple[float, ...]
    spread: tuple[float, ...]  # where a mass beside the centre is, so that a body can have the inertia

    @property
    def coordinates(self) -> tuple[str, ...]:
        count = {"fixed": 0, "floating": 3}.get(self.kind, 1)
        return tuple(f"{self.name}_q{i}" for i in range(count))

    @property
    def inertia(self) -> np.ndarray:
        s = np.array(self.spread)
        return 0.1 * np.eye(3) + s @ s * np.eye(3) - np.outer(s, s)

    @property
    def direction(self) -> np.ndarray:
        direction = AXES[self.axis] if isinstance(self.axis, str) else np.array(self.axis)
        return direction / np.linalg.norm(direction)


@dataclass(frozen=True)
class Tree:
    """Links, each after its parent. The parameter `length` scales all of them."""

    bars: tuple[Bar, ...]
    length: float
    gravity: float

    @property
    def coordinates(self) -> tuple[str, ...]:
        return tuple(name for bar in self.bars for name in bar.coordinates)

    @property
    def nominal(self) -> np.ndarray:
        return np.array([self.length, *(bar.mass for bar in self.bars if bar.free)])


number = st.integers(-20, 20).map(lambda each: each / 10)
triple = st.tuples(number, number, number)
named = st.sampled_from(list(AXES))
axis = named | triple.filter(any)
KINDS = ("revolute", "prismatic", "fixed", "floating")


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Up to five links and four coordinates, with every kind of joint, branches, and any frames and gravity."""
    bars: list[Bar] = []
    room = COORDINATES
    for number in range(draw(st.integers(1, 5))):
        kinds = [kind for kind in KINDS if {"fixed": 0, "floating": 3}.get(kind, 1) <= room]
        kind = draw(st.sampled_from(kinds if bars else [kind for kind in kinds if kind != "fixed"]))
        bars.append(
            Bar(
                name=f"link{number}",
                kind=kind,
                on=draw(st.integers(-1, number - 1)),
                at=draw(triple),
                turned=draw(triple),
                axis=draw(named if kind == "floating" else axis),
                mass=draw(st.integers(1, 30)) / 10,
                free=draw(st.booleans()),
                centre=draw(triple),
                spread=draw(triple),
            )
        )
        room -= len(bars[-1].coordinates)
    return Tree(tuple(bars), draw(st.integers(5, 15)) / 10, draw(st.sampled_from([9.81, 0.0, 3.0])))


def as_robot(tree: Tree) -> Robot:
    """A robot by the methods of a model file, with an input on the first coordinate."""
    robot = Robot("tree")
    robot.gravity(tree.gravity)
    length = robot.parameter("length", tree.length, "", tolerance=0.3)
    made: list[Any] = []
    for bar in tree.bars:
        kinds = ("prismatic", "prismatic", "revolute") if bar.kind == "floating" else (bar.kind,)
        joint = [
            getattr(robot, kind)(name, limit=3, rate_limit=3)
            for kind, name in zip(kinds, bar.coordinates, strict=False)
        ]
        mass: Any = robot.parameter(f"{bar.name}_mass", bar.mass, "kg", tolerance=0.3) if bar.free else bar.mass
        tensor = bar.inertia
        made.append(
            robot.link(
                bar.name,
                tuple(joint),
                on=made[bar.on] if bar.on >= 0 else None,
                at=tuple(length * component for component in bar.at),
                turned=bar.turned,
                axis=bar.axis,
                mass=mass,
                centre=bar.centre,
                inertia=tuple(tensor[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))),
            )
        )
    return finished(robot)


def finished(robot: Robot) -> Robot:
    """The robot with an input on its first coordinate and a task."""
    first = robot.joints[0].symbol
    robot.apply(first, robot.input("drive", 1, ""))
    robot.task(state_cost=first**2, action_cost=LogCos(1), start={}, horizon=5, weight_at_horizon=0.5, control_rate=100)
    return robot


def as_pinocchio(pin: Any, tree: Tree, theta: np.ndarray) -> tuple[Any, list[int]]:
    """Pinocchio's model at the parameters theta, and the indices of the coordinates in its vectors."""
    length, masses = theta[0], iter(theta[1:])
    mass = [next(masses) if bar.free else bar.mass for bar in tree.bars]
    model = pin.Model()
    model.gravity.linear = np.array([0, 0, -tree.gravity])
    kinds = {"revolute": pin.JointModelRevoluteUnaligned, "prismatic": pin.JointModelPrismaticUnaligned}
    placed = {-1: (0, pin.SE3.Identity())}  # joint, and where the link's frame stands on it
    for number in _depth_first(tree, -1):
        bar = tree.bars[number]
        joint, frame = placed[bar.on]
        frame = frame * pin.SE3(rotation(*bar.turned), length * np.array(bar.at))
        if bar.kind == "floating":
            forward, upward = (AXES[letter] for letter in PLANES[bar.axis[-1]])
            steps = [("prismatic", forward), ("prismatic", upward), ("revolute", bar.direction)]
        else:
            steps = [(bar.kind, bar.direction)]
        for (kind, direction), name in zip(steps, bar.coordinates, strict=False):
            joint, frame = model.addJoint(joint, kinds[kind](direction), frame, name), pin.SE3.Identity()
        model.appendBodyToJoint(joint, pin.Inertia(mass[number], np.array(bar.centre), bar.inertia), frame)
        placed[number] = (joint, frame)
        model.addFrame(pin.Frame(bar.name, joint, frame, pin.FrameType.OP_FRAME))
    return model, [model.joints[model.getJointId(name)].idx_v for name in tree.coordinates]


def _depth_first(tree: Tree, root: int) -> list[int]:
    """The numbers of the links in the order that Pinocchio's algorithms need."""
    below = [number for number, bar in enumerate(tree.bars) if bar.on == root]
    return [link for number in below for link in (number, *_depth_first(tree, number))]


def rotation(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """The rotation about the fixed axes x, then y, then z."""
    (a, b, c), (d, e, f) = np.cos((roll, pitch, yaw)), np.sin((roll, pitch, yaw))
    about_x = np.array([[1, 0, 0], [0, a, -d], [0, d, a]])
    about_y = np.array([[b, 0, e], [0, 1, 0], [-e, 0, b]])
    about_z = np.array([[c, -f, 0], [f, c, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x
