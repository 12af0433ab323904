"""The command: exit codes, messages, JSON. (tests/modelgen has a test_cli of its own.)"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import solver
from solver.cli import PROGRAM, main
from solver.observer import Observer
from solver.plants import make_plant
from solver.plants.harsh import EFFECTS
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.problem.parameters import Relative, changed_parameters
from solver.problem.robots import load_robot
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import load_rollout_policy
from solver.streams import EVALUATION_SEED
from solver.training.settings import OF_ROBOT, PRESETS, Settings, make_settings
from solver.training.solution import RUN, load_run, load_run_checkpoint

Capture = pytest.CaptureFixture[str]


def fails(words: list[str], capsys: Capture, code: int = 2) -> str:
    """The message of a command that exits with `code`."""
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.slow
def test_train_evaluate_and_plot(tmp_path: Path, tiny_options: list[str], capsys: Capture) -> None:
    folder = tmp_path / "run"
    words = ["--algorithm", "cfvi", *tiny_options, "--adversaries", "--iterations", "2", "--out", str(folder)]
    assert main(["train", "pendulum", *words]) == 0
    out, err = capsys.readouterr()
    assert f"solver evaluate {folder}" in out
    assert err.startswith("warning: 2 iterations carry the reward")  # the tiny run is too short, and said to be
    *evaluations, stalled = err.splitlines()[1:]
    assert all(line.startswith("iteration ") for line in evaluations)
    assert f"solver train pendulum --start-from {folder}" in stalled
    assert load_run(folder).settings.algorithm == "cfvi"
    assert main(["evaluate", str(folder), "--episodes", "3"]) == 0
    assert ", nominal, 3 rollouts:  return -" in capsys.readouterr().out
    assert main(["plot", str(folder)]) == 0
    paths = capsys.readouterr().out.split()
    assert len(paths) == 3
    assert all(Path(path).is_file() for path in paths)


@pytest.mark.slow
def test_default_folder_names_the_run(
    tmp_path: Path, tiny_options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "pendulum", *tiny_options, "--seed", "3", "--iterations", "1"]) == 0
    assert (tmp_path / "runs" / "pendulum-rfvi-fast-seed3" / CHECKPOINT).is_file()
    assert "seed3" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["train", "cartpole", "--preset", "paper"],
        ["train", "--preset=paper", "--seed", "0", "cartpole"],
    ],
)
def test_the_preset_applies_wherever_it_stands(
    words: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*_: object) -> None:
        raise KeyboardInterrupt  # run.json is written: its settings are what counts here

    monkeypatch.setattr("solver.training.lifecycle._train", begun)
    assert main([*words, "--width", "4", "--preview", "0", "--out", str(tmp_path)]) == 130
    run = load_run(tmp_path)
    assert (run.preset, run.robot) == ("paper", "cartpole")
    assert (run.settings.layers, run.settings.width, run.settings.input_scale) == (4, 4, 0.0)
    capsys.readouterr()


@pytest.mark.slow
def test_evaluation_as_json(finished_run: Path, capsys: Capture) -> None:
    words = ["evaluate", str(finished_run), "--episodes", "4", "--set", "mass=1.3x", "length=+0.1", "--json"]
    assert main(words) == 0

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    content = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    assert content["parameters"] == pytest.approx({"mass": 1.3, "length": 1.1})
    assert (content["robot"], content["episodes"], content["plant"]) == ("pendulum", 4, "nominal")
    assert content["label"] == "pendulum-rfvi"
    assert content["return_mean"] == pytest.approx(content["state_reward"] + content["action_reward"], rel=1e-5)
    assert 0.0 <= content["success_rate"] <= 1.0
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == content
    assert main([*words, "--seed", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["return_mean"] != content["return_mean"]


@pytest.mark.slow
def test_evaluation_on_another_plant(finished_run: Path, capsys: Capture) -> None:
    problem, act, _ = load_rollout_policy(finished_run)
    words = ["evaluate", str(finished_run), "--episodes", "4", "--set", "mass=1.3x", "--plant", "harsh", "--json"]
    for flags, effects in ((["--harsh", "delay=2x"], ["delay=2x"]), ([], [*EFFECTS])):
        assert main([*words, *flags]) == 0
        content = json.loads(capsys.readouterr().out)
        plant = make_plant(
            "harsh", problem, changed_parameters(problem, {"mass": Relative(1.3)}), effects, EVALUATION_SEED
        )
        expected = summary(rollouts(problem, act, sample_starts(problem, 4, EVALUATION_SEED), plant))
        assert content["harsh"] == effects
        assert {name: content[name] for name in expected} == pytest.approx(expected)


@pytest.mark.slow
def test_evaluation_with_an_observer(finished_run: Path, capsys: Capture) -> None:
    """The same numbers as a loop by hand: positions of what the plant shows, the observer, the policy.

    With a policy that holds the robot: a bad one's motion amplifies the processor's rounding.
    """
    problem, act, _ = load_rollout_policy("pendulum-rfvi")
    found = solver.evaluate("pendulum-rfvi", episodes=4, plant="harsh", observer=True, seconds=1.2)
    plant = make_plant("harsh", problem, seed=EVALUATION_SEED)
    motion, observer = plant.begin(sample_starts(problem, 4, EVALUATION_SEED)), Observer(problem, plant.sensing)
    reward = torch.zeros(4)
    for _ in range(150):
        u = observer.compensate(act(observer.estimate(motion.measured[:, :1]))[0])
        observer.sent(u)
        reward -= motion.step(u) + problem.action_cost.cost(u) * problem.control_step
    assert found.statistics["return_mean"] == pytest.approx(float(reward.mean()), rel=1e-4)
    words = ["evaluate", str(finished_run), "--episodes", "4", "--observer"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["observer"] is True
    assert main(words) == 0
    assert "pendulum-rfvi" in (line := capsys.readouterr().out)
    assert ", observer, nominal, 4 rollouts" in line


def test_rollouts_that_leave_all_bounds_are_no_result(
    finished_run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.plants.plant.integrate_period", lambda _, x, *__, **___: (x * torch.nan, x[:, 0]))
    for flags in ([], ["--json"]):
        assert "not finite" in fails(["evaluate", str(finished_run), "--episodes", "2", *flags], capsys)


@pytest.mark.slow
def test_a_wall_of_the_simulation_is_named(finished_run: Path, capsys: Capture) -> None:
    """A hundredth of the length turns the rod faster than its limit."""
    assert main(["evaluate", str(finished_run), "--episodes", "4", "--set", "length=0.01x"]) == 0
    assert "warning: 100 % of the rollouts reached the limit of angle_rate" in capsys.readouterr().err
    assert main(["evaluate", str(finished_run), "--episodes", "4"]) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "name a robot to train"),
        (["train", "pendulm"], "Did you mean `pendulum`"),
        (["train", "pendulum", "--preset", "fats"], "Did you mean `fast`"),
        (["train", "--resume", "nowhere"], "not a run folder"),
        (["evaluate", "nowhere"], "not a run folder"),
        (["plot", "nowhere"], "not a run folder"),
        (["policies", "--guesses", "3"], "is for --ship"),
        (["prove", "pendulum-rfvi", "--jobs", "2"], "is for --reach"),
    ],
)
def test_mistakes_exit_2_with_a_message(words: list[str], message: str, capsys: Capture) -> None:
    assert message in fails(words, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "train"),
        (["train", "pendulum", "--algorithm", "rfv"], "cfvi"),
        (["train", "pendulum", "--learning-rat", "1"], "--learning-rate"),
        (["train", "pendulum", "--adversary-ramp", "1"], "--adversary-ramp"),
        (["train", "pendulum", "--iterations", "0"], "iterations"),
        (["train", "pendulum", "--width", "wide"], "wide"),
        (["evaluate"], "RUN"),
        (["evaluate", "x", "--epsodes", "3"], "--episodes"),
        (["evaluate", "x", "--episodes", "many"], "many"),
        (["evaluate", "x", "--seed", "1.5"], "1.5"),
        (["evaluate", "x", "y"], "y"),
        (["evaluate", "x", "--plant", "hrash"], "harsh"),
        (["reproduce", "table"], "table1"),
    ],
)
@pytest.mark.slow
def test_mistakes_on_the_command_line_exit_2(words: list[str], message: str, capsys: Capture) -> None:
    assert message in fails(words, capsys)


@pytest.mark.slow
def test_mistakes_about_a_run(finished_run: Path, capsys: Capture) -> None:
    run = str(finished_run)
    assert "Did you mean `mass`" in fails(["evaluate", run, "--set", "mas=1.3x"], capsys)
    assert "1..100000" in fails(["evaluate", run, "--episodes", "0"], capsys)
    assert "--set stands" in fails(["evaluate", run, "--set", "mass=2", "--set", "length=1"], capsys)
    assert "Did you mean `angle`" in fails(["plot", run, "--joint", "angel"], capsys)
    assert "already holds a run" in fails(["train", "pendulum", "--out", run], capsys)
    for words in (
        ["--iterations", "9"],
        ["--seed", "0"],
        ["--preset=fast"],
        ["pendulum"],
    ):  # even where nothing changes
        assert "keeps its own" in fails(["train", "--resume", run, *words], capsys)
        assert "keeps its own" in fails(["train", *words, f"--resume={run}"], capsys)
    assert "mass is changed twice" in fails(["evaluate", run, "--set", "mass=2x", "mass=+0.1"], capsys)
    assert "99999999999" in fails(["evaluate", run, "--seed", "99999999999"], capsys)
    words = ["robustness", run, "--parameter", "mass", "--from", "0.5x", "--to", "1.5x"]
    assert "is a folder; name the figure" in fails([*words, "--out", "."], capsys)
    assert "-1" in fails([*words, "--seed", "-1"], capsys)


@pytest.mark.slow
def test_commands_and_their_help(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    text = flat(capsys.readouterr().out)
    for name, command in PROGRAM.commands.items():
        assert f"{name} {command.summary}" in text
        assert main(["help", name]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: solver {name} ")
        assert command.example in shown
        assert len(re.findall(r"^│ (--|\[?[A-Z])", shown, re.MULTILINE)) <= 14


def flat(text: str) -> str:
    """The words of a help text, without its boxes."""
    return " ".join(text.replace("│", " ").split())


def test_the_whole_help_has_every_setting(capsys: Capture) -> None:
    assert main(["train", "pendulum", "--help-all"]) == 0
    text = flat(capsys.readouterr().out)
    for name in (field.name for field in dataclasses.fields(Settings)):
        assert f"--{name.replace('_', '-')}" in text


@pytest.mark.parametrize("command", ["page", "animate", "robustness"])
def test_a_command_on_runs_needs_one(command: str, capsys: Capture) -> None:
    assert main([command]) == 2
    assert "run" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["page", "animate", "robustness"])
def test_a_list_without_a_default_shows_none(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    assert "(default: )" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "default"),
    [
        (["train", "pendulum"], 80),
        (["train", "cartpole", "--preset", "paper"], 250),
        (["baseline", "pendulum", "--algorithm", "ppo"], 1000000),
    ],
)
def test_help_has_the_defaults_that_the_command_would_take(words: list[str], default: int, capsys: Capture) -> None:
    assert main([*words, "--help"]) == 0
    setting = "--steps INT" if words[0] == "baseline" else "--iterations INT"
    assert re.search(rf"{setting} [^(]*\(default: {default}\)", flat(capsys.readouterr().out))


def test_help_without_a_robot_prints_no_default_that_another_robot_would_not_get(capsys: Capture) -> None:
    """Of the fields that a preset decides, and of no other."""
    decided: set[str] = set()
    for name in ("pendulum", "cartpole"):
        robot = load_robot(name, "cpu", None)
        for preset in PRESETS:
            for algorithm in ("rfvi", "cfvi"):
                made = make_settings(preset, robot, algorithm)
                usual = vars(Settings())
                decided |= {key for key, value in vars(made).items() if value != usual[key]}
    assert decided <= OF_ROBOT
    assert main(["train", "--help-all"]) == 0
    text = flat(capsys.readouterr().out)
    assert text.count("(default: by robot and preset)") == len(OF_ROBOT)
    assert re.search(r"--seed INT [^(]*\(default: 0\)", text)


@pytest.mark.parametrize("preset", ["fast", "paper"])
@pytest.mark.parametrize("flag", ["basin"])
def test_a_switch_can_be_turned_either_way(preset: str, flag: str) -> None:
    found = []
    for word in (f"--{flag}", f"--no-{flag}"):
        _, options = PROGRAM.read("train", ["pendulum", "--preset", preset, word])
        found.append(vars(options.settings)[flag.replace("-", "_")])
    assert found == [True, False]


@pytest.mark.slow
def test_help_and_mistakes_import_nothing_heavy() -> None:
    script = "import sys; from solver.cli import main; codes = main(['--help']), main(['trian'])\n"
    script += "sys.exit(str((codes, {'torch', 'numpy', 'sympy', 'numba'} & set(sys.modules))))"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert child.stderr.splitlines()[-1] == "((0, 2), set())"


def test_divergence_exits_1(tmp_path: Path, tiny_options: list[str], capsys: Capture) -> None:
    words = ["train", "pendulum", *tiny_options, "--learning-rate", "1e30", "--out", str(tmp_path)]
    assert "iteration 0" in fails(words, capsys, code=1)


@pytest.mark.slow
def test_overwrite_spares_the_old_run_where_the_new_one_cannot_start(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    before = {path.name: path.read_bytes() for path in run_copy.iterdir() if path.is_file()}
    assert "--device cpu" in fails(
        ["train", "pendulum", "--device", "cuda", "--overwrite", "--out", str(run_copy)], capsys
    )
    assert {path.name: path.read_bytes() for path in run_copy.iterdir() if path.is_file()} == before


def test_a_run_trained_on_a_gpu_is_evaluated_without_one(run_copy: Path, capsys: Capture) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["settings"]["device"] = "cuda"
    (run_copy / RUN).write_text(json.dumps(content))
    assert main(["evaluate", str(run_copy), "--episodes", "2"]) == 0
    assert "2 rollouts" in capsys.readouterr().out


@pytest.mark.slow
def test_overwrite_starts_anew_and_spares_other_files(run_copy: Path, tiny_options: list[str], capsys: Capture) -> None:
    (run_copy / "notes.txt").write_text("mine")
    words = ["train", "pendulum", *tiny_options, "--iterations", "1", "--out", str(run_copy), "--overwrite"]
    assert main(words) == 0
    assert load_run_checkpoint(run_copy)["iteration"] == 1
    assert (run_copy / "notes.txt").read_text() == "mine"
    capsys.readouterr()


def test_a_folder_that_cannot_be_made(tmp_path: Path, tiny_options: list[str], capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    words = ["train", "pendulum", *tiny_options, "--out", str(tmp_path / "file" / "run")]
    assert "cannot write" in fails(words, capsys)


def test_ctrl_c_during_an_evaluation_exits_130(finished_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solver.evaluation.rollouts", interrupted)
    assert main(["evaluate", str(finished_run)]) == 130
