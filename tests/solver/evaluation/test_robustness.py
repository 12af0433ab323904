"""Robustness: statistics against NumPy, bootstrap against SciPy, sweep against single evaluations, figure and JSON."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import scipy.stats
import torch

import solver
from modelgen.cli import main as modelgen_main
from modelgen.derivation.model_file import SHIPPED
from solver.cli import main
from solver.errors import SolverError
from solver.evaluation.robustness import Trial, gathered, measure, submit
from solver.evaluation.statistics import (
    QUANTITIES,
    STATISTICS,
    WORST_CASES,
    ParameterBox,
    ParameterRange,
    Samples,
    bootstrap,
    make_box,
    statistics,
    summarise,
)
from solver.jobs.engines import Here, policy_reference
from solver.plants import make_plant
from solver.plants.outcome import rollouts, sample_starts
from solver.plants.plant import Nominal
from solver.problem.parameters import Relative, changed_parameters
from solver.runs.kinds import load_rollout_policy
from solver.streams import EVALUATION_SEED
from solver.training.settings import Settings
from solver.training.solution import load_solution
from tests.solver.small_trainings import start

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]
TrainTiny = Callable[..., None]


def draws(runs: int, points: int = 3, episodes: int = 7) -> np.ndarray:
    """Samples of several runs, (runs, 4, points, episodes). Runs differ more than the episodes of one run."""
    random = np.random.default_rng(4)
    samples = random.normal(-30.0, 1.0, (runs, 4, points, episodes)) + random.normal(0.0, 3.0, (runs, 1, 1, 1))
    samples[:, 3] = random.random((runs, points, episodes)) < 0.7
    return samples


def test_statistics_of_a_group_pool_all_its_rollouts() -> None:
    samples = draws(4)
    pooled_statistics = statistics(samples)
    assert tuple(pooled_statistics) == STATISTICS
    for point in range(3):
        for k, quantity in enumerate(QUANTITIES):
            values = np.concatenate([run[k, point] for run in samples])
            for share in (25, 50, 75):
                assert pooled_statistics[f"{quantity}_{share}"][point] == pytest.approx(
                    np.quantile(values, share / 100)
                )
        returns = np.concatenate([run[0, point] for run in samples])
        assert pooled_statistics["return_mean"][point] == pytest.approx(returns.mean())
        assert pooled_statistics["return_worst"][point] == returns.min()
        assert pooled_statistics["success_rate"][point] == pytest.approx(
            np.mean([run[3, point].mean() for run in samples])
        )


# A few runs give only a few resampled means, so that both intervals must agree closely.
@pytest.mark.parametrize(("count", "share"), [(4, 0.02), (6, 0.03), (12, 0.06)])
def test_intervals_agree_with_scipys_bootstrap_over_runs(count: int, share: float) -> None:
    samples = draws(count)
    bounds = bootstrap(lambda pooled: statistics(pooled)["return_mean"], samples)
    assert bounds is not None
    for point in range(3):
        means = samples[:, 0, point].mean(1)
        theirs = scipy.stats.bootstrap((means,), np.mean, method="percentile", n_resamples=20000, rng=1)
        width = theirs.confidence_interval.high - theirs.confidence_interval.low
        np.testing.assert_allclose(bounds[:, point], theirs.confidence_interval, atol=share * width)
        assert width > 2.0 * 1.96 * 1.0 / np.sqrt(7 * count)  # wider than the interval of independent rollouts


def test_one_run_has_no_interval() -> None:
    assert bootstrap(lambda pooled: pooled, draws(1)) is None


def test_lowest_statistic_has_its_parameters_and_interval(runs: list[Path]) -> None:
    problem = load_solution(runs[0]).problem
    box = make_box(problem, [ParameterRange("mass", 0.5, 1.5, 3, False), ParameterRange("length", -0.1, 0.1, 2, True)])
    samples = draws(5, points=6)
    samples[:, 0, 4] -= 40.0  # mass 1.5, length 0.9
    group = summarise("x", ("a",) * 5, list(samples), box)
    assert tuple(group.worst) == WORST_CASES
    worst = group.worst["return_mean"]
    assert worst.parameters == pytest.approx({"mass": 1.5, "length": 0.9})
    assert worst.statistic.value == pytest.approx(samples[:, 0, 4].mean())
    assert worst.statistic.low == pytest.approx(group.statistics["return_mean"].low[2][0])
    assert worst.statistic.high == pytest.approx(group.statistics["return_mean"].high[2][0])
    assert worst.statistic.low < worst.statistic.value < worst.statistic.high


def test_grid_has_all_combinations_with_the_last_parameter_fastest(runs: list[Path]) -> None:
    problem = load_solution(runs[0]).problem
    box = make_box(problem, [ParameterRange("length", 0.5, 1.5, 3, False), ParameterRange("mass", -0.2, 0.2, 2, True)])
    assert box.shape == (3, 2)
    np.testing.assert_allclose(
        box.theta, [[0.8, 0.5], [1.2, 0.5], [0.8, 1.0], [1.2, 1.0], [0.8, 1.5], [1.2, 1.5]], rtol=1e-6
    )
    assert [axis.values for axis in box.axes] == [(0.5, 1.0, 1.5), pytest.approx((0.8, 1.2))]
    assert [(axis.unit, axis.nominal, axis.added) for axis in box.axes] == [("m", 1.0, False), ("kg", 1.0, True)]


def sweep(run: Path, box: ParameterBox, trial: Trial, at_once: int = 1024) -> Samples:
    """Samples of one policy, computed in this process."""
    return gathered(load_rollout_policy(run)[0], box, submit(Here(), policy_reference(run), box, trial, at_once))


@pytest.mark.parametrize("plant", ["nominal", "harsh", "mujoco"])
def test_samples_at_a_point_equal_rollouts_with_its_parameters(runs: list[Path], plant: str) -> None:
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    problem, act, _ = load_rollout_policy(runs[0])
    box = make_box(problem, [ParameterRange("mass", 0.5, 1.5, 3, False)])
    samples = sweep(runs[0], box, Trial(plant, (), 4, 11), 8)  # two points at once
    for point, factor in enumerate((0.5, 1.0, 1.5)):
        changed = make_plant(plant, problem, changed_parameters(problem, {"mass": Relative(factor)}), (), 11)
        result = rollouts(problem, act, sample_starts(problem, 4, 11), changed)
        expected = torch.stack([result.returns, result.state_reward, result.action_reward, result.success.float()])
        np.testing.assert_allclose(samples[:, point], expected, rtol=2e-3, atol=1e-3)
    assert abs(samples[0, 0] - samples[0, 2]).max() > 0.1


def test_solver_robustness_writes_a_figure_and_json(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    words = [
        *map(str, runs),
        "--parameter",
        "mass",
        "--from",
        "0.5x",
        "--to",
        "1.5x",
        "--points",
        "3",
        "--episodes",
        "4",
        "--jobs",
        "1",
    ]
    out = tmp_path / "figures" / "over.mass"
    assert main(["robustness", *words, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "over.mass.json" in printed.out
    picture = matplotlib.image.imread(out.with_name("over.mass.png"))
    assert len(np.unique(picture[..., :3] @ np.array([1.0, 300.0, 90000.0]))) > 30
    content = json.loads(out.with_name("over.mass.json").read_text())
    assert content.keys() == {
        "robot",
        "plant",
        "effects",
        "observer",
        "episodes",
        "seed",
        "axes",
        "groups",
        "reaction_periods",
        "estimate",
        "blind",
    }
    (axis,) = content["axes"]
    assert axis == {
        "parameter": "mass", "unit": "kg", "nominal": 1.0, "added": False,
        "changes": [0.5, 1.0, 1.5], "values": [0.5, 1.0, 1.5],
    }  # fmt: skip
    first, second = content["groups"]
    assert first["runs"] == [str(run) for run in runs[:3]]
    assert second["runs"] == [str(runs[3])]
    assert first["label"] in printed.out
    for group in (first, second):
        assert tuple(group["statistics"]) == STATISTICS
        assert tuple(group["worst"]) == WORST_CASES
        for statistic in group["statistics"].values():
            assert statistic.keys() == {"value", "low", "high"}
            assert len(statistic["value"]) == 3
        assert group["worst"]["success_rate"].keys() == {"statistic", "parameters"}
    assert second["statistics"]["return_mean"]["low"] is None
    assert len(first["statistics"]["return_mean"]["low"]) == 3
    problem, act, _ = load_rollout_policy(runs[3])
    nominal = rollouts(problem, act, sample_starts(problem, 4, content["seed"]), Nominal(problem)).returns.mean()
    assert second["statistics"]["return_mean"]["value"][1] == pytest.approx(float(nominal), rel=1e-3)


def test_python_measures_what_the_command_does(runs: list[Path], tmp_path: Path) -> None:
    trial = Trial(episodes=3)
    ranges = [ParameterRange("mass", 0.5, 1.5, 3, added=False)]
    expected = measure(runs, ranges, trial)
    ends = Relative(0.5), Relative(1.5)
    out = tmp_path / "over.mass"
    (found,) = solver.robustness(*runs, parameters={"mass": ends}, points=3, episodes=3, out=out)
    assert found == expected
    assert json.loads((tmp_path / "over.mass.json").read_text())["robot"] == "pendulum"
    assert (tmp_path / "over.mass.png").exists()
    (in_si,) = solver.robustness(*map(solver.load, runs), parameters={"mass": (0.5, 1.5)}, points=3, episodes=3)
    assert in_si.axes[0].values == pytest.approx(expected.axes[0].values)
    assert in_si.axes[0].changes == pytest.approx((-0.5, 0.0, 0.5))
    each = solver.robustness(runs[0], episodes=1)
    assert [result.axes[0].parameter for result in each] == ["mass", "length"]


@pytest.mark.parametrize(
    ("parameters", "points", "message"),
    [
        ({"mas": (0.5, 1.5)}, None, "Did you mean `mass`"),
        ({"mass": (0.5, "1.5")}, None, "two numbers in SI units"),
        ({"mass": (1.5, 0.5)}, None, "1.5 to 0.5; give the smaller value first"),
        ({"mass": (Relative(1.5), Relative(0.5))}, None, "a start below the end"),
        ({"mass": (0.5, 1.5)}, 1, "at least two points"),
        ({}, 5, "give both, or leave points out"),
    ],
)
def test_python_explains_a_wrong_range(runs: list[Path], parameters: Any, points: int | None, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        solver.robustness(runs[0], parameters=parameters, points=points)


def test_solver_robustness_measures_a_grid_of_two_parameters(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--parameter", "mass", "length", "--from", "-0.1", "-0.2", "--to", "+0.1", "--points", "3", "2"]
    words += ["--plant", "harsh", "--harsh", "delay", "noise=2x", "--episodes", "2", "--jobs", "1"]
    assert main(["robustness", str(runs[0]), str(runs[3]), *words]) == 0
    stem = tmp_path / "runs" / "robustness-pendulum-harsh-delay-noise=2x-mass-length"
    content = json.loads(stem.with_name(f"{stem.name}.json").read_text())
    assert content["effects"] == ["delay", "noise=2x"]
    assert [axis["values"] for axis in content["axes"]] == [pytest.approx([0.9, 1.0, 1.1]), pytest.approx([0.8, 1.1])]
    for group in content["groups"]:
        assert np.shape(group["statistics"]["success_rate"]["value"]) == (3, 2)
        assert group["worst"]["return_mean"]["parameters"].keys() == {"mass", "length"}
    assert stem.with_name(f"{stem.name}.png").is_file()


def test_groups_hold_runs_that_differ_in_their_seeds_only(
    runs: list[Path], train_tiny: TrainTiny, tmp_path: Path
) -> None:
    train_tiny(tmp_path / "weaker", iterations=1, step_periods=(1,), adversaries={"action": 0.07})
    result = measure([*runs, tmp_path / "weaker"], [range_of_mass()], Trial(episodes=2))
    groups = {group.label: list(group.runs) for group in result.groups}
    *same, nominal = map(str, runs)
    assert groups == {
        f"pendulum-rfvi ({runs[0].name})": same,
        "pendulum-cfvi": [nominal],
        "pendulum-rfvi (weaker)": [str(tmp_path / "weaker")],
    }


def test_copies_of_a_run_and_runs_of_another_artifact_are_an_error(
    runs: list[Path], tiny: Callable[..., Settings], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(runs[0], tmp_path / "copy"))
    with pytest.raises(SolverError, match=rf"copy .*{runs[0].name}"):
        measure([runs[0], copy], [range_of_mass()], Trial(episodes=2))
    text = (SHIPPED / "pendulum.py").read_text()
    (tmp_path / "pendulum.py").write_text(text.replace('"mass", 1.0', '"mass", 1.2'))
    generated = str(tmp_path / "generated")
    assert modelgen_main(["build", str(tmp_path / "pendulum.py"), "--generated", generated]) == 0
    start("pendulum", "fast", tiny(iterations=1, step_periods=(1,)), tmp_path / "heavy", generated, lambda _: None)
    with pytest.raises(SolverError, match="pendulum"):
        measure([runs[0], tmp_path / "heavy"], [range_of_mass()], Trial(episodes=2))


def test_noise_of_the_plant_depends_only_on_the_seed(runs: list[Path]) -> None:
    box = make_box(load_rollout_policy(runs[0])[0], [range_of_mass()])
    first, again, other = (sweep(runs[0], box, Trial("harsh", ("noise",), 2, seed)) for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_solver_robustness_has_the_seed_of_the_evaluations_by_default(runs: list[Path], tmp_path: Path) -> None:
    words = [str(runs[0]), "--parameter", "mass", "--from", "0.9x", "--to", "1.1x", "--points", "2", "--episodes", "2"]
    words += ["--jobs", "1"]
    for seed, flag in ((EVALUATION_SEED, []), (7, ["--seed", "7"])):
        assert main(["robustness", *words, *flag, "--out", str(tmp_path / "x")]) == 0
        assert json.loads((tmp_path / "x.json").read_text())["seed"] == seed


def test_interval_of_the_lowest_statistic_belongs_to_the_minimum_over_the_points(runs: list[Path]) -> None:
    """Two points are the worst in turns, so that the interval of one of them is not the interval of the minimum."""
    box = make_box(load_solution(runs[0]).problem, [range_of_mass()])
    samples = np.zeros((4, 4, 2, 3))
    samples[:, 0] = np.array([[-40.0, -10.0], [-10.0, -40.0], [-40.0, -10.0], [-10.0, -40.0]])[:, :, None]
    worst = summarise("x", ("a",) * 4, list(samples), box).worst["return_mean"].statistic
    draws = np.array(list(itertools.product(range(4), repeat=4)))
    lowest = samples[draws, 0].mean((1, 3)).min(1)  # all possible resamples
    assert worst.value == -25.0
    assert (worst.low, worst.high) == pytest.approx(tuple(np.percentile(lowest, (2.5, 97.5))))
    assert worst.high == -25.0  # in no resample the lower point is above the middle


def test_label_of_an_interrupted_training_has_its_number_of_iterations(train_tiny: TrainTiny, tmp_path: Path) -> None:
    def stop(_: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path, report=stop, iterations=3, step_periods=(1,))
    assert load_rollout_policy(tmp_path)[2].endswith("(after 1 of 3 iterations)")


def range_of_mass(start: float = 0.5, end: float = 1.5, points: int = 2, name: str = "mass") -> ParameterRange:
    """Range of a parameter in multiples of its nominal value."""
    return ParameterRange(name, start, end, points, False)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([range_of_mass(name="mas")], "`mass`"),
        ([range_of_mass(start=-0.5)], "mass to -0.5"),
        ([range_of_mass(points=1)], "1 points"),
        ([range_of_mass(start=2.0)], r"from 2 to 1\.5"),
        ([range_of_mass(end=float("inf"))], "to inf"),
        ([range_of_mass(), range_of_mass()], "mass mass"),
        ([], "parameters"),
    ],
)
def test_range_that_is_not_valid_is_an_error(runs: list[Path], ranges: list[ParameterRange], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        measure([runs[0]], ranges, Trial())


def test_a_wrong_robustness_command_names_its_mistake(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    run, mass = str(runs[0]), ["--parameter", "mass", "--from", "0.5x", "--to", "1.5x"]

    def message(*words: str) -> str:
        assert main(["robustness", *words, "--out", str(tmp_path / "none")]) == 2
        return capsys.readouterr().err

    for low, high in (("0.5", "1.5"), ("0.5x", "+0.1")):
        assert low in message(run, "--parameter", "mass", "--from", low, "--to", high)
    assert "twice" in message(run, run, *mass)
    assert "2 values for 1" in message(run, *mass, "--points", "3", "4")
    assert "--parameter stands 2" in message(run, *mass, "--parameter", "length")
    assert "1..100000" in message(run, *mass, "--episodes", "0")
    assert "add --plant harsh" in message(run, *mass, "--harsh", "noise")
    assert "--harsh is for --plant harsh" in message(run, *mass, "--harsh")
    assert "not a run folder" in message(str(tmp_path), *mass)
    assert "cartpole, pendulum" in message(run, "cartpole-rfvi", *mass)
    assert not list(tmp_path.glob("none*"))
    assert "name one, or leave them out" in message(run, "--from", "0.5x")
    assert "needs --from and --to" in message(run, "--parameter", "mass")


@pytest.mark.parametrize("factor", [0.4, 1.2, 1.8])
def test_a_policy_that_is_told_the_nearest_value_is_that_of_the_end_of_its_range(
    trained_family: Callable[[str], Path], factor: float
) -> None:
    """Told 0.5 to 1.5 times the mass. The same rollouts by hand: the policy of the held mass on the true robot."""
    run, seconds = trained_family("pendulum"), 1.0
    trial = Trial(episodes=4, seconds=seconds)
    (group,) = measure([run], [ParameterRange("mass", factor, factor + 1e-3, 2, added=False)], trial).groups
    problem, act, _ = load_rollout_policy(run, told={"mass": Relative(min(max(factor, 0.5), 1.5))})
    theta = changed_parameters(problem, {"mass": factor})
    starts = sample_starts(problem, 4, EVALUATION_SEED)
    by_hand = rollouts(problem, act, starts, Nominal(problem, theta), seconds).returns
    assert float(group.statistics["return_mean"].value[0]) == pytest.approx(float(by_hand.mean()), rel=1e-5)


def test_a_blind_policy_is_not_told_the_estimates(trained_family: Callable[[str], Path]) -> None:
    family = trained_family("pendulum")
    mass = ParameterRange("mass", 1.0, 1.4, 2, added=False)
    options: dict[str, Any] = {"observer": True, "estimate": ("told",)}
    (group,) = measure([family], [mass], Trial(episodes=4, blind=True, **options)).groups
    blind = solver.evaluate(family, parameters={"mass": 1.4}, episodes=4, blind=True, **options)
    told = solver.evaluate(family, parameters={"mass": 1.4}, episodes=4, **options)
    assert float(group.statistics["return_mean"].value[1]) == pytest.approx(blind.statistics["return_mean"], rel=1e-4)
    assert abs(told.statistics["return_mean"] - blind.statistics["return_mean"]) > 1e-3


def test_all_rollouts_of_robustness_last_as_long_as_those_of_the_slowest_family(
    trained_family: Callable[[str], Path],
) -> None:
    family, plain = trained_family("pendulum"), Path("pendulum-rfvi")
    alone, seconds = (load_rollout_policy(run).problem.horizon for run in (plain, family))
    assert alone < seconds  # with 1.4 times the mass it is late
    mass = ParameterRange("mass", 1.0, 1.4, 2, added=False)
    (group,) = (g for g in measure([family, plain], [mass], Trial(episodes=4)).groups if str(plain) in g.runs)
    expected = solver.evaluate(plain, parameters={"mass": 1.4}, episodes=4, seconds=seconds)
    assert float(group.statistics["return_mean"].value[1]) == pytest.approx(
        expected.statistics["return_mean"], rel=1e-4
    )
