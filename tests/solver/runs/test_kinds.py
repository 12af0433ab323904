"""The table of kinds of run: a third kind is one module and one line, and every command finds its runs by the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import solver
from modelgen.errors import ReliabilityWarning
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.problem import Problem
from solver.problem.parameters import Change
from solver.problem.robots import load_robot
from solver.runs import kinds
from solver.runs.folder import CHECKPOINT, METRICS, load_checkpoint, load_description, save_checkpoint, save_description
from solver.runs.kinds import (
    KINDS,
    Description,
    Kind,
    RolloutPolicy,
    Training,
    holds_run,
    kind_of,
    load_rollout_policy,
    remove_run,
)
from solver.runs.metrics import MetricsLog, Report, read_metrics
from solver.training.solution import load_run
from tests.closeness import assert_close
from tests.solver.conftest import TINY

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class DampingSettings:
    """u = -gain * (rate of the first joint), better by an iteration."""

    gain: float = 0.5
    iterations: int = 2
    seed: int = 0
    algorithm: str = "damping"


@dataclass(frozen=True)
class DampingRun(Description):
    """A third kind of run, from outside."""

    settings: DampingSettings

    @property
    def name(self) -> str:
        return f"{self.robot}-damping-seed{self.settings.seed}"

    @property
    def length(self) -> int:
        return self.settings.iterations

    def identity(self) -> dict[str, Any]:
        return vars(self.settings)


class Damping(ModuleType):
    """The module that a third kind of run needs, as an object."""

    def describe(self, robot: CompiledRobot, generated: str | None, **choices: Any) -> DampingRun:
        return DampingRun(robot.name, robot.hash, generated, DampingSettings(**choices))

    def start(
        self,
        run: Description,
        folder: Path,
        report: Report,
        robot: CompiledRobot | None = None,  # noqa: ARG002
    ) -> None:
        remove_run(folder)
        save_description(folder / "damping.json", run)
        save_checkpoint(folder, {"iteration": 0})
        self.resume(folder, report)

    def resume(self, folder: Path, report: Report) -> None:
        done, run = load_checkpoint(folder, ["iteration"])["iteration"], self.read(folder)
        log = MetricsLog(folder, done, ["iteration"])
        for k in range(done, run.length):
            log.write({"iteration": float(k)})
            save_checkpoint(folder, {"iteration": k + 1})
            report({"iteration": float(k)})
        log.close()

    def read(self, folder: Path) -> DampingRun:
        return load_description(folder / "damping.json", DampingRun)

    def diagnosis(self, folder: Path) -> str:
        assert (folder / "damping.json").is_file()
        return "it might damp more"

    def load_rollout_policy(
        self,
        folder: Path,
        generated: str | None = None,
        reaction_periods: float | None = None,
        told: Mapping[str, Change] = MappingProxyType({}),
        contexts: bool = False,
    ) -> RolloutPolicy:
        assert reaction_periods is None
        assert not told
        assert not contexts
        run = self.read(folder)
        problem = Problem(load_robot(run.robot, "cpu", generated))

        def act(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            limit = problem.input_limits
            u = torch.clamp(-run.settings.gain * x[:, len(x[0]) // 2, None], -limit, limit)
            return u, problem.action_cost.cost(u)

        return RolloutPolicy(problem, act, run.label)


@pytest.fixture
def third_kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    """The line of the table."""
    module: Training = Damping("damping")
    monkeypatch.setitem(__import__("sys").modules, "damping", module)
    kind = Kind("damping.json", "damping", ("damping",), "damp", "iteration", "iteration")
    KINDS.append(kind)
    yield kind
    KINDS.remove(kind)


def test_every_kind_has_the_functions_of_a_training() -> None:
    pytest.importorskip("stable_baselines3")
    names = [name for name in vars(Training) if not name.startswith("_")]
    assert set(names) == {"describe", "start", "resume", "read", "diagnosis", "load_rollout_policy"}
    for kind in KINDS:
        assert all(callable(getattr(kind.training, name)) for name in names), kind.module


@pytest.mark.usefixtures("third_kind")
@pytest.mark.slow
def test_a_third_kind_is_one_module_and_one_line(tmp_path: Path, capsys: Capture) -> None:
    """Train, interrupt, resume, load, evaluate, compare and replace, all by the table."""
    folder = tmp_path / "run"

    def interrupt(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.train("pendulum", algorithm="damping", out=folder, gain=0.7, callback=interrupt)
    assert load_checkpoint(folder, ["iteration"])["iteration"] == 1
    assert main(["train", "--resume", str(folder)]) == 0
    assert [row["iteration"] for row in read_metrics(folder)] == [0.0, 1.0]

    problem, act, label = load_rollout_policy(folder)
    assert label == "pendulum-damping"
    x = np.array([[0.1, 0.5]])
    np.testing.assert_allclose(solver.load_policy(folder)(x), [[-0.35]], rtol=1e-6)
    expected = summary(rollouts(problem, act, sample_starts(problem, 5, 7)))
    found = solver.evaluate(folder, episodes=5, seed=7)
    assert_close(found.statistics, expected, periods=625)
    capsys.readouterr()
    assert main(["evaluate", str(folder), "--episodes", "5", "--seed", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found.to_json()

    with pytest.raises(SolverError, match="solver damp --resume"):
        solver.train("pendulum", algorithm="damping", out=folder)
    solver.train("pendulum", algorithm="damping", out=folder, overwrite=True)
    assert load_rollout_policy(folder)[2] == "pendulum-damping"


def test_a_run_of_another_kind_is_named(third_kind: Kind, tmp_path: Path) -> None:
    solver.train("pendulum", algorithm="damping", out=tmp_path / "run")
    for call in (solver.load_value, load_run):
        with pytest.raises(SolverError, match=r"`solver damp`.*`solver train`"):
            call(tmp_path / "run")
    assert kind_of(tmp_path / "run") == third_kind


@pytest.mark.slow
def test_an_export_may_name_its_file(finished_run: Path, tmp_path: Path) -> None:
    """One that named policy.js got a folder of this name."""
    run, file = solver.load(finished_run), tmp_path / "policy.js"
    wrong: Any
    for wrong in (["c"], ["js", "c"], ["onnx"]):
        with pytest.raises(SolverError, match=r"policy\.js .* folder .* " + ", ".join(wrong)):
            run.export(file, *wrong)
    assert run.export(file, "js") == [file]
    (beside,) = run.export(tmp_path, "js")
    assert file.read_bytes() == beside.read_bytes()


def test_training_from_python_is_training_from_the_command(
    tmp_path: Path, tiny_options: list[str], short: str, tiny: Any, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "pendulum", *tiny_options, "--iterations", "2", "--seed", "4", "--out", "command"]) == 0
    choices = {name: value for name, value in vars(tiny(iterations=2)).items() if name in TINY}
    folder = solver.train("pendulum", generated=short, seed=4, preview=0, convergence=0.0, **choices).folder
    assert folder == Path("runs/pendulum-rfvi-fast-seed4")
    assert load_run(folder) == load_run(Path("command"))
    ours, theirs = (load_checkpoint(path, ["ensemble"])["ensemble"] for path in (folder, Path("command")))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    solver.resume(folder)  # a finished run has nothing left to do
    assert len(read_metrics(folder)) == 2
    capsys.readouterr()


@pytest.mark.slow
def test_a_run_that_has_only_its_description_is_begun(finished_run: Path, run_copy: Path, capsys: Capture) -> None:
    (run_copy / CHECKPOINT).unlink()
    assert main(["train", "--resume", str(run_copy)]) == 2  # its metrics say that it had one
    assert CHECKPOINT in capsys.readouterr().err
    (run_copy / METRICS).unlink()
    assert main(["train", "--resume", str(run_copy)]) == 0
    ours, theirs = (load_checkpoint(path, ["ensemble"])["ensemble"] for path in (run_copy, finished_run))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert [row["iteration"] for row in read_metrics(run_copy)] == [
        row["iteration"] for row in read_metrics(finished_run)
    ]


@pytest.mark.slow
def test_an_unfinished_run_is_exported_and_certified_with_a_word(
    train_tiny: Callable[..., None], tmp_path: Path, capsys: Capture
) -> None:
    def stop(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_tiny(run, stop, iterations=3)
    (tmp_path / "spec.toml").write_text("horizon = 0.1\nfailure_probability = 0.5\nconfidence = 0.5\n")
    for words in (
        ["export", str(run), "--js", str(tmp_path / "p.js")],
        ["certify", str(run), str(tmp_path / "spec.toml")],
    ):
        main([*words, "--jobs", "1", "--out", str(tmp_path / "worst.json")] if words[0] == "certify" else words)
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "1 of 3 iterations" in line]
        assert line.startswith("warning: ")
        assert f"solver train --resume {run}" in line
    with pytest.warns(ReliabilityWarning, match="1 of 3"):
        solver.load(run).export(tmp_path, "js")
    assert main(["train", "--resume", str(run)]) == 0
    capsys.readouterr()
    assert main(["export", str(run), "--js", str(tmp_path / "p.js")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_damaged_metrics_of_a_finished_run_do_not_change_its_diagnosis(run_copy: Path, capsys: Capture) -> None:
    warnings = []
    for content in (None, b"", b"\xff\xfe", '{"iteration": 1, "selection_success": 1}\n'.encode("utf-16")):
        if content is not None:
            (run_copy / METRICS).write_bytes(content)
        assert main(["train", "--resume", str(run_copy)]) == 0
        warnings.append(capsys.readouterr().err.partition("warning:")[2].partition(" The value error")[0])
    assert len({text.partition("% of the rollouts have")[0] for text in warnings}) == 1
    assert "0 %" in warnings[0]


def test_an_unknown_algorithm_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"'rfv'.*`rfvi`"):
        solver.train("pendulum", algorithm="rfv", out=tmp_path)
    assert not holds_run(tmp_path)
    assert kinds.kind_in(tmp_path) is None
    with pytest.raises(SolverError, match=r"run\.json or baseline\.json"):
        load_rollout_policy(tmp_path)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"plant": None}, "'None'.*harsh"),
        ({"plant": 3}, "'3'.*harsh"),
        ({"episodes": 2.5}, r"2\.5.*whole number"),
        ({"episodes": "3"}, "'3'.*whole number"),
        ({"observer": True, "estimate": "mas"}, "'mas'.*`mass`"),
        ({"plant": "harsh", "harsh": "delya"}, "'delya'"),
    ],
)
def test_a_wrong_argument_of_an_evaluation_is_named(argument: dict[str, Any], words: str) -> None:
    with pytest.raises(SolverError, match=words):
        solver.evaluate("pendulum-rfvi", **argument)


def test_a_number_of_numpy_is_a_parameter_as_any_number() -> None:
    numbers: tuple[Any, ...] = (np.float32(1.25), 1.25)
    one, other = (
        solver.evaluate("pendulum-rfvi", parameters={"mass": mass}, episodes=2, seconds=0.1).statistics
        for mass in numbers
    )
    assert one == other


def test_a_kind_of_adversary_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="two ActionAdversary"):
        solver.train("pendulum", adversaries=[solver.Action(0.1), solver.Action(0.3)], out=tmp_path)


def test_a_baseline_refuses_arguments_of_value_iteration(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"sac .*adversaries"):
        solver.train("pendulum", algorithm="sac", adversaries=[solver.Action(0.1)], out=tmp_path)
