"""Baselines end to end with every algorithm: metrics, evaluation, resuming, and mistakes."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solver.baselines.run import BASELINE, MODEL
from solver.baselines.settings import BaselineSettings, baseline_settings
from solver.cli import main
from solver.errors import DivergenceError, SolverError
from solver.fvi.run import load_run
from solver.plants.nominal import Nominal
from solver.plants.outcome import summary
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.robots import load_robot
from solver.runs import kinds
from solver.runs.folder import CHECKPOINT, METRICS, load_checkpoint
from solver.runs.metrics import read_metrics

pytest.importorskip("stable_baselines3")
pytest.importorskip("jax")

from solver.baselines import stable_baselines, training
from solver.baselines.run import KEYS, load_baseline
from solver.baselines.training import load_controller, resume
from solver.gym.environment import RobotEnv, RobotVectorEnv
from solver.gym.observations import features
from tests.solver.training import baseline

TINY: dict[str, Any] = {"steps": 240, "hold": 25, "environments": 4, "evaluate_every": 120, "episodes": 3}
TINY |= {"minibatch": 16, "layers": 1, "width": 8}
ALGORITHMS = ["sac", "ddpg", "ppo"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def short_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """PPO learns after a hundred actions, like the others."""
    monkeypatch.setattr(stable_baselines, "ROLLOUT", 32)


def quiet(_: dict[str, float]) -> None:
    """Report nothing."""


def train(folder: Path, report: Callable[[dict[str, float]], None] = quiet, **changes: Any) -> None:
    baseline("pendulum", baseline_settings(**{**TINY, **changes}), folder, report)


def words(**changes: Any) -> list[str]:
    return [word for name, value in {**TINY, **changes}.items() for word in ("--" + name.replace("_", "-"), str(value))]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished SAC run on randomised parameters; tests must not change it."""
    folder = tmp_path_factory.mktemp("baselines") / "sac"
    train(folder, randomize=True)
    return folder


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_run_from_start_to_evaluation(algorithm: str, tmp_path: Path) -> None:
    train(tmp_path, algorithm=algorithm, start="gaussian")
    problem, act, label = load_controller(tmp_path)
    assert label.startswith(f"pendulum {algorithm.upper()}-N steps=240 ")
    x = sample_starts(problem, 3, 20210725)
    result = rollouts(problem, act, x)
    rows = read_metrics(tmp_path, KEYS)
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
def test_the_best_policy_is_kept(
    outcomes: list[tuple[float, float]], kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By other rollouts than those of the metrics, which are the first of two in every segment."""
    stated = iter([pair for outcome in outcomes for pair in ((0.2, -1.0), outcome)])

    def judged(_: object) -> dict[str, float]:
        success, value = next(stated)
        return {"success_rate": success, "return_mean": value}

    monkeypatch.setattr(training, "summary", judged)
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
        ours, theirs = (load_controller(tmp_path / name)[1](x)[0] for name in ("run", "until"))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_resumed_run_repeats_an_uninterrupted_one(algorithm: str, tmp_path: Path) -> None:
    def stop(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    train(tmp_path / "whole", algorithm=algorithm)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "cut", stop, algorithm=algorithm)
    assert 0 < load_checkpoint(tmp_path / "cut", keys=["steps"])["steps"] < 240
    resume(tmp_path / "cut", quiet)
    whole, cut = (load_checkpoint(tmp_path / name, keys=["parameters"]) for name in ("whole", "cut"))
    assert whole["parameters"]["policy"].keys() == cut["parameters"]["policy"].keys()
    for name, weights in whole["parameters"]["policy"].items():
        assert torch.equal(weights, cut["parameters"]["policy"][name]), name
    rows = [read_metrics(tmp_path / name, KEYS) for name in ("whole", "cut")]
    assert [{**row, "seconds": 0.0} for row in rows[0]] == [{**row, "seconds": 0.0} for row in rows[1]]


def test_batches_are_what_stable_baselines_makes_of_single_environments() -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv

    options: dict[str, Any] = {"start": "uniform", "randomize": 0.2, "seconds": 0.04}
    ours = stable_baselines.Environments(RobotVectorEnv("pendulum", 3, **options))
    theirs = DummyVecEnv([lambda: RobotEnv("pendulum", **options)] * 3)
    for each in (ours, theirs):
        each.seed(7)
    assert np.array_equal(np.asarray(ours.reset()), np.asarray(theirs.reset()))
    for move in np.random.default_rng(0).uniform(-1.0, 1.0, (12, 3, 1)):
        (seen, reward, ended, infos), expected = ours.step(move), theirs.step(move)
        assert np.array_equal(np.asarray(seen), np.asarray(expected[0]))
        assert np.array_equal(reward, expected[1])
        assert np.array_equal(ended, expected[2])
        for info, other in zip(infos, expected[3], strict=True):
            assert info.get("TimeLimit.truncated", False) == other["TimeLimit.truncated"]
            last = (each.get("terminal_observation", np.zeros(0)) for each in (info, other))
            assert np.array_equal(*last)


def test_another_seed_is_another_policy_and_randomisation_changes_the_data(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [{}, {"seed": 1}, {"randomize": True}, {"start": "gaussian"}]
    returns = []
    for i, changes in enumerate(settings):
        train(tmp_path / str(i), steps=120, **changes)
        returns.append(read_metrics(tmp_path / str(i), KEYS)[-1]["critic_loss"])
    assert len(set(returns)) == 4


def test_the_training_environments_are_what_the_settings_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[RobotVectorEnv] = []

    def keep(settings: BaselineSettings, environments: RobotVectorEnv, steps: int) -> Any:
        seen.append(environments)
        model: Any = stable_baselines.make_model(settings, environments, steps)
        assert model.gamma == pytest.approx(math.exp(-25 * 0.008 / 1.5))
        return model

    monkeypatch.setattr("solver.baselines.training.make_model", keep)
    train(tmp_path, randomize=True, randomize_share=0.3, lookahead=1.5, steps=1)
    episodes = seen[0].episodes
    assert (episodes.start, episodes.randomize, episodes.hold, episodes.length) == ("angle", 0.3, 25, 25)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_networks_are_given_scaled_features(algorithm: str) -> None:
    environments = RobotVectorEnv("furuta", 4, hold=25)
    settings = baseline_settings(algorithm=algorithm, position_scale=3.0, rate_scale=5.0, minibatch=64)
    policy = stable_baselines.make_model(settings, environments, 200).policy
    extractors = [module for module in policy.modules() if isinstance(module, stable_baselines.Scaled)]
    assert len(extractors) == {"sac": 3, "ddpg": 4, "ppo": 1}[algorithm]  # actor, critics and those they follow
    x = torch.tensor([[0.5, 0.3, -6.0, 8.0]])  # limits 2 rad, none, 30 and 40 rad/s
    by_hand = [3.0 * 0.25, math.cos(0.3), math.sin(0.3), 5.0 * -0.2, 5.0 * 0.2]
    for extractor in extractors:
        np.testing.assert_allclose(extractor(features(environments.problem, x))[0], by_hand, rtol=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_discount_follows_physical_time(algorithm: str) -> None:
    def gamma(hold: int) -> float:
        environments = RobotVectorEnv("cartpole", 4, hold=hold)
        model: Any = stable_baselines.make_model(baseline_settings(algorithm, hold=hold), environments, 200)
        return float(model.gamma)

    assert gamma(10) == pytest.approx(gamma(5) ** 2)


@pytest.mark.parametrize(("robot", "periods", "seconds"), [("pendulum", 8, 0.261), ("furuta", 2, 0.0641)])
def test_an_action_is_held_for_a_quarter_of_the_time_scale(robot: str, periods: int, seconds: float) -> None:
    assert training.usual_hold(robot) == periods == round(seconds / 4.0 * 125)
    run = training.describe(load_robot(robot, "cpu", None), None)
    assert training._environments(run, Path()).episodes.hold == periods


@pytest.mark.parametrize("algorithm", ["sac", "ddpg"])
def test_the_value_at_the_time_limit_is_bootstrapped(algorithm: str) -> None:
    environments = RobotVectorEnv("pendulum", 4, hold=25)  # 25 actions an episode
    model: Any = stable_baselines.make_model(
        baseline_settings(algorithm, hold=25, layers=1, width=8), environments, 200
    )
    model.learn(200)
    buffer = model.replay_buffer
    assert buffer.dones[:50].sum(1).tolist() == [4.0 * (i % 25 == 24) for i in range(50)]
    assert not (buffer.next_observations[24] == buffer.observations[25]).all(1).any()  # the last state
    assert not buffer._get_samples(np.full(4, 24)).dones.any()  # what the targets are masked with


def test_the_zip_is_stable_baselines_own(finished: Path) -> None:
    from stable_baselines3 import SAC

    model = SAC.load(finished / MODEL, device="cpu")
    problem, act, _ = load_controller(finished)
    x = sample_starts(problem, 4, 0)
    action = model.predict(features(problem, x).numpy(), deterministic=True)[0]
    np.testing.assert_allclose(act(x)[0].numpy(), 0.85 * 2.5 * action, rtol=1e-6)


def test_a_tampered_zip_is_never_unpickled(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    (folder / MODEL).write_bytes(b"anything")
    problem, act, _ = load_controller(folder)
    x = sample_starts(problem, 4, 0)
    assert torch.equal(act(x)[0], load_controller(finished)[1](x)[0])


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["baseline", "pendulum", "--randomize", *words(seed=3)]) == 0
    folder = Path("runs/pendulum-sac-angle-randomized-seed3")
    assert f"solver evaluate {folder}" in capsys.readouterr().out
    assert load_baseline(folder).settings.randomize
    assert main(["baseline", "pendulum", *words(), "--out", str(folder)]) == 2
    assert "already holds a run" in capsys.readouterr().err
    (folder / "notes.txt").write_text("mine")
    refused = ["baseline", "pendulum", *words(evaluate_every=1), "--out", str(folder), "--overwrite"]
    assert main(refused) == 2
    assert "give at least 100" in capsys.readouterr().err
    assert load_baseline(folder).settings.seed == 3  # a run that cannot start replaces nothing
    assert main(["baseline", "pendulum", *words(), "--algorithm", "ppo", "--out", str(folder), "--overwrite"]) == 0
    assert load_baseline(folder).settings.algorithm == "ppo"
    assert (folder / "notes.txt").read_text() == "mine"
    assert main(["baseline", "--resume", str(folder)]) == 0
    assert len((folder / METRICS).read_text().splitlines()) == 2


def test_solver_evaluate_takes_a_baseline(finished: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(finished), "--episodes", "3", "--set", "mass=1.3x", "--json"]) == 0
    problem, act, _ = load_controller(finished)
    theta = problem.theta * torch.tensor([1.3, 1.0])
    expected = summary(rollouts(problem, act, sample_starts(problem, 3, 20210725), Nominal(problem, theta)))
    content = json.loads(capsys.readouterr().out)
    assert content["return_mean"] == pytest.approx(expected["return_mean"], rel=1e-6)
    assert content["parameters"]["mass"] == pytest.approx(1.3)
    words = ["evaluate", str(finished), "--episodes", "3", "--plant", "harsh", "--json"]
    returns = []
    for more in ([], ["--observer"]):
        assert main([*words, *more]) == 0
        returns.append(json.loads(capsys.readouterr().out)["return_mean"])
    assert returns[0] != returns[1]


def test_ppo_has_its_own_defaults_wherever_the_algorithm_stands() -> None:
    ppo = baseline_settings("ppo", seed=4, randomize=True)
    assert ppo.label == "PPO-U UDR"
    assert baseline_settings("sac", randomize_share=0.3, start="gaussian").label == "SAC-N randomize_share=0.3"
    assert (ppo.minibatch, baseline_settings("sac").minibatch) == (512, 256)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["baseline"], "name a robot"),
        (["baseline", "pendulm"], "Did you mean `pendulum`"),
        (["baseline", "--resume", "nowhere"], "nowhere is not a run folder"),
        (["baseline", "pendulum", "--steps", "0"], "at least 1"),
        (["baseline", "pendulum", "--randomize-share", "1"], "between 0 and 1"),
        (["baseline", "pendulum", "--learning-rate", "-1"], "between 0 and inf"),
        (["baseline", "pendulum", "--lookahead", "0"], "between 0 and inf"),
        (["baseline", "pendulum", "--rate-scale", "0"], "between 0 and inf"),
        (["baseline", "pendulum", "--evaluate-every", "100"], "give at least 5056"),
        (["baseline", "--resume", "x", "--seed", "1"], "keeps its own"),
    ],
)
def test_mistakes_exit_2(command: list[str], message: str, capsys: Capture) -> None:
    assert main(command) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_algorithm_is_refused(capsys: Capture) -> None:
    assert main(["baseline", "pendulum", "--algorithm", "td3"]) == 2
    assert "Choices are sac, ddpg, ppo" in capsys.readouterr().err
    with pytest.raises(SolverError, match="choices are sac, ddpg, ppo"):
        baseline_settings("td3")
    with pytest.raises(SolverError, match="Did you mean `width`"):
        baseline_settings("sac", widht=3)


def test_a_baseline_is_no_run_of_the_solver_and_says_so(finished: Path) -> None:
    with pytest.raises(SolverError, match="holds a run of `solver baseline`, and this needs one of `solver train`"):
        load_run(finished)
    with pytest.raises(SolverError, match="holds a baseline, which has no value function"):
        kinds.load_controller(finished, reaction_periods=1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"artifact_hash": "ab" * 32}, "trained on artifact abababababab"),
        ({"settings": {"width": 9}}, "does not fit the settings"),
        ({"settings": {"widht": 9}}, "is damaged or from another version"),
        ({"settings": {"seed": 2**32}}, "setting seed is 4294967296"),
        ({"artifact_hash": None}, "is damaged or from another version"),
        ({"robot": 5}, "is damaged or from another version"),
        ({"generated": 5}, "is damaged or from another version"),
    ],
)
def test_edited_runs_are_refused(change: dict[str, Any], message: str, finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = json.loads((folder / BASELINE).read_text())
    settings = {**content["settings"], **change.pop("settings", {})}
    (folder / BASELINE).write_text(json.dumps({**content, **change, "settings": settings}))
    with pytest.raises(SolverError, match=message):
        load_controller(folder)


def test_states_that_are_not_finite_get_no_input(finished: Path) -> None:
    _, act, _ = load_controller(finished)
    u, cost = act(torch.tensor([[3.0, 0.5], [torch.nan, 0.0], [0.0, torch.inf]]))
    assert torch.isfinite(u[:, 0]).tolist() == torch.isfinite(cost).tolist() == [True, False, False]


def test_a_run_from_a_version_with_fewer_settings_is_refused(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = json.loads((folder / BASELINE).read_text())
    del content["settings"]["lookahead"]
    (folder / BASELINE).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=r"from another version.*does not state lookahead"):
        load_baseline(folder)


def test_weights_that_are_not_finite_are_refused(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = load_checkpoint(folder, keys=["parameters"])
    next(each for each in content["parameters"]["policy"].values() if each.is_floating_point())[:] = torch.nan
    torch.save(content, folder / CHECKPOINT)
    with pytest.raises(SolverError, match="some of its numbers are not finite"):
        load_controller(folder)


def test_divergence_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match="smaller --learning-rate than 1e"):
        train(tmp_path, learning_rate=1e30)
    assert load_checkpoint(tmp_path, keys=["steps"])["steps"] == 0


def test_divergence_that_the_environment_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def learn(model: Any, *_: Any, **__: Any) -> None:
        with torch.no_grad():
            next(iter(model.policy.parameters())).fill_(torch.nan)
        raise SolverError("actions must be finite numbers")

    monkeypatch.setattr("stable_baselines3.SAC.learn", learn)
    with pytest.raises(DivergenceError, match="weights are not finite"):
        train(tmp_path, learning_rate=1e-3)


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    script = """
        import sys
        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("stable_baselines3", sys.argv[1]):
                    raise ImportError(f"{name} is blocked")
        sys.meta_path.insert(0, Blocked())
        from solver.cli import main
        raise SystemExit(main(["baseline", "pendulum"]))
    """
    for blocked, extra in (("stable_baselines3", "[baselines]"), ("gymnasium", "[gym]")):
        command = [sys.executable, "-c", textwrap.dedent(script), blocked]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert result.returncode == 2
        assert result.stderr.startswith("error: ")
        assert extra in result.stderr
        assert result.stderr.count("\n") == 1
