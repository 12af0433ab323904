"""Exciting inputs: information against finite differences, limits, and what an identification gains from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

import modelgen
from modelgen.cli import main
from modelgen.identification import excitation, experiment
from modelgen.identification.columns import columns
from modelgen.identification.excitation import Excitation, combinations, excite, informations
from modelgen.identification.experiment import Task
from modelgen.identification.fit import fit
from modelgen.identification.identify import identify
from modelgen.identification.model import Model
from modelgen.identification.recordings import read
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import play, recordings, silent, write

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
TRUTH = np.array([1.1, 0.9])


def task(robot: CompiledRobot, seconds: float = 3.0) -> Task:
    return replace(experiment.experiment(robot, seconds=seconds), centre=np.array(robot.nominal_parameters))


@pytest.fixture(scope="module")
def asked(pendulum: CompiledRobot) -> Task:
    return task(pendulum, 4.0)


@pytest.fixture(scope="module")
def excited(pendulum: CompiledRobot, asked: Task) -> Excitation:
    return excite(pendulum, asked, 25, silent)


def motion(robot: CompiledRobot, one: Task, rate: int) -> tuple[Array, Array]:
    time = np.arange(rate) / rate
    inputs = np.asarray(robot.input_limits) * 0.5 * np.sin(7 * time)[:, None]
    return inputs, play(robot, one.centre, one.start, inputs, rate)


def test_information_is_that_of_finite_differences(pendulum: CompiledRobot, asked: Task) -> None:
    """Of two windows whose starts are eliminated by least squares, beside central differences of `play`."""
    rate = pendulum.metadata.task.control_rate
    one = replace(asked, deviations=np.array([0.01, np.nan]), weight=0.5, start=np.array([2.5, 1.0]))
    inputs, states = motion(pendulum, one, rate)
    size, expected = round(0.5 * rate), np.zeros((2, 2))
    for first in (0, size):
        point = np.concatenate([states[first], one.centre])

        def shown(point: Array, first: int = first) -> Array:
            return play(pendulum, point[2:], point[:2], inputs[first : first + size], rate)[:, 0] / 0.01

        J = np.stack([(shown(point + e) - shown(point - e)) / 2e-5 for e in 1e-5 * np.eye(4)], axis=1)
        left = J[:, 2:] - J[:, :2] @ np.linalg.lstsq(J[:, :2], J[:, 2:], rcond=None)[0]
        expected += 0.5 * left.T @ left
    found = informations(pendulum, one, inputs[:, None], states[:, None])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_an_unseen_combination_keeps_its_width(hanging: CompiledRobot) -> None:
    one = task(hanging)
    found = excite(hanging, one, 2, silent)
    factor, change = combinations(one.shape, found.shape)[-1]
    assert factor == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(change[:2] / change[0], [1.0, -0.5], rtol=1e-4)  # mass length is constant
    assert combinations(one.shape, found.shape)[0][0] > 10


def test_combinations_of_known_ellipsoids() -> None:
    root = np.array([[2.0, 0.0], [1.0, 0.5]])
    (most, first), (least, second) = combinations(root @ root.T, root @ np.diag([1 / 9, 1.0]) @ root.T)
    assert (most, least) == (pytest.approx(3.0), pytest.approx(1.0))
    np.testing.assert_allclose(np.abs(first), root[:, 0])
    np.testing.assert_allclose(np.abs(second), root[:, 1], atol=1e-12)


def test_the_input_is_zero_at_both_ends_and_the_robot_stays_within_its_limits() -> None:
    robot = modelgen.load("cartpole", parallel=False)
    one = task(robot, 2.0)
    found = excite(robot, one, 12, silent)
    assert not found.inputs[[0, -1]].any()
    assert 0.1 < np.abs(found.inputs / robot.input_limits).max() < 0.8 + 1e-9
    states = play(robot, one.centre, one.start, found.inputs[:-1], robot.metadata.task.control_rate)
    np.testing.assert_allclose(found.states, states, atol=1e-4)
    assert (np.abs(states) / robot.state_limits)[:, [0, 2, 3]].max() < 0.9


def random_inputs(excited: Excitation, rate: int, count: int) -> Array:
    """Steps of 0.1 s with the energy of the exciting input, (K, C, 1)."""
    size = rate // 10
    steps = np.random.default_rng(3).normal(size=(len(excited.inputs) // size + 1, count, 1))
    inputs = np.repeat(steps, size, axis=0)[: len(excited.inputs)]
    return np.asarray(inputs * np.sqrt((excited.inputs**2).sum() / (inputs**2).sum(axis=0)))


def test_a_fit_to_its_recording_is_narrower(
    pendulum: CompiledRobot, asked: Task, excited: Excitation, tmp_path: Path
) -> None:
    """Simulated with other parameters than it was made for, beside a random input of the same energy."""
    rate, random = pendulum.metadata.task.control_rate, np.random.default_rng(3)
    volumes = []
    for number, inputs in enumerate((excited.inputs, random_inputs(excited, rate, 1)[:, 0])):
        states = play(pendulum, TRUTH, asked.start, inputs[:-1], rate)
        states += 3e-3 * random.normal(size=states.shape)
        path = write(tmp_path / f"{number}.csv", pendulum, excited.time, states, inputs)
        _, found = fit(Model(pendulum), [read(path, pendulum.metadata, columns((), pendulum.metadata))], 0.5, silent)
        J = found.settled.sensitivity.reshape(-1, 2)
        volumes.append(1 / np.sqrt(np.linalg.det(J.T @ J)))
        np.testing.assert_allclose(found.theta, TRUTH, rtol=0.05)
    assert volumes[0] < 0.75 * volumes[1]


def test_the_expected_half_widths_are_those_of_an_identification(
    pendulum: CompiledRobot, asked: Task, excited: Excitation, tmp_path: Path
) -> None:
    rate, random = pendulum.metadata.task.control_rate, np.random.default_rng(1)
    states = play(pendulum, asked.centre, asked.start, excited.inputs[:-1], rate)
    states += asked.deviations[0] * random.normal(size=states.shape)
    path = write(tmp_path / "log.csv", pendulum, excited.time, states, excited.inputs)
    found = identify(Model(pendulum), [read(path, pendulum.metadata, columns((), pendulum.metadata))], 0.5, silent)
    ratio = np.sqrt(np.diag(found.ellipsoid.shape) / np.diag(excited.shape))
    assert (ratio > 0.5).all()
    assert (ratio < 4.0).all()  # few blocks: Hotelling's radius is larger than that of a known covariance


def test_a_set_from_wheels_that_roll_holds_the_truth(built_unseen: Callable[[str], Path], tmp_path: Path) -> None:
    """A unicycle, whose two speeds are not the rates of its three coordinates."""
    robot, random = (
        modelgen.load("unicycle", directory=built_unseen("unicycle"), parallel=False),
        np.random.default_rng(4),
    )
    truth, rate = np.array([2.2, 0.018, 0.06]), robot.metadata.task.control_rate
    one = replace(task(robot, 4.0), window=1.0)
    found = excite(robot, one, 8, silent)
    states = play(robot, truth, one.start, found.inputs[:-1], rate)
    logs = []
    for number in range(2):
        noisy = states + np.nan_to_num(one.deviations) * random.normal(size=states.shape)
        path = write(tmp_path / f"{number}.csv", robot, found.time, noisy, found.inputs)
        logs.append(read(path, robot.metadata, columns((), robot.metadata)))
    ellipsoid = identify(Model(robot), logs, 1.0, silent).ellipsoid
    away = [theta - ellipsoid.centre for theta in (truth, one.centre)]
    distances = [each @ np.linalg.solve(ellipsoid.shape, each) for each in away]
    assert distances[0] <= 1.0 < distances[1]


class TestCommand:
    def test_the_written_input_and_the_weight_of_a_sample(
        self, pendulum: CompiledRobot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        """From recordings to a file, and from it to an input; a sample counts less by what the file says."""
        monkeypatch.chdir(tmp_path)
        logs = [str(each.path) for each in recordings(pendulum, tmp_path, TRUTH, 2, 1e-3)]
        assert main(["identify", "pendulum", *logs]) == 0
        words = ["--seconds", "2", "--generations", "2", "--out", "in.csv"]
        assert main(["excite", "pendulum", "--identified", "pendulum.identified.json", *words]) == 0
        said = capsys.readouterr().out
        assert "times narrower" in said
        assert "in.csv is written" in said
        table = np.genfromtxt("in.csv", delimiter=",", names=True)
        assert table.dtype.names == ("time", "torque")
        assert table["time"][-1] == pytest.approx(2.0)
        data = json.loads(Path("pendulum.identified.json").read_text())
        data["residual"]["inflation"] = 4.0
        Path("worse.json").write_text(json.dumps(data))
        better, worse = (experiment.read(Path(each), pendulum) for each in ("pendulum.identified.json", "worse.json"))
        assert worse.weight < better.weight
        np.testing.assert_allclose(better.shape, data["ellipsoid"]["shape"])
        data["model_hash"] = "0" * 64
        Path("worse.json").write_text(json.dumps(data))
        assert main(["excite", "pendulum", "--identified", "worse.json"]) == 2
        assert "000000000000" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--share", "2"], "--share"),
            (["--highest", "900"], "is too fast"),
            (["--seconds", "0.1"], "--seconds 0.1 is shorter than a window of the identification, 0.5 s"),
            (["--noise", "angle=0"], "is no standard deviation"),
            (["--noise", "angel=1"], "angle"),
            (["--identified", "none.json"], "cannot read none.json"),
            (["--start", "angle_rate=100"], "leaves its limits without an input"),
        ],
    )
    def test_a_mistake_writes_no_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, words: list[str], said: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(["excite", "pendulum", "--seconds", "1", *words]) == 2
        assert said in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


def test_a_set_point_is_no_parameter_to_find() -> None:
    """The expected set of a rod is the same with a set-point, and the report does not name it."""
    sets = []
    for aimed in (False, True):
        rod = modelgen.Robot("aimed" if aimed else "plain")
        q = rod.revolute("q", limit=3, rate_limit=9)
        goal = rod.reference("goal", limit=0.5, unit="rad") if aimed else 0
        mass = rod.parameter("mass", 1.0, "kg", tolerance=0.2)
        rod.point_mass(mass, (0.4 * sympy.sin(q), -0.4 * sympy.cos(q)))
        rod.damp(q, rod.parameter("loss", 0.1, "N m s", tolerance=0.5))
        rod.apply(q, rod.input("torque", 3, "N m"))
        weights: dict[str, Any] = {
            "action_cost": modelgen.Quadratic(0.1),
            "target": {"q": goal},
            "start": {"q": (0.3, 0.1)},
        }
        rate: dict[str, Any] = {"horizon": 3, "weight_at_horizon": 0.6, "control_rate": 100}
        rod.task(state_cost=(q - goal) ** 2 + q.rate**2, **weights, **rate)
        robot = modelgen.compile(rod)
        asked = experiment.experiment(robot, seconds=1.0)
        found = excite(robot, asked, 1, silent)
        inputs, states = motion(robot, asked, 100)
        information = informations(robot, asked, inputs[:, None], states[:, None])
        sets.append(excitation._after(robot, asked, information)[0][-2:, -2:])
        assert "goal" not in excitation.text(robot, asked, found)
    np.testing.assert_allclose(sets[0], sets[1], rtol=1e-9)
