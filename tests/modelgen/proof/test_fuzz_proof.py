"""Wrong mutations of the gallery are always refused, and valid robots never.

Each mutation is a line in the text of a model file. The oracles: a pole is where it was put; NumPy finds a negative
eigenvalue of the mass matrix, or a negative cost; a unit is wrong by its name. Of valid robots nothing is refuted,
the equations of motion are those of the energies, and power is balanced.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from sympy import Float, cos, pi, sin

from modelgen import ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import numpy_evaluator, samples
from modelgen.verification.checks import sample_points
from modelgen.verification.kernels import power_balance
from modelgen.verification.mechanics import mechanics_checks
from tests.modelgen.support.cases import CASES
from tests.modelgen.support.evaluation import Uncompiled
from tests.modelgen.support.proofs import built, finished, proof
from tests.modelgen.support.trees import Tree, as_robot, trees

pytestmark = pytest.mark.slow

FUZZ = "FUZZ" in os.environ
PHASES = (Phase.explicit, Phase.generate)  # no shrinking, because an example takes seconds
SMALL = ("pendulum", "cartpole", "ball_on_beam")
LARGE = (
    "furuta",
    "reaction_wheel",
    "cart_double_pendulum",
    "acrobot",
    "planar_arm2",
    "planar_quadrotor",
    "realaigym_pendubot",
    "double_pendulum",
)
KINDS = ("pole", "touched pole", "root", "logarithm", "mass", "cost", "unit")
WRONG = math.ceil(CASES / 5 / len(KINDS)) if FUZZ else 1  # examples of each kind
RIGHT = math.ceil(CASES / 10) if FUZZ else 1  # examples of trees, and of machines
POINTS = 4  # samples of a valid robot

share = st.floats(0.2, 0.95) | st.floats(-0.95, -0.2)


def mutated(robot: Robot, kind: str, row: int, place: float, width: float) -> tuple[str, dict[Any, float]]:
    """A line that spoils the robot, or the start of its cost; and the point where it is wrong."""
    joint = robot.joints[row]
    v: Any = joint.symbol.rate
    assert joint.rate_limit
    c, w = place * joint.rate_limit, width * joint.rate_limit
    states = [*(joint.symbol for joint in robot.joints), *(speed.symbol for speed in robot.velocities)]
    target = dict(zip(states, robot.declared_task.numbers.target, strict=True))
    point = target | {parameter.symbol: parameter.value for parameter in robot.parameters} | {v: c}
    head = f"_q = robot.joints[{row}].symbol\n_v = _q.rate\n"
    if kind in ("pole", "touched pole", "root", "logarithm"):
        forms = {
            "pole": f"0.01 / (_v - {c})",
            "touched pole": f"0.01 / ((_v - {c}) ** 2 + 3.0 * (_q - {place * joint.limit / 2}) ** 2)",
            "root": f"0.01 * sympy.sqrt(_v - {c})",
            "logarithm": f"0.01 * sympy.log(_v - {c})",
        }
        return f"{head}robot.apply(_q, {forms[kind]})\n", point
    equations = equations_of_motion(robot)
    if kind == "mass":
        at = place * joint.limit
        point |= {joint.symbol: at}
        inertia = float(value(equations.mass_matrix[row, row], equations, point))
        bump = f"sympy.exp((sympy.cos(1.0 * (_q - {at})) - 1) / {width**2})"
        if joint.kind == "prismatic":
            bump = f"sympy.exp(-1.0 * (_q - {at}) ** 2 / {(width * joint.limit) ** 2})"
        return f"{head}robot.kinetic_energy(-{0.55 * inertia} * {bump} * _v**2)\n", point
    if kind == "cost":
        size = 1.2 * float(value(equations.state_cost, equations, point)) / c**2 or 1.0
        return f"-{size} * _v**2 * sympy.exp(-1.0 * ((_v - {c}) / {w}) ** 2) + ", point
    units = [parameter.unit for parameter in robot.parameters]
    number = next(k for k, unit in enumerate(units) if unit not in ("", "J", "N m", "1"))
    return f"robot.potential_energy(robot.parameters[{number}].symbol * robot.joints[0].symbol)\n", point


def value(expression: Any, equations: Any, point: dict[Any, float]) -> Any:
    symbols = [*equations.state, *equations.parameters]
    at = (np.array([point[symbol]]) for symbol in symbols)
    return numpy_evaluator(symbols, expression, equations.definitions)(*at)[0]


def wrong(kind: str, robot: Robot, point: dict[Any, float]) -> bool:
    """The oracle of a mutation that is not wrong by construction."""
    if kind not in ("mass", "cost"):
        return True
    equations = equations_of_motion(robot)
    if kind == "mass":
        return bool(np.linalg.eigvalsh(value(equations.mass_matrix, equations, point)).min() < 0)
    return bool(value(equations.state_cost, equations, point) < 0)


@settings(max_examples=WRONG, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_mutation_of_the_gallery_is_refused(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    name = data.draw(st.sampled_from(SMALL + LARGE if FUZZ else SMALL), label="robot")
    text = (SHIPPED / f"{name}.py").read_text()
    robot = load(str(SHIPPED / f"{name}.py"))
    row = data.draw(st.integers(0, len(robot.joints) - 1), label="row")
    line, point = mutated(
        robot, kind, row, data.draw(share, label="place"), data.draw(st.floats(0.1, 0.4), label="width")
    )
    if kind == "cost":
        line = line.replace("_v", f"robot.joints[{row}].symbol.rate")
        text = text.replace("state_cost=", f"state_cost={line}")
    else:
        text = text.replace("robot.task(", f"{line}robot.task(")
    path = tmp_path / f"{name}.py"
    path.write_text(f"import sympy\n{text}")
    if kind == "unit":
        with pytest.raises(ModelError, match="should be in"):
            load(str(path))
        return
    spoilt = load(str(path))
    assert wrong(kind, spoilt, point)
    with pytest.raises(ModelError) as caught:
        built(spoilt)
    at = caught.value.place
    assert at is not None
    assert Path(at.file).name == path.name
    if kind not in ("mass", "cost"):  # the mass matrix names a coordinate, the cost names its task
        assert path.read_text().splitlines()[at.line - 1] == line.splitlines()[-1]


def objections(robot: Robot) -> list[str]:
    """Failed checks and refuted quantities of a robot."""
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    built(robot)
    kernels = Uncompiled(equations, [parameter.value for parameter in robot.parameters if not parameter.fixed])
    checks = mechanics_checks(robot, equations, sample_points(robot, POINTS))
    checks.append(power_balance(robot, equations, kernels, POINTS))
    failed = [f"{check.what}: {check.error} {check.where}" for check in checks if not check.passed]
    return failed + [finding.what for finding in proof(robot, 1.0) if finding.status == "refuted"]


@settings(max_examples=RIGHT, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(tree=trees())
def test_a_valid_tree_of_links_is_accepted(tree: Tree) -> None:
    robot = as_robot(tree)
    x, theta = samples(robot, 40)
    equations = equations_of_motion(robot)
    symbols = [*equations.state, *equations.parameters]
    terms = [equations.mass_matrix, equations.force, *(value for _, value in equations.definitions)]
    assume(set(equations.parameters) <= set().union(*(term.free_symbols for term in terms)))  # each has an effect
    M = numpy_evaluator(symbols, equations.mass_matrix, equations.definitions)(*x.T, *theta.T)
    assume(np.linalg.eigvalsh(M).min() > 1e-8 * np.abs(M).max())  # no massless ends
    assert not objections(robot)


@st.composite
def machines(draw: st.DrawFn) -> Robot:
    """A planar chain or a cart with rods, with springs, losses, stops and motors, and a quadratic cost.

    The input's range may lie about another middle than zero, and what drives may follow the input with a lag.
    """
    robot = Robot("machine")
    number = st.integers(1, 30).map(lambda tenths: tenths / 10)
    angle: Any = 0.0
    place: list[Any] = [0, 0]
    joints = []
    if draw(st.booleans()):
        cart = robot.prismatic("cart", limit=draw(number), rate_limit=draw(number))
        robot.point_mass(robot.parameter("cart_mass", draw(number), "kg", tolerance=0.5), (cart, 0))
        place, joints = [cart, 0], [cart]
    for k in range(draw(st.integers(1, 2))):
        joint = robot.revolute(f"joint{k}", limit=draw(number), rate_limit=5 * draw(number))
        mass = robot.parameter(f"mass{k}", draw(number), "kg", tolerance=draw(st.floats(0.1, 0.6)))
        length = robot.parameter(f"length{k}", draw(number), "m", tolerance=draw(st.floats(0.1, 0.4)))
        angle = angle + joint
        centre = (place[0] + length / 2 * sin(angle), place[1] + length / 2 * cos(angle))
        robot.body(mass, mass * length**2 / 12, centre, angle)
        place = [place[0] + length * sin(angle), place[1] + length * cos(angle)]
        joints.append(joint)
    drive: Any = robot.input("drive", (-draw(number), draw(number)) if draw(st.booleans()) else draw(number), "")
    if draw(st.booleans()):
        drive = robot.lag(drive, seconds=draw(number) / 10)
    for joint in joints:
        added = draw(st.sets(st.sampled_from(["damp", "dry", "spring", "stops", "rotor"])))
        if "damp" in added:
            robot.damp(joint, draw(number))
        if "dry" in added:
            robot.dry_friction(joint, draw(number), smoothing=draw(number) / 10)
        if "spring" in added:
            robot.spring(joint, draw(number), draw(number))
        if "stops" in added:
            robot.end_stops(joint, draw(number), 100 * draw(number), width=draw(number) / 100, damping=draw(number))
        if "rotor" in added:
            robot.rotor(joint, draw(number) / 1e4, gear=100 * draw(number))
    last = joints[-1]
    actuator = draw(st.sampled_from(["force", "motor", "voltage"]))
    if actuator == "force":
        robot.apply(last, drive)
    elif actuator == "motor":
        robot.motor(last, drive, gear=draw(number), rotor_inertia=draw(number) / 1e3, corner_speed=10 * draw(number))
    else:
        ohms = robot.parameter("resistance", draw(number), "Ohm", tolerance=0.5)
        robot.dc_motor(last, drive, resistance=ohms, torque_constant=draw(number) / 10, gear=draw(number))
    x = [*joints, *(joint.rate for joint in joints)]
    entries = draw(st.lists(st.integers(-5, 5), min_size=len(x) ** 2, max_size=len(x) ** 2))
    L = np.array(entries, np.float64).reshape(len(x), -1) / 5
    Q = L.T @ L + 0.05 * np.eye(len(x))
    cost = sum(Float(Q[i, j]) * x[i] * x[j] for i in range(len(x)) for j in range(len(x)))
    if draw(st.booleans()):
        cost += (pi * sin(last / 2)) ** 2 + 1 - cos(last)
    return finished(robot, state_cost=cost)


@settings(max_examples=RIGHT, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(robot=machines())
def test_a_valid_machine_is_accepted(robot: Robot) -> None:
    assert not objections(robot)
