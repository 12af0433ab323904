"""Proofs of basins: what is proven holds in rollouts, and what is false is not proven."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelgen.arrays import Array
from solver.cli import main
from solver.errors import SolverError
from solver.proof.basin_search import Ball, BasinSearch
from solver.proof.held_loop import HeldLoop
from solver.training.solution import load_solution
from tests.solver.proof.test_held_loop import after, commanded


@cache
def search(name: str = "pendulum-rfvi") -> BasinSearch:
    loop = HeldLoop(load_solution(name))
    return BasinSearch(loop, 1e-5 * loop.limit)


@cache
def ball(spread: float, name: str = "pendulum-rfvi") -> Ball | None:
    searching = search(name)
    return searching.prove(0.4 * searching.widest, spread * np.abs(searching.loop.nominal), seconds=30.0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spread"), [("pendulum-rfvi", 0.05), ("planar_quadrotor-rfvi", 0.0)])
def test_rollouts_of_wrong_robots_shrink_as_proven(name: str, spread: float) -> None:
    """SciPy's integrator, the shipped policy in float32, and parameters at the corners of their box."""
    proven, loop, solution = ball(spread, name), search(name).loop, load_solution(name)
    assert proven is not None
    robot, generator = solution.problem.robot.with_kernels(), np.random.default_rng(0)
    root = np.linalg.cholesky(proven.shape)
    y = generator.normal(size=(20, len(loop.target)))
    e = np.linalg.solve(root.T, (y / np.linalg.norm(y, axis=1)[:, None]).T).T
    theta = loop.nominal * (1 + spread * generator.choice([-1, 1], (20, len(loop.nominal))))
    for _ in range(30):
        size = np.linalg.norm(e @ root, axis=1)
        u = commanded(solution, loop.target + e)
        e = np.array([after(robot, loop.target + e[k], u[k], theta[k], loop.step) for k in range(20)]) - loop.target
        outside = size > proven.core
        assert (np.linalg.norm(e @ root, axis=1)[outside] <= (1 - proven.rate) * size[outside]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "radius"), [("planar_quadrotor-rfvi", 0.4), ("cartpole-rfvi", 0.1)])
def test_the_number_of_cells_is_known_before_the_proof(name: str, radius: float) -> None:
    searching = search(name)
    searching.shape(0.1)
    size, still = radius * searching.widest, np.zeros_like(searching.loop.nominal)
    proven = searching.prove(size, still, seconds=60.0)
    assert proven is not None
    assert searching.estimated(size, still, np.inf) == pytest.approx(len(proven.tree), rel=0.3)
    searching.shape(0.0)


@pytest.mark.slow
def test_a_set_in_which_a_trajectory_grows_is_not_proven() -> None:
    """Gravity is stronger than the policy expects: the pendulum falls."""
    searching = search()
    names = load_solution("pendulum-rfvi").problem.robot.parameter_names
    spread = np.where(np.array(names) == "mass", 3.0, 0.0) * searching.loop.nominal
    assert searching.prove(0.5 * searching.widest, spread, seconds=1.0) is None


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_a_flipped_sign_in_a_corner_is_not_proven(seed: int) -> None:
    """The policy pushes the wrong way in one small set of w; its cells do not shrink, whichever the corner is."""
    searching = copy.copy(search())
    loop = searching.loop = copy.copy(searching.loop)
    radius = 0.6 * searching.widest
    most = radius * float(np.linalg.norm(loop.argument @ searching.back))
    corner = np.random.default_rng(seed).uniform(0.2, 0.9) * most
    chord = loop._chord

    def flipped(low: Array, high: Array) -> tuple[Array, Array]:
        least, largest = chord(low, high)
        wrong = (high >= corner) & (low <= 1.1 * corner)
        return np.where(wrong, -largest, least), largest

    loop._chord = flipped  # type: ignore[method-assign]
    assert searching.prove(radius, 0.0 * loop.nominal, seconds=0.5) is None


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_limit_cycle_around_the_target_is_not_proven(share: float) -> None:
    """The input has a dead zone, so that the pendulum falls out of it and is pushed back."""
    searching = copy.copy(search())
    loop = searching.loop = copy.copy(searching.loop)
    radius, chord = 0.6 * searching.widest, loop._chord
    zone = share * radius * float(np.linalg.norm(loop.argument @ searching.back))

    def dead(low: Array, high: Array) -> tuple[Array, Array]:
        least, largest = chord(low, high)
        return np.where((np.minimum(abs(low), abs(high)) <= zone) | (low * high <= 0), 0.0, least), largest

    loop._chord = dead  # type: ignore[method-assign]
    assert searching.prove(radius, 0.0 * loop.nominal, seconds=0.5) is None


@pytest.mark.slow
def test_one_wrong_parameter_at_the_edge_of_a_wide_box_is_not_proven() -> None:
    assert search().prove(0.6 * search().widest, 0.5 * search().loop.nominal, seconds=1.0) is None


@pytest.mark.slow
@pytest.mark.parametrize("input_error", [0.3, 1.0])
def test_an_input_error_that_pushes_out_of_the_core_is_not_proven(input_error: float) -> None:
    searching = copy.copy(search())
    searching.input_error = input_error * searching.loop.limit
    assert searching.prove(0.5 * searching.widest, 0.0 * searching.loop.nominal, seconds=1.0) is None


@pytest.mark.slow
def test_a_ball_smaller_than_its_disturbance_is_not_proven() -> None:
    searching = search()
    assert searching.prove(1e-9 * searching.widest, 0.0 * searching.loop.nominal, seconds=1.0) is None


@pytest.mark.slow
def test_the_command_prints_what_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "pendulum-rfvi", "--spread", "0", "--seconds", "5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["holds"]
    assert result["nominal"]["share"] > 0.99
    assert result["nominal"]["half_widths"][0] > 0.5  # rad


@pytest.mark.slow
def test_a_free_wheel_has_a_ball_of_the_other_states() -> None:
    searching = search("reaction_wheel-rfvi")
    assert len(searching.P) == 3
    assert searching.sampled(0.0 * searching.loop.nominal) > 0


@pytest.mark.slow
def test_the_linearised_loop_is_that_of_the_shipped_policy() -> None:
    """Central differences of SciPy's integrator and the policy in float32."""
    searching, solution = search("double_pendulum-rfvi"), load_solution("double_pendulum-rfvi")
    loop, robot = searching.loop, solution.problem.robot.with_kernels()
    step = 1e-2 * np.sqrt(loop.level / np.diag(loop.cost))
    e = np.vstack([np.diag(step), -np.diag(step)])
    u = commanded(solution, loop.target + e)
    ends = [after(robot, loop.target + e[k], u[k], loop.nominal, loop.step) for k in range(8)]
    slopes = (np.array(ends[:4]) - np.array(ends[4:])).T / (2 * step)
    assert np.abs(slopes - searching.linear).max() < 0.02 * np.abs(slopes - np.eye(4)).max()


def test_a_basin_that_does_not_reach_the_next_period_is_refused() -> None:
    solution = load_solution("pendulum-rfvi")
    loop = HeldLoop(solution)
    loop.level = 1e-6
    with pytest.raises(SolverError, match="outside it"):
        BasinSearch(loop, 1e-5 * loop.limit)


def test_a_policy_that_counts_on_the_drift_is_refused() -> None:
    solution = load_solution("pendulum-rfvi")
    drifting = replace(solution.run.settings, drift=True)
    with pytest.raises(SolverError, match="counts on the drift"):
        HeldLoop(replace(solution, run=replace(solution.run, settings=drifting)))


def test_a_ball_is_json_where_nothing_depends_on_a_state() -> None:
    shape = np.diag([4.0, 0.0])
    ball = Ball(shape, 0.1, 0.0, 0.5, 1, 0.0, np.array([[0.5], [0.0]]), np.array([[1.0]]), [-1])
    assert json.loads(json.dumps(ball.to_json(), allow_nan=False))["half_widths"] == [0.5, None]
