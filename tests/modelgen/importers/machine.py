"""The parts of a URDF of five links, to be combined and changed."""

from __future__ import annotations

from pathlib import Path

from modelgen import Robot
from modelgen.derivation.model_file import load


def inertial(mass: float, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    tensor = 'ixx="0.2" iyy="0.3" izz="0.25" ixy="0.01" ixz="-0.02" iyz="0.03"'
    return f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/><inertia {tensor}/></inertial>'


LIMIT = '<limit lower="-1.5" upper="2.5" velocity="3" effort="20"/>'
BASE = f'<link name="base-plate">{inertial(3)}</link>'
ARM = f'<link name="arm">{inertial(2, "0.1 0.2 0.3", "0.3 -0.2 0.1")}</link>'
TOOL = f'<link name="tool">{inertial(0.5, "0 0 0.1")}</link>'
SLIDER = f'<link name="slider">{inertial(0.7)}</link>'
WHEEL = f'<link name="wheel">{inertial(0.4, "0 0 0.05")}</link>'
SHOULDER = f"""<joint name="arm" type="revolute"><parent link="base-plate"/><child link="arm"/>
  <origin xyz="0 0 0.4" rpy="1.5707963267948966 0 0.7"/><axis xyz="0 0 1"/>{LIMIT}
  <dynamics damping="0.3" friction="0.2"/></joint>"""
MOUNT = """<joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/>
  <origin xyz="0.5 0 0" rpy="0.4 1.5707963267948966 -0.3"/></joint>"""
RAIL = """<joint name="rail" type="prismatic"><parent link="tool"/><child link="slider"/>
  <axis xyz="1 1 0"/><limit lower="-1" upper="1" velocity="2" effort="0"/></joint>"""
SPIN = """<joint name="lambda" type="continuous"><parent link="arm"/><child link="wheel"/>
  <origin xyz="0 0.3 0"/><limit velocity="9" effort="1"/></joint>"""
ROBOT = [BASE, ARM, TOOL, SLIDER, WHEEL, SHOULDER, MOUNT, RAIL, SPIN]
FLOATING = RAIL.replace("prismatic", "floating")
LOOP = '<joint name="loop" type="fixed"><parent link="wheel"/><child link="slider"/></joint>'
MIMIC = RAIL.replace("</joint>", '<mimic joint="arm"/></joint>')


def load_text(text: str, folder: Path) -> Robot:
    (folder / "machine.py").write_text(text)
    return load(str(folder / "machine.py"))
