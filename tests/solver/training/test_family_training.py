"""A family of robots: trained once, resumed bit for bit, and told its parameters wherever a policy is used."""

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
from modelgen.cli import main as modelgen
from solver.certification.counterexample import play, replay
from solver.certification.experiment import Experiment
from solver.cli import main
from solver.errors import SolverError
from solver.gym.environment import RobotEnv, RobotVectorEnv
from solver.jobs.engines import policy_reference
from solver.observer.observability import make_observer
from solver.oracles.limit import find_limit
from solver.plants import make_plant
from solver.plants.outcome import controller, rollouts
from solver.preflight import weak_corners
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.parameters import Relative
from solver.problem.robots import load_robot
from solver.runs.kinds import KINDS, load_rollout_policy, start
from solver.runs.metrics import read_metrics
from solver.training.lifecycle import plan, resume
from solver.training.settings import Settings
from solver.training.solution import load_run, load_run_checkpoint, load_solution, make_ensemble
from solver.value.frozen import FrozenValue
from tests.closeness import assert_close
from tests.solver.small_trainings import MODELS, quiet, tensors

pytestmark = pytest.mark.slow  # its fixtures train, or fit the basins of a family

GIVEN = {"mass": (0.5, 1.5), "length": (0.8, 1.2)}
ROBUST = {"state": 0.002, "action": 0.1, "observation": 0.001, "parameters": 0.05}


@pytest.fixture(scope="module")
def train(tiny: Callable[..., Settings], short: str) -> Callable[..., None]:
    """Trains a small family of short pendulums, with the basin of every context."""

    def family(folder: Path, report: Callable[[dict[str, float]], None] = quiet) -> None:
        _, run = plan("pendulum", short, given=GIVEN)
        changes: dict[str, Any] = {"basin": True, "sampling": "mixture", "reaction_periods": 1.0, "authors": False}
        run = replace(run, settings=tiny(**changes, adversaries=ROBUST))
        start(KINDS[0], run, folder, report)

    return family


@pytest.fixture(scope="module")
def family(train: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("family") / "run"
    train(folder)
    return folder


def test_run_json_names_the_ranges(family: Path) -> None:
    described = json.loads((family / "run.json").read_text())
    ends = [(entry["name"], entry["lower"], entry["upper"]) for entry in described["given"]]
    assert ends == [("mass", 0.5, 1.5), ("length", 0.8, 1.2)]
    run = load_run(family)
    assert run.label == "pendulum-rfvi"
    assert run.name == "pendulum-rfvi-fast-mass-length-seed0"
    assert run.identity() != replace(run, given=()).identity()


def test_a_resumed_family_is_an_uninterrupted_one(train: Callable[..., None], family: Path, tmp_path: Path) -> None:
    def stop(row: dict[str, float]) -> None:
        if row["iteration"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", stop)
    resume(tmp_path / "run", quiet)
    first, second = (list(tensors(load_run_checkpoint(each))) for each in (family, tmp_path / "run"))
    assert len(first) == len(second) > 10
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert read_metrics(family)[-1]["return_mean"] == read_metrics(tmp_path / "run")[-1]["return_mean"]


def test_the_policy_of_told_values_is_the_networks_at_this_context(family: Path) -> None:
    policy, x = solver.load(family).policy, np.array([[0.3, -0.2], [3.0, 1.0], [0.01, 0.0]], np.float32)
    run, checkpoint = load_run(family), load_run_checkpoint(family)
    robot = load_solution(family).problem.robot.with_nominal([1.0, 1.0])
    problem = Problem(robot, given=run.given)
    ensemble = make_ensemble(robot, run.settings, problem.context)
    ensemble.load_state_dict((checkpoint["best"] or checkpoint)["ensemble"])
    act = controller(problem, FrozenValue(ensemble), run.settings.hold)

    def expected(mass: float, length: float) -> torch.Tensor:
        c = torch.tensor([(mass - 1.0) / 0.5, (length - 1.0) / 0.2])
        return act(torch.cat([torch.from_numpy(x), c.expand(3, -1)], 1))[0]

    np.testing.assert_allclose(policy(x), expected(1.0, 1.0), rtol=1e-3, atol=1e-4)
    for mass in (0.6, np.array(0.6), torch.tensor(0.6)):
        np.testing.assert_allclose(policy(x, mass=mass), expected(0.6, 1.0), rtol=1e-3, atol=1e-4)  # type: ignore[arg-type]
    np.testing.assert_allclose(policy(x, length=0.9, mass=1.4), expected(1.4, 0.9), rtol=1e-3, atol=1e-4)
    assert np.abs(policy(x, mass=0.6) - policy(x, mass=1.4)).max() > 1e-3
    assert policy.told == ("mass", "length")
    assert "mass, length" in repr(policy)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"mas": 1.0}, "cannot be told mas. Did you mean `mass`? It is told mass, length"),
        ({"mass": 3.0}, "told mass = 3, but it was trained for 0.5 to 1.5"),
        ({"mass": float("nan")}, "mass is nan; give one finite number"),
        ({"mass": "heavy"}, "mass is 'heavy'; give one finite number"),
    ],
)
def test_wrong_values_are_refused(family: Path, told: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError) as refusal:
        solver.load(family).policy([0.1, 0.0], **told)
    assert message in str(refusal.value)


def test_a_told_parameter_among_the_states_is_refused(family: Path) -> None:
    """It would be lost without a word."""
    run, x = solver.load(family), {"angle": 0.1, "angle_rate": 0.0, "mass": 1.2}
    for function in (run.policy, run.value):
        with pytest.raises(SolverError, match=r"x has mass.*policy\(x, mass="):
            function(x)


def test_a_policy_without_told_parameters_refuses_them() -> None:
    with pytest.raises(SolverError, match=r"mass.*given"):
        solver.load("pendulum-rfvi").policy([0.1, 0.0], mass=1.2)


def test_a_value_is_that_of_the_robot_that_it_is_told(family: Path) -> None:
    """V at contexts of the network's own, and its slope by differences."""
    value, x = solver.load(family).value, np.array([[0.4, -0.5], [2.0, 1.0]])
    solution = load_solution(family, contexts=True)
    assert solution.problem.context is not None
    theta = torch.tensor([0.6, 1.1])
    expected, _ = solution.value(solution.problem.told(torch.tensor(x, dtype=torch.float32), theta))
    found, slope = value(x, mass=0.6, length=1.1)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert np.abs(found - value(x)[0]).max() > 1e-3
    ahead, behind = (value(x + np.array([step, 0]), mass=0.6, length=1.1)[0] for step in (0.01, -0.01))
    np.testing.assert_allclose(slope[:, 0], (ahead - behind) / 0.02, rtol=0.02, atol=0.02)
    with pytest.raises(SolverError, match=r"friction.*mass, length"):
        value(x, friction=1.0)
    with pytest.raises(SolverError, match="mass"):
        load_solution("pendulum-rfvi", told={"mass": 1.2})


def test_blind_and_estimates_are_for_policies_that_are_told_parameters() -> None:
    with pytest.raises(SolverError, match=r"blind is for policies that are told parameters.*leave it out"):
        solver.evaluate("pendulum-rfvi", blind=True)
    with pytest.raises(SolverError, match="told nothing that can be estimated"):
        solver.evaluate("pendulum-rfvi", observer=True, estimate=["told"])


def test_evaluate_tells_the_changed_value_unless_blind(family: Path) -> None:
    told = solver.evaluate(family, parameters={"mass": Relative(1.3)}, episodes=5)
    blind = solver.evaluate(family, parameters={"mass": Relative(1.3)}, episodes=5, blind=True)
    assert (told.told, blind.told) == (("mass",), ())
    assert told.parameters == blind.parameters == pytest.approx({"mass": 1.3, "length": 1.0})
    assert told.statistics["return_mean"] != blind.statistics["return_mean"]
    with pytest.raises(SolverError, match="evaluate with blind"):
        solver.evaluate(family, parameters={"mass": 1.9}, episodes=5)
    solver.evaluate(family, parameters={"mass": 1.9}, episodes=5, blind=True)
    observed = solver.evaluate(family, parameters={"mass": 1.3}, episodes=5, plant="harsh", observer=True)
    assert np.isfinite(observed.statistics["return_mean"])


def test_robustness_tells_every_point(family: Path, tmp_path: Path) -> None:
    words = ["robustness", str(family), "--parameter", "mass", "--from", "0.8x", "--to", "1.2x", "--points", "3"]
    words += ["--episodes", "4", "--jobs", "1", "--out"]
    assert main([*words, str(tmp_path / "told")]) == 0
    assert main([*words, str(tmp_path / "blind"), "--blind"]) == 0
    told, blind = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("told", "blind"))
    means = [one["groups"][0]["statistics"]["return_mean"]["value"] for one in (told, blind)]
    expected = solver.evaluate(family, parameters={"mass": 1.2}, episodes=4).statistics["return_mean"]
    assert_close(means[0][2], expected, 25)
    assert means[0][2] != means[1][2]
    assert_close(means[0][1], means[1][1], 25)


def test_exports_hold_the_policy_of_the_told_robot(family: Path, tmp_path: Path) -> None:
    more = ["--onnx", str(tmp_path / "policy.onnx"), "--js", str(tmp_path / "policy.js")]
    for name, told in (("nominal", []), ("told", [*more, "--set", "mass=1.4"])):
        (tmp_path / name).mkdir()
        assert main(["export", str(family), "--c", str(tmp_path / name), *told]) == 0
    texts = [(tmp_path / name / "pendulum_policy.c").read_text() for name in ("nominal", "told")]
    assert texts[0] != texts[1]
    assert main(["export", str(family), "--c", str(tmp_path), "--set", "torque=1"]) == 2


def test_a_heavier_robot_hovers_with_more_thrust(trained_family: Callable[[str], Path]) -> None:
    """The trim of the told robot, in the policy and in its cost."""
    for mass in (0.486, 0.6):
        solution = load_solution(trained_family("quadrotor"), told={"mass": mass})
        problem, thrust = solution.problem, mass * 9.81 / 4
        np.testing.assert_allclose(problem.trim, [thrust] * 4, atol=1e-4)
        u, cost = solution.controller()(problem.target[None])
        np.testing.assert_allclose(u[0], problem.trim, atol=1e-3)
        assert float(cost) == pytest.approx(0.0, abs=1e-6)


def test_the_observation_of_an_environment_ends_with_the_context(short: str) -> None:
    options: dict[str, Any] = {"generated": short, "given": GIVEN}
    envs = RobotVectorEnv("pendulum", 3, **options)
    seen, _ = envs.reset(seed=4)
    assert seen.shape == (3, 5)
    assert envs.single_observation_space.contains(seen[0])
    state = RobotEnv("pendulum", **options, observation="state")
    alone, _ = state.reset(seed=5)
    masses, lengths = 1.0 + 0.5 * seen[:, 3], 1.0 + 0.2 * seen[:, 4]
    np.testing.assert_allclose(alone[2:], [masses[1], lengths[1]], rtol=1e-6)
    np.testing.assert_allclose(envs.episodes.theta.numpy(), np.stack([masses, lengths], 1), rtol=1e-6)
    assert state.observation_space.contains(alone)
    after, *_ = envs.step(np.zeros((3, 1), np.float32))
    assert np.array_equal(after[:, 3:], seen[:, 3:])
    plain = RobotEnv("pendulum", generated=short)
    assert plain.reset(seed=4)[0].shape == (3,)


def test_the_network_of_a_family_does_not_fit_one_robot(family: Path, short: str, tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="now, or given, members"):
        solver.train("pendulum", generated=short, start_from=family, iterations=1, preview=0.0, out=tmp_path / "run")


def test_a_baseline_takes_no_told_parameters() -> None:
    with pytest.raises(SolverError, match=r"sac .*given"):
        solver.train("pendulum", algorithm="sac", given=["mass"])


def test_told_values_are_the_nominal_ones_of_the_solution(family: Path) -> None:
    solution = load_solution(family, told={"mass": 1.25})
    assert solution.problem.theta.tolist() == pytest.approx([1.25, 1.0])
    assert solution.ensemble.told == 0


def test_the_policy_is_told_the_estimates_of_every_row(family: Path) -> None:
    """The true values differ between the rows. The context is the estimate of another observer, held in the range."""
    problem, act, _ = load_rollout_policy(family, contexts=True)
    assert problem.context is not None
    theta = torch.tensor([[0.7, 0.9], [1.0, 1.1], [1.9, 1.0]])
    x = torch.tensor([[0.3, 0.0], [2.0, 1.0], [-2.5, 0.5]])
    seen = []

    def excited(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A torque more, because a robot that hangs at rest does not show its mass."""
        u, cost = act(rows)
        return u + 1.0, cost

    def spy(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(rows)
        return excited(rows)

    plant = make_plant("nominal", problem, theta, (), 0)
    motion = rollouts(problem, spy, problem.told(x, theta), plant, 2.0, observed=True, estimate=["mass"])
    observer = make_observer(problem, plant.sensing, None, ["mass"])
    observer.know(torch.stack([torch.ones(3), theta[:, 1]], 1))  # the mass is not known, the length is
    for rows, true, u in zip(seen, motion.x, motion.u, strict=False):
        states = observer.estimate(true[:, :1])
        observer.sent(u)
        assert observer.parameters is not None
        masses = ((observer.parameters[:, 0] - 1.0) / 0.5).clamp(-1.0, 1.0)
        lengths = (theta[:, 1] - 1.0) / 0.2
        torch.testing.assert_close(rows, torch.cat([states, torch.stack([masses, lengths], 1)], 1))
        torch.testing.assert_close(u, observer.compensate(excited(rows)[0]))
    torch.testing.assert_close(motion.x[1:, :, 2:], torch.stack(seen)[:, :, 2:])
    torch.testing.assert_close(seen[0][:, 2], torch.zeros(3))
    np.testing.assert_allclose(motion.estimates["mass"][:2], theta[:2, 0], rtol=0.05)
    assert float(motion.estimates["mass"][2]) > 1.5
    assert float(seen[-1][2, 2]) == 1.0


def test_with_exact_estimates_the_rollout_is_that_of_the_told_policy(family: Path) -> None:
    """The estimates start at the true values, and the measurements are exact: no innovation changes them."""
    problem, act, _ = load_rollout_policy(family, contexts=True)
    told, act_told, _ = load_rollout_policy(family, told={"mass": 1.3, "length": 0.9})
    problem.theta = told.theta
    x = torch.tensor([[3.1, 0.0], [0.2, 0.0], [-1.5, 0.0]])
    expected = rollouts(told, act_told, x)
    found = rollouts(problem, act, problem.told(x, told.theta), observed=True, estimate=["mass", "length"])
    assert_close(found.estimates["mass"], [1.3] * 3, 10_000)
    assert_close(found.estimates["length"], [0.9] * 3, 10_000)
    np.testing.assert_allclose(found.x[:50, :, :2], expected.x[:50], atol=2e-3)
    np.testing.assert_allclose(found.returns, expected.returns, rtol=1e-3)


def test_interfaces_tell_the_estimates(family: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(family), "--episodes", "3", "--set", "mass=1.3x", "length=1.1x", "--observer"]
    assert main([*words, "--estimate"]) == 0
    text = capsys.readouterr().out
    assert "mass: estimated 1." in text
    assert text.count("(the policy is told its estimate)") == 2
    assert main([*words, "--estimate", "mass"]) == 0
    text = capsys.readouterr().out
    assert "length: the policy is told 1.1\n" in text
    assert text.count("(the policy is told its estimate)") == 1
    assert main([*words, "--estimate", "--blind"]) == 0
    assert "told" not in capsys.readouterr().out
    found = solver.evaluate(family, parameters={"mass": 1.9}, episodes=3, observer=True, estimate=["told"])
    assert (found.told, found.told_estimates, found.estimate) == ((), ("mass", "length"), ("mass", "length"))
    assert found.to_json()["told_estimates"] == ["mass", "length"]
    with pytest.raises(SolverError, match=r"length = 1\.5, .*0\.8 to 1\.2"):
        solver.evaluate(family, parameters={"length": 1.5}, episodes=3, observer=True, estimate=["mass"])
    with pytest.raises(SolverError, match="pendulum-rfvi"):
        solver.evaluate("pendulum-rfvi", episodes=3, observer=True, estimate=["told"])


def test_robustness_and_certificates_tell_the_estimates(
    family: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["robustness", str(family), "--parameter", "mass", "--from", "0.8x", "--to", "1.2x", "--points", "3"]
    words += ["--episodes", "4", "--jobs", "1", "--observer", "--estimate", "--out", str(tmp_path / "found")]
    assert main(words) == 0
    text = "was told mass length: those of the point, held within the ranges of its training, but the observer's"
    assert f"{text} estimates for mass length" in capsys.readouterr().out
    means = json.loads((tmp_path / "found.json").read_text())["groups"][0]["statistics"]["return_mean"]["value"]
    options: dict[str, Any] = {"observer": True, "estimate": ["told"]}
    expected = solver.evaluate(family, parameters={"mass": 1.2}, episodes=4, **options).statistics["return_mean"]
    assert_close(means[2], expected, 25)
    path, x, theta = tmp_path / "spec.toml", torch.tensor([3.1, 0.0]), torch.tensor([1.3, 1.1])
    path.write_text('observer = true\nestimate = ["told"]\nhorizon = 0.5\n')
    experiment = Experiment(policy_reference(family), path)
    assert experiment.specification.conditions.estimate == ("mass", "length")
    worst = play(family, experiment, x, theta, 0)
    problem, motion = replay(worst)
    assert float(motion.returns) == pytest.approx(worst.total)
    assert motion.x.shape[2] == 2
    family_problem, act, _ = load_rollout_policy(family, contexts=True)
    rows, plant = family_problem.told(x[None], problem.theta), make_plant("nominal", problem, theta, (), 0)
    again = rollouts(family_problem, act, rows, plant, 0.5, observed=True, estimate=["mass", "length"])
    assert float(again.returns) == pytest.approx(worst.total, rel=1e-5)


def test_a_controller_is_told_its_estimates_and_starts_at_the_told_value(family: Path) -> None:
    controller, policy = (
        solver.load_controller(family, estimate=["told"], told={"mass": 1.3}),
        solver.load(family).policy,
    )
    u = controller([3.1])
    assert controller.parameters == pytest.approx({"mass": 1.3, "length": 1.0})
    np.testing.assert_allclose(u, policy([3.1, 0.0], mass=1.3), rtol=1e-4, atol=1e-5)
    for _ in range(50):
        controller([3.1])
    assert controller.parameters["mass"] != pytest.approx(1.3, abs=1e-4)
    with pytest.raises(SolverError, match="torque"):
        solver.load_controller(family, estimate=["mass"], told={"torque": 1.0})


def test_a_corner_that_cannot_be_held_is_warned_of(tmp_path: Path) -> None:
    """An input of 0.3 N m holds an angle of 0.3/(m g l/2): 0.24 rad with half the mass and length, 0.06 with all."""
    text = (MODELS / "pendulum.py").read_text(encoding="utf-8").replace('"torque", 2.5', '"torque", 0.3')
    (tmp_path / "pendulum.py").write_text(text, encoding="utf-8")
    assert modelgen(["build", str(tmp_path / "pendulum.py"), "--generated", str(tmp_path / "generated")]) == 0
    weak = load_robot("pendulum", "cpu", str(tmp_path / "generated")).with_nominal([0.5, 0.5])
    narrow, wide = Given("mass", 0.5, 0.6), Given("length", 0.5, 1.0)
    assert weak_corners(weak, (narrow,)) == weak_corners(weak, ()) == []
    (text,) = weak_corners(weak, (Given("mass", 0.5, 1.0), wide))
    assert "mass 1, length 1, the input is too weak to hold the target: angle" in text


def test_every_robot_of_a_family_has_the_time_of_the_slowest(family: Path) -> None:
    member, whole = load_solution(family, told={"mass": 0.6}).problem, load_solution(family, contexts=True).problem
    assert member.horizon == whole.horizon > member.robot.metadata.task.horizon
    found = solver.evaluate(family, parameters={"mass": 0.6}, episodes=2)
    assert found.horizon == whole.horizon
    assert solver.evaluate(family, episodes=2, seconds=0.2).statistics["return_mean"] > found.statistics["return_mean"]
    assert solver.simulate(family).t[-1] == pytest.approx(whole.horizon, abs=0.05)  # whole control periods
    with pytest.raises(SolverError, match="seconds is -1"):
        solver.evaluate(family, seconds=-1)


def test_the_limit_of_a_family_is_that_of_the_robot_that_it_is_told(family: Path, short: str) -> None:
    found = find_limit(str(family), {"mass": Relative(0.6)}, guesses=2, seed=0, starts=1)
    solution = load_solution(family, told={"mass": 0.6})
    start = torch.tensor(found.starts[0].start[None], dtype=torch.float32)
    own = rollouts(solution.problem, solution.controller(), start)
    assert found.run_return == pytest.approx(float(own.returns[0]), rel=1e-5)
    robot = find_limit("pendulum", {"mass": Relative(0.6)}, guesses=2, seed=0, generated=short, starts=1)
    assert found.parameters == pytest.approx(robot.parameters)
