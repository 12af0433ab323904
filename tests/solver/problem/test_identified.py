"""Files of `modelgen identify` in a training: admissible sets within their bounds, errors, and storage in a run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import modelgen
import solver
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.export.c_export import emit
from solver.game.adversaries import ActionAdversary, ObservationAdversary, ParameterAdversary
from solver.preflight import require_controllable
from solver.problem import Problem
from solver.problem.identified import IdentifiedSet, read
from solver.training.solution import load_run, load_solution
from tests.modelgen.support.identified_files import identified as content

Load = Callable[[str], CompiledRobot]
Capture = pytest.CaptureFixture[str]


def written(folder: Path, data: Any) -> Path:
    """Path of a new file with this content."""
    path = folder / "robot.identified.json"
    path.write_text(json.dumps(data))
    return path


def bounds(robot: CompiledRobot) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (p,) of the model file."""
    lower, upper = np.array([(parameter.lower, parameter.upper) for parameter in robot.metadata.parameters]).T
    return lower, upper


def test_parameter_adversary_plays_the_worst_point_of_the_identified_ellipsoid(load: Load, tmp_path: Path) -> None:
    robot = load("cartpole")
    centre = 1.01 * np.array(robot.declared_parameters)
    root = 0.02 * centre[:, None] * np.random.default_rng(0).standard_normal((len(centre), len(centre)))
    identified = read(written(tmp_path, content(robot, shape=root @ root.T)), robot)
    problem = Problem(robot.with_nominal(identified.nominal), identified=identified)
    rng = np.random.default_rng(1)
    z = rng.standard_normal((5, len(centre))) / centre
    extreme = ParameterAdversary(1.0).admissible_set(problem, 1.0).extreme_point(torch.tensor(z).float()).numpy()
    b = rng.standard_normal((200000, len(centre)))
    members = (b / np.linalg.norm(b, axis=1, keepdims=True)) @ np.linalg.cholesky(np.array(identified.shape)).T
    others, reached = z @ members.T, (z * (extreme - centre)).sum(1)
    assert (others.min(1) >= reached * (1 + 1e-4)).all()
    assert (others.min(1) <= 0.9 * reached).all()


def test_observation_and_action_sets_have_the_proportions_of_the_file(load: Load, tmp_path: Path) -> None:
    identified = read(written(tmp_path, content(load("pendulum"))), load("pendulum"))
    problem = Problem(load("pendulum"), identified=identified)
    z = torch.tensor([[1.0, 2.0]])
    played = ObservationAdversary(0.003).admissible_set(problem, 0.003).extreme_point(z)
    torch.testing.assert_close(played, torch.tensor([[-0.003, 0.0]]))
    played = ActionAdversary(0.2).admissible_set(problem, 0.2).extreme_point(torch.tensor([[3.0]]))
    torch.testing.assert_close(played, torch.tensor([[-0.2]]))


def test_ellipsoid_beyond_the_bounds_is_scaled_until_it_touches_them(load: Load, tmp_path: Path) -> None:
    robot = load("cartpole")
    lower, upper = bounds(robot)
    centre = 1.01 * np.array(robot.declared_parameters)
    room = np.minimum(centre - lower, upper - centre)
    root = np.random.default_rng(3).standard_normal((len(centre), len(centre)))
    root *= (room * np.array([0.5, 3.0, 0.5, 0.4, 0.5]) / np.linalg.norm(root, axis=1))[:, None]
    shape = root @ root.T
    identified = read(written(tmp_path, content(robot, shape=shape)), robot)
    inside = np.array(identified.shape)
    half_widths = np.sqrt(np.diag(inside)) / room
    assert half_widths[1] == pytest.approx(1.0)
    assert half_widths.max() <= 1.0 + 1e-9
    assert np.linalg.eigvalsh((shape - inside) / np.outer(room, room)).min() > -1e-9  # within the original set
    rest = np.ix_([0, 2, 3, 4], [0, 2, 3, 4])  # the section at a fixed value of parameter 1 is unchanged
    sections = [np.linalg.inv(np.linalg.inv(matrix)[rest]) for matrix in (shape, inside)]
    np.testing.assert_allclose(sections[1], sections[0], rtol=1e-6)
    np.testing.assert_allclose(identified.shares, np.sqrt(np.diag(inside) / np.diag(shape)))


def test_direction_that_recordings_cannot_determine_does_not_shrink_the_others(load: Load, tmp_path: Path) -> None:
    robot = load("pendulum")
    lower, upper = bounds(robot)
    half = (upper - lower) / 2
    null, known = np.array([1.0, -1.0]) / np.sqrt(2), np.array([1.0, 1.0]) / np.sqrt(2)
    shape = (9.0 * np.outer(null, null) + 1e-6 * np.outer(known, known)) * np.outer(half, half)
    identified = read(written(tmp_path, content(robot, shape=shape)), robot)
    inside = np.array(identified.shape) / np.outer(half, half)
    assert known @ inside @ known == pytest.approx(1e-6, rel=1e-3)
    room = np.minimum(np.array(identified.nominal) - lower, upper - identified.nominal)
    assert (np.sqrt(np.diag(identified.shape)) / room).max() == pytest.approx(1.0)


@pytest.mark.slow
def test_run_stores_the_identified_parameters_and_sets(
    short: str, tmp_path: Path, tiny_options: list[str], capsys: Capture
) -> None:
    robot, folder = modelgen.load("pendulum", dtype="float32", directory=short, parallel=False), tmp_path / "run"
    path = written(tmp_path, content(robot))
    given = tiny_options.index("--adversaries")  # and four radii, which would replace those of the file
    tiny = tiny_options[:given] + tiny_options[given + 5 :]
    words = ["train", "pendulum", "--identified", str(path), "--out", str(folder), *tiny, "--iterations", "1"]
    assert main(words) == 0
    assert "+- 0.0202 kg" in capsys.readouterr().err
    run = load_run(folder)
    assert run.identified == read(path, robot)
    assert run.settings.adversaries["parameters"] == 1.0
    assert run.settings.adversaries["action"] == 0.2
    path.unlink()
    solution = load_solution(folder)
    np.testing.assert_allclose(solution.problem.theta, 1.01 * np.array(robot.declared_parameters), rtol=1e-6)
    opened = solver.load(folder, short).robot
    assert opened.dtype == "float64"
    np.testing.assert_allclose(opened.nominal_parameters, 1.01 * np.array(robot.declared_parameters), rtol=1e-12)
    x = torch.tensor([[1.0, 2.0]])
    identified, declared = (model.affine_dynamics(x)[0] for model in (solution.problem.robot, robot))
    torch.testing.assert_close(identified, robot.affine_dynamics(x, solution.problem.theta)[0])
    assert not torch.equal(identified, declared)
    assert "(const pendulum_real[]){(real)1.01, (real)1.01}" in emit(solution, "label")["pendulum_policy.c"]
    assert main(["train", "--resume", str(folder)]) == 0
    assert main(["evaluate", str(folder), "--episodes", "2"]) == 0


def test_file_of_another_model_names_both_hashes(load: Load, tmp_path: Path) -> None:
    robot = load("pendulum")
    with pytest.raises(SolverError, match=f"0{{12}}.*{robot.model_hash[:12]}"):
        read(written(tmp_path, content(robot) | {"model_hash": "0" * 64}), robot)


@pytest.mark.parametrize("share_of_upper_bound", [1.0, 2.0])
def test_centre_at_or_beyond_a_bound_is_an_error(load: Load, tmp_path: Path, share_of_upper_bound: float) -> None:
    robot = load("pendulum")
    centre = share_of_upper_bound * bounds(robot)[1]
    with pytest.raises(SolverError, match="mass"):
        read(written(tmp_path, content(robot, centre=centre)), robot)


@pytest.mark.parametrize("end", [0, 1])
def test_a_centre_just_within_its_bounds_is_at_them_also_in_single_precision(
    load: Load, tmp_path: Path, end: int
) -> None:
    robot = load("cartpole")
    for index, name in enumerate(robot.parameter_names):
        centre = np.array(robot.declared_parameters)
        centre[index] = bounds(robot)[end][index] * (1.0 + (1e-12, -1e-12)[end])
        with pytest.raises(SolverError, match=f"{name} was identified as .* at its declared bound"):
            read(written(tmp_path, content(robot, centre=centre)), robot)


@pytest.mark.parametrize(
    ("shape", "match"),
    [([[-1.0, 0.0], [0.0, 1.0]], "semidefinite"), ([[1e-4, 1e-5], [0.0, 1e-4]], "symmetric")],
)
def test_shape_that_is_not_symmetric_and_semidefinite_is_an_error(
    load: Load, tmp_path: Path, shape: list[list[float]], match: str
) -> None:
    with pytest.raises(SolverError, match=match):
        read(written(tmp_path, content(load("pendulum"), shape=shape)), load("pendulum"))


def test_missing_file_is_an_error(load: Load, tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"missing\.json"):
        read(tmp_path / "missing.json", load("pendulum"))


def test_set_with_an_uncontrollable_robot_names_its_parameter(load: Load, tmp_path: Path) -> None:
    """The motor cannot hold a pendulum of a thousand times the mass."""
    robot = load("pendulum")
    identified = read(written(tmp_path, content(robot)), robot)
    require_controllable(robot.with_nominal(identified.nominal), identified)
    heavy = IdentifiedSet("f", "", identified.nominal, ((1e6, 0.0), (0.0, 1e-9)), (1.0, 1.0), identified.radii)
    with pytest.raises(SolverError, match="mass up by"):
        require_controllable(robot.with_nominal(identified.nominal), heavy)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@examples(max_examples=60)
@given(st.sampled_from(["robot", "model_hash", "parameters", "ellipsoid", "radii", ""]), JSON)
def test_malformed_file_gives_a_solver_error(key: str, value: Any) -> None:
    robot = modelgen.load("pendulum", dtype="float32", parallel=False)
    data = content(robot) | {key: value} if key else value
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), data)
        with pytest.raises(SolverError, match="identify"):
            read(path, robot)
