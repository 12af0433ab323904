"""One value iteration: targets, adversaries, divergence; and the loop without any observer."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import DivergenceError, SolverError
from solver.fvi import algorithm
from solver.fvi.algorithm import value_iteration
from solver.fvi.fit import Fitter
from solver.fvi.states import MIXTURES, StateSource
from solver.fvi.targets import value_targets
from solver.game import Game
from solver.policy import load_policy
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.metrics import read_metrics
from solver.streams import Purpose, stream
from solver.training.schedule import Schedule
from solver.training.session import Session, lowest_value, workers_of
from solver.training.settings import Settings
from solver.training.solution import load_run_checkpoint, make_ensemble, make_optimiser
from tests.solver.small_trainings import tensors, unjudged

TrainTiny = Callable[..., None]
Load = Callable[[str], CompiledRobot]


@pytest.mark.slow
def test_the_loop_alone_trains_what_a_session_trains(load: Load, tiny: Callable[..., Settings]) -> None:
    """Without convergence and polish no observer has an effect on the weights."""
    settings = tiny(iterations=3, sampling="mixture")
    with unjudged(), workers_of(settings) as workers:
        session = Session(load("pendulum"), settings)
        list(session.rows(workers))
    game = Game(Problem(load("pendulum"), scheme="euler"))
    value = make_ensemble(load("pendulum"), settings)
    states, fitter = (
        StateSource(game.problem, MIXTURES["mixture"]),
        Fitter(game.problem, partial(make_optimiser, settings=settings)),
    )
    with ThreadPoolExecutor(1) as workers:
        iterations = list(value_iteration(game, value, states, fitter, Schedule(settings), workers))
    assert [iteration.step.number for iteration in iterations] == [0, 1, 2]
    for name, weights in session.value.state_dict().items():
        assert torch.equal(value.state_dict()[name], weights), name


@pytest.mark.slow
def test_rfvi_with_zero_radii_is_cfvi(train_tiny: TrainTiny, tmp_path: Path) -> None:
    zero = dict.fromkeys(("state", "action", "observation", "parameters"), 0.0)
    train_tiny(tmp_path / "rfvi", adversaries=zero)
    train_tiny(tmp_path / "cfvi", algorithm="cfvi")
    weights = [list(tensors(load_run_checkpoint(tmp_path / name))) for name in ("rfvi", "cfvi")]
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.slow
def test_an_adversary_lowers_the_targets(load: Load, tiny: Callable[..., Settings]) -> None:
    def target_mean(adversaries: dict[str, float]) -> float:
        settings = tiny(adversaries=adversaries, states=4000, iterations=1, step_periods=(1,), modulation="stationary")
        with unjudged(), workers_of(settings) as workers:
            (row,) = Session(load("furuta"), settings).rows(workers)
        return row["target_mean"]

    nominal = target_mean({})
    for name, radius in (("state", 0.5), ("action", 2.0), ("observation", 0.1), ("parameters", 0.3)):
        assert target_mean({name: radius}) < nominal, name


def test_streams_differ_by_seed_iteration_and_purpose() -> None:
    seeds = {stream(s, k, p) for s in range(5) for k in range(20) for p in Purpose}
    assert len(seeds) == 5 * 20 * len(Purpose)
    assert all(0 <= seed < 2**62 for seed in seeds)


@pytest.mark.parametrize("rate", [1e30, 1e3])
def test_absurd_learning_rate_keeps_the_last_good_checkpoint(
    train_tiny: TrainTiny, tmp_path: Path, rate: float
) -> None:
    with pytest.raises(DivergenceError, match=r"iteration 0: .*learning.rate"):
        train_tiny(tmp_path, learning_rate=rate)
    checkpoint = load_run_checkpoint(tmp_path)
    assert checkpoint["iteration"] == 0
    assert all(bool(torch.isfinite(t).all()) for t in tensors(checkpoint))
    assert load_policy(tmp_path)([[0.1, 0.0]]).shape == (1, 1)


@pytest.mark.parametrize("level", [math.nan, -1e9])
def test_bad_targets_stop_at_their_iteration(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: float
) -> None:
    calls: list[None] = []

    def spoilt(*arguments: Any) -> Tensor:
        calls.append(None)
        return value_targets(*arguments) if len(calls) < 3 else torch.full((192,), level)

    monkeypatch.setattr(algorithm, "value_targets", spoilt)
    with pytest.raises(DivergenceError, match=r"iteration 2: .*(not finite|within the look-ahead, .*control_rate)"):
        train_tiny(tmp_path)
    assert load_run_checkpoint(tmp_path)["iteration"] == 2
    assert len(read_metrics(tmp_path)) == 2


def test_a_buffer_of_another_robot_is_refused(load: Load, tiny: Callable[..., Settings]) -> None:
    with unjudged():
        content = Session(load("pendulum"), tiny()).checkpoint() | {"visited": torch.zeros(5, 4)}
        with pytest.raises(SolverError, match=r"buffer .*\(5, 4\).*\(N, 2\)"):
            Session(load("pendulum"), tiny(), content)


def test_the_lowest_value_bounds_the_cost_of_staying_at_the_corner(load: Load) -> None:
    corner = math.pi**2 + 0.1 * 8.0**2
    rho = -math.log(0.65) / 5.0
    assert lowest_value(Game(Problem(load("pendulum")))) < -corner / rho


def test_cuda_without_a_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SolverError, match="device cpu"):
        load_robot("pendulum", "cuda", None)


def test_only_torch_computes_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert load_robot("pendulum", "cuda", None).backend == "torch"
