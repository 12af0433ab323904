"""An MJCF file as MuJoCo compiles it, and the notes of what a model file cannot hold.

MuJoCo resolves defaults, classes, includes, frames and units. Meshes are read only where a body's mass follows from
them.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modelgen.engines.engine import package
from modelgen.errors import ModelError, Place

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
    if not path.is_file():
        raise ModelError(f"there is no file {path}.")
    try:
        with warnings.catch_warnings(action="ignore"):  # of attributes that MuJoCo will drop
            spec = mujoco.MjSpec.from_file(str(path))
            _remove_drawings(mujoco, spec)
            model = spec.compile()
    except (ValueError, OSError, RuntimeError) as error:
        words = " ".join(str(error).split())
        found = LINE.search(words)
        raise ModelError(
            f"MuJoCo cannot read the file: {words.rstrip('.')}.", Place(str(path), int(found[1]) if found else 1)
        ) from error
    return Compiled(path, mujoco, spec, model)


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
