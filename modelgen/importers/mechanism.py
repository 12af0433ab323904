"""A robot as the reader of a file format leaves it: links, joints, actuators and couplings in plain numbers.

Every reader makes a `Mechanism`; `writer` makes the text of a model file from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from modelgen.arrays import Array
from modelgen.statement.joints import LARGEST

MOVING = ("revolute", "continuous", "prismatic")
IN_PLANE = "floating in a plane"
PLANAR = {"planar": ("x", "y", "turn"), IN_PLANE: ("x", "height", "pitch")}  # type of a joint -> its coordinates
BALL, FLOATING = "ball", "floating"  # types of joints with three rotations
GROUND = "the ground"  # name of the link below a floating base
FREQUENCY = 60.0  # rad/s, of a coupling with its load: stiff compared with a hand's motion, easy to integrate
SMOOTHING = 0.01  # rad/s, m/s: the rate where dry friction fades
STIFFEST = 2000.0  # 1/s, of the dry friction of a link alone; a build resolves twice as much at the control rate
OFF_CENTRE = 0.5  # of half a range: where zero lies farther from the middle, the middle becomes the zero

Linear = tuple[tuple[str, float], ...]  # a sum of joints, each times its coefficient


@dataclass(frozen=True)
class Inertial:
    """Mass (kg) and inertia (3, 3) (kg m^2) about the centre, in the frame `origin` (4, 4) of the link."""

    mass: float
    origin: Array
    inertia: Array | None


@dataclass(frozen=True)
class Link:
    """A body."""

    name: str
    inertial: Inertial | None = None


@dataclass
class Joint:
    """A joint and the link that it moves, `child`. Its frame in the parent is `origin` (4, 4).

    type: one of `MOVING`, a key of `PLANAR`, ball, floating, or fixed. lower, upper: the range, None for a joint
    without one. velocity, effort: 0 if unknown. armature: inertia of its rotor (kg m^2 or kg). zero: the position of
    the file at which the coordinate of the model file is zero. remark: for the head of the model file. centred: the
    middle of the range is the zero in any case, because nothing beyond the range is possible.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Array = field(default_factory=lambda: np.eye(4))
    axis: Array = field(default_factory=lambda: np.array([1.0, 0, 0]))
    lower: float | None = None
    upper: float | None = None
    velocity: float = 0.0
    effort: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    zero: float = 0.0
    remark: str = ""
    centred: bool = False

    @property
    def reach(self) -> float:
        """The largest distance of its range from zero; infinite for a joint without a range."""
        if self.type == "continuous" or self.lower is None or self.upper is None:
            return np.inf
        return max(abs(self.lower), abs(self.upper))

    def moved(self, position: float) -> Array:
        """The displacement (4, 4) of a joint with one coordinate."""
        result = np.eye(4)
        axis = self.axis / (np.linalg.norm(self.axis) or 1.0)
        if self.type in ("revolute", "continuous"):
            result[:3, :3] = Rotation.from_rotvec(axis * position).as_matrix()
        elif self.type == "prismatic":
            result[:3, 3] = axis * position
        return result

    def measure_from_the_middle(self) -> None:
        """Make the middle of the range the zero, if 0 does not lie in the middle half of the range."""
        if self.type not in ("revolute", "prismatic") or self.lower is None or self.upper is None:
            return
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        share = 1e-9 if self.centred else OFF_CENTRE * (1 + 1e-9)
        if abs(middle) > share * half and self.reach <= LARGEST[self.type]:
            self.origin = self.origin @ self.moved(middle)
            self.lower, self.upper, self.zero = -half, half, middle


@dataclass(frozen=True)
class Actuator:
    """A force gain * input + bias[0] + bias[1] * position + bias[2] * velocity along a sum of joints, or a `Push`.

    lower, upper: of the input. unit: of the input.
    """

    name: str
    along: Linear
    gain: float
    bias: tuple[float, float, float]
    lower: float
    upper: float
    unit: str


@dataclass(frozen=True)
class Push:
    """A force and a torque on a link per unit of an input, at a point, (3,) each in the frame of the link."""

    input: str
    link: str
    force: Array
    torque: Array
    point: Array


@dataclass(frozen=True)
class Passive:
    """A spring with its rest position, a damper, dry friction and an inertia along a sum of joints."""

    along: Linear
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0


@dataclass(frozen=True)
class Coupling:
    """A sum of joints that follows another: first = sum_k polynomial[k] * second^k. An empty second holds the first."""

    first: Linear
    second: Linear
    polynomial: tuple[float, ...]


@dataclass(frozen=True)
class Closure:
    """A loop: two points that are one, each a link and a frame (4, 4) in it, or two frames where `welded`.

    dependent, at: joints that follow, and the others of the loop, with their positions in the file at the starting
    posture.
    """

    ends: tuple[tuple[str, Array], tuple[str, Array]]
    welded: bool
    dependent: Mapping[str, float]
    at: Mapping[str, float]


@dataclass
class Mechanism:
    """Links, joints in an order in which carriers come first, and forces. gravity: m/s^2 along -z of the ground.

    fastest: the largest rate at which dampers and springs bring a joint to rest, 1/s; 0 if unknown.
    """

    links: Sequence[Link]
    joints: Sequence[Joint]
    actuators: list[Actuator] = field(default_factory=list)
    passive: list[Passive] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    gravity: float = 9.81
    fastest: float = 0.0

    def __post_init__(self) -> None:
        for joint in self.joints:
            if joint.type == "continuous" and not self._endless(joint.name):
                joint.type, joint.lower, joint.upper = "revolute", -np.pi, np.pi
                joint.remark = "{} turns without end in the file; what holds it does not repeat, so it has limits."

    def measure_from_the_middle(self) -> None:
        """Choose the zero of every joint; the last step of a reader, when all ranges are known."""
        for joint in self.joints:
            joint.measure_from_the_middle()

    def _endless(self, joint: str) -> bool:
        """Whether all forces on a continuous joint repeat after its whole turn: no spring, and whole ratios."""
        springs = [passive.along for passive in self.passive if passive.stiffness]
        springs += [actuator.along for actuator in self.actuators if actuator.bias[1]]
        held = any(joint in dict(along) for along in springs)
        return not held and all(self._repeats(coupling, joint) for coupling in self.couplings)

    def _repeats(self, coupling: Coupling, joint: str) -> bool:
        """Whether a coupling is the same after a whole turn of a joint."""
        if joint not in dict(coupling.first + coupling.second):
            return True
        turns = all(self.joint(name).type != "prismatic" for name, _ in coupling.first)
        slopes = [dict(coupling.first).get(joint, 0.0)]
        slopes += [slope * dict(coupling.second).get(joint, 0.0) for slope in coupling.polynomial[1:2]]
        return turns and len(coupling.polynomial) <= 2 and all(float(slope).is_integer() for slope in slopes)

    @property
    def root(self) -> str:
        """The link that no joint carries."""
        carried = {joint.child for joint in self.joints}
        return next((link.name for link in self.links if link.name not in carried), GROUND)

    @property
    def driven(self) -> set[str]:
        """Names of the joints along which an actuator or a coupling pulls."""
        sums = [actuator.along for actuator in self.actuators]
        sums += [along for coupling in self.couplings for along in (coupling.first, coupling.second)]
        return {name for along in sums for name, _ in along}

    @property
    def dependent(self) -> set[str]:
        """Names of the joints that follow others in loops."""
        return {name for closure in self.closures for name in closure.dependent}

    def joint(self, name: str) -> Joint:
        """The joint of a name."""
        return next(joint for joint in self.joints if joint.name == name)

    def still(self) -> set[str]:
        """The root and the links that are fixed to it."""
        result = {self.root}
        for joint in self.joints:
            if joint.type == "fixed" and joint.parent in result:
                result.add(joint.child)
        return result

    def motionless(self) -> set[str]:
        """The links whose centre of mass no joint moves. Their mass has no effect."""
        centres = {link.name: np.eye(4) if link.inertial is None else link.inertial.origin for link in self.links}
        random = np.random.default_rng(0)
        positions: dict[str, list[Array]] = {name: [] for name in centres}
        for _ in range(3):
            frames: dict[str, Array] = {}
            for joint in self.joints:
                frames[joint.child] = frames.get(joint.parent, np.eye(4)) @ joint.origin @ _moved(joint, random)
            for name, frame in frames.items():
                positions[name].append((frame @ centres[name])[:3, 3])
        return {name for name, points in positions.items() if not points or np.ptp(points, axis=0).max() < 1e-9}

    def carried_inertia(self, joint: Joint, rigidly: bool = False) -> float:
        """The inertia about a joint's axis (kg m^2), or the mass along it (kg), of all links that it carries at zero.

        It includes the armature. rigidly: count only its own link and the links that are fixed to it.
        """
        axis = joint.axis / np.linalg.norm(joint.axis)
        frames = {joint.child: np.eye(4)}
        for other in self.joints:
            if other.parent in frames and (other.type == "fixed" or not rigidly):
                frames[other.child] = frames[other.parent] @ other.origin
        total = joint.armature
        for link in self.links:
            if link.name in frames and link.inertial is not None and link.inertial.mass:
                frame = frames[link.name] @ link.inertial.origin
                arm, own = np.cross(axis, frame[:3, 3]), frame[:3, :3].T @ axis
                inertia = np.zeros((3, 3)) if link.inertial.inertia is None else link.inertial.inertia
                about = link.inertial.mass * arm @ arm + own @ inertia @ own
                total += float(link.inertial.mass if joint.type == "prismatic" else about)
        return total

    def stiffness_and_damping(self, coupling: Coupling) -> tuple[float, float]:
        """Guesses for the spring and the damper of a coupling, from the inertia that its first joint moves."""
        name, coefficient = coupling.first[0]
        moment = self.carried_inertia(self.joint(name)) / coefficient**2
        return _rounded(FREQUENCY**2 * moment), _rounded(FREQUENCY * moment)

    def rest(self) -> dict[str, float]:
        """Coordinates, by joint, at which every coupling holds; 0 for a joint that is not named.

        A leader is at zero, or as near to it as the ranges of its followers let it be.
        """
        rest: dict[str, float] = {}

        def total(along: Linear) -> float:
            return self.shift(along) + sum(coefficient * rest.get(name, 0.0) for name, coefficient in along)

        for coupling in [*self.couplings] * (len(self.couplings) + 1):  # a leader may follow, or be moved below
            name, coefficient = coupling.first[0]
            joint, follows = self.joint(name), float(np.polyval(coupling.polynomial[::-1], total(coupling.second)))
            value = rest.get(name, 0.0) + (follows - total(coupling.first)) / coefficient
            if joint.type == "continuous":
                value = float(np.arctan2(np.sin(value), np.cos(value)))
            rest[name] = float(np.clip(value, -joint.reach, joint.reach))
            slope = coupling.polynomial[1] if len(coupling.polynomial) == 2 else 0.0
            if rest[name] != value and len(coupling.second) == 1 and slope:
                leader, ratio = coupling.second[0]
                rest[leader] = rest.get(leader, 0.0) + (rest[name] - value) * coefficient / (slope * ratio)
        return {name: value for name, value in rest.items() if abs(value) > 1e-9}

    def smoothing(self, along: Linear, friction: float) -> tuple[float, bool]:
        """The rate at which dry friction along a sum fades, and whether it is wide because the first link is light."""
        name, coefficient = along[0]
        inertia = self.carried_inertia(self.joint(name), rigidly=True) / coefficient**2
        if not inertia or friction <= STIFFEST * SMOOTHING * inertia:
            return SMOOTHING, False
        return _rounded(friction / (STIFFEST * inertia)), True

    def shift(self, along: Linear) -> float:
        """The value of a sum of joints where all coordinates of the model file are zero."""
        return sum(coefficient * self.joint(name).zero for name, coefficient in along)


def _rounded(value: float) -> float:
    """A guess with three digits."""
    return float(f"{value:.3g}")


def _moved(joint: Joint, random: np.random.Generator) -> Array:
    """The displacement (4, 4) of a joint at random coordinates. A joint that floats in a plane may have any."""
    result = joint.moved(random.uniform(0.5, 2))
    if joint.type in (*PLANAR, FLOATING):
        result[:3, 3] = random.uniform(0.5, 2, 3)
    if joint.type in (BALL, FLOATING):
        result[:3, :3] = Rotation.random(random_state=random).as_matrix()
    return result
