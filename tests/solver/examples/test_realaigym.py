"""The adapter for RealAIGym's simulator, without it."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import solver
from modelgen import compile as compile_model
from modelgen.cli import main as modelgen
from modelgen.derivation import model_file
from modelgen.loader import load
from solver.cli import main

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[3] / "examples" / "realaigym"


def imported(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def adapter() -> ModuleType:
    return imported("realaigym_controller")


@pytest.mark.parametrize("robot", ["acrobot", "pendubot"])
def test_the_tip_is_at_the_same_place(adapter: ModuleType, robot: str) -> None:
    """Theirs: links of 0.2 and 0.3 m, angles from hanging and relative. Ours: the drawing in the artifact."""
    theirs = np.random.default_rng(0).uniform(-7.0, 7.0, (50, 4))
    ours = np.stack([adapter.our_state(each) for each in theirs])
    first, both = theirs[:, 0], theirs[:, 0] + theirs[:, 1]
    height = -0.2 * np.cos(first) - 0.3 * np.cos(both)
    across = 0.2 * np.sin(first) + 0.3 * np.sin(both)
    tip = load(f"realaigym_{robot}").drawing.segments(ours)[:, -1, -1]
    np.testing.assert_allclose(tip[:, 1], height, atol=1e-9)
    np.testing.assert_allclose(np.abs(tip[:, 0]), np.abs(across), atol=1e-9)
    np.testing.assert_array_equal(ours[:, 2:], theirs[:, 2:])
    assert (np.abs(ours[:, :2]) <= math.pi).all()
    np.testing.assert_allclose(adapter.our_state([math.pi, 0.0, 0.0, 0.0]), np.zeros(4), atol=1e-12)


@pytest.mark.parametrize(("robot", "joint"), [("acrobot", 1), ("pendubot", 0)])
def test_the_motor_is_the_robots_and_its_input_is_held(adapter: ModuleType, robot: str, joint: int) -> None:
    resets: list[int] = []
    feedback = adapter.Feedback(robot, lambda x: x[2], 2, lambda: resets.append(1))
    found = [feedback([0.0, 0.0, rate, 0.0], 0.002 * step) for step, rate in enumerate([1.0, 2.0, 3.0])]
    found.append(feedback([0.0, 0.0, 4.0, 0.0], 0.0))
    found.append(feedback([0.0, 0.0, 5.0, 0.0], 0.1))  # others drove the robot meanwhile
    assert [torque[joint] for torque in found] == [1.0, 1.0, 3.0, 4.0, 5.0]
    assert not any(torque[1 - joint] for torque in found)
    assert len({id(torque) for torque in found}) == 5  # their base class adds to what it gets
    assert len(resets) == 3


@pytest.mark.parametrize("rates", ["measured", "positions", "raw"])
def test_the_observer_gets_measured_rates_only_where_there_are(
    rates: str, adapter: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every second step, the rates where they are measured; raw, nothing: the policy gets every step's state."""
    calls: list[Any] = []

    class Policy:
        def __init__(self, *given: object) -> None:
            noise = adapter.RATE_NOISE if rates == "measured" else None
            assert given == ("realaigym_acrobot", 4, "runs/any", adapter.LONGEST_DELAY, noise, ())

        def from_sensors(self, y: Any) -> float:
            assert rates != "raw"
            calls.append(list(y))
            return 0.5

        def from_state(self, x: Any) -> float:
            assert rates == "raw"
            calls.append(list(x))
            return 0.5

        def reset(self) -> None:
            calls.append("reset")

    monkeypatch.setattr(adapter, "CompiledPolicy", Policy)
    feedback = adapter.load("acrobot", "runs/any", rates)
    for step in range(4):
        feedback([math.pi, 0.1 * step, 9.0, 9.0], 0.002 * step)
    expected = [[0.0, 0.1 * step, 9.0, 9.0][: 2 if rates == "positions" else 4] for step in range(4)]
    assert ("reset" in calls) == (rates != "raw")
    found = [call for call in calls if call != "reset"]
    np.testing.assert_allclose(found, expected if rates == "raw" else expected[::2], atol=1e-12)
    with pytest.raises(ValueError, match="measured, positions or raw"):
        adapter.load("acrobot", "runs/any", "guessed")


@pytest.fixture
def here(adapter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """here() runs the commands without processes of their own, which take seconds to begin."""
    module = sys.modules[adapter.CompiledPolicy.__module__]
    call, programs = module._call, {"modelgen.cli": modelgen, "solver.cli": main}

    def called(*words: object) -> None:
        if words[1] != "-m":
            call(*words)
        else:
            assert programs[str(words[2])]([str(word) for word in words[3:]]) == 0

    return lambda: monkeypatch.setattr(module, "_call", called)


def test_the_compiled_policy_is_the_runs(
    adapter: ModuleType, finished_run: Path, here: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code against Torch; the observer's against the one in Python."""
    compiled = adapter.CompiledPolicy("pendulum", 2, str(finished_run))
    states = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 2))
    expected = solver.load_policy(finished_run)(states)
    np.testing.assert_allclose([[compiled.from_state(x)] for x in states], expected, atol=2e-4)
    controller = solver.load_controller(finished_run)
    for angle in np.linspace(3.0, 2.9, 5):
        np.testing.assert_allclose(compiled.from_sensors([angle]), controller([angle]), atol=2e-3)
    here()
    compiled = adapter.CompiledPolicy("pendulum", 2, str(finished_run), rates=0.2)
    controller = solver.load_controller(finished_run, rates={"angle_rate": 0.2})
    for angle in np.linspace(3.0, 2.9, 5):
        np.testing.assert_allclose(compiled.from_sensors([angle, -3.0]), controller([angle, -3.0]), atol=2e-3)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="runs/nothing"):
        adapter.CompiledPolicy("pendulum", 2, "runs/nothing")


def test_the_policy_of_a_family_is_told_the_estimates(
    adapter: ModuleType, trained_family: Callable[[str], Path], here: Callable[[], None]
) -> None:
    here()
    run = trained_family("pendulum")
    compiled = adapter.CompiledPolicy("pendulum", 2, str(run), estimate=["mass", "length"])
    x = [2.0, -1.0]  # without a measurement, the nominal robot's policy
    np.testing.assert_allclose(compiled.from_state(x), solver.load_policy(run)(x)[0], atol=2e-3)
    one, other = solver.load_controller(run, estimate=["mass", "length"]), solver.load_controller(run)
    angles = 3.0 - 0.4 * np.linspace(0.0, 1.0, 30) ** 2  # faster than the nominal pendulum falls
    found, expected, blind = np.array([[compiled.from_sensors([q]), one([q])[0], other([q])[0]] for q in angles]).T
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.abs(expected - blind).max() > 0.02


def test_the_tables_of_the_page_are_those_of_the_scores() -> None:
    scores = imported("scores")
    text = scores.PAGE.read_text(encoding="utf-8")
    assert scores.page(text) == text, "run python examples/realaigym/scores.py"
    assert scores.page(text.replace("| AR-EAPO |", "| another |")) == text


def test_a_row_is_the_mean_over_the_seeds_of_the_training(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "published.json").write_text('{"acrobot": {"global": {"theirs": 0.5}, "perf": {}, "robust": {}}}')
    for seed, score in ((0, 0.4), (3, 0.8)):
        result = {"robot": "acrobot", "global": {"score_mean": score, "score_std": 0.01, "runs": [1, 2]}}
        (tmp_path / "scores" / f"acrobot-rfvi-seed{seed}-raw.json").write_text(json.dumps(result))
    text = imported("scores").tables(tmp_path)
    how = "0.400, 0.800; 2 draws"
    assert f"| **acrobot-rfvi-raw** | 0.600 | {how} |\n| theirs | 0.500 | published |" in text


def test_a_training_is_on_all_boards_where_it_was_scored_on_every_one(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    published = {"acrobot": {"global": {"a": 0.5, "b": 0.6}, "perf": {"a": 0.7}, "robust": {"b": 0.4}}}
    (tmp_path / "published.json").write_text(json.dumps(published))
    for seed, score in ((0, 0.4), (1, 0.8)):
        board = {"score": score}
        state = {"robot": "acrobot", "global": {"score_mean": score, "score_std": 0.01, "runs": [1]}, "perf": board}
        (tmp_path / "scores" / f"arm-seed{seed}.json").write_text(json.dumps(state))
        robust = {"score": score / 2, "full": True, "n_levels": 1, "model": 0.0}
        measured = {"robot": "acrobot", "robust": robust} | ({} if seed else {"perf": board | {"score": 0.1}})
        (tmp_path / "scores" / f"arm-seed{seed}-measured.json").write_text(json.dumps(measured))
    text = imported("scores").tables(tmp_path)
    assert "| best row of each board | 0.600 | 0.700 | 0.400 | published |" in text
    assert "| **arm** | 0.600 (0.400) | 0.600 (0.400) | 0.300 (0.200) | 0, 1 |" in text
    assert "always" not in text, "no training was scored on every board behind the observer"


@pytest.mark.parametrize("robot", ["acrobot", "pendubot"])
def test_the_performance_boards_robot_is_the_gallerys_with_other_costs(robot: str) -> None:
    """Four lines differ: the name, both angles' costs, and the torque's."""
    text = (FOLDER.parents[1] / "models" / f"realaigym_{robot}.py").read_text(encoding="utf-8").splitlines()
    made = imported("performance_models").performance_model(robot).splitlines()
    assert len(text) == len(made)
    changed = [new.strip() for old, new in zip(text, made, strict=True) if old != new]
    assert [line.split("(")[0] for line in changed] == [
        "robot = Robot",
        "state_cost=0.1 * ",
        "+ 0.1 * ",
        "action_cost=LogCos",
    ]


@pytest.mark.parametrize(("robot", "free"), [("pendubot", 3), ("acrobot", 2)])
def test_the_robot_of_the_robustness_board_moves_as_the_gallerys(robot: str, free: int) -> None:
    """Moments and inertias about the joints are those of its masses, centres and inertias, to six digits."""
    board = compile_model(model_file.load(str(FOLDER / f"{robot}_board.py")))
    x = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 4))
    u = np.random.default_rng(1).uniform(-6.0, 6.0, (50, 1))
    moved = load(f"realaigym_{robot}").dynamics(x, u)
    np.testing.assert_allclose(board.dynamics(x, u), moved, rtol=2e-6, atol=1e-5)
    damped = list(board.nominal_parameters)
    damped[board.parameter_names.index("damping")] = 0.05
    x[:, free] = 0.0
    np.testing.assert_allclose(board.with_nominal(damped).dynamics(x, u), board.dynamics(x, u))


def test_the_boards_acrobot_is_told_what_the_board_changes() -> None:
    """A level of the lower moment, 1.15 times, as the gallery's masses and centres have it."""
    board, gallery = compile_model(model_file.load(str(FOLDER / "acrobot_board.py"))), load("realaigym_acrobot")
    of, share = dict(zip(gallery.parameter_names, gallery.nominal_parameters, strict=True)), 0.15
    inertia = of["lower_inertia"] + of["lower_mass"] * of["lower_centre"] ** 2  # about the elbow, which stays
    of["lower_centre"] *= 1.0 + share
    of["lower_inertia"] = inertia - of["lower_mass"] * of["lower_centre"] ** 2
    moment, length = of["lower_mass"] * of["lower_centre"], of["upper_length"]
    upper = of["upper_inertia"] + of["upper_mass"] * of["upper_centre"] ** 2 + of["lower_mass"] * length**2
    weight = of["upper_mass"] * of["upper_centre"] + of["lower_mass"] * length
    margin = weight / (upper + length * moment) / (moment / (inertia + length * moment))
    told = {"lower_sum": share, "lower_difference": share, "margin": margin}
    values = [told.get(n, v) for n, v in zip(board.parameter_names, board.nominal_parameters, strict=True)]
    x = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 4))
    u = np.random.default_rng(1).uniform(-6.0, 6.0, (50, 1))
    moved = gallery.with_nominal([of[name] for name in gallery.parameter_names]).dynamics(x, u)
    np.testing.assert_allclose(board.with_nominal(values).dynamics(x, u), moved, rtol=2e-6, atol=1e-5)
