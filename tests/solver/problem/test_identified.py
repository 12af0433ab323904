"""Files of `modelgen identify` in a training: sets within their bounds, refusals, and the way through a run folder."""

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
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.export.c_export import emit
from solver.game.adversaries.action import ActionAdversary
from solver.game.adversaries.observation import ObservationAdversary
from solver.game.adversaries.parameters import ParameterAdversary
from solver.preflight.controllable import require_controllable
from solver.problem.identified import Identified, read
from solver.problem.problem import Problem
from solver.training.run import load_run
from solver.training.solution import load_solution
from tests.modelgen.support.identified_files import identified as content

Load = Callable[[str], CompiledRobot]
Capture = pytest.CaptureFixture[str]


def written(folder: Path, data: Any) -> Path:
    path = folder / "robot.identified.json"
    path.write_text(json.dumps(data))
    return path


def bounds(robot: CompiledRobot) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = np.array([(each.lower, each.upper) for each in robot.metadata.parameters]).T
    return lower, upper


def test_the_adversary_plays_the_worst_point_of_the_set(load: Load, tmp_path: Path) -> None:
    robot = load("cartpole")
    centre = 1.01 * np.array(robot.declared_parameters)
    root = 0.02 * centre[:, None] * np.random.default_rng(0).standard_normal((len(centre), len(centre)))
    found = read(written(tmp_path, content(robot, shape=root @ root.T)), robot)
    problem = Problem(robot.with_nominal(found.nominal), identified=found)
    rng = np.random.default_rng(1)
    z = rng.standard_normal((5, len(centre))) / centre
    extreme = ParameterAdversary(1.0).admissible_set(problem, 1.0).extreme_point(torch.tensor(z).float()).numpy()
    b = rng.standard_normal((200000, len(centre)))
    members = (b / np.linalg.norm(b, axis=1, keepdims=True)) @ np.linalg.cholesky(np.array(found.shape)).T
    others, reached = z @ members.T, (z * (extreme - centre)).sum(1)
    assert (others.min(1) >= reached * (1 + 1e-4)).all()
    assert (others.min(1) <= 0.9 * reached).all()


def test_the_other_sets_have_the_proportions_of_the_file(load: Load, tmp_path: Path) -> None:
    found = read(written(tmp_path, content(load("pendulum"))), load("pendulum"))
    problem = Problem(load("pendulum"), identified=found)
    z = torch.tensor([[1.0, 2.0]])
    played = ObservationAdversary(0.003).admissible_set(problem, 0.003).extreme_point(z)
    torch.testing.assert_close(played, torch.tensor([[-0.003, 0.0]]))
    played = ActionAdversary(0.2).admissible_set(problem, 0.2).extreme_point(torch.tensor([[3.0]]))
    torch.testing.assert_close(played, torch.tensor([[-0.2]]))


def test_a_set_beyond_the_bounds_is_scaled_and_touches_them(load: Load, tmp_path: Path) -> None:
    robot = load("cartpole")
    lower, upper = bounds(robot)
    centre = 1.01 * np.array(robot.declared_parameters)
    room = np.minimum(centre - lower, upper - centre)
    root = np.random.default_rng(3).standard_normal((len(centre), len(centre)))
    root *= (room * np.array([0.5, 3.0, 0.5, 0.4, 0.5]) / np.linalg.norm(root, axis=1))[:, None]
    shape = root @ root.T
    found = read(written(tmp_path, content(robot, shape=shape)), robot)
    inside = np.array(found.shape)
    half_widths = np.sqrt(np.diag(inside)) / room
    assert half_widths[1] == pytest.approx(1.0)
    assert half_widths.max() <= 1.0 + 1e-9
    assert np.linalg.eigvalsh((shape - inside) / np.outer(room, room)).min() > -1e-9  # it lies in the set of the file
    rest = np.ix_([0, 2, 3, 4], [0, 2, 3, 4])  # the section at one value of what led out is that of the file
    sections = [np.linalg.inv(np.linalg.inv(each)[rest]) for each in (shape, inside)]
    np.testing.assert_allclose(sections[1], sections[0], rtol=1e-6)
    np.testing.assert_allclose(found.shares, np.sqrt(np.diag(inside) / np.diag(shape)))


def test_an_unseen_direction_takes_nothing_from_what_is_known(load: Load, tmp_path: Path) -> None:
    robot = load("pendulum")
    lower, upper = bounds(robot)
    half = (upper - lower) / 2
    null, known = np.array([1.0, -1.0]) / np.sqrt(2), np.array([1.0, 1.0]) / np.sqrt(2)
    shape = (9.0 * np.outer(null, null) + 1e-6 * np.outer(known, known)) * np.outer(half, half)
    found = read(written(tmp_path, content(robot, shape=shape)), robot)
    inside = np.array(found.shape) / np.outer(half, half)
    assert known @ inside @ known == pytest.approx(1e-6, rel=1e-3)
    room = np.minimum(np.array(found.nominal) - lower, upper - found.nominal)
    assert (np.sqrt(np.diag(found.shape)) / room).max() == pytest.approx(1.0)


def test_a_run_keeps_its_identified_set(short: str, tmp_path: Path, tiny_options: list[str], capsys: Capture) -> None:
    robot, folder = modelgen.load("pendulum", dtype="float32", directory=short, parallel=False), tmp_path / "run"
    path = written(tmp_path, content(robot))
    words = ["train", "pendulum", "--identified", str(path), "--out", str(folder), *tiny_options, "--iterations", "1"]
    assert main(words) == 0
    assert "+- 0.0202 kg" in capsys.readouterr().err
    run = load_run(folder)
    assert run.identified == read(path, robot)
    assert run.settings.adversaries["parameters"] == 1.0
    assert run.settings.adversaries["action"] == 0.2
    path.unlink()
    solution = load_solution(folder)
    np.testing.assert_allclose(solution.problem.theta, 1.01 * np.array(robot.declared_parameters), rtol=1e-6)
    x = torch.tensor([[1.0, 2.0]])
    there, usual = (each.affine_dynamics(x)[0] for each in (solution.problem.robot, robot))
    torch.testing.assert_close(there, robot.affine_dynamics(x, solution.problem.theta)[0])
    assert not torch.equal(there, usual)
    assert "(const pendulum_real[]){1.01, 1.01}" in emit(solution, "label")["pendulum_policy.c"]
    assert main(["train", "--resume", str(folder)]) == 0
    assert main(["evaluate", str(folder), "--episodes", "2"]) == 0


def test_an_unusable_identified_set_is_refused(load: Load, tmp_path: Path) -> None:
    robot = load("pendulum")

    def refused(match: str, **changes: Any) -> None:
        with pytest.raises(SolverError, match=match):
            read(written(tmp_path, content(robot) | changes), robot)

    refused(f"000000000000, and the built one is pendulum {robot.model_hash[:12]}", model_hash="0" * 64)
    upper = bounds(robot)[1]
    for centre, match in ((upper, "at its declared bound"), (2 * upper, "is empty")):
        with pytest.raises(SolverError, match=match):
            read(written(tmp_path, content(robot, centre=centre)), robot)
    with pytest.raises(SolverError, match="not positive semidefinite"):
        read(written(tmp_path, content(robot, shape=np.diag([-1.0, 1.0]))), robot)
    with pytest.raises(SolverError, match="not symmetric"):
        read(written(tmp_path, content(robot, shape=[[1e-4, 1e-5], [0.0, 1e-4]])), robot)
    with pytest.raises(SolverError, match="cannot read"):
        read(tmp_path / "none.json", robot)


def test_a_set_that_the_input_cannot_hold_names_its_direction(load: Load, tmp_path: Path) -> None:
    """A pendulum of a thousand times the mass falls faster than its motor can catch it."""
    robot = load("pendulum")
    found = read(written(tmp_path, content(robot)), robot)
    require_controllable(robot.with_nominal(found.nominal), found)
    heavy = Identified("f", "", found.nominal, ((1e6, 0.0), (0.0, 1e-9)), (1.0, 1.0), found.radii)
    with pytest.raises(SolverError, match="mass up by"):
        require_controllable(robot.with_nominal(found.nominal), heavy)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@examples(max_examples=60)
@given(st.sampled_from(["robot", "model_hash", "parameters", "ellipsoid", "radii", ""]), JSON)
def test_a_malformed_file_is_refused(key: str, value: Any) -> None:
    robot = modelgen.load("pendulum", dtype="float32", parallel=False)
    data = content(robot) | {key: value} if key else value
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), data)
        with pytest.raises(SolverError, match="identify"):
            read(path, robot)
