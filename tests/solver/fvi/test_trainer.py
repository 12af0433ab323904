"""Training: bit-for-bit repetition, interruption and resumption, divergence, and one policy that swings up."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import DivergenceError, SolverError
from solver.fvi import trainer as trainer_module
from solver.fvi import training
from solver.fvi.run import RUN, load_run, load_run_checkpoint
from solver.fvi.settings import NO_ADVERSARIES, Settings
from solver.fvi.targets import value_targets
from solver.fvi.trainer import Trainer, workers_of, worst_value
from solver.fvi.training import resume
from solver.policies.load import load_policy
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.folder import METRICS, save_checkpoint
from solver.runs.metrics import MetricsLog, read_metrics
from solver.streams import Purpose, stream
from tests.solver.training import start

TrainTiny = Callable[..., None]
TIMES = {"seconds_targets", "seconds_fit"}


def tensors(content: object) -> Iterator[Tensor]:
    """Every tensor in a checkpoint, in order."""
    if isinstance(content, Tensor):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from tensors(value)
    elif isinstance(content, list):
        for value in content:
            yield from tensors(value)


def identical(a: Path, b: Path) -> bool:
    """Whether two folders hold the same weights and optimiser state, bit for bit, and the same metrics."""
    first, second = (list(tensors(load_run_checkpoint(folder))) for folder in (a, b))
    assert len(first) == len(second) > 10
    rows = [[{k: v for k, v in row.items() if k not in TIMES} for row in read_metrics(folder)] for folder in (a, b)]
    return all(torch.equal(x, y) for x, y in zip(first, second, strict=True)) and rows[0] == rows[1]


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
        settings = tiny(**zero | radii, states=4000, iterations=1, modulation="stationary")
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
        settings = tiny(states=2000, iterations=1, relative_values=relative, algorithm=algorithm, alpha_state=2.0)
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


@pytest.mark.parametrize("changes", [{}, {"threads": 3}])
def test_same_seed_gives_the_same_bits(
    train_tiny: TrainTiny, finished_run: Path, tmp_path: Path, changes: dict[str, int]
) -> None:
    train_tiny(tmp_path / "again", **changes)
    assert identical(finished_run, tmp_path / "again")


def test_another_seed_gives_another_run(train_tiny: TrainTiny, finished_run: Path, tmp_path: Path) -> None:
    train_tiny(tmp_path / "other", seed=1)
    assert not identical(finished_run, tmp_path / "other")


def test_streams_differ_by_seed_iteration_and_purpose() -> None:
    seeds = {stream(s, k, p) for s in range(5) for k in range(20) for p in Purpose}
    assert len(seeds) == 5 * 20 * len(Purpose)
    assert all(0 <= seed < 2**62 for seed in seeds)


@pytest.mark.parametrize("done", range(5))
def test_interrupted_and_resumed_is_uninterrupted(
    train_tiny: TrainTiny, finished_run: Path, tmp_path: Path, done: int
) -> None:
    """KeyboardInterrupt in every iteration, at its most awkward moments: before and after the checkpoint."""

    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == done:
            raise KeyboardInterrupt

    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_tiny(folder, interrupt)
    assert load_run_checkpoint(folder)["iteration"] == done + 1
    resume(folder, lambda _: None)
    assert identical(finished_run, folder)


def test_interrupted_between_metrics_and_checkpoint(
    train_tiny: TrainTiny, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupted(folder: Path, checkpoint: dict[str, Any]) -> None:
        if checkpoint["iteration"] == 3:
            raise KeyboardInterrupt
        save_checkpoint(folder, checkpoint)

    monkeypatch.setattr(training, "save_checkpoint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "run")
    monkeypatch.undo()
    assert load_run_checkpoint(tmp_path / "run")["iteration"] == 2
    resume(tmp_path / "run", lambda _: None)
    assert identical(finished_run, tmp_path / "run")


@pytest.mark.parametrize(
    "changes", [{"keep_optimiser": False, "amsgrad": True}, {"modulation": "stationary"}, {"on_policy_share": 0.5}]
)
def test_resuming_other_settings(train_tiny: TrainTiny, tmp_path: Path, changes: dict[str, Any]) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    train_tiny(tmp_path / "whole", **changes)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "parts", interrupt, **changes)
    resume(tmp_path / "parts", lambda _: None)
    assert identical(tmp_path / "whole", tmp_path / "parts")


def test_resuming_a_finished_run_changes_nothing(finished_run: Path, run_copy: Path) -> None:
    resume(run_copy, lambda _: None)
    assert identical(finished_run, run_copy)


def started(folder: Path, words: list[str], rows: int) -> subprocess.Popen[str]:
    """`solver train` in another process, once it has logged so many iterations."""
    command = [sys.executable, "-c", "import sys; from solver.cli import main; sys.exit(main())"]
    command += ["train", "pendulum", *words, "--out", str(folder)]

    def heed_ctrl_c() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells make background jobs, such as a CI's, ignore it

    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c
    )
    deadline = time.monotonic() + 300
    while len(read_metrics(folder)) < rows:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return process


LONG = ["--iterations", "40", "--evaluate-every", "20"]


def test_killed_and_resumed_is_uninterrupted(tiny_options: list[str], tmp_path: Path) -> None:
    process = started(tmp_path / "killed", [*tiny_options, *LONG], rows=2)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 1 <= load_run_checkpoint(tmp_path / "killed")["iteration"] < 40
    assert main(["train", "--resume", str(tmp_path / "killed")]) == 0
    start("pendulum", "fast", load_run(tmp_path / "killed").settings, tmp_path / "whole", None, lambda _: None)
    assert identical(tmp_path / "whole", tmp_path / "killed")


def test_ctrl_c_says_how_to_go_on(tiny_options: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = started(folder, [*tiny_options, *LONG, "--iterations", "2000"], rows=2)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"solver train --resume {folder}" in err
    assert "Traceback" not in out + err
    done = load_run_checkpoint(folder)["iteration"]
    assert done <= len(read_metrics(folder)) <= done + 1


def test_a_folder_with_a_run_is_not_written_over(train_tiny: TrainTiny, run_copy: Path, finished_run: Path) -> None:
    with pytest.raises(SolverError, match=r"already holds a run.*--resume.*--overwrite"):
        train_tiny(run_copy)
    assert identical(finished_run, run_copy)


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


def test_full_disk_during_training_keeps_the_checkpoint(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = MetricsLog.write

    def full(log: Any, row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise OSError(28, "No space left on device")
        write(log, row)

    monkeypatch.setattr(MetricsLog, "write", full)
    with pytest.raises(SolverError, match=r"No space left on device.*--resume"):
        train_tiny(tmp_path)
    assert load_run_checkpoint(tmp_path)["iteration"] == 2


@pytest.mark.parametrize(("name", "value"), [("width", 9), ("loss_power", 2.0), ("seed", 7), ("step_periods", [1])])
def test_run_json_edited_before_resuming(run_copy: Path, name: str, value: Any) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["settings"][name] = value
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=f"run.json has {name} {re.escape(str(value))}, the checkpoint"):
        resume(run_copy, lambda _: None)


def test_resuming_against_another_artifact_is_refused(run_copy: Path) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["artifact_hash"] = "0" * 64
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match="was trained on artifact 000000000000"):
        resume(run_copy, lambda _: None)


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
    tiny: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
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
            "cartpole", "fast", tiny(backend=name, loss_power=2.0, iterations=2), tmp_path / name, None, lambda _: None
        )
    assert used == ["llvm", backend]
    usual, other = (load_run_checkpoint(tmp_path / name)["ensemble"] for name in ("auto", backend))
    for name, weights in usual.items():
        torch.testing.assert_close(other[name], weights, rtol=1e-4, atol=1e-6, equal_nan=True, msg=name)
    assert any(not torch.equal(other[name].nan_to_num(), weights.nan_to_num()) for name, weights in usual.items())


def test_a_resumed_run_keeps_its_backend(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "run", interrupt, backend="torch")
    used: list[str] = []
    monkeypatch.setattr(training, "_train", lambda trainer, *_: used.append(trainer.robot.backend))
    resume(tmp_path / "run", lambda _: None)
    assert used == ["torch"]


def test_metrics_are_one_row_an_iteration(finished_run: Path) -> None:
    rows = read_metrics(finished_run)
    assert [row["iteration"] for row in rows] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [row["iteration"] for row in rows if "return_mean" in row] == [1.0, 3.0, 4.0]
    rates = [row["learning_rate"] for row in rows]
    assert rates[0] == pytest.approx(3e-3)
    assert rates[-1] == pytest.approx(1e-5)
    assert rates == sorted(rates, reverse=True)
    assert [row["step_periods"] for row in rows] == [2.0, 2.0, 2.0, 1.0, 1.0]
    assert (finished_run / METRICS).read_text().count("\n") == 5


@pytest.mark.parametrize("name", ["furuta", "double_pendulum"])
def test_robots_with_four_states_train(tiny: Callable[..., Settings], tmp_path: Path, name: str) -> None:
    """An arm that does not wrap; two inputs and two continuous joints."""
    start(name, "fast", tiny(iterations=2, episodes=2), tmp_path, None, lambda _: None)
    inputs = 2 if name == "double_pendulum" else 1
    assert load_policy(tmp_path)(torch.zeros(3, 4).numpy()).shape == (3, inputs)


def test_a_short_training_swings_the_pendulum_up(tmp_path: Path) -> None:
    """Hanging still for 5 s is worth about -50 and the optimum -29.9."""
    settings = Settings(
        **NO_ADVERSARIES,
        iterations=24,
        states=6144,
        epochs=10,
        minibatch=512,
        members=2,
        width=48,
        evaluate_every=24,
        threads=1,
    )
    start("pendulum", "fast", settings, tmp_path / "run", None, lambda _: None)
    last = read_metrics(tmp_path / "run")[-1]
    assert last["success_rate"] >= 0.9
    assert last["return_mean"] > -40.0
    shutil.rmtree(tmp_path / "run")
