"""Every setting of a run does something: it changes what is learned, or it is one of those that must not."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from modelgen.loader import CompiledRobot
from solver.training.settings import Settings
from solver.training.trainer import Trainer, workers_of
from solver.value.frozen import FrozenValue

BASE: dict[str, Any] = {
    "iterations": 2,
    "states": 120,
    "start_share": 0.2,
    "target_share": 0.2,
    "epochs": 2,
    "minibatch": 30,
    "step_periods": (2, 1),
    "trace_decay": 0.8,
    "trace_floor": 0.1,
    "members": 2,
    "layers": 2,
    "width": 8,
    "threads": 1,
    "chunk": 50,
    "limit_cost": 1.0,
    "loss_power": 2.0,  # of 1 the gradients are signs, and a small change of the targets leaves the signs
}
ON_POLICY: dict[str, Any] = {"on_policy_share": 0.2, "rollouts": 2}
CHANGED: dict[str, Any] = {
    "seed": 1,
    "iterations": 3,
    "states": 150,
    "start_share": 0.1,
    "start_spread": 0.3,
    "target_share": 0.1,
    "target_spread": 0.5,
    "epochs": 3,
    "minibatch": 40,
    "optimiser": "soap",
    "learning_rate": 1e-3,
    "final_learning_rate": 1e-3,
    "weight_decay": 0.1,
    "amsgrad": True,
    "keep_optimiser": False,
    "loss_power": 1.0,
    "loss_scale": 0.5,
    "limit_cost": 2.0,
    "reaction_periods": 1.0,
    "trace_decay": 0.5,
    "trace_floor": 0.5,
    "step_periods": (1,),
    "members": 3,
    "layers": 1,
    "width": 9,
    "position_scale": 1.0,
    "rate_scale": 1.0,
    "alpha_state": 0.5,
    "alpha_action": 0.5,
    "alpha_observation": 0.5,
    "alpha_parameters": 0.5,
    "adversary_ramp": (0.5, 1.0),
    "modulation": "stationary",
    "relative_values": True,
    "integrator": "euler",
    "chunk": 60,
}
CHANGED_ON_POLICY: dict[str, Any] = {
    "on_policy_share": 0.1,
    "on_policy_spread": 0.3,
    "rollouts": 3,
    "buffer": 500,
    "exploration_noise": 0.9,
    "adversarial_share": 0.5,
}
IDLE: dict[str, Any] = {"convergence": 0.1, "polish": 3, "evaluate_every": 2, "episodes": 7, "threads": 2}


@pytest.fixture(scope="module")
def learned(load: Callable[[str], CompiledRobot]) -> Callable[..., torch.Tensor]:
    """learned(setting=value): V at a few states of the Furuta pendulum after two iterations, its rollouts short."""
    robot = copy.copy(load("furuta"))
    robot.metadata = dataclasses.replace(robot.metadata, task=dataclasses.replace(robot.metadata.task, horizon=1.0))
    x = torch.rand(20, 4, generator=torch.Generator().manual_seed(0)) - 0.5

    def of(**changes: Any) -> torch.Tensor:
        settings = Settings(**{**BASE, **changes})
        trainer = Trainer(robot, settings)
        with workers_of(settings) as workers:
            for _ in range(settings.iterations):
                trainer.step(workers)
        return FrozenValue(trainer.ensemble)(x)[0]

    return of


@pytest.fixture(scope="module")
def usual(learned: Callable[..., torch.Tensor]) -> torch.Tensor:
    return learned()


def test_none_is_left_out() -> None:
    assert {entry.name for entry in dataclasses.fields(Settings)} == {
        *CHANGED,
        *CHANGED_ON_POLICY,
        *IDLE,
        "basin",
        "metric",
        "device",
        "backend",  # tests/solver/problem/test_robots.py and test_trainer.py
    }
    base = vars(Settings(**BASE, **ON_POLICY))
    assert not [name for name, value in (CHANGED | CHANGED_ON_POLICY | IDLE).items() if value == base[name]]


@pytest.mark.parametrize("name", CHANGED)
def test_it_changes_what_is_learned(name: str, learned: Callable[..., torch.Tensor], usual: torch.Tensor) -> None:
    assert not torch.equal(learned(**{name: CHANGED[name]}), usual)


def test_so_do_those_of_the_own_rollouts(learned: Callable[..., torch.Tensor]) -> None:
    before = learned(**ON_POLICY)
    for name, value in CHANGED_ON_POLICY.items():
        assert not torch.equal(learned(**{**ON_POLICY, name: value}), before), name


def test_so_do_the_basin_and_its_metric(learned: Callable[..., torch.Tensor]) -> None:
    """Of inputs that are held: under the closed form the Furuta pendulum chatters, and has none."""
    none, basin = learned(reaction_periods=1.0), learned(basin=True, reaction_periods=1.0)
    assert not torch.equal(basin, none)
    assert not torch.equal(learned(basin=True, metric=True, reaction_periods=1.0), basin)
    assert torch.equal(learned(metric=True, reaction_periods=1.0), none)  # without a basin there is none


@pytest.mark.parametrize("name", IDLE)
def test_it_does_not(name: str, learned: Callable[..., torch.Tensor], usual: torch.Tensor) -> None:
    assert torch.equal(learned(**{name: IDLE[name]}), usual)
