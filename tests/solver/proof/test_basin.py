"""Proofs of basins: what is proven holds in rollouts, and what is false is not proven."""

from __future__ import annotations

import copy
import json
from functools import cache

import numpy as np
import pytest

from solver.cli import main
from solver.errors import SolverError
from solver.proof.balls import Balls
from solver.proof.basin import Ball, BasinSearch, prove_basin
from solver.proof.held_loop import HeldLoop
from solver.training.solution import load_solution
from tests.solver.proof.test_held_loop import after, commanded

ROBUST = 0.05


@cache
def search() -> tuple[BasinSearch, HeldLoop]:
    loop = HeldLoop(load_solution("pendulum-rfvi"))
    return BasinSearch(loop, 1e-5 * loop.limit), loop


@cache
def ball(spread: float) -> Ball | None:
    searching, loop = copy.copy(search()[0]), search()[1]
    searching.loop = loop.with_parameters(Balls(loop.nominal.middle, spread * np.abs(loop.nominal.middle)))
    return searching.prove(0.5 * searching.widest, seconds=60.0)


def test_rollouts_of_wrong_robots_shrink_as_proven() -> None:
    """SciPy's integrator, the shipped policy in float32, and parameters at the corners of their box."""
    proven, loop, solution = ball(ROBUST), search()[1], load_solution("pendulum-rfvi")
    assert proven is not None
    robot, generator = solution.problem.robot.with_kernels(), np.random.default_rng(0)
    root = np.linalg.cholesky(proven.shape)
    y = generator.normal(size=(20, 2))
    e = np.linalg.solve(root.T, (y / np.linalg.norm(y, axis=1)[:, None]).T).T
    theta = loop.nominal.middle * (1 + ROBUST * generator.choice([-1, 1], (20, 2)))
    for _ in range(30):
        size = np.linalg.norm(e @ root, axis=1)
        u = commanded(solution, loop.target + e)
        e = np.array([after(robot, loop.target + e[k], u[k], theta[k], loop.step) for k in range(20)]) - loop.target
        outside = size > proven.core
        assert (np.linalg.norm(e @ root, axis=1)[outside] <= (1 - proven.rate) * size[outside]).all()


def test_a_set_in_which_a_trajectory_grows_is_not_proven() -> None:
    """Gravity is stronger than the policy expects: the pendulum falls."""
    searching, loop = copy.copy(search()[0]), search()[1]
    names = load_solution("pendulum-rfvi").problem.robot.parameter_names
    heavy = loop.nominal.middle * np.where(np.array(names) == "mass", 4.0, 1.0)
    searching.loop = searching.at_centre = loop.with_parameters(Balls.exact(heavy))
    assert searching.prove(0.5 * searching.widest, seconds=20.0) is None


def test_one_wrong_parameter_at_the_edge_of_a_wide_box_is_not_proven() -> None:
    assert ball(0.5) is None


@pytest.mark.parametrize("input_error", [0.3, 1.0])
def test_an_input_error_that_pushes_out_of_the_core_is_not_proven(input_error: float) -> None:
    searching = copy.copy(search()[0])
    searching.input_error = input_error * search()[1].limit
    assert searching.prove(0.5 * searching.widest, seconds=20.0) is None


def test_the_command_prints_what_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "pendulum-rfvi", "--spread", "0", "--seconds", "5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["holds"]
    assert result["nominal"]["share"] > 0.5
    assert result["nominal"]["half_widths"][0] > 0.5  # rad


def test_a_basin_smaller_than_a_period_is_refused() -> None:
    with pytest.raises(SolverError, match="outside it"):
        prove_basin("acrobot-cfvi")
