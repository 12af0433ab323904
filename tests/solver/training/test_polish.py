"""When V is polished, and how: the measure of its roughness, the states and passes, and the place in the schedule."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.fvi.algorithm import Iteration
from solver.fvi.states import StateSource
from solver.plants.outcome import rollouts, sample_starts, until_rest, without_input
from solver.problem import Problem
from solver.runs.metrics import read_metrics
from solver.training import selection as selection_module
from solver.training.lifecycle import resume
from solver.training.selection import Best, Score, Selection, value_mismatch
from solver.training.session import Session
from solver.training.settings import Settings
from solver.training.solution import load_run_checkpoint
from tests.solver.small_trainings import tensors, unjudged

TrainTiny = Callable[..., None]
NOMINAL = {"iterations": 4, "step_periods": (1,), "convergence": 1e3}
ROBUST = {"iterations": 6, "step_periods": (1,), "convergence": 1e3, "adversary_ramp": (0.5, 1.0)}


@pytest.mark.slow
def test_mismatch_is_what_v_errs_by_as_a_share_of_the_cost(load: Callable[[str], CompiledRobot]) -> None:
    """Against a loop in NumPy: V is this loop's own sum and a constant, which the end of the rollout discounts."""
    problem = Problem(load("pendulum"))
    starts = sample_starts(problem, 3, 1)
    result = rollouts(problem, without_input(problem), starts)
    step, rho, off = problem.control_step, problem.discount_rate, 0.7
    states, inputs = result.x.numpy().astype(float), result.u.numpy().astype(float)
    paid = np.zeros(3)
    for k in reversed(range(len(inputs))):
        state_cost = problem.state_cost(torch.tensor(states[k], dtype=torch.float32)).numpy()
        action_cost = problem.action_cost.cost(torch.tensor(inputs[k], dtype=torch.float32)).numpy()
        paid = -step * (state_cost + action_cost) + math.exp(-rho * step) * paid
    begun = {tuple(x): float(value) for x, value in zip(states[0], paid, strict=True)}

    def value(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is paid from the starts, 0 elsewhere, and `off` below it everywhere."""
        known = [begun.get(tuple(row.tolist()), 0.0) - off for row in x]
        return torch.tensor(known), torch.zeros_like(x)

    end = math.exp(-rho * step * len(inputs))
    found = value_mismatch(problem, value, starts, until_rest(problem, without_input(problem), starts))
    cost = -paid.mean() + off * end  # that of the rollouts, and V at their end
    assert found == pytest.approx(off * (1.0 - end) / cost, rel=1e-3)


def test_mismatch_of_a_policy_that_pays_nothing_is_a_number(load: Callable[[str], CompiledRobot]) -> None:
    problem = Problem(load("pendulum"))
    starts = problem.target.expand(3, -1)
    result = until_rest(problem, without_input(problem), starts)
    assert value_mismatch(problem, lambda x: (x[:, 0] * 0.0, x), starts, result) == 0.0


def rough(monkeypatch: pytest.MonkeyPatch, mismatch: list[float], solved: float = 1.0) -> list[float]:
    """Solved tasks, and evaluations that measure these mismatches, the last again and again. Returns the list to which
    every drawing of states appends its size, as a multiple of the setting."""
    left, sizes = list(mismatch), list[float]()
    real_draw, real_judge = vars(StateSource)["draw"], vars(Selection)["judge"]

    def draw(source: StateSource, policy: Any, size: int, generator: torch.Generator) -> torch.Tensor:
        sizes.append(size / 192)
        return cast(torch.Tensor, real_draw(source, policy, size, generator))

    def judge(selection: Selection, *given: Any) -> Any:
        score, result = real_judge(selection, *given)
        return replace(score, successes=solved), result

    monkeypatch.setattr(StateSource, "draw", draw)
    monkeypatch.setattr(Selection, "judge", judge)
    monkeypatch.setattr(selection_module, "value_mismatch", lambda *_: left.pop(0) if len(left) > 1 else left[0])
    return sizes


@pytest.mark.parametrize(
    ("mismatch", "solved", "times"),
    [
        ([0.5], 1.0, [1, 1, 1, 1, *[6] * 6]),  # rough to the end: six times
        ([0.5, 0.5, 0.01], 1.0, [1, 1, 1, 1, 6]),  # evaluated at 2, 4 and after the polish
        ([0.01], 1.0, [1, 1, 1, 1]),  # fine
        ([0.5], 0.5, [1, 1, 1, 1]),  # not solved
    ],
)
@pytest.mark.slow
def test_cfvi_is_polished_in_the_end(
    train_tiny: TrainTiny,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mismatch: list[float],
    solved: float,
    times: list[int],
) -> None:
    drawn = rough(monkeypatch, mismatch, solved)
    train_tiny(tmp_path / "run", algorithm="cfvi", evaluate_every=2, **NOMINAL)
    assert drawn == times
    rows = read_metrics(tmp_path / "run")
    assert [row["waited"] for row in rows] == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6][: len(times)]
    assert all("return_mean" in row for row in rows[4:])
    assert [row["step_periods"] for row in rows[3:]] == [1.0] * len(rows[3:])


@pytest.mark.slow
def test_rfvi_is_not_polished(train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last three iterations, with adversaries and a falling learning rate, smooth V; three wait for success."""
    drawn = rough(monkeypatch, [0.5])
    train_tiny(tmp_path / "run", evaluate_every=2, **ROBUST)
    assert drawn == [0.5] * 6 + [1.0] * 3
    assert [row["adversary"] > 0.0 for row in read_metrics(tmp_path / "run")] == [*[False] * 6, True, True, True]


def test_a_polish_begins_with_the_best_v(load: Callable[[str], CompiledRobot], tiny: Callable[..., Settings]) -> None:
    settings = tiny(algorithm="cfvi", **NOMINAL)
    with unjudged():
        session = Session(load("pendulum"), settings)
    best = {name: value.clone() + 1.0 for name, value in session.value.state_dict().items()}
    session.selection.best = Best(1, Score(1.0, 1.0, 0.0, -9.0, -9.0), best)
    polish = session.observers[-1]
    session.schedule.position = settings.iterations
    polish.observe(cast(Iteration, None), {"value_mismatch": 0.5})
    assert session.schedule.polished == 1
    assert all(torch.equal(session.value.state_dict()[name], value) for name, value in best.items())


@pytest.mark.slow
def test_a_polish_is_resumed_bit_for_bit(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the checkpoints before, within and after it."""
    whole, stops = tmp_path / "whole", (2, 5, 8)

    def keep(row: dict[str, float]) -> None:
        if row["iteration"] in stops:
            shutil.copytree(whole, tmp_path / f"{row['iteration']:.0f}")

    rough(monkeypatch, [0.5])
    train_tiny(whole, keep, algorithm="cfvi", evaluate_every=2, **NOMINAL)
    expected = list(tensors(load_run_checkpoint(whole)))
    for stop in stops:
        folder = tmp_path / str(stop)
        assert len(read_metrics(folder)) == stop + 1
        resume(folder, lambda _: None)
        found = list(tensors(load_run_checkpoint(folder)))
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        assert len(read_metrics(folder)) == 10


@pytest.mark.parametrize("name", ["mismatch", "nominal", "added"])
def test_a_checkpoint_with_another_type_for_a_number_does_not_fit(
    load: Callable[[str], CompiledRobot], tiny: Callable[..., Settings], name: str
) -> None:
    robot, settings = load("pendulum"), tiny()
    with unjudged():
        content = Session(robot, settings).checkpoint()
        with pytest.raises(SolverError, match=r"run\.json"):
            Session(robot, settings, content | {name: "x"})
