"""MJCF files, read by MuJoCo; joints and actuators are found by their names in the model file. Needs no SymPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modelgen.engines.engine import package
from modelgen.errors import ModelError
from modelgen.files import shipped
from modelgen.metadata import Metadata

#: MJCF files of the shipped robots, NAME.xml. They are written by hand.
ASSETS = shipped("models") / "assets"


def read(path: Path, metadata: Metadata) -> tuple[Any, Any, list[int], list[int]]:
    """The module `mujoco`, the MjModel of the file, and the index of each coordinate's joint and input's actuator.

    Raises ModelError if MuJoCo is not installed or cannot read the file, if a joint is neither a hinge nor a slide, if
    the file has constraints or actuators with a state, and if the names differ from the model file's.
    """
    mujoco = package("mujoco")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, OSError) as error:
        raise ModelError(f"MuJoCo cannot read {path}: {' '.join(str(error).split())}") from error
    kinds = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}
    wrong = [model.joint(number).name for number in range(model.njnt) if int(model.jnt_type[number]) not in kinds]
    if wrong:
        raise ModelError(
            f"the joint `{wrong[0]}` of {path} is neither a hinge nor a slide; write it as a series of those."
        )
    if model.neq or model.na:
        what = "equality constraints" if model.neq else "actuators with a state"
        raise ModelError(f"{path} has {what}, which a model file cannot hold. Remove them from a copy and use that.")
    inputs = [entry.name for entry in metadata.inputs]
    joints = matched(metadata.coordinates, [model.joint(i).name for i in range(model.njnt)], "joint", path)
    actuators = matched(inputs, [model.actuator(i).name for i in range(model.nu)], "actuator", path)
    return mujoco, model, joints, actuators


def matched(wanted: Sequence[str], present: Sequence[str], what: str, path: Path) -> list[int]:
    """The index in `present` of each wanted name. Raises ModelError unless both lists have the same names."""
    if sorted(wanted) != sorted(present):
        theirs = ", ".join(f"`{name}`" for name in present) or "none"
        ours = ", ".join(f"`{name}`" for name in wanted)
        raise ModelError(
            f"the {what}s of {path} are {theirs}; the model file has {ours}. Give each {what} its name in the model "
            "file (in any order), and remove the others."
        )
    return [present.index(name) for name in wanted]
