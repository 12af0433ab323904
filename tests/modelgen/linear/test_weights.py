"""The weights of a task near its target, compared with differences of its costs and closed forms."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from modelgen import ActionCost, load
from modelgen.artifact.folder import SHIPPED
from modelgen.builder import build_artifact
from modelgen.linear import weights
from tests.modelgen.support.action_costs import LIMITS, REFERENCES, WEIGHTS, name, pair


@pytest.mark.parametrize("kind", REFERENCES)
@pytest.mark.slow
def test_input_weights_are_half_the_curvature_of_the_action_cost(kind: type[ActionCost], tmp_path: Path) -> None:
    build_artifact(pair(kind), tmp_path)
    R = weights(load(f"pair_{name(kind)}", directory=tmp_path))[1]
    step = 1e-4
    second = [2 * REFERENCES[kind](step, *pair_of) / step**2 for pair_of in zip(LIMITS, WEIGHTS, strict=True)]
    np.testing.assert_allclose(R, np.diag(second) / 2, rtol=1e-6, atol=1e-12)


def test_weights_of_the_pendulum_are_those_by_hand() -> None:
    """pi^2 sin^2(angle/2) + rate^2/10 is pi^2/4 angle^2 + rate^2/10 near 0; log-cos as in its doc string."""
    Q, R = weights(load("pendulum", backend="casadi", directory=SHIPPED))
    np.testing.assert_allclose(Q, np.diag([math.pi**2 / 4, 0.1]), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(R, [[0.5 * 2.5**2 / 2.501]], rtol=1e-9)


def test_a_state_without_cost_has_exactly_no_weight() -> None:
    """The angle of the reaction wheel. Its rate has the weight 2e-6, which is more than the noise of differences."""
    robot = load("reaction_wheel", backend="casadi", directory=SHIPPED)
    Q = weights(robot)[0]
    wheel, rate = (robot.state_names.index(state) for state in ("wheel", "wheel_rate"))
    assert np.abs(Q[wheel]).max() < 1e-12
    assert Q[rate, rate] == pytest.approx(2e-6, rel=1e-4)
