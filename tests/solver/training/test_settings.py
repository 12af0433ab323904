"""Settings: presets, ranges, kinds, and the way through the command line and a run folder."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modelgen
from modelgen.artifact.manifest import typed
from modelgen.commandline.options import read
from solver import Action, Parameters
from solver.commands import train
from solver.errors import SolverError
from solver.game.adversaries import ADVERSARIES
from solver.training.settings import PRESETS, Settings, make_settings
from tests.solver.conftest import words_of

NAMES = [f.name for f in dataclasses.fields(Settings)]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "double_pendulum"])
def test_presets_are_valid_for_every_robot(preset: str, name: str) -> None:
    robot = modelgen.load(name, dtype="float32", parallel=False)
    settings = make_settings(preset, robot, seed=4)
    assert settings.seed == 4
    assert settings.algorithm == "rfvi"
    assert settings.adversaries.keys() == {kind.name for kind in ADVERSARIES if kind.usual > 0.0}


def test_paper_preset_has_the_authors_numbers() -> None:
    pendulum = make_settings("paper", modelgen.load("pendulum", parallel=False))
    cartpole = make_settings("paper", modelgen.load("cartpole", parallel=False))
    columns = [
        (s.trace_decay, s.layers, s.width, s.members, s.iterations, s.epochs, s.states, s.minibatch, s.learning_rate)
        for s in (pendulum, cartpole)
    ]
    assert columns == [
        (0.85, 3, 96, 4, 150, 20, 51200, 256, 3e-5),
        (0.90, 4, 64, 4, 250, 20, 51200, 512, 1e-4),
    ]
    for each in (pendulum, cartpole):
        assert (each.authors, each.sampling, each.step_periods) == (True, "uniform", (1,))
        assert each.adversaries == {"state": 0.025, "action": 0.1, "observation": 0.025, "parameters": 0.15}
        assert (each.convergence, each.basin) == (0.0, False)


def test_the_paper_preset_knows_no_robot_by_its_name(slider: str) -> None:
    """A robot of one joint gets the settings of the authors' pendulum, whatever its name."""
    pendulum = make_settings("paper", modelgen.load("pendulum", parallel=False))
    assert make_settings("paper", modelgen.load("slider", directory=slider, parallel=False)) == pendulum


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        ({"preset": "papr"}, "paper"),
        ({"preset": "fast", "learnin_rate": 1.0}, "learning_rate"),
        ({"preset": "fast", "algorithm": "cfv"}, "cfvi"),
        ({"preset": "fast", "adversaries": {"acton": 0.1}}, "action"),
        ({"preset": "fast", "sampling": "uniforms"}, "uniform"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(arguments: dict[str, Any], suggested: str) -> None:
    with pytest.raises(SolverError, match=suggested):
        make_settings(robot=modelgen.load("pendulum", parallel=False), **arguments)


def test_cfvi_is_the_preset_without_adversaries() -> None:
    robot = modelgen.load("pendulum", dtype="float32", parallel=False)
    settings, usual = make_settings("fast", robot, algorithm="cfvi"), make_settings("fast", robot)
    assert settings.algorithm == "cfvi"
    changed = {name for name, value in vars(usual).items() if value != getattr(settings, name)}
    assert changed == {"adversaries", "step_periods"}
    assert make_settings("fast", robot, adversaries=[]) == settings
    with pytest.raises(SolverError, match="action"):
        make_settings("fast", robot, algorithm="cfvi", adversaries={"action": 3.0})


def test_adversaries_are_objects_or_radii_by_name() -> None:
    robot = modelgen.load("pendulum", dtype="float32", parallel=False)
    by_name = make_settings("fast", robot, adversaries={"parameters": 0.03, "action": 0.3})
    assert make_settings("fast", robot, adversaries=[Parameters(0.03), Action(0.3)]) == by_name
    with pytest.raises(SolverError, match=r"solver\.Action"):
        make_settings("fast", robot, adversaries=[0.3])  # type: ignore[list-item]
    with pytest.raises(SolverError, match=r"give a list, for example \[solver\.Action"):
        make_settings("fast", robot, adversaries=Action(0.3))  # type: ignore[arg-type]


def test_lists_and_numbers_of_numpy_are_pythons_own() -> None:
    changes: dict[str, Any] = {"seed": np.int64(3), "limit_cost": np.float32(0.5), "basin": np.bool_(False)}
    changes |= {"step_periods": [4, 2], "adversaries": {"action": np.float32(0.5)}}
    made = Settings(**changes)
    assert made == Settings(seed=3, limit_cost=0.5, basin=False, step_periods=(4, 2), adversaries={"action": 0.5})
    assert {type(made.seed), type(made.limit_cost), type(made.basin)} == {int, float, bool}
    assert Settings(**changes | {"step_periods": np.array([4, 2])}) == made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampling", "grid"),
        ("adversary_ramp", (0.6, 0.2)),
        ("adversary_ramp", (0.6,)),
        ("adversary_ramp", (0.0, 1.5)),
        ("adversary_ramp", (0.0, math.nan)),
        ("adversary_ramp", ("a", "b")),
        ("adversary_ramp", 0.3),
        ("iterations", 0),
        ("width", 0),
        ("seed", -1),
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("trace_decay", 1.0),
        ("trace_floor", 0.0),
        ("adversaries", 0.1),
        ("step_periods", ()),
        ("step_periods", (2, 0)),
        ("step_periods", (1.5,)),
        ("modulation", "none"),
        ("device", "gpu"),
        ("states", 10**400),
        ("width", 64.0),
        ("threads", 5000),
        ("width", "64"),
        ("basin", 1),
    ],
)
def test_values_out_of_range_are_named(name: str, value: Any) -> None:
    with pytest.raises(SolverError, match=rf"setting {name} is "):
        Settings(**{name: value})


@pytest.mark.parametrize(
    "radii", [{"parameters": 1.1}, {"state": -0.1}, {"action": math.nan}, {"action": "1"}], ids=str
)
def test_a_radius_out_of_range_names_its_adversary(radii: dict[str, Any]) -> None:
    with pytest.raises(SolverError, match=next(iter(radii))):
        Settings(adversaries=radii)


@pytest.mark.parametrize(
    "changes", [{"members": 10**8}, {"layers": 10**8}, {"width": 10**5}, {"members": 90, "layers": 90, "width": 9_000}]
)
def test_networks_beyond_any_memory_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SolverError, match=r"1e\+08 weights"):
        Settings(**changes)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()).map(tuple)


@given(st.sampled_from(NAMES), VALUES | st.dictionaries(st.text(), VALUES, max_size=2))
@pytest.mark.slow
def test_any_value_gives_settings_or_a_solver_error(name: str, value: object) -> None:
    try:
        settings = Settings(**{name: value})  # type: ignore[arg-type]
    except SolverError:
        return
    assert getattr(settings, name) == value


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 2**32 - 1),
        "width": st.integers(1, 512),
        "learning_rate": st.floats(1e-6, 1.0).map(lambda x: float(f"{x:.6g}")),
        "trace_decay": st.floats(0.0, 0.99).map(lambda x: float(f"{x:.6f}")),
        "step_periods": st.lists(st.integers(1, 8), min_size=1, max_size=4).map(tuple),
        "authors": st.booleans(),
        "modulation": st.sampled_from(["wiener", "stationary"]),
        "sampling": st.sampled_from(["uniform", "spread-rollouts"]),
        "basin": st.booleans(),
        "adversaries": st.dictionaries(
            st.sampled_from(["state", "parameters"]), st.sampled_from([0.0, 0.5]), min_size=1
        ),
    },
)


@settings(max_examples=30)
@given(CHANGES)
@pytest.mark.slow
def test_settings_survive_the_command_line(changes: dict[str, Any]) -> None:
    words = [word for name, value in changes.items() for word in words_of(name, value)]
    assert read("solver train", train, words).settings == Settings(**changes)


@given(CHANGES)
def test_settings_survive_a_run_folder(changes: dict[str, Any]) -> None:
    settings = Settings(**changes)
    assert typed(Settings, json.loads(json.dumps(dataclasses.asdict(settings))), "run.json") == settings


def test_fast_follows_the_size_and_the_time_scale() -> None:
    """By one motion of the pendulum, a rod that falls, and of the reaction wheel, whose wheel spins freely."""
    made = {
        name: make_settings("fast", modelgen.load(name, dtype="float32", parallel=False))
        for name in ("pendulum", "furuta", "double_pendulum", "reaction_wheel")
    }
    wheel = math.sqrt((4.7e-5 + 0.02 * 0.063**2 + 0.3 * 0.125**2) / 9.81 / (0.02 * 0.063 + 0.3 * 0.125))
    seconds = {"pendulum": 1.0 / math.sqrt(1.5 * 9.81), "reaction_wheel": wheel}
    for name, s in made.items():
        hold = s.step_periods[1]
        if name in seconds:
            assert hold == pytest.approx(seconds[name] / 0.008 / 8.0, abs=0.5)
        assert (s.step_periods[0], s.step_periods[-1]) == (2 * hold, hold)
        assert (s.basin, s.reaction_periods, s.limit_cost, s.authors) == (True, 1.0, 1.0, False)
        assert s.sampling == "mixture"
