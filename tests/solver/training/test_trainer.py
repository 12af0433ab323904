"""One iteration: targets, adversaries, divergence, backends; and one policy that swings up."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import DivergenceError, SolverError
from solver.fvi.targets import value_targets
from solver.policy import load_policy
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.metrics import read_metrics
from solver.streams import Purpose, stream
from solver.training import kind as training
from solver.training import trainer as trainer_module
from solver.training.divergence import worst_value
from solver.training.run import load_run_checkpoint
from solver.training.settings import Settings
from solver.training.trainer import Trainer, workers_of
from tests.solver.small_trainings import start, tensors

TrainTiny = Callable[..., None]
TIMES = {"seconds_targets", "seconds_fit"}


def test_rfvi_with_zero_radii_is_cfvi(train_tiny: TrainTiny, tmp_path: Path) -> None:
    zero = dict.fromkeys(("alpha_state", "alpha_action", "alpha_observation", "alpha_parameters"), 0.0)
    train_tiny(tmp_path / "rfvi", algorithm="rfvi", **zero)
    train_tiny(tmp_path / "cfvi", algorithm="cfvi")
    weights = [list(tensors(load_run_checkpoint(tmp_path / name))) for name in ("rfvi", "cfvi")]
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_each_adversary_lowers_the_targets(load: Callable[[str], CompiledRobot], tiny: Callable[..., Settings]) -> None:
    names = ("alpha_state", "alpha_action", "alpha_observation", "alpha_parameters")
    zero = dict.fromkeys(names, 0.0)

    def target_mean(**radii: float) -> float:
        settings = tiny(**zero | radii, states=4000, chunk=2000, iterations=1, modulation="stationary")
        trainer = Trainer(load("furuta"), settings)
        with workers_of(settings) as workers:
            return trainer.step(workers)["target_mean"]

    nominal = target_mean()
    for name, radius in zip(names, (0.5, 2.0, 0.1, 0.3), strict=True):
        assert target_mean(**{name: radius}) < nominal, name


def test_relative_values_take_the_best_target_off(
    load: Callable[[str], CompiledRobot], tiny: Callable[..., Settings]
) -> None:
    def step(relative: bool, algorithm: str = "rfvi") -> dict[str, float]:
        settings = tiny(
            states=2000, chunk=1000, iterations=1, relative_values=relative, algorithm=algorithm, alpha_state=2.0
        )
        trainer = Trainer(load("pendulum"), settings)
        with workers_of(settings) as workers:
            row = trainer.step(workers)
        return {name: value for name, value in row.items() if name not in TIMES}

    whole, relative = step(False), step(True)
    assert relative["target_best"] < -0.01
    assert whole["target_best"] == 0.0
    for name in ("target_mean", "target_worst"):
        assert relative[name] == pytest.approx(whole[name] - relative["target_best"], rel=1e-5)
    assert step(True, "cfvi") == step(False, "cfvi")


def test_streams_differ_by_seed_iteration_and_purpose() -> None:
    seeds = {stream(s, k, p) for s in range(5) for k in range(20) for p in Purpose}
    assert len(seeds) == 5 * 20 * len(Purpose)
    assert all(0 <= seed < 2**62 for seed in seeds)


@pytest.mark.parametrize("rate", [1e30, 1e3])
def test_absurd_learning_rate_keeps_the_last_good_checkpoint(
    train_tiny: TrainTiny, tmp_path: Path, rate: float
) -> None:
    with pytest.raises(DivergenceError, match=r"iteration 0: .*learning.rate"):
        train_tiny(tmp_path, learning_rate=rate, final_learning_rate=rate)
    checkpoint = load_run_checkpoint(tmp_path)
    assert checkpoint["iteration"] == 0
    assert all(bool(torch.isfinite(t).all()) for t in tensors(checkpoint))
    assert load_policy(tmp_path)([[0.1, 0.0]]).shape == (1, 1)


@pytest.mark.parametrize(("level", "message"), [(math.nan, "not finite"), (-1e9, "exploded")])
def test_bad_targets_stop_at_their_iteration(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: float, message: str
) -> None:
    calls: list[None] = []

    def spoilt(*arguments: Any) -> Tensor:
        calls.append(None)
        return value_targets(*arguments) if len(calls) < 3 else torch.full((192,), level)

    monkeypatch.setattr(trainer_module, "value_targets", spoilt)
    with pytest.raises(DivergenceError, match=rf"iteration 2: .*{message}"):
        train_tiny(tmp_path)
    assert load_run_checkpoint(tmp_path)["iteration"] == 2
    assert len(read_metrics(tmp_path)) == 2


def test_worst_value_bounds_the_cost_of_staying_at_the_corner(load: Callable[[str], CompiledRobot]) -> None:
    problem = Problem(load("pendulum"))
    corner = math.pi**2 + 0.1 * 8.0**2
    rho = -math.log(0.65) / 5.0
    assert worst_value(problem, Settings()) < -corner / rho


def test_cuda_without_a_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SolverError, match="--device cpu"):
        load_robot("pendulum", "cuda", None)


def test_only_torch_computes_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert load_robot("pendulum", "cuda", None).backend == "torch"
    with pytest.raises(SolverError, match=r"backend numba computes on the CPU only.*--backend torch"):
        load_robot("pendulum", "cuda", None, "numba")


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_backends_train_the_same_policy_but_for_rounding(
    tiny: Callable[..., Settings], short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """The squared loss passes every difference of a target on to the weights; that of power 1 only its sign."""
    used: list[str] = []

    def recorded(*arguments: Any) -> CompiledRobot:
        robot = load_robot(*arguments)
        used.append(robot.backend)
        return robot

    monkeypatch.setattr(training, "load_robot", recorded)
    for name in ("auto", backend):
        start(
            "cartpole", "fast", tiny(backend=name, loss_power=2.0, iterations=2), tmp_path / name, short, lambda _: None
        )
    assert used == ["llvm", backend]
    usual, other = (load_run_checkpoint(tmp_path / name)["ensemble"] for name in ("auto", backend))
    for name, weights in usual.items():
        torch.testing.assert_close(other[name], weights, rtol=1e-4, atol=1e-6, equal_nan=True, msg=name)
    assert any(not torch.equal(other[name].nan_to_num(), weights.nan_to_num()) for name, weights in usual.items())


@pytest.mark.parametrize("name", ["furuta", "double_pendulum"])
def test_robots_with_four_states_train(tiny: Callable[..., Settings], tmp_path: Path, name: str) -> None:
    """An arm that does not wrap; two inputs and two continuous joints."""
    start(name, "fast", tiny(iterations=2, episodes=2), tmp_path, None, lambda _: None)
    inputs = 2 if name == "double_pendulum" else 1
    assert load_policy(tmp_path)(torch.zeros(3, 4).numpy()).shape == (3, inputs)
