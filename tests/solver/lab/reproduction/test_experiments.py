"""What an experiment trains: its methods, their settings, and mistakes in asking for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from solver.cli import main
from solver.lab.baselines.settings import baseline_settings
from solver.lab.reproduction import results_page
from solver.lab.reproduction.experiments import Choice, make_plan
from solver.lab.reproduction.runs import run_key, shipped_runs
from solver.problem.parameters import resolve
from solver.problem.robots import load_robot
from solver.training.settings import Settings
from solver.training.solution import RunDescription

Capture = pytest.CaptureFixture[str]


def test_ablation_scales_all_radii_by_the_share() -> None:
    plan = make_plan("fig-ablation", "full", Choice(robots=("furuta",), seeds=(3,)))
    found = {training.method: training.settings for training in plan.trainings}
    assert len(found) == 20
    whole, part = found["RTDP, full adversary at once, 1"], found["RTDP, full adversary at once, 0.25"]
    assert isinstance(whole, Settings)
    assert isinstance(part, Settings)
    assert part.adversaries == {name: 0.25 * radius for name, radius in whole.adversaries.items()}
    assert len(whole.adversaries) == 4
    assert whole.adversary_ramp == (0.0, 0.0)
    assert (whole.sampling, whole.seed) == ("rollouts", 3)
    remedied = found["RTDP, spread states, adversary ramped up, 1"]
    assert isinstance(remedied, Settings)
    assert remedied.sampling == "spread-rollouts"
    assert remedied.adversary_ramp[1] > 0.0
    dp = found["DP, full adversary at once, 1"]
    assert isinstance(dp, Settings)
    assert dp.sampling == "domain"
    assert found["DP, adversary ramped up, 0"].algorithm == "cfvi"


@pytest.mark.slow
def test_full_table_1_has_all_rows_of_the_paper() -> None:
    pytest.importorskip("stable_baselines3")
    plan = make_plan("table1", "full", Choice(baseline_steps=1000))
    names = [method.name for method in plan.methods]
    assert set(names) == {*results_page.RETURNS, "RTDP rFVI", "Energy, LQR", "TV-LQR"}
    assert len(plan.trainings) == len(set(plan.trainings)) == 18 * 3 * 5
    uniform = next(t for t in plan.trainings if t.method == "PPO-U UDR" and t.robot == "cartpole" and t.seed == 2)
    assert uniform.settings == baseline_settings("ppo", start="angle", randomize=True, seed=2, steps=1000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table1", "--methods", "SAC-U"], "table1 with --budget small has no method 'SAC-U'"),
        (["fig-learning", "--methods", "rFVl"], "Did you mean `rFVI`"),
        (["table1", "--seeds", "1", "1"], "--seeds 1 1"),
        (["table1", "--seeds", "-1"], "--seeds"),
        (["table1", "--robots", "pendulun"], "pendulum"),
        (["table1", "--jobs", "0"], "--jobs"),
        (["fig-robustness", "--robots", "acrobot"], "pendulum, cartpole, furuta"),
        (["table1", "--baseline-steps", "-1", "--budget", "full"], "--baseline-steps"),
        (["table1", "--baseline-steps", "10"], "--baseline-steps"),
        (["fig-value", "--seeds", "0", "1"], "fig-value shows one seed"),
    ],
)
def test_mistake_in_a_reproduce_command_is_an_error_with_its_name(
    words: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["reproduce", *words, "--runs", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*/"))


def test_energy_shaping_is_planned_for_its_robots_only() -> None:
    plan = make_plan("fig-parameters", "full", Choice(seeds=(0,)))
    planned = {(t.robot, t.method): t for t in plan.trainings}
    assert len(planned) == 5 * 5 + 3
    assert {robot for robot, method in planned if method == "Energy, LQR"} == {"pendulum", "cartpole", "furuta"}
    assert planned["acrobot", "TV-LQR"].settings.algorithm == "tvlqr"


def test_estimates_need_no_other_training_than_the_true_values() -> None:
    plan = make_plan("fig-parameters", "full", Choice(robots=("cartpole",), seeds=(0,), methods=("Told", "Estimated")))
    told, estimated = plan.trainings
    assert run_key(told.run) == run_key(estimated.run)
    assert told.run.told_names == ("cart_mass", "pole_mass", "pole_half_length", "pole_damping")


def test_a_shipped_policy_that_is_told_nothing_stands_for_no_family() -> None:
    robot = load_robot("pendulum", "cpu", None)
    (usual,) = make_plan("table1", "small", Choice(methods=("rFVI",))).trainings
    assert shipped_runs([usual])
    assert isinstance(usual.run, RunDescription)
    assert not shipped_runs([replace(usual, run=replace(usual.run, given=resolve(robot, ["mass"])))])
