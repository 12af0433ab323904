"""MuJoCo plant, compared with the nominal plant."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants import make_plant, mujoco
from solver.plants.outcome import rollouts, sample_starts
from solver.problem import Problem
from tests.closeness import assert_close
from tests.solver.plants.rollouts_by_hand import feedback, moved, wrapped

Load = Callable[[str], CompiledRobot]


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta"])
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.slow
def test_mujoco_moves_as_the_nominal_plant_does(problem: Callable[[str], Problem], name: str, changed: bool) -> None:
    """Every parameter is changed by a different factor, so that a parameter in the wrong place is noticed."""
    pytest.importorskip("mujoco")
    g = problem(name)
    theta = g.theta * torch.linspace(0.8, 1.3, len(g.theta)) if changed else None
    x = sample_starts(g, 8, 0)
    theirs = rollouts(g, feedback(g, 0.1), x, make_plant("mujoco", g, theta), seconds=0.4)
    errors = {}
    for plant in ("nominal", "euler"):
        ours = rollouts(g, feedback(g, 0.1), x, make_plant(plant, g, theta), seconds=0.4)
        error = theirs.x - ours.x
        error[..., g.continuous] = wrapped(error[..., g.continuous])
        errors[plant] = (error.abs() / g.state_limits).max().item()
    assert errors["nominal"] < 1e-4
    assert errors["nominal"] < 0.05 * errors["euler"]


@pytest.mark.slow
def test_mujoco_has_the_return_of_the_nominal_plant(problem: Callable[[str], Problem]) -> None:
    """Over 2 s from different starts, the integrals of the cost differ by less than 0.01 %. The error of explicit Euler
    is more than ten times as large."""
    pytest.importorskip("mujoco")
    g = problem("pendulum")
    x = torch.tensor([[3.0, 0.0], [0.5, -1.0], [-2.0, 3.0]])
    law = feedback(g, 0.3)
    returns = {
        plant: rollouts(g, law, x, make_plant(plant, g), seconds=2.0).state_reward
        for plant in ("mujoco", "nominal", "euler")
    }
    error = {plant: ((reward - returns["mujoco"]) / returns["mujoco"]).abs() for plant, reward in returns.items()}
    assert float(error["nominal"].max()) < 1e-4
    assert bool((error["euler"] > 10.0 * error["nominal"]).all())


def test_mujoco_integrates_the_cost_along_its_own_path(problem: Callable[[str], Problem]) -> None:
    """One period across the seam with other parameters, compared with the nominal plant."""
    pytest.importorskip("mujoco")
    g = problem("cartpole")
    theta, x, u = g.theta * 1.2, torch.tensor([[0.1, math.pi - 0.02, 0.3, 19.0]]), torch.tensor([[2.0]])
    costs = [make_plant(plant, g, theta).begin(x).step(u) for plant in ("mujoco", "nominal")]
    torch.testing.assert_close(*costs, rtol=2e-4, atol=0.0)


def test_mjcf_file_of_the_user_replaces_the_shipped_one(
    problem: Callable[[str], Problem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    from modelgen.engines.mujoco import ASSETS

    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    text = (ASSETS / "acrobot.xml").read_text()
    (tmp_path / "models" / "acrobot.xml").write_text(text.replace('gravity="0 0 -9.81"', 'gravity="0 0 0"'))
    g = problem("acrobot")
    x = torch.tensor([[0.3, 0.2, 0.0, 0.0]])
    assert torch.allclose(moved(make_plant("mujoco", g), x, [torch.zeros(1, 1)] * 9)[-1], x, atol=1e-6)
    (tmp_path / "models" / "pendulum.xml").write_text((ASSETS / "pendulum.xml").read_text().replace("rod", "stick"))
    with pytest.raises(SolverError, match=r"pendulum.*rod"):
        make_plant("mujoco", problem("pendulum")).begin(torch.zeros(1, 2))


def test_diverged_mujoco_simulation_is_not_a_success(
    problem: Callable[[str], Problem],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """MuJoCo resets a diverged simulation to upright and at rest, which would be the best of all rollouts."""
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    g = problem("furuta")
    theta = g.theta.repeat(4, 1)
    theta[2:, g.robot.parameter_names.index("arm_damping")] = 1.0
    result = rollouts(g, feedback(g), sample_starts(g, 4, 0), make_plant("mujoco", g, theta), seconds=0.4)
    assert torch.isfinite(result.returns).tolist() == [True, True, False, False]
    assert not result.success[2:].any()
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_changed_parameter_that_is_not_written_to_the_mjcf_file_is_an_error(
    problem: Callable[[str], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    g = problem("pendulum")
    monkeypatch.setitem(mujoco.PARAMETERS, "pendulum", lambda model, p: mujoco._mass(model, "rod", p["mass"], 0.5, 0.1))
    make_plant("mujoco", g, torch.tensor([1.3, 1.0])).begin(torch.zeros(1, 2))
    with pytest.raises(SolverError, match=r"pendulum.*length"):
        make_plant("mujoco", g, torch.tensor([1.0, 1.3])).begin(torch.zeros(1, 2))


def test_mujoco_rollouts_do_not_depend_on_the_number_of_threads(
    problem: Callable[[str], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    g = problem("pendulum")
    starts = sample_starts(g, 6, 0)
    states = []
    for threads in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
        states.append(rollouts(g, feedback(g), starts, make_plant("mujoco", g), seconds=0.2).x)
    assert_close(states[0], states[1], periods=25)
