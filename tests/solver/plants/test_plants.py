"""What all plants have in common: parameters, rewards, and what cannot be."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.game import Game
from solver.plants import make_plant
from solver.plants.harsh import (
    EFFECTS,
    Harsh,
    Harshness,
    harshness,
)
from solver.plants.rollouts import rollouts, sample_starts
from tests.solver.plants.rollouts_by_hand import feedback

Load = Callable[[str], CompiledRobot]


@pytest.mark.parametrize("plant", ["nominal", "harsh", "mujoco"])
def test_every_rollout_may_have_parameters_of_its_own(game: Callable[[str], Game], plant: str) -> None:
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    g = game("cartpole")
    theta = g.theta * torch.tensor([[0.7], [1.0], [1.4]])
    x = sample_starts(g, 3, 0)
    effects = ["delay", "stiction", "backlash"] if plant == "harsh" else []
    together = rollouts(g, feedback(g), x, make_plant(plant, g, theta, effects), seconds=0.4)  # type: ignore[arg-type]
    for k in range(3):
        each = make_plant(plant, g, theta[k], effects)  # type: ignore[arg-type]
        alone = rollouts(g, feedback(g), x[k : k + 1], each, seconds=0.4)
        torch.testing.assert_close(together.x[:, k], alone.x[:, 0], rtol=1e-4, atol=1e-4)
    assert float((together.x[-1, 0] - together.x[-1, 2]).abs().max()) > 0.01


def test_the_reward_is_that_of_the_true_state(game: Callable[[str], Game]) -> None:
    g = game("pendulum")
    x = sample_starts(g, 3, 0)

    def constant(_: Tensor) -> tuple[Tensor, Tensor]:
        return torch.ones(3, 1), torch.full((3,), 0.2)

    seen = rollouts(g, constant, x, Harsh(g, Harshness(noise=5.0, encoder=5.0)))
    true = rollouts(g, constant, x)
    assert torch.equal(seen.state_reward, true.state_reward)
    assert torch.equal(seen.x, true.x)
    assert seen.action_reward.tolist() == pytest.approx([-0.2 * 5.0] * 3, rel=1e-4)


def test_plants_that_cannot_be(game: Callable[[str], Game], monkeypatch: pytest.MonkeyPatch) -> None:
    quadrotor = game("planar_quadrotor")
    with pytest.raises(SolverError, match=r"several coordinates.*--harsh delay saturation backlash encoder noise"):
        make_plant("harsh", quadrotor)
    make_plant("harsh", quadrotor, effects=[name for name in EFFECTS if name != "stiction"])
    with pytest.raises(SolverError, match="add --plant harsh"):
        make_plant("nominal", quadrotor, effects=["noise"])
    pytest.importorskip("mujoco")
    with pytest.raises(SolverError, match=r"no MJCF file for planar_arm2: write one to models/planar_arm2\.xml"):
        make_plant("mujoco", game("planar_arm2"))
    acrobot = game("acrobot")
    make_plant("mujoco", acrobot)
    with pytest.raises(SolverError, match=r"where upper_mass stands in it is not known.*--plant nominal"):
        make_plant("mujoco", acrobot, acrobot.theta * 1.1)
    with pytest.raises(SolverError, match="2 rows for 3 rollouts"):
        make_plant("mujoco", acrobot, acrobot.theta.repeat(2, 1)).begin(torch.zeros(3, 4))
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match="pip install mujoco"):
        make_plant("mujoco", acrobot)


def test_names_of_plants_and_effects(game: Callable[[str], Game]) -> None:
    with pytest.raises(SolverError, match=r"unknown plant 'Harsh'.*harsh"):
        make_plant("Harsh", game("pendulum"))  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="noise is named twice"):
        harshness(["noise=2x", "noise"])
