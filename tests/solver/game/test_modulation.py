"""The radii of the adversaries along a rollout, against the variance of a random walk."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from solver.game.adversaries.action import ActionAdversary
from solver.game.adversaries.observation import ObservationAdversary
from solver.game.adversaries.parameters import ParameterAdversary
from solver.game.adversaries.state import StateAdversary
from solver.game.modulation import Modulation

STATE, ACTION, OBSERVATION = StateAdversary(0.03), ActionAdversary(0.2), ObservationAdversary(0.04)


def test_wiener_radii_have_the_variance_of_a_random_walk() -> None:
    """E[radius^2] is d (alpha/1.96)^2 t for action and observation, d (alpha/1.96)^2 h at each step for the state."""
    n, m, h, size = 4, 2, 0.032, 40000
    modulation = Modulation("wiener", h, torch.Generator().manual_seed(0))
    for step in range(1, 6):
        for adversary, d, seconds in ((STATE, n, h), (ACTION, m, h * step), (OBSERVATION, n, h * step)):
            radius = modulation.radius(adversary, torch.Size((size, d)))
            assert isinstance(radius, Tensor)
            assert radius.shape == (size, 1)
            expected = d * (adversary.alpha / 1.96) ** 2 * seconds
            assert float((radius**2).mean()) == pytest.approx(expected, rel=0.04)


def test_wiener_radii_of_one_sample_are_correlated_in_time_except_the_states() -> None:
    modulation = Modulation("wiener", 0.1, torch.Generator().manual_seed(0))

    def correlation(adversary: StateAdversary | ActionAdversary, d: int) -> float:
        walk = [modulation.radius(adversary, torch.Size((20000, d))) for _ in range(4)]
        return float(torch.corrcoef(torch.cat([torch.as_tensor(radius) for radius in walk], 1).T)[2, 3])

    assert abs(correlation(STATE, 4)) < 0.05
    assert correlation(ACTION, 2) > 0.5


@pytest.mark.parametrize("kind", ["stationary", "wiener"])
def test_the_box_of_the_parameters_is_never_modulated(kind: str) -> None:
    assert Modulation(kind, 0.1, torch.Generator()).radius(ParameterAdversary(0.15), torch.Size((5, 3))) == 0.15


def test_stationary_radii_are_fixed_and_the_state_moves_at_a_rate() -> None:
    modulation = Modulation("stationary", 0.1, torch.Generator())
    for _ in range(3):
        assert modulation.radius(STATE, torch.Size((5, 2))) == pytest.approx(0.1 * STATE.alpha)
        assert modulation.radius(ACTION, torch.Size((5, 1))) == ACTION.alpha
        assert modulation.radius(OBSERVATION, torch.Size((5, 2))) == OBSERVATION.alpha
