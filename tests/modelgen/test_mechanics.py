"""The functions of mechanics compared with Pinocchio and the dynamics, in every backend, and their artifact."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import cos, sin

import modelgen
from modelgen import LogCos, ModelError, Robot
from modelgen.artifact import folder as artifact
from modelgen.backends import MODULES
from modelgen.builder import build, selected
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.derivation.lowering import mechanics
from modelgen.derivation.mechanics import MECHANICS, mechanics_expressions, point_hashes, program
from modelgen.errors import ArtifactError
from modelgen.program.differentiate import FUNCTIONS
from tests.modelgen.support import systems
from tests.modelgen.support.evaluation import evaluate
from tests.modelgen.support.trees import Tree, as_pinocchio, as_robot, trees

pytestmark = pytest.mark.slow


def outputs(robot: Robot, x: np.ndarray, theta: Any, names: Any = tuple(MECHANICS)) -> dict[str, np.ndarray]:
    """Every output of the functions at states (N, n), evaluated node by node without compilation."""
    made = program(
        mechanics(equations_of_motion(robot), mechanics_expressions(robot, equations_of_motion(robot))), names
    )
    results = {}
    for function in made.functions:
        columns = np.hstack([x, np.tile(theta, (len(x), 1))]).T
        nodes = [node for argument in function.arguments for node in argument.entries]
        inputs = {made.graph.operations[n].name: column for n, column in zip(nodes, columns, strict=True)}
        values = iter(evaluate(made.graph, function.roots, inputs, np))
        for output in function.outputs:
            flat = [np.broadcast_to(next(values), len(x)) for _ in output.entries]
            results[output.name] = np.array(flat).T.reshape(len(x), *output.shape)
    return results


@settings(max_examples=2, deadline=None)
@given(trees(), st.integers(0, 2**32 - 1))
def test_a_random_tree_agrees_with_pinocchio(tree: Tree, seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    x = np.random.default_rng(seed).uniform(-2, 2, (2, 2 * len(tree.coordinates)))
    robot, (model, order) = as_robot(tree), as_pinocchio(pin, tree, tree.nominal)
    ours = outputs(robot, x, tree.nominal)
    data, size = model.createData(), len(order)
    still = pin.computePotentialEnergy(model, data, np.zeros(size))
    theirs = outputs(robot, np.zeros((1, 2 * size)), tree.nominal)["U"][0]
    for k, state in enumerate(x):
        q, v = np.empty(size), np.empty(size)
        q[order], v[order] = state[:size], state[size:]
        upper = np.triu(pin.crba(model, data, q).reshape(size, size))  # a vector in Pinocchio if the size is 1
        expected = {
            "M": (upper + np.triu(upper, 1).T)[np.ix_(order, order)],
            "bias": pin.nle(model, data, q, v)[order],
            "gravity": pin.computeGeneralizedGravity(model, data, q)[order],
            "S": np.eye(size)[:, :1],
            "T": pin.computeKineticEnergy(model, data, q, v),
            "U": pin.computePotentialEnergy(model, data, q) - still + theirs,
        }
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        frames = [model.getFrameId(bar.name) for bar in tree.bars]
        along = [pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED) for frame in frames]
        expected["positions"] = np.array([data.oMf[frame].translation for frame in frames])
        expected["dp_dq"] = np.array([jacobian.reshape(6, size)[:3, order] for jacobian in along])
        for name, value in expected.items():
            np.testing.assert_allclose(ours[name][k], value, rtol=0, atol=1e-12 * (1 + np.abs(value).max()))


def reel() -> Robot:
    """A pendulum on a cart, with a spring, a loss, and points in the world and on a link; every force is known."""
    robot = Robot("reel")
    slide = robot.prismatic("slide", limit=1.0, rate_limit=3.0)
    angle = robot.revolute("angle", limit=1.5, rate_limit=3.0)
    mass = robot.parameter("mass", 0.7, "kg", tolerance=0.3)
    cart = robot.link("cart", slide, axis="x", mass=1.5)
    bob = robot.link("bob", angle, on=cart, mass=mass, centre=(0, 0, -0.4), inertia=0.01)
    robot.point("tip", (0, 0.1, -0.6), on=bob)
    robot.point("shadow", (slide - 0.6 * sin(angle), 0))
    robot.spring(slide, 20.0, 0.1)
    robot.damp(angle, 0.05)
    robot.apply(slide, 2 * robot.input("force", 5.0, "N"))
    cost = slide**2 + angle**2 + 0.1 * slide.rate**2 + 0.1 * angle.rate**2
    task: dict[str, Any] = dict(action_cost=LogCos(1.0), start={}, horizon=3.0, weight_at_horizon=0.1)
    robot.task(state_cost=cost, control_rate=100, **task)
    return robot


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of artifacts with all functions of `reel`."""
    folder = tmp_path_factory.mktemp("generated")
    reports = list(build(reel(), folder, selected("dynamics,affine_dynamics,mechanics")))
    usual = [name for name in MECHANICS if name != "reaction"]  # no coordinate has a commanded acceleration
    assert [list(report.operations) for report in reports] == [["affine_dynamics", "dynamics"], usual]
    return folder


@pytest.mark.parametrize("backend", MODULES)
def test_every_backend_agrees_with_the_textbook_and_with_the_dynamics(built: Path, backend: str) -> None:
    robot = modelgen.load("reel", backend=backend, directory=built, parallel=False)
    make = torch.from_numpy if backend == "torch" else np.asarray
    x = np.random.default_rng(0).uniform(-1, 1, (5, 4))
    u, theta = np.linspace(-5, 5, 5)[:, None], np.linspace(0.5, 0.9, 5)[:, None]
    given = make(x), make(theta)
    M, bias, gravity, S = (
        np.asarray(getattr(robot, name)(*given)) for name in ("mass_matrix", "bias", "gravity", "input_map")
    )
    vdot = np.asarray(robot.dynamics(given[0], make(u), given[1]))[:, 2:]
    np.testing.assert_allclose(np.einsum("nij,nj->ni", M, vdot) + bias, np.einsum("nij,nj->ni", S, u), atol=1e-12)
    q, v, m = x[:, :2].T, x[:, 2:].T, theta[:, 0]
    np.testing.assert_allclose(gravity, np.stack([0 * m, m * 9.81 * 0.4 * np.sin(q[1])], 1), atol=1e-13)
    np.testing.assert_allclose(S, np.broadcast_to([[2.0], [0.0]], (5, 2, 1)))
    coriolis = m * 0.4 * np.sin(q[1]) * v[1] ** 2
    np.testing.assert_allclose(bias[:, 0], coriolis + 20 * (q[0] - 0.1), atol=1e-12)
    np.testing.assert_allclose(bias[:, 1], gravity[:, 1] + 0.05 * v[1], atol=1e-12)
    T, U = np.asarray(robot.kinetic_energy(*given)), np.asarray(robot.potential_energy(*given))
    np.testing.assert_allclose(T, np.einsum("ni,nij,nj->n", v.T, M, v.T) / 2)
    np.testing.assert_allclose(U, -m * 9.81 * 0.4 * np.cos(q[1]) + 10 * (q[0] - 0.1) ** 2, atol=1e-13)
    assert robot.point_names == ("cart", "bob", "tip", "shadow")
    positions, dp_dq = map(np.asarray, robot.forward_kinematics(*given))
    tip = np.stack([q[0] - 0.6 * np.sin(q[1]), 0 * m + 0.1, -0.6 * np.cos(q[1])], 1)
    np.testing.assert_allclose(positions[:, 2], tip, atol=1e-14)
    np.testing.assert_allclose(positions[:, 3], tip * [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(dp_dq[:, 2, 0], np.stack([1 + 0 * m, -0.6 * np.cos(q[1])], 1), atol=1e-14)
    assert positions.shape == (5, 4, 3)
    assert dp_dq.shape == (5, 4, 3, 2)


def test_a_link_may_have_the_name_of_a_frame_between_two_coordinates() -> None:
    """`body` moves along x first, in a frame that the derivation calls body_x."""
    robot = Robot("crane")
    s, x, height = (robot.prismatic(name, limit=1, rate_limit=1) for name in ("s", "x", "height"))
    angle = robot.revolute("angle", limit=1, rate_limit=1)
    base = robot.link("body_x", s, axis="x", mass=robot.parameter("mass", 1.0, "kg", tolerance=0.2))
    robot.link("body", (x, height, angle), on=base, mass=1, inertia=0.1)
    robot.point("tip", (0, 0, 0.3), on=base)
    robot.apply(s, robot.input("force", 10, "N"))
    task: dict[str, Any] = {"start": {}, "horizon": 3, "weight_at_horizon": 0.5, "control_rate": 100}
    robot.task(state_cost=s**2 + x**2, action_cost=LogCos(0.1), free=["height_rate"], **task)
    at = np.array([[0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0]])
    found = outputs(robot, at, np.array([1.0]), ("forward_kinematics",))["positions"]
    np.testing.assert_allclose(found[0], [[0.1, 0, 0], [0.3, 0, 0.3], [0.1, 0, 0.3]], atol=1e-12)


def test_functions_of_one_sample_and_other_nominal_parameters(built: Path) -> None:
    heavy = modelgen.load("reel", directory=built).with_nominal([0.9])
    x = np.array([[0.1, 0.5, 0.0, 0.0]])
    assert heavy.gravity(x)[0, 1] == pytest.approx(0.9 * 9.81 * 0.4 * np.sin(0.5))
    jitted = modelgen.load("reel", backend="numba", directory=built).numba_function("gravity")
    column = np.empty(2)
    jitted(x[0], np.array([0.9]), column)
    np.testing.assert_allclose(column, heavy.gravity(x)[0])
    function = modelgen.load("reel", backend="casadi", directory=built).casadi_function("gravity")
    np.testing.assert_allclose(np.asarray(function(x[0], [0.9]))[:, 0], column)


def test_a_new_point_changes_only_the_folder_of_mechanics(built: Path, tmp_path: Path) -> None:
    before = modelgen.load("pendulum", directory=artifact.SHIPPED).hash
    shutil.copytree(artifact.SHIPPED / "pendulum", tmp_path / "pendulum")
    robot = reel()
    more = reel()
    more.point("another", (0, cos(more.joints[1].symbol)))
    assert content_hash(robot) == content_hash(more)
    assert artifact.check("reel", built, content_hash(robot), point_hashes(robot)) == []
    (finding,) = artifact.check("reel", built, content_hash(more), point_hashes(more))
    assert "other points than the model file states" in finding
    assert f"modelgen build reel --generated {built} --functions mechanics" in finding
    (report,) = build(modelgen_file("pendulum"), tmp_path, selected("bias"))
    assert report.folder == str(tmp_path / "pendulum" / artifact.ON_REQUEST)
    pendulum = modelgen.load("pendulum", directory=tmp_path)
    assert pendulum.hash == before
    assert pendulum.bias(np.zeros((1, 2))).shape == (1, 1)
    with pytest.raises(ArtifactError, match=r"`mass_matrix`.*--functions bias,mass_matrix"):
        pendulum.mass_matrix(np.zeros((1, 2)))


def modelgen_file(name: str) -> Robot:
    from modelgen.derivation.model_file import load

    return load(name)


def test_a_function_that_is_not_built_is_named_with_its_command(built: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"`reel` .*`jacobians`.*`modelgen build reel --generated .* --functi"):
        modelgen.load("reel", directory=built).jacobians(np.zeros((1, 4)))
    shutil.copytree(built / "reel", tmp_path / "reel", ignore=shutil.ignore_patterns(artifact.ON_REQUEST))
    with pytest.raises(ArtifactError, match=r"`modelgen build reel --generated .* --functions mechanics`"):
        modelgen.load("reel", directory=tmp_path).bias(np.zeros((1, 4)))
    shutil.copytree(built / "reel" / artifact.ON_REQUEST, tmp_path / "reel" / artifact.ON_REQUEST)
    manifest = tmp_path / "reel" / artifact.MANIFEST
    shutil.copy(artifact.SHIPPED / "pendulum" / artifact.MANIFEST, manifest)
    with pytest.raises(ArtifactError, match="another content"):
        artifact.find_mechanics("reel", artifact.read(manifest.parent).model_hash, tmp_path)


def test_a_robot_in_python_gets_the_functions_that_its_error_names() -> None:
    """A rod about its end: M, by hand."""
    robot = Robot("rod", "a rod about its end")
    angle = robot.revolute("angle", limit=3, rate_limit=8)
    robot.body(2.0, 0.1, (0.5 * sin(angle), 0.5 * cos(angle)), angle)
    robot.apply(angle, robot.input("torque", 2.5, "N m"))
    cost: dict[str, Any] = {"state_cost": angle**2, "action_cost": LogCos(0.5), "start": {}}
    robot.task(**cost, horizon=5, weight_at_horizon=0.65, control_rate=125)
    compiled, x = modelgen.compile(robot), np.array([0.3, 1.0])
    with pytest.raises(ArtifactError, match=r"modelgen\.build\(robot, '.*', 'mechanics'\)") as refused:
        compiled.mass_matrix(x)
    eval(str(refused.value).partition("Python: ")[2].rstrip("."), {"modelgen": modelgen, "robot": robot})
    np.testing.assert_allclose(compiled.mass_matrix(x), [[0.1 + 2.0 * 0.5**2]])


def test_mechanics_selects_all_of_its_functions() -> None:
    assert selected(None) == FUNCTIONS
    assert set(selected("bias, mechanics")) >= set(MECHANICS)
    with pytest.raises(ModelError, match="`mass_matrix`"):
        selected("mass_matrx")


def test_a_system_without_a_potential_energy_has_no_gravity_function() -> None:
    robot = Robot("top")
    angles = [robot.revolute(name, limit=1.2) for name in ("roll", "pitch", "yaw")]
    speeds = [robot.speed(f"omega_{axis}", limit=10, unit="rad/s") for axis in "xyz"]
    s = systems
    robot.mechanics(
        s.top(),
        coordinates=dict(zip((s.q1, s.q2, s.q3), angles, strict=True)),
        speeds=dict(zip((s.u1, s.u2, s.u3), speeds, strict=True)),
        parameters={s.m1: 1.2, s.l1: 0.4, s.A: 0.02, s.B: 0.03, s.C: 0.01, s.g: 9.81, s.c: 0.1},
        inputs={s.T: robot.input("torque", 2, "N m")},
    )
    robot.point("head", (0, 0, 0.4 * cos(angles[0])))
    s.finished(robot)
    x = np.random.default_rng(1).uniform(-1, 1, (3, 6))
    values = outputs(robot, x, [])
    assert values.keys().isdisjoint({"U", "gravity"})
    np.testing.assert_allclose(values["T"], np.einsum("ni,nij,nj->n", x[:, 3:], values["M"], x[:, 3:]) / 2)
    with pytest.raises(ModelError, match="`gravity`"):
        outputs(robot, x, [], ("gravity",))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(name="cart", position=(0, 0)), "already"),
        (dict(name="p", position=(0,)), r"write \(x, height\) or \(x, y, height\)"),
        (dict(name="p", position=(0, 1), on="cart"), "not a link"),
        (dict(name="2p", position=(0, 1)), "2p"),
    ],
)
def test_wrong_points_are_refused_with_their_line(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=rf"test_mechanics.py:\d+: .*{words}"):
        reel().point(**arguments)
