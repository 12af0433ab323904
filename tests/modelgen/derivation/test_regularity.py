"""A build refuses a force or cost without a value or a slope at the target, the start or a corner of the domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Rational, exp, sign, sqrt, symbols

from modelgen import LogCos, ModelError, Robot, load
from modelgen.builder import build_artifact, export

S, V = symbols("s v", real=True)  # replaced by the coordinate and its rate


def slider(cost: Any = None, force: Any = 0 * S, target: Any = 0, start: Any = 0) -> Robot:
    robot = Robot("slider")
    s = robot.prismatic("s", limit=2, rate_limit=3)
    mass = robot.parameter("mass", 1, "kg", tolerance=0.5)
    push = robot.input("push", 3, "N")
    robot.point_mass(mass, (s, 0))
    robot.apply(s, push)
    replacements = {S: s, V: s.rate}
    robot.apply(s, force.xreplace(replacements))
    robot.task(
        state_cost=((S - target) ** 2 + V**2 if cost is None else cost).xreplace(replacements),
        action_cost=LogCos(1),
        target=dict(s=target),
        start=dict(s=(start, 0.1)),
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    return robot


@pytest.mark.parametrize(
    ("words", "case"),
    [
        (
            "`s..2 . s_rate..2` .* 0 at s = 0, s_rate = 0",
            dict(cost=sqrt(S**2 + V**2)),
        ),
        (
            "`s - 0.5` .* 0 at s = 0.5",
            dict(force=1 / (S - 0.5), start=0.5),
        ),
        ("`s - 1` .* 0 at s = 1", dict(force=1 / (S - 1), target=1)),
        ("`s..2 . s_rate..2`", dict(force=-V * sqrt(S**2 + V**2))),
        ("`4 - s..2` .* 0 at s = ", dict(force=sqrt(4 - S**2))),
    ],
)
@pytest.mark.slow
def test_an_expression_without_a_slope_is_refused(words: str, case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        build_artifact(slider(**case), tmp_path)
    assert caught.value.place
    assert not list(tmp_path.glob("*/*"))
    with pytest.raises(ModelError, match=words):
        export(slider(**case), "c")


def test_a_slope_that_overflows_in_a_corner_names_its_line(tmp_path: Path) -> None:
    """At 2 m the force is 3e307 N, and its slope exceeds double precision."""
    line = Path(__file__).read_text().splitlines().index("    robot.apply(s, force.xreplace(replacements))") + 1
    with pytest.raises(ModelError, match=rf"test_regularity.py:{line}: .* corner"):
        build_artifact(slider(force=exp(354 * S)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        dict(cost=sqrt(S**2 + V**2 + 1e-6) - 1e-3),
        dict(cost=(S**2 + V**2) ** Rational(3, 2)),
        dict(cost=sqrt(S**2 + V**2) ** 3),
        dict(force=-sign(V) * abs(V) ** Rational(3, 2)),
    ],
)
def test_an_expression_with_a_slope_of_zero_is_built(case: dict[str, Any], tmp_path: Path) -> None:
    """r**(3/2) is flat at 0. The kernels write it with a square root, which is not."""
    build_artifact(slider(**case), tmp_path)
    robot = load("slider", backend="casadi", directory=tmp_path)
    at_rest = np.zeros((1, 2))
    slopes = [np.asarray(slope).ravel() for slope in robot.jacobians(at_rest)]
    assert np.isfinite(np.concatenate(slopes)).all()
    np.testing.assert_array_equal(robot.state_cost(at_rest)[1], at_rest)
