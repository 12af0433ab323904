"""Specifications: samples of their distributions, and errors that name the file and the key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from modelgen.loader import CompiledRobot
from solver.certification.specification import USUAL, read
from solver.errors import SolverError
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.parameters import resolve
from solver.problem.robots import load_robot
from solver.streams import EVALUATION_SEED
from tests.modelgen.support.identified_files import identified
from tests.solver.references import lean, motor_arm


@pytest.fixture(scope="module")
def problem(load: Callable[[str], CompiledRobot]) -> Problem:
    """The pendulum: states angle and angle_rate, parameters mass and length."""
    return Problem(load("pendulum"))


def written(folder: Path, text: str) -> Path:
    """Path of a new specification."""
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return path


def drawn(problem: Problem, path: Path | None, size: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Samples of starts (size, 2) and parameters (size, 2)."""
    distribution = read(path, problem).distribution
    x, theta = distribution(problem, distribution.sample(size, EVALUATION_SEED))
    return x.numpy(), theta.numpy()


def test_default_specification_has_the_starts_of_the_task_and_nominal_parameters(problem: Problem) -> None:
    x, theta = drawn(problem, None)
    task = problem.robot.metadata.task
    away = np.remainder(x[:, 0] - task.start_mean[0] + np.pi, 2.0 * np.pi) - np.pi  # hanging is at the seam
    assert np.abs(away).mean() == pytest.approx(task.start_deviation[0] * np.sqrt(2.0 / np.pi), rel=0.1)
    assert (theta == problem.theta.numpy()).all()
    assert read(None, problem).text == USUAL


@pytest.mark.parametrize(
    ("text", "mean_cosine"),  # of the angle from the target: E cos of the density 1 - cos, up to a limit
    [
        ("", -0.5),
        ('starts = "domain"', -0.5),
        ("[starts]\nattitude = 1.2\n" + "".join(f"attitude_turn_{axis}_rate = [0, 0]\n" for axis in "xyz"), None),
    ],
)
def test_rotations_are_uniform_over_all_within_their_angle(
    text: str, mean_cosine: float | None, tmp_path: Path
) -> None:
    satellite = Problem(load_robot("satellite", "cpu", None))
    x, _ = drawn(satellite, written(tmp_path, text))
    turned = Rotation.from_quat(x[:, :4], scalar_first=True)
    angle = turned.magnitude()
    if mean_cosine is None:
        assert angle.max() <= 1.2 + 1e-5
        assert (angle < 1.0).mean() == pytest.approx((1.0 - np.sin(1.0)) / (1.2 - np.sin(1.2)), abs=0.03)
    else:
        assert np.cos(angle).mean() == pytest.approx(mean_cosine, abs=0.03)
        np.testing.assert_allclose(turned.as_matrix().mean(0), 0.0, atol=0.04)
    np.testing.assert_allclose(turned.as_rotvec().mean(0), 0.0, atol=0.1)
    assert read(None, satellite).map_states == (4, 5)
    with pytest.raises(SolverError, match="attitude_qw, which is an entry of a quaternion"):
        read(written(tmp_path, 'map = ["attitude_qw", "attitude_turn_x_rate"]'), satellite)


def test_samples_of_a_box_are_uniform(problem: Problem, tmp_path: Path) -> None:
    text = "[starts]\nangle = [1, 2]\nangle_rate = [-3, -3]\n[parameters]\nrelative = {mass = [0.5, 1.5]}\n"
    x, theta = drawn(problem, written(tmp_path, text))
    assert (x[:, 1] == -3.0).all()
    nominal = problem.theta.numpy()
    for values, low, high in ((x[:, 0], 1.0, 2.0), (theta[:, 0], 0.5 * nominal[0], 1.5 * nominal[0])):
        assert low <= values.min() < values.max() <= high
        quarters = np.histogram(values, 4, (low, high))[0] / len(values)
        np.testing.assert_allclose(quarters, 0.25, atol=0.03)
    assert (theta[:, 1] == nominal[1]).all()
    assert abs(np.corrcoef(x[:, 0], theta[:, 0])[0, 1]) < 0.06


def test_samples_of_an_identified_set_are_uniform_in_its_ellipsoid(problem: Problem, tmp_path: Path) -> None:
    nominal = problem.theta.double().numpy()
    matrix = np.array([[4e-4, 1e-4], [1e-4, 1e-4]])
    content = identified(problem.robot, nominal, matrix)
    (tmp_path / "found.json").write_text(json.dumps(content))
    (tmp_path / "other.json").write_text(json.dumps(content | {"model_hash": "0" * 64}))
    with pytest.raises(SolverError, match=r"000000000000.*pendulum"):
        drawn(problem, written(tmp_path, 'parameters = {identified = "other.json"}'))
    _, theta = drawn(problem, written(tmp_path, 'parameters = {identified = "found.json"}'))
    away = theta - nominal
    squared = np.einsum("ni,ij,nj->n", away, np.linalg.inv(matrix), away)
    assert squared.max() < 1.001
    np.testing.assert_allclose(np.histogram(squared, 4, (0.0, 1.0))[0] / len(squared), 0.25, atol=0.03)  # area
    np.testing.assert_allclose(away.T @ away / len(away), matrix / 4.0, atol=1e-5)  # covariance of a uniform ellipse


@pytest.mark.parametrize("estimated", [True, False])
def test_the_current_of_a_start_follows_the_mass_that_a_policy_is_told(estimated: bool, tmp_path: Path) -> None:
    """As in `solver.evaluate`: 9.81 A for 1 kg."""
    arm = Problem(motor_arm(), given=(Given("mass", 0.8, 1.2),))
    observer = "observer = true\nestimate = ['mass']\n" if estimated else ""
    x, theta = drawn(arm, written(tmp_path, f"{observer}[parameters]\nrelative = {{mass = [0.8, 1.2]}}"))
    np.testing.assert_allclose(x[:, 2], 9.81 * (theta[:, 0] if estimated else 1.0), rtol=1e-5)


def test_samples_of_a_flat_ellipsoid_are_uniform_in_it(tmp_path: Path) -> None:
    """Of rank two in three parameters, whatever rounding makes of the third axis: P/4 is the covariance of an area."""
    furuta = Problem(load_robot("furuta", "cpu", None))
    nominal, random = np.array(furuta.robot.nominal_parameters, float)[:3], np.random.default_rng(0)
    for _ in range(4):
        factor = 0.01 * nominal[:, None] * random.normal(size=(3, 2))
        matrix = factor @ factor.T
        names = f"names = {[*furuta.robot.parameter_names[:3]]}\ncentre = {nominal.tolist()}\n"
        text = f"[parameters.ellipsoid]\n{names}shape = {matrix.tolist()}"
        _, theta = drawn(furuta, written(tmp_path, text))
        away = (theta[:, :3] - nominal) @ np.linalg.pinv(factor).T
        np.testing.assert_allclose(away.T @ away / len(away), np.eye(2) / 4.0, atol=0.02)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("starts = 'task", "TOML"),
        ("start = 'task'", "`starts`"),
        ("starts = 'everywhere'", "starts is 'everywhere'"),
        ("[starts]\nangle = [0, 1]", "angle_rate"),
        ("[starts]\nangle = [1, 0]\nangle_rate = [0, 0]", "starts.angle is [1, 0]"),
        ("[starts]\nangle = [0, nan]\nangle_rate = [0, 0]", "starts.angle"),
        ("[starts]\nangle = [0, 1]\nangle_rate = [0, 1e9]", "starts.angle_rate"),
        ("[parameters.relative]\nmass = [-1, 1]", "parameters.relative.mass"),
        ("[parameters]\nrelative = {mass = [1, 1]}\nabsolute = {mass = [1, 1]}", "parameters.absolute.mass"),
        ("[parameters]\nrelative = {}\nidentified = 'a.json'", "parameters"),
        ("parameters = {identified = 'gone.json'}", "gone.json"),
        ("[parameters.ellipsoid]\nnames = ['mass']\ncentre = [1]\nshape = [[-1]]", "parameters.ellipsoid.shape"),
        ("plant = 'mars'", "plant is 'mars'"),
        ("effects = ['delay']", "effects"),
        ("horizon = 0", "horizon"),
        ("failure = {}", "failure"),
        ("failure = {limits = {angle_rate = 1e9}}", "failure.limits.angle_rate"),
        ("failure_probability = 1", "failure_probability"),
        ("confidence = true", "confidence"),
        ("allowed_failures = -1", "allowed_failures"),
        ("map = ['angle']", "map"),
    ],
)
def test_error_names_file_and_key(problem: Problem, tmp_path: Path, text: str, key: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SolverError) as raised:
        read(path, problem)
    message = str(raised.value)
    assert str(path) in message
    assert key in message
    assert "\n" not in message


def test_a_parameter_that_is_zero_in_the_model_has_no_multiples(tmp_path: Path) -> None:
    """And a reference no values beyond those of the training."""
    robot = lean()
    problem = Problem(robot, given=resolve(robot, ()))
    for text, key in (
        ("relative = {lean = [0.5, 1.5]}", "parameters.relative.lean is 0 in the model"),
        ("absolute = {lean = [-9, 0]}", "parameters.absolute.lean is [-9.0, 0.0], beyond the range of the training"),
    ):
        path = written(tmp_path, f"[parameters]\n{text}")
        with pytest.raises(SolverError, match=re.escape(f"{path}: {key}")):
            read(path, problem)


VALUES = st.recursive(
    st.one_of(
        st.sampled_from(["task", "domain", "nominal", "harsh", "delay", "angle", "mass", "x.json"]),
        st.integers(-2, 2),
        st.floats(),
        st.booleans(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["angle", "angle_rate", "mass", "relative", "absolute", "ellipsoid", "identified", "names",
                             "centre", "shape", "limits", "return_below"]), inner, max_size=3,
        ),
    ),
    max_leaves=8,
)  # fmt: skip
KEYS = st.sampled_from(
    ["starts", "parameters", "plant", "effects", "observer", "horizon", "failure", "failure_probability", "confidence",
     "allowed_failures", "map"]
)  # fmt: skip


def toml(value: object) -> str:
    """Value as TOML text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
@settings(max_examples=60)
@pytest.mark.slow
def test_any_content_gives_finite_samples_or_an_error_that_names_the_file(
    problem: Problem, tmp_path_factory: pytest.TempPathFactory, content: dict[str, object]
) -> None:
    text = "\n".join(f"{key} = {toml(value)}" for key, value in content.items())
    path = written(tmp_path_factory.getbasetemp(), text)
    try:
        specification = read(path, problem)
    except SolverError as error:
        message = str(error)
    else:
        x, theta = specification.distribution(problem, specification.distribution.sample(5, 0))
        assert np.isfinite(x.numpy()).all()
        assert np.isfinite(theta.numpy()).all()
        return
    assert str(path) in message or "x.json" in message
