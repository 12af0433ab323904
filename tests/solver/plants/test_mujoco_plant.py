"""The MuJoCo plant against our own robot."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants import make_plant
from solver.plants.mujoco import parameters
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.problem import Problem
from tests.closeness import assert_close
from tests.solver.plants.rollouts_by_hand import feedback, moved, wrapped

Load = Callable[[str], CompiledRobot]


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta"])
@pytest.mark.parametrize("changed", [False, True])
def test_mujoco_moves_as_our_robot_does(problem: Callable[[str], Problem], name: str, changed: bool) -> None:
    """Every parameter changed by a factor of its own, so that none may stand in the wrong place."""
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


def test_mujoco_s_return_is_the_nominal_plant_s(problem: Callable[[str], Problem]) -> None:
    """Over 2 s from different starts, the integral of the cost too: within 0.01 %, where explicit Euler is off by more
    than ten times as much."""
    pytest.importorskip("mujoco")
    g = problem("pendulum")
    x = torch.tensor([[3.0, 0.0], [0.5, -1.0], [-2.0, 3.0]])
    law = feedback(g, 0.3)
    returns = {
        plant: rollouts(g, law, x, make_plant(plant, g), seconds=2.0).state_reward
        for plant in ("mujoco", "nominal", "euler")
    }
    off = {plant: ((found - returns["mujoco"]) / returns["mujoco"]).abs() for plant, found in returns.items()}
    assert float(off["nominal"].max()) < 1e-4
    assert bool((off["euler"] > 10.0 * off["nominal"]).all())


def test_the_cost_is_the_integral_along_mujoco_s_own_path(problem: Callable[[str], Problem]) -> None:
    """Across the seam, in one period: against the nominal robot's, at other parameters."""
    pytest.importorskip("mujoco")
    g = problem("cartpole")
    theta, x, u = g.theta * 1.2, torch.tensor([[0.1, math.pi - 0.02, 0.3, 19.0]]), torch.tensor([[2.0]])
    costs = [make_plant(plant, g, theta).begin(x).step(u) for plant in ("mujoco", "nominal")]
    torch.testing.assert_close(*costs, rtol=2e-4, atol=0.0)


def test_an_mjcf_file_of_ones_own(
    problem: Callable[[str], Problem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    from modelgen.engines.mjcf import ASSETS

    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    text = (ASSETS / "acrobot.xml").read_text()
    (tmp_path / "models" / "acrobot.xml").write_text(text.replace('gravity="0 0 -9.81"', 'gravity="0 0 0"'))
    g = problem("acrobot")
    x = torch.tensor([[0.3, 0.2, 0.0, 0.0]])
    assert torch.allclose(moved(make_plant("mujoco", g), x, [torch.zeros(1, 1)] * 9)[-1], x, atol=1e-6)
    (tmp_path / "models" / "pendulum.xml").write_text((ASSETS / "pendulum.xml").read_text().replace("rod", "stick"))
    with pytest.raises(SolverError, match="different names"):
        make_plant("mujoco", problem("pendulum")).begin(torch.zeros(1, 2))


def test_a_simulation_that_blows_up_is_no_success(
    problem: Callable[[str], Problem],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """MuJoCo puts it back to upright and at rest, which would be the best of all rollouts."""
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


def test_a_parameter_without_a_place_in_the_file_is_refused(
    problem: Callable[[str], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    g = problem("pendulum")
    monkeypatch.setitem(
        parameters.PARAMETERS, "pendulum", lambda model, p: parameters._mass(model, "rod", p["mass"], 0.5, 0.1)
    )
    make_plant("mujoco", g, torch.tensor([1.3, 1.0])).begin(torch.zeros(1, 2))
    with pytest.raises(SolverError, match="the place of length in the MJCF file of pendulum is not known"):
        make_plant("mujoco", g, torch.tensor([1.0, 1.3])).begin(torch.zeros(1, 2))


def test_results_do_not_depend_on_the_threads(
    problem: Callable[[str], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    g = problem("pendulum")
    starts = sample_starts(g, 6, 0)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
        found.append(rollouts(g, feedback(g), starts, make_plant("mujoco", g), seconds=0.2).x)
    assert_close(found[0], found[1], periods=25)
