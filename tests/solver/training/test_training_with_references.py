"""A training of a robot with a reference: told without being asked for, and set or drawn later."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.certification.counterexample import play, replay
from solver.certification.experiment import Experiment, noises
from solver.certification.worst import play_adversaries
from solver.cli import main
from solver.errors import SolverError
from solver.evaluation import begun
from solver.evaluation.robustness import Trial, measure
from solver.evaluation.statistics import ParameterRange
from solver.jobs.engines import policy_reference
from solver.lab.reproduction import runs
from solver.lab.sweeps import read as read_sweep
from solver.plants.outcome import Rollouts, controller, rollouts
from solver.problem import Problem
from solver.problem.parameters import changed_parameters, resolve
from solver.runs.kinds import KINDS, names_to_estimate, start
from solver.streams import Purpose
from solver.training.lifecycle import plan
from solver.training.settings import Settings
from solver.training.solution import load_run, load_solution
from tests.solver.references import slide, standing
from tests.solver.small_trainings import quiet

pytestmark = pytest.mark.slow  # its fixtures train, or fit the basins of a family


@pytest.fixture(scope="module")
def run(tiny: Callable[..., Settings], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("references") / "run"
    _, described = plan("slide", str(slide(1, 25).folder.parent))
    changes: dict[str, Any] = {"basin": True, "sampling": "mixture", "reaction_periods": 1.0}
    start(KINDS[0], replace(described, settings=tiny(**changes)), folder, quiet)
    return folder


def test_run_json_holds_the_reference_and_no_name_does(run: Path) -> None:
    described = json.loads((run / "run.json").read_text())
    assert described["given"] == [{"name": "goal", "lower": -1.0, "upper": 1.0}]
    assert described["references"] == ["goal"]
    loaded = load_run(run)
    assert (loaded.label, loaded.name, loaded.told_names) == ("slide-rfvi", "slide-rfvi-fast-seed0", ("goal",))


def test_the_policy_is_told_its_goal(run: Path) -> None:
    policy, x = solver.load(run).policy, np.array([[0.3, -0.2], [1.5, 1.0], [0.41, 0.0]], np.float32)
    assert policy.told == ("goal",)
    solution = load_solution(run, contexts=True)
    act = controller(solution.problem, solution.value, solution.run.settings.hold)
    for goal in (-0.7, 0.0, 0.4):
        rows = torch.cat([torch.from_numpy(x), torch.full((3, 1), goal)], 1)
        np.testing.assert_allclose(policy(x, goal=goal), act(rows)[0], rtol=1e-3, atol=1e-3)
    assert solver.load(run).policy([0.5, 0.0], goal=0.5) == pytest.approx(0.0, abs=1e-3)
    with pytest.raises(SolverError, match=r"goal is 1\.4, .*-1 to 1"):
        policy(x, goal=1.4)


def test_another_goal_opens_no_file(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, value = solver.load(run).policy, solver.load(run).value

    def closed(*_: object, **__: object) -> None:
        raise AssertionError("the run is loaded again")

    monkeypatch.setattr("solver.policy.load_solution", closed)
    monkeypatch.setattr("solver.training.solution.load_run_checkpoint", closed)
    assert policy([0.2, 0.0], goal=0.3)[0] > 0.0 > policy([0.2, 0.0], goal=-0.3)[0]
    assert value([0.3, 0.0], goal=0.3)[0] == pytest.approx(0.0, abs=1e-6)
    assert policy(torch.tensor([0.2, 0.0], requires_grad=True), goal=0.1).requires_grad


def test_an_evaluation_draws_sets_and_moves_the_goal(run: Path) -> None:
    drawn = solver.load(run).evaluate(episodes=5)
    assert (drawn.drawn, drawn.told, set(drawn.parameters)) == (("goal",), (), {"mass"})
    assert drawn.at_rest["s"][0] <= drawn.at_rest["s"][1]
    told = solver.load(run).evaluate({"goal": 0.8}, episodes=5)
    assert (told.drawn, told.told, told.parameters["goal"]) == ((), ("goal",), pytest.approx(0.8))
    heavy = solver.load(run).evaluate({"mass": 1.9}, episodes=5)
    assert (heavy.drawn, heavy.told) == (("goal",), ())
    assert heavy.statistics["return_mean"] != drawn.statistics["return_mean"]
    jumping = solver.load(run).evaluate(episodes=2, jump=0.5, plant="harsh", observer=True)
    assert jumping.jump == 0.5
    assert json.loads(json.dumps(jumping.to_json()))["at_rest"]["s"]["mean"] == jumping.at_rest["s"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jump": 2.0, "parameters": {"goal": 0.1}}, "of parameters"),
        ({"jump": 0.1}, "jump 0.1: "),
        ({"parameters": {"goal": -1.2}}, "goal is -1.2"),
    ],
)
def test_jumps_and_goals_that_cannot_be_are_refused(run: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        solver.load(run).evaluate(**options)


def test_a_policy_without_references_cannot_jump(finished_run: Path) -> None:
    with pytest.raises(SolverError, match=r"robot\.reference"):
        solver.load(finished_run).evaluate(jump=2.0)


def test_nobody_estimates_the_goal(run: Path) -> None:
    with pytest.raises(SolverError, match=r"estimate.*`all`"):
        names_to_estimate(run, ["told"])


def test_robustness_draws_goals_at_every_point(run: Path) -> None:
    trial = Trial(episodes=8)
    result = measure([run], [ParameterRange("mass", 0.9, 1.1, 3, False)], trial)
    (group,) = result.groups
    assert all(np.isfinite(np.asarray(statistic.value)).all() for statistic in group.statistics.values())
    with pytest.raises(SolverError, match="goal"):
        measure([run], [ParameterRange("goal", -0.5, 0.5, 3, True)], trial)


def test_the_command_robustness_names_the_goals_that_are_drawn(
    weighed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--parameter", "mass", "--from", "0.9x", "--to", "1.1x", "--points", "2", "--episodes", "2", "--jobs", "1"]
    assert main(["robustness", str(weighed), *words, "--blind", "--out", str(tmp_path / "found")]) == 0
    assert "was told mass: nominal; goal: random in every rollout" in capsys.readouterr().out


def test_the_command_says_what_was_drawn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--episodes", "5", "--jump", "2"]) == 0
    printed = capsys.readouterr().out
    assert "goal: random in every rollout, another one after every 2 s, and told" in printed
    assert "s: " in printed
    assert "from its target at the end, at most" in printed


def test_a_start_moves_with_the_goal_that_is_set() -> None:
    """A state without a start starts at its target: at the goal of the robot, and not at a random one."""
    problem = Problem(standing(), given=resolve(standing(), ["mass"]))
    theta = changed_parameters(problem, {"goal": 0.6})
    rows, robots = begun(problem, theta, changed_parameters(problem, {"mass": 1.9, "goal": 0.6}), (), 50, 0)
    assert robots is theta
    assert float((rows[:, 0] - 0.6).abs().max()) < 1e-6
    assert problem.context is not None
    np.testing.assert_allclose(problem.context.theta(rows[:, 2:]).numpy(), [[0.6, 1.9]] * 50, rtol=1e-6)


@pytest.fixture(scope="module")
def weighed(tiny: Callable[..., Settings], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is told its mass too, against an adversary of what is told."""
    folder = tmp_path_factory.mktemp("weighed") / "run"
    _, described = plan("slide", str(slide(1, 25).folder.parent), given=["mass"])
    settings = tiny(iterations=2, basin=True, adversaries={"told": 3.0})
    start(KINDS[0], replace(described, settings=settings), folder, quiet)
    return folder


def test_a_policy_with_told_values_keeps_them_where_goals_are_drawn(weighed: Path) -> None:
    light, heavy = (solver.policy.load_policy(weighed, told={"mass": mass}) for mass in (1.05, 1.95))
    goals: list[dict[str, float]] = [{}, {"goal": 0.4}]
    for parameters in goals:
        returns = [solver.evaluate(one, episodes=5, parameters=parameters).statistics for one in (light, heavy)]
        assert returns[0]["return_mean"] != returns[1]["return_mean"]


def test_a_certificate_is_about_the_goals_of_its_specification(run: Path, tmp_path: Path) -> None:
    def experiment(goal: float) -> Experiment:
        (tmp_path / "spec.toml").write_text(f"[parameters.absolute]\ngoal = [{goal}, {goal}]\n")
        return Experiment(policy_reference(run), tmp_path / "spec.toml")

    tested, policy = experiment(0.8), solver.load(run)
    case = play(run, tested, torch.tensor([0.1, 0.0]), torch.tensor([0.8, 1.3]), 0)
    expected = solver.simulate(policy, {"s": 0.1, "s_rate": 0.0}, parameters={"goal": 0.8}).total_reward
    assert case.total == pytest.approx(expected, rel=1e-4)
    assert replay(case)[1].returns.item() == pytest.approx(case.total, rel=1e-6)
    with pytest.raises(SolverError, match=r"goal is \[1\.2, 1\.2\], beyond the range of the training"):
        experiment(1.2)
    x, theta = tested.specification.distribution(tested.problem, tested.specification.distribution.sample(3, 0))
    theta[:, tested.problem.robot.parameter_names.index("goal")] = 1.2
    with pytest.raises(SolverError, match=r"goal is 1\.2, outside"):
        tested.outcomes(x, theta, noises(3, 0, Purpose.CERTIFICATE))


def test_a_certificate_plays_the_adversary_of_what_is_told(weighed: Path) -> None:
    experiment = Experiment(policy_reference(weighed))
    opposed = play_adversaries(experiment, load_solution(weighed, contexts=True), 0)
    assert opposed is not None
    assert opposed.adversaries == ("told",)


def test_a_function_is_judged_by_the_goal_that_is_set() -> None:
    """A mass at rest pays 2 (s - goal)^2 per second."""

    def idle(x: np.ndarray) -> np.ndarray:
        return np.zeros((len(x), 1))

    for goal in (0.0, 0.8):
        rest = solver.simulate(idle, {"s": 0.8, "s_rate": 0.0}, robot=slide(), parameters={"goal": goal})
        assert rest.total_reward == pytest.approx(-2 * (0.8 - goal) ** 2 * 4, abs=1e-5)
        assert rest.is_success == (goal == 0.8)
    with pytest.raises(SolverError, match=r"goal is 1\.2"):
        solver.evaluate(idle, robot=slide(), episodes=2, parameters={"goal": 1.2})


def test_figures_are_of_the_goal_that_is_set(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goals = []

    def seen(problem: Problem, *rest: Any) -> Rollouts:
        goals.append(float(problem.target[0]))
        return rollouts(problem, *rest)

    monkeypatch.setattr("solver.evaluation.plots.rollouts", seen)
    monkeypatch.setattr("solver.plants.outcome.rollouts", seen)
    solver.load(run).plot(tmp_path, parameters={"goal": 0.5})
    assert main(["animate", str(run), "--set", "goal=0.4", "--out", str(tmp_path / "slide.gif")]) == 0
    assert goals == pytest.approx([0.5, 0.4])


def test_a_sweep_plans_what_its_trainings_train(tmp_path: Path) -> None:
    generated = str(slide().folder.parent)
    (tmp_path / "sweep.toml").write_text('robots = ["slide"]\nseeds = [0]\n[settings.usual]\nalgorithm = "cfvi"\n')
    (planned,) = read_sweep(tmp_path / "sweep.toml", generated, 1)
    _, trained = plan("slide", generated, algorithm="cfvi", threads=1)
    assert runs.run_key(planned.run) == runs.run_key(trained)


def test_a_horizon_is_told_where_it_is_not_that_of_the_task(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "_slowness", lambda *_: 2.0)
    found = [solver.load(run).evaluate(episodes=2, seconds=seconds).horizon for seconds in (None, 0.2, 1.0)]
    assert found == [2.0, 0.2, None]
