"""Links and joints of an MJCF file as MuJoCo compiles it, and the notes of what a model file cannot hold.

MuJoCo resolves defaults, classes, includes, frames and units. Meshes are read only where a body's mass follows from
them. A body is one link for each of its joints.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from modelgen.arrays import Array
from modelgen.engines import package
from modelgen.errors import ModelError, Place, suggestion
from modelgen.files import require_file
from modelgen.importers.mechanism import BALL, FLOATING, GROUND, IN_PLANE, Inertial, Joint, Link, Push

LINE = re.compile(r"\bline (\d+)")


@dataclass
class Compiled:
    """A file as MuJoCo compiles it. left_out: what a model file cannot hold, and the lines where it stands."""

    path: Path
    mujoco: Any
    spec: Any
    model: Any
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, what: str, *elements: Any) -> None:
        """Note that elements of the specification are not carried over."""
        self.left_out.setdefault(what, []).extend(self.line(element) for element in elements)

    def line(self, element: Any) -> str:
        """The line of an element; empty where the file includes others, so that MuJoCo's line may be theirs."""
        found = LINE.search(element.info or "")
        return found[1] if found and not self._includes else ""

    def place(self, element: Any) -> Place:
        """The file and the line of an element."""
        return Place(str(self.path), int(self.line(element) or 1))

    def __post_init__(self) -> None:
        text = self.path.read_text(encoding="utf-8", errors="replace")
        self._joint_names: list[str] = []
        self._includes = any(tag in text for tag in ("<include", "<attach", "<model "))

    def joint_name(self, index: int) -> str:
        """The name of a joint; one without a name is named after its body."""
        if not self._joint_names:
            for number in range(self.model.njnt):
                body = self.name("body", int(self.model.jnt_bodyid[number]))
                name, repeated = self.name("joint", number, f"{body}_joint"), 2
                while name in self._joint_names:
                    name, repeated = f"{body}_joint_{repeated}", repeated + 1
                self._joint_names.append(name)
        return self._joint_names[index]

    def name(self, kind: str, index: int, otherwise: str = "") -> str:
        """The name of an element of the model, or one made from its number."""
        return str(getattr(self.model, kind)(index).name or otherwise or f"{kind}_{index}")


def compile_file(path: Path) -> Compiled:
    """The compiled file. Raises ModelError if MuJoCo is not installed or cannot read it."""
    mujoco = package("mujoco")
    require_file(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # of attributes that MuJoCo will drop
            spec = mujoco.MjSpec.from_file(str(path))
            _remove_drawings(mujoco, spec)
            model = spec.compile()
            _switch_off(mujoco, model)
    except (ValueError, OSError, RuntimeError) as error:
        words = " ".join(str(error).split())
        found = LINE.search(words)
        raise ModelError(
            f"MuJoCo cannot read the file: {words.rstrip('.')}.", Place(str(path), int(found[1]) if found else 1)
        ) from error
    return Compiled(path, mujoco, spec, model)


LIMITED = "jnt_limited", "tendon_limited"
#: Arrays of the model without effect where all of these flags are disabled. Without passive forces, MuJoCo compensates
#: no gravity either.
DISABLED = {
    ("DAMPER",): tuple(f"{of}_damping{poly}" for of in ("dof", "tendon", "actuator") for poly in ("", "poly")),
    ("SPRING",): ("jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly"),
    ("DAMPER", "SPRING"): ("body_gravcomp",),
    ("FRICTIONLOSS",): ("dof_frictionloss", "tendon_frictionloss"),
    ("EQUALITY",): ("eq_active0",),
    ("LIMIT",): LIMITED,
    ("CLAMPCTRL",): ("actuator_ctrllimited",),
    ("CONSTRAINT",): ("dof_frictionloss", "tendon_frictionloss", "eq_active0", *LIMITED),
}


def _switch_off(mujoco: Any, model: Any) -> None:
    """Make zero what the flags of the file disable, so that no reader of the model needs to know them."""
    for flags, names in DISABLED.items():
        if all(model.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")) for flag in flags):
            for name in names:
                getattr(model, name)[:] = 0


def _remove_drawings(mujoco: Any, spec: Any) -> None:
    """Replace meshes and height fields from which no mass follows by spheres, and remove materials and textures."""
    by_geoms = int(spec.compiler.inertiafromgeom) == 1
    kept = set()
    for geom in spec.geoms:
        geom.material = ""
        weightless = geom.parent == spec.worldbody or (geom.parent.explicitinertial and not by_geoms)
        shaped = geom.meshname or geom.hfieldname
        if shaped and weightless:
            geom.type, geom.meshname, geom.hfieldname = mujoco.mjtGeom.mjGEOM_SPHERE, "", ""
            geom.size = (1e-3, 0, 0)
        kept |= {geom.meshname, geom.hfieldname}
    for drawn in [*spec.sites, *spec.tendons]:
        drawn.material = ""
    unused = [mesh for mesh in [*spec.meshes, *spec.hfields] if mesh.name not in kept]
    for element in [*spec.skins, *unused, *spec.materials, *spec.textures]:
        spec.delete(element)


SMALL = 1e-9  # of a turned gravity, relative


class MjcfTree:
    """The links and joints of a compiled file. moving: name of each joint with one coordinate that moves, by number."""

    def __init__(self, compiled: Compiled, fixed: Collection[str], planar: Collection[str]) -> None:
        self._compiled, self._model = compiled, compiled.model
        self._kinds = {int(kind): name for name, kind in compiled.mujoco.mjtJoint.__members__.items()}
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.moving: dict[int, str] = {}
        self.messages: list[str] = []
        self._fixed, self._planar = fixed, planar
        self._names = [compiled.joint_name(index) for index in range(self._model.njnt)]
        self._check_patterns()
        self._upright, self.gravity = self._gravity()
        self._last = {0: (GROUND, np.eye(4))}  # of each body: its last link, and the body's frame in the link's
        for body in range(1, self._model.nbody):
            self._add_body(body)

    def _check_patterns(self) -> None:
        """Raise ModelError for a name of --fix or --planar that is no joint's."""
        free = [self._both_names(index) for index in range(self._model.njnt) if self._kind(index) == "FREE"]
        for pattern in self._fixed:
            if not any(fnmatchcase(name, pattern) for name in self._names):
                near = suggestion(pattern, self._names)
                raise ModelError(f"the joint `{pattern}` of --fix does not exist.{near}", Place(str(self._path), 1))
        for name in self._planar:
            if not any(name in names for names in free):
                known = ", ".join(f"`{names[0]}`" for names in free) or "none"
                raise ModelError(
                    f"`{name}` of --planar is no free joint and no body with one; the file has {known}.",
                    Place(str(self._path), 1),
                )

    @property
    def _path(self) -> Path:
        return self._compiled.path

    def _kind(self, index: int) -> str:
        return str(self._kinds[int(self._model.jnt_type[index])]).removeprefix("mjJNT_")

    def _both_names(self, index: int) -> tuple[str, str]:
        """The names of a joint and its body."""
        return self._names[index], self._compiled.name("body", int(self._model.jnt_bodyid[index]))

    def _gravity(self) -> tuple[Array, float]:
        """The rotation (4, 4) of the world that turns gravity to -z, and its size in m/s^2."""
        compiled, model, upright = self._compiled, self._model, np.eye(4)
        off = int(model.opt.disableflags) & int(compiled.mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        pull = np.zeros(3) if off else np.array(model.opt.gravity)
        size = float(np.linalg.norm(pull))
        if np.linalg.norm(pull[:2]) > SMALL * size or pull[2] > 0:
            # the shortest rotation from -gravity to z; about x where they are opposite
            across = np.cross(-pull, (0, 0, 1.0))
            angle = np.arctan2(np.linalg.norm(across), -pull[2])
            across = across if np.linalg.norm(across) > SMALL * size else np.array([1.0, 0, 0])
            upright[:3, :3] = Rotation.from_rotvec(angle * across / np.linalg.norm(across)).as_matrix()
            self.messages.append("gravity does not point along -z; the world is turned, so that it does in the file.")
        return upright, size * (1 - self._compensation())

    def _compensation(self) -> float:
        """The share of gravity that all moving bodies compensate. Notes where it differs between bodies."""
        model = self._model
        moving = [body for body in range(1, model.nbody) if model.body_weldid[body] and model.body_mass[body] > 0]
        shares = {float(model.body_gravcomp[body]) for body in moving}
        if len(shares) == 1:
            return shares.pop()
        compensated = [body for body in moving if model.body_gravcomp[body]]
        elements = [body for body in self._compiled.spec.bodies if body.id in compensated]
        if elements:
            self._compiled.leave_out("gravity compensation (gravcomp), which differs between bodies", *elements)
        return 0.0

    def _add_body(self, body: int) -> None:
        """Add a body as one link for each of its joints; the last has the mass."""
        model = self._model
        name = self._compiled.name("body", body)
        carrier, offset = self._last[int(model.body_parentid[body])]
        frame = offset @ frame_at(model.body_pos[body], model.body_quat[body])
        if carrier == GROUND:
            frame = self._upright @ frame
        first = int(model.body_jntadr[body])
        joints = range(first, first + int(model.body_jntnum[body]))
        chain = [joint for joint in joints if self._kind(joint) != "FREE" or not self._is_held(joint)]
        at = np.eye(4)  # the body's frame in the frame of the link added last
        for number, joint in enumerate(chain):
            last = number == len(chain) - 1
            link = name if last else f"{name}_{self._names[joint]}"
            added, at = self._joint(joint, carrier, link, frame)
            if added.type == IN_PLANE:
                self._add_turned(link, at, added)
            else:
                self.joints.append(added)
            if not last:
                self.links.append(Link(link))
                carrier, frame = link, at
        if not chain:
            self.joints.append(Joint(f"{name} (fixed)", "fixed", carrier, name, frame))
        self.links.append(Link(name, self._inertial(body, at)))
        self._last[body] = (name, at)

    def _add_turned(self, link: str, at: Array, plane: Joint) -> None:
        """Add a joint in the vertical plane, and the body's own frame below it."""
        below = f"{link} in plane"
        self.joints.append(plane)
        plane.child = below
        self.links.append(Link(below))
        self.joints.append(Joint(f"{link} (fixed)", "fixed", below, link, at.copy()))
        at[:] = np.eye(4)

    def _joint(self, index: int, carrier: str, link: str, frame: Array) -> tuple[Joint, Array]:
        """A joint whose body has a frame in the carrier, and the body's frame in the frame of the joint's link."""
        model, name, kind = self._model, self._names[index], self._kind(index)
        if kind == "FREE" and not any(name in self._planar for name in self._both_names(index)):
            return self._rotating(Joint(name, FLOATING, carrier, link, frame), index), np.eye(4)
        if kind == "FREE":
            turned = np.eye(4)
            turned[:3, :3] = frame[:3, :3]
            origin = np.eye(4)
            origin[:3, 3] = frame[:3, 3]
            return Joint(name, IN_PLANE, carrier, link, origin), turned
        held = self._is_held(index)
        anchor = np.eye(4)
        anchor[:3, 3] = model.jnt_pos[index]
        if kind == "BALL":
            ball = self._rotating(Joint(name, "fixed" if held else BALL, carrier, link, frame @ anchor), index)
            return ball, np.asarray(np.linalg.inv(anchor), np.float64)
        slides = kind == "SLIDE"
        dof = int(model.jnt_dofadr[index])
        limited = bool(model.jnt_limited[index])
        joint = Joint(
            name=name,
            type="prismatic" if slides else "revolute" if limited else "continuous",
            parent=carrier,
            child=link,
            origin=frame @ anchor,
            axis=np.array(model.jnt_axis[index]),
            lower=float(model.jnt_range[index, 0]) if limited else None,
            upper=float(model.jnt_range[index, 1]) if limited else None,
            damping=float(model.dof_damping[dof]),
            friction=float(model.dof_frictionloss[dof]),
            armature=float(model.dof_armature[dof]),
        )
        if held:
            joint.type = "fixed"
        else:
            self.moving[index] = name
            # the body's frame is that of the reference position; the coordinate is zero where MuJoCo's is
            joint.origin = joint.origin @ joint.moved(-float(model.qpos0[model.jnt_qposadr[index]]))
        return joint, np.asarray(np.linalg.inv(anchor), np.float64)

    def _is_held(self, index: int) -> bool:
        return any(fnmatchcase(self._names[index], pattern) for pattern in self._fixed)

    def _rotating(self, joint: Joint, index: int) -> Joint:
        """A ball or free joint with its range and damping; notes what is left out."""
        model, dof = self._model, int(self._model.jnt_dofadr[index])
        joint.damping = float(model.dof_damping[dof])
        if model.jnt_limited[index]:
            joint.upper = float(model.jnt_range[index, 1])
        left = {
            "springs": model.jnt_stiffness[index],
            "dry friction": model.dof_frictionloss[dof],
            "armature": model.dof_armature[dof],
        }
        for what, value in left.items():
            if value and joint.type != "fixed":
                self._compiled.leave_out(f"{what} of ball and free joints", self._element(index))
        return joint

    def push(self, name: str, actuator: int) -> Push:
        """The force and torque of an actuator at a site, in the frame of the site's link."""
        model = self._model
        site, gear = int(model.actuator_trnid[actuator, 0]), model.actuator_gear[actuator]
        link, at = self._last[int(model.site_bodyid[site])]
        frame = at @ frame_at(model.site_pos[site], model.site_quat[site])
        scaled = float(model.actuator_gainprm[actuator, 0]) * gear
        return Push(name, link, frame[:3, :3] @ scaled[:3], frame[:3, :3] @ scaled[3:], frame[:3, 3])

    def placed(self, body: int, frame: Array) -> tuple[str, Array]:
        """The link of a body, and a frame (4, 4) of the body in the link's."""
        link, at = self._last[body]
        return link, (self._upright @ frame if link == GROUND else at @ frame)

    def _element(self, index: int) -> Any:
        return next(joint for joint in self._compiled.spec.joints if joint.id == index)

    def _inertial(self, body: int, frame: Array) -> Inertial | None:
        """The mass of a body whose frame in its link is `frame`; None for a body without mass."""
        model = self._model
        if not model.body_mass[body]:
            return None
        centre = frame_at(model.body_ipos[body], model.body_iquat[body])
        return Inertial(float(model.body_mass[body]), frame @ centre, np.diag(model.body_inertia[body]))


def frame_at(position: Array, quaternion: Array) -> Array:
    """The frame (4, 4) at a position, turned by a quaternion (w, x, y, z) of any length."""
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix(), position
    return result
