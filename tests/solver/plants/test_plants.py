"""All plants: parameters of single rollouts, rewards, and errors."""

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
from solver.plants.harsh import EFFECTS, Harsh, Harshness, harshness
from solver.plants.outcome import rollouts, sample_starts
from solver.plants.plant import Nominal
from solver.problem import Problem
from tests.closeness import assert_close
from tests.solver.plants.rollouts_by_hand import feedback, moved

Load = Callable[[str], CompiledRobot]


THETA = torch.tensor([[0.7], [1.0], [1.4]])  # factors of the nominal parameters, one for each rollout
SMOOTH = ["delay", "saturation"]  # effects that do not amplify rounding


@pytest.mark.parametrize("plant", ["nominal", "euler", "harsh", "mujoco"])
def test_rollouts_with_different_parameters_equal_rollouts_alone(
    problem: Callable[[str], Problem], plant: PlantName
) -> None:
    """The inputs are small, so that a disturbance grows about tenfold. At full inputs it would grow a thousandfold."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    g = problem("cartpole")
    theta = g.theta * THETA
    x = sample_starts(g, 3, 0)
    effects = SMOOTH if plant == "harsh" else []
    law = feedback(g, 0.3)
    together = rollouts(g, law, x, make_plant(plant, g, theta, effects), seconds=0.4)
    for k in range(3):
        alone = rollouts(g, law, x[k : k + 1], make_plant(plant, g, theta[k], effects), seconds=0.4)
        torch.testing.assert_close(together.x[:, k], alone.x[:, 0], rtol=1e-4, atol=1e-4)
    assert float((together.x[-1, 0] - together.x[-1, 2]).abs().max()) > 0.01


@pytest.mark.parametrize("effect", ["stiction", "backlash"])
def test_period_with_friction_or_backlash_and_different_parameters_equals_a_period_alone(
    problem: Callable[[str], Problem], effect: str
) -> None:
    """One control period from equal states. In longer rollouts, stiction and backlash amplify rounding, and a batch of
    three rounds differently from a batch of one (docs/concepts/portability.md)."""
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
def test_euler_plant_is_the_authors_loop_and_their_sum_of_the_cost(
    problem: Callable[[str], Problem], load64: Load, name: str
) -> None:
    """Explicit Euler at 500 Hz in NumPy. The cost of a period is the cost of its first state."""
    g, robot = problem(name), load64(name)
    x, law, theta = sample_starts(g, 4, 0), feedback(g, 0.2), 1.1 * g.theta
    result = rollouts(g, law, x, make_plant("euler", g, theta), seconds=0.4)
    y, reward, limits = x.double().numpy(), np.zeros(4), np.asarray(robot.state_limits)
    for u in result.u.double().numpy():
        reward -= 0.008 * robot.state_cost(y)[0]
        for _ in range(4):
            y = y + 0.002 * robot.dynamics(y, u, theta.double().numpy())
            for i, limit in enumerate(limits):
                y[:, i] = (y[:, i] + np.pi) % (2 * np.pi) - np.pi if i in g.continuous else y[:, i].clip(-limit, limit)
    np.testing.assert_allclose(result.state_reward, reward, rtol=1e-4)
    np.testing.assert_allclose(result.x[-1], y, atol=5e-4)
    assert not torch.allclose(result.x[-1], rollouts(g, law, x, Nominal(g, theta), seconds=0.4).x[-1], atol=1e-3)


def test_nominal_plant_uses_the_integration_scheme_of_the_problem(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    x = sample_starts(g, 3, 0)
    authors = g.integrated_by("euler")
    for plant in (Nominal(authors), make_plant("nominal", authors), make_plant("euler", authors)):
        result = rollouts(g, feedback(g), x, plant, seconds=0.2)
        expected = rollouts(g, feedback(g), x, make_plant("euler", g), seconds=0.2)
        assert torch.equal(result.x, expected.x)
        assert torch.equal(result.returns, expected.returns)


@pytest.mark.slow
def test_reward_is_computed_from_the_true_state(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    x = sample_starts(g, 3, 0)

    def constant(_: Tensor) -> tuple[Tensor, Tensor]:
        return torch.ones(3, 1), torch.full((3,), 0.2)

    measured = rollouts(g, constant, x, Harsh(g, Harshness(noise=5.0, encoder=5.0)))
    true = rollouts(g, constant, x)
    assert_close(measured.state_reward, true.state_reward, periods=625)
    assert_close(measured.x, true.x, periods=625)
    assert measured.action_reward.tolist() == pytest.approx([-0.2 * 5.0] * 3, rel=1e-4)


def test_stiction_of_an_input_without_its_own_joint_is_an_error(problem: Callable[[str], Problem]) -> None:
    quadrotor = problem("planar_quadrotor")
    with pytest.raises(SolverError, match="harsh delay saturation backlash encoder noise"):
        make_plant("harsh", quadrotor)
    make_plant("harsh", quadrotor, effects=[name for name in EFFECTS if name != "stiction"])


def test_effects_of_a_plant_without_effects_are_an_error(problem: Callable[[str], Problem]) -> None:
    with pytest.raises(SolverError, match=r"noise.*plant harsh"):
        make_plant("nominal", problem("planar_quadrotor"), effects=["noise"])


def test_mujoco_plant_without_an_mjcf_file_names_its_path(problem: Callable[[str], Problem]) -> None:
    pytest.importorskip("mujoco")
    with pytest.raises(SolverError, match=r"models/planar_arm2\.xml"):
        make_plant("mujoco", problem("planar_arm2"))


def test_mujoco_plant_rejects_changed_parameters_without_a_place_in_the_file(
    problem: Callable[[str], Problem],
) -> None:
    pytest.importorskip("mujoco")
    acrobot = problem("acrobot")
    make_plant("mujoco", acrobot)
    with pytest.raises(SolverError, match=r"upper_mass.*plant nominal"):
        make_plant("mujoco", acrobot, acrobot.theta * 1.1)


def test_mujoco_plant_rejects_another_number_of_parameter_rows(problem: Callable[[str], Problem]) -> None:
    pytest.importorskip("mujoco")
    acrobot = problem("acrobot")
    with pytest.raises(SolverError, match=r"2 .*3"):
        make_plant("mujoco", acrobot, acrobot.theta.repeat(2, 1)).begin(torch.zeros(3, 4))


def test_mujoco_plant_without_mujoco_names_the_package(
    problem: Callable[[str], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match="pip install mujoco"):
        make_plant("mujoco", problem("acrobot"))


def test_unknown_plant_is_an_error_with_a_suggestion(problem: Callable[[str], Problem]) -> None:
    with pytest.raises(SolverError, match=r"'Harsh'.*harsh"):
        make_plant("Harsh", problem("pendulum"))
    with pytest.raises(SolverError, match=r"'nominel'.*`nominal`"):
        make_plant("nominel", problem("pendulum"))


def test_effect_named_twice_is_an_error() -> None:
    with pytest.raises(SolverError, match="noise"):
        harshness(["noise=2x", "noise"])
