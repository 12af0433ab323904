"""Every setting of a run does something: it changes what is learned, or it is one of those that must not."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from modelgen.loader import CompiledRobot
from solver.training.session import Session, workers_of
from solver.training.settings import Settings
from solver.value.frozen import FrozenValue
from tests.solver.small_trainings import unjudged

pytestmark = pytest.mark.slow

BASE: dict[str, Any] = {
    "iterations": 2,
    "states": 120,
    "sampling": "domain",
    "epochs": 2,
    "minibatch": 30,
    "step_periods": (2, 1),
    "trace_decay": 0.8,
    "trace_floor": 0.1,
    "members": 2,
    "layers": 2,
    "width": 8,
    "threads": 1,
    "limit_cost": 1.0,
    "reaction_periods": 1.0,
    "drift": False,
    "basin": False,
    "adversaries": {"state": 0.025, "action": 0.1, "observation": 0.025, "parameters": 0.15},
    "modulation": "wiener",
}
CHANGED: dict[str, Any] = {
    "seed": 1,
    "iterations": 3,
    "states": 150,
    "sampling": "mixture",
    "epochs": 3,
    "minibatch": 40,
    "authors": True,
    "learning_rate": 1e-3,
    "limit_cost": 2.0,
    "reaction_periods": 0.0,
    "drift": True,
    "trace_decay": 0.5,
    "trace_floor": 0.5,
    "step_periods": (1,),
    "members": 3,
    "layers": 1,
    "width": 9,
    "input_scale": 1.0,
    "basin": True,
    "adversaries": {"state": 0.5},
    "adversary_ramp": (0.5, 1.0),
    "modulation": "stationary",
}
IDLE: dict[str, Any] = {"convergence": 0.1, "evaluate_every": 2, "episodes": 7, "threads": 2}


@pytest.fixture(scope="module")
def learned(load: Callable[[str], CompiledRobot]) -> Callable[..., torch.Tensor]:
    """learned(setting=value): V at a few states of the Furuta pendulum after two iterations, its rollouts short."""
    robot = copy.copy(load("furuta"))
    robot.metadata = dataclasses.replace(robot.metadata, task=dataclasses.replace(robot.metadata.task, horizon=1.0))
    x = torch.rand(20, 4, generator=torch.Generator().manual_seed(0)) - 0.5

    def of(**changes: Any) -> torch.Tensor:
        settings = Settings(**{**BASE, **changes})
        with unjudged(), workers_of(settings) as workers:
            session = Session(robot, settings)
            list(session.rows(workers))
        return FrozenValue(session.value)(x)[0]

    return of


@pytest.fixture(scope="module")
def usual(learned: Callable[..., torch.Tensor]) -> torch.Tensor:
    return learned()


def test_every_setting_has_a_case_here() -> None:
    assert {entry.name for entry in dataclasses.fields(Settings)} == {*CHANGED, *IDLE, "device"}
    base = vars(Settings(**BASE))
    assert not [name for name, value in (CHANGED | IDLE).items() if value == base[name]]


@pytest.mark.parametrize("name", CHANGED)
def test_a_setting_changes_what_is_learned(
    name: str, learned: Callable[..., torch.Tensor], usual: torch.Tensor
) -> None:
    assert not torch.equal(learned(**{name: CHANGED[name]}), usual)


@pytest.mark.parametrize("name", IDLE)
def test_a_setting_of_evaluations_or_threads_changes_nothing(
    name: str, learned: Callable[..., torch.Tensor], usual: torch.Tensor
) -> None:
    """Two iterations are too few for convergence or a polish."""
    assert torch.equal(learned(**{name: IDLE[name]}), usual)


@pytest.mark.parametrize("name", ["state", "action", "observation", "parameters"])
def test_the_radius_of_an_adversary_changes_what_is_learned(
    name: str, learned: Callable[..., torch.Tensor], usual: torch.Tensor
) -> None:
    assert not torch.equal(learned(adversaries=BASE["adversaries"] | {name: 0.5}), usual)
