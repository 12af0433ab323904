"""Training of baselines: metrics, the policy that is kept, resuming, and divergence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.errors import DivergenceError, SolverError
from solver.lab.baselines import lifecycle
from solver.lab.baselines.lifecycle import load_rollout_policy, resume
from solver.lab.baselines.settings import KEYS
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.runs.folder import load_checkpoint
from solver.runs.metrics import read_metrics
from tests.solver.lab.baselines.small_runs import Train
from tests.solver.references import slide
from tests.solver.small_trainings import quiet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["sac", "ppo"])  # DDPG takes the gradient steps of SAC without its entropy
def whole(request: pytest.FixtureRequest, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in a folder of the algorithm's name."""
    folder = tmp_path_factory.mktemp("whole") / request.param
    train(folder, algorithm=folder.name, start="gaussian")
    return folder


def test_stored_policy_has_the_logged_statistics(whole: Path) -> None:
    algorithm = whole.name
    problem, act, label = load_rollout_policy(whole)
    assert label.startswith(f"pendulum-{algorithm}-gaussian")
    x = sample_starts(problem, 3, 20210725)
    result = rollouts(problem, act, x)
    rows = read_metrics(whole, KEYS)
    assert [row["steps"] for row in rows] == ([128, 256] if algorithm == "ppo" else [120, 240])
    (kept,) = (row for row in rows if row["steps"] == rows[-1]["kept"])
    assert summary(result).items() <= kept.items()  # the run folder holds exactly the policy that was logged
    assert float(result.u.abs().max()) <= 2.5
    torch.testing.assert_close(act(x)[1], problem.action_cost.cost(act(x)[0]))
    assert all(np.isfinite(list(row.values())).all() for row in rows)


@pytest.mark.parametrize(
    ("outcomes", "kept"),
    [
        ([(1.0, -9.0), (0.5, -3.0), (1.0, -9.5)], 120),  # successes first, then the return
        ([(0.0, -9.0), (0.0, -8.0), (0.0, -8.5)], 240),
    ],
)
def test_best_policy_is_kept(
    outcomes: list[tuple[float, float]], kept: int, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By other rollouts than those of the metrics, which are the first of two in every segment."""
    stated = iter([pair for outcome in outcomes for pair in ((0.2, -1.0), outcome)])

    def judged(_: object) -> dict[str, float]:
        success, value = next(stated)
        return {"success_rate": success, "return_mean": value}

    monkeypatch.setattr(lifecycle, "summary", judged)
    train(tmp_path / "run", steps=360)
    monkeypatch.undo()

    def stop(row: dict[str, float]) -> None:
        if row["steps"] == kept:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "until", stop, steps=360)
    best = load_checkpoint(tmp_path / "run", keys=["best"])["best"]
    assert best["steps"] == kept
    shorter = load_checkpoint(tmp_path / "until", keys=["parameters"])["parameters"]["policy"]
    for name, weights in best["policy"].items():
        assert torch.equal(weights, shorter[name]), name
    if kept == 120:  # there is no other to choose from
        x = torch.tensor([[1.0, 0.5], [-2.0, 1.0]])
        ours, theirs = (load_rollout_policy(tmp_path / name)[1](x)[0] for name in ("run", "until"))
        torch.testing.assert_close(ours, theirs)


def test_resumed_baseline_equals_an_uninterrupted_one(whole: Path, train: Train, tmp_path: Path) -> None:
    def stop(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "cut", stop, algorithm=whole.name, start="gaussian")
    assert 0 < load_checkpoint(tmp_path / "cut", keys=["steps"])["steps"] < 240
    resume(tmp_path / "cut", quiet)
    expected, found = (
        load_checkpoint(each, keys=["parameters"])["parameters"]["policy"] for each in (whole, tmp_path / "cut")
    )
    assert expected.keys() == found.keys()
    for name, weights in expected.items():
        assert torch.equal(weights, found[name]), name
    rows = [read_metrics(each, KEYS) for each in (whole, tmp_path / "cut")]
    assert [{**row, "seconds": 0.0} for row in rows[0]] == [{**row, "seconds": 0.0} for row in rows[1]]


def test_seed_and_randomisation_change_the_policy(train: Train, tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [{}, {"seed": 1}, {"randomize": True}, {"start": "gaussian"}]
    returns = []
    for i, changes in enumerate(settings):
        train(tmp_path / str(i), steps=120, **changes)
        returns.append(read_metrics(tmp_path / str(i), KEYS)[-1]["critic_loss"])
    assert len(set(returns)) == 4


def test_divergence_keeps_the_last_checkpoint(train: Train, tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match=r"learning_rate .*1e"):
        train(tmp_path, learning_rate=1e30)
    assert load_checkpoint(tmp_path, keys=["steps"])["steps"] == 0


def test_divergence_in_the_environment_is_reported(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn(model: Any, *_: Any, **__: Any) -> None:
        with torch.no_grad():
            next(iter(model.policy.parameters())).fill_(torch.nan)
        raise SolverError("actions must be finite numbers")

    monkeypatch.setattr("stable_baselines3.SAC.learn", learn)
    with pytest.raises(DivergenceError, match=r"learning_rate .*0\.001"):
        train(tmp_path, learning_rate=1e-3)


def test_training_leaves_no_temporary_files(train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stable-Baselines3's own logger leaves a folder for every segment."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    train(tmp_path / "run", algorithm="ppo")
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize(("hold", "share", "length"), [(1, 0.1, 16), (1, 0.8, 20), (1, 1.0, 25), (5, 0.1, 5)], ids=str)
def test_training_episodes_last_episode_share_of_the_horizon(
    hold: int, share: float, length: int, train: Train, tmp_path: Path
) -> None:
    """The short pendulum's horizon is 25 periods. 16 actions are the least, where they fit into it."""
    train(tmp_path, algorithm="ppo", steps=4, hold=hold, episode_share=share)
    assert lifecycle._environments(lifecycle.read(tmp_path), tmp_path).episodes.length == length


def test_a_robot_with_references_is_refused() -> None:
    with pytest.raises(SolverError, match="slide has goal"):
        solver.train("slide", generated=str(slide().folder.parent), algorithm="ppo", steps=100)
