"""The equations of motion as MathML: read again, with the rules of arithmetic, beside the kernels."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import modelgen
from modelgen.artifact import folder as artifact

NAMES = sorted(path.parent.name for path in artifact.SHIPPED.glob("*/manifest.json"))
SIGNS = {"−": "-", "⋅": "*", "=": "="}
FUNCTIONS = {name: getattr(math, name) for name in ("sin", "cos", "tan", "tanh", "sqrt", "exp", "pow", "log")}
FUNCTIONS |= {"abs": abs, "sign": np.sign, "minimum": min, "maximum": max}


def read(node: ET.Element) -> str:
    """Python of what a reader of the formula would compute."""
    parts = [read(each) for each in node]
    if node.tag == "mfrac":
        return f"(({parts[0]}) / ({parts[1]}))"
    if node.tag == "msup":
        return f"(({parts[0]}) ** {parts[1]})"
    return "".join(parts) or SIGNS.get(node.text or "", node.text or "")


@pytest.mark.parametrize("name", NAMES)
def test_mathml_has_the_values_of_the_kernels(name: str) -> None:
    robot = modelgen.load(name, directory=artifact.SHIPPED, dtype="float64")
    random = np.random.default_rng(3)
    x = random.uniform(-0.9, 0.9, len(robot.state_names)) * np.minimum(robot.state_limits, 2.0)
    u = random.uniform(-0.9, 0.9, len(robot.input_names)) * robot.input_limits
    known = dict(zip(robot.state_names, x, strict=True)) | dict(zip(robot.input_names, u, strict=True))
    known |= dict(zip(robot.parameter_names, robot.declared_parameters, strict=True)) | FUNCTIONS
    for equation in robot.equations():
        left, _, right = read(ET.fromstring(equation)).partition("=")
        known[left] = eval(right, {}, known)
    found = [known[f"((d{state}) / (dt))"] for state in robot.state_names]
    np.testing.assert_allclose(found, robot.dynamics(x, u), rtol=2e-4, atol=1e-6)


def test_the_pendulum_reads_as_in_a_textbook() -> None:
    first, part, last = modelgen.load("pendulum", directory=artifact.SHIPPED).equations()
    assert read(ET.fromstring(first)) == "((dangle) / (dt))=angle_rate"
    assert (
        read(ET.fromstring(part)) == "t1=((1) / (((length) ** 2)*mass*0.333333))*(torque+sin(angle)*4.905*mass*length)"
    )
    assert read(ET.fromstring(last)) == "((dangle_rate) / (dt))=t1"
