"""What all plants have in common: parameters, rewards, and what cannot be."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants import PlantName, make_plant
from solver.plants.harsh.harshness import EFFECTS, Harshness, harshness
from solver.plants.harsh.plant import Harsh
from solver.plants.nominal import Nominal
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.problem import Problem
from tests.closeness import assert_close
from tests.solver.plants.rollouts_by_hand import feedback, moved

Load = Callable[[str], CompiledRobot]


THETA = torch.tensor([[0.7], [1.0], [1.4]])  # of the nominal parameters, one row a rollout
SMOOTH = ["delay", "saturation"]  # effects that do not amplify rounding


@pytest.mark.parametrize("plant", ["nominal", "euler", "harsh", "mujoco"])
def test_every_rollout_may_have_parameters_of_its_own(problem: Callable[[str], Problem], plant: PlantName) -> None:
    """Under a gentle law, which amplifies a disturbance about tenfold; at full inputs it would be a thousandfold."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    g = problem("cartpole")
    theta = g.theta * THETA
    x = sample_starts(g, 3, 0)
    effects = SMOOTH if plant == "harsh" else []
    law = feedback(g, 0.3)
    together = rollouts(g, law, x, make_plant(plant, g, theta, effects), seconds=0.4)
    for k in range(3):
        each = make_plant(plant, g, theta[k], effects)
        alone = rollouts(g, law, x[k : k + 1], each, seconds=0.4)
        torch.testing.assert_close(together.x[:, k], alone.x[:, 0], rtol=1e-4, atol=1e-4)
    assert float((together.x[-1, 0] - together.x[-1, 2]).abs().max()) > 0.01


@pytest.mark.parametrize("effect", ["stiction", "backlash"])
def test_parameters_of_their_own_through_friction_and_play(problem: Callable[[str], Problem], effect: str) -> None:
    """One control period from equal states. Over many, stiction and backlash amplify rounding, and a batch of three
    rounds differently from a batch of one (docs/concepts/portability.md), so rollouts of both may part."""
    g = problem("cartpole")
    for at_rest in (True, False):
        x = sample_starts(g, 1, 0).repeat(3, 1)
        x[:, 2:] = 0.0 if at_rest else torch.tensor([0.3, -2.0])
        u = 0.8 * g.input_limits.repeat(3, 1)
        together = moved(make_plant("harsh", g, g.theta * THETA, [effect]), x, [u])[-1]
        for k in range(3):
            alone = moved(make_plant("harsh", g, g.theta * THETA[k], [effect]), x[k : k + 1], [u[k : k + 1]])[-1]
            torch.testing.assert_close(together[k], alone[0], rtol=1e-5, atol=1e-6)
        assert float((together[0] - together[2]).abs().max()) > 1e-3


@pytest.mark.parametrize("name", ["pendulum", "furuta"])
def test_the_euler_plant_is_the_authors_loop_and_their_sum_of_the_cost(
    problem: Callable[[str], Problem], load64: Load, name: str
) -> None:
    """At their 500 Hz, written out in float64: the cost of a period is that of its first state."""
    g, robot = problem(name), load64(name)
    x, law, theta = sample_starts(g, 4, 0), feedback(g, 0.2), 1.1 * g.theta
    found = rollouts(g, law, x, make_plant("euler", g, theta), seconds=0.4)
    y, reward, limits = x.double().numpy(), np.zeros(4), np.asarray(robot.state_limits)
    for u in found.u.double().numpy():
        reward -= 0.008 * robot.state_cost(y)[0]
        for _ in range(4):
            y = y + 0.002 * robot.dynamics(y, u, theta.double().numpy())
            for i, limit in enumerate(limits):
                y[:, i] = (y[:, i] + np.pi) % (2 * np.pi) - np.pi if i in g.continuous else y[:, i].clip(-limit, limit)
    np.testing.assert_allclose(found.state_reward, reward, rtol=1e-4)
    np.testing.assert_allclose(found.x[-1], y, atol=5e-4)
    assert not torch.allclose(found.x[-1], rollouts(g, law, x, Nominal(g, theta), seconds=0.4).x[-1], atol=1e-3)


def test_the_nominal_plant_follows_the_problem_s_scheme(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    x = sample_starts(g, 3, 0)
    authors = g.integrated_by("euler")
    for plant in (Nominal(authors), make_plant("nominal", authors), make_plant("euler", authors)):
        found = rollouts(g, feedback(g), x, plant, seconds=0.2)
        expected = rollouts(g, feedback(g), x, make_plant("euler", g), seconds=0.2)
        assert torch.equal(found.x, expected.x)
        assert torch.equal(found.returns, expected.returns)


def test_the_reward_is_that_of_the_true_state(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    x = sample_starts(g, 3, 0)

    def constant(_: Tensor) -> tuple[Tensor, Tensor]:
        return torch.ones(3, 1), torch.full((3,), 0.2)

    seen = rollouts(g, constant, x, Harsh(g, Harshness(noise=5.0, encoder=5.0)))
    true = rollouts(g, constant, x)
    assert_close(seen.state_reward, true.state_reward, periods=625)
    assert_close(seen.x, true.x, periods=625)
    assert seen.action_reward.tolist() == pytest.approx([-0.2 * 5.0] * 3, rel=1e-4)


def test_plants_that_cannot_be(problem: Callable[[str], Problem], monkeypatch: pytest.MonkeyPatch) -> None:
    quadrotor = problem("planar_quadrotor")
    with pytest.raises(SolverError, match=r"several coordinates.*--harsh delay saturation backlash encoder noise"):
        make_plant("harsh", quadrotor)
    make_plant("harsh", quadrotor, effects=[name for name in EFFECTS if name != "stiction"])
    with pytest.raises(SolverError, match="add --plant harsh"):
        make_plant("nominal", quadrotor, effects=["noise"])
    pytest.importorskip("mujoco")
    with pytest.raises(SolverError, match=r"no MJCF file for planar_arm2: write one to models/planar_arm2\.xml"):
        make_plant("mujoco", problem("planar_arm2"))
    acrobot = problem("acrobot")
    make_plant("mujoco", acrobot)
    with pytest.raises(SolverError, match=r"the place of upper_mass in it is not known.*--plant nominal"):
        make_plant("mujoco", acrobot, acrobot.theta * 1.1)
    with pytest.raises(SolverError, match="2 rows for 3 rollouts"):
        make_plant("mujoco", acrobot, acrobot.theta.repeat(2, 1)).begin(torch.zeros(3, 4))
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match="pip install mujoco"):
        make_plant("mujoco", acrobot)


def test_names_of_plants_and_effects(problem: Callable[[str], Problem]) -> None:
    with pytest.raises(SolverError, match=r"unknown plant 'Harsh'.*harsh"):
        make_plant("Harsh", problem("pendulum"))
    with pytest.raises(SolverError, match="noise is named twice"):
        harshness(["noise=2x", "noise"])
