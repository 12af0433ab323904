"""Settings: presets, ranges, kinds, and the way through the command line and back."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import modelgen
from modelgen.commandline.reading import completed, read
from solver.commands import train
from solver.errors import SolverError
from solver.game.adversaries import ADVERSARIES
from solver.training.presets import PRESETS, make_settings
from solver.training.settings import NO_ADVERSARIES, Settings
from solver.training.stated import read_settings

NAMES = [f.name for f in dataclasses.fields(Settings)]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "double_pendulum"])
def test_presets_are_valid_for_every_robot(preset: str, name: str) -> None:
    robot = modelgen.load(name, dtype="float32", parallel=False)
    settings = make_settings(preset, robot, seed=4)
    assert settings.seed == 4
    assert settings.algorithm == "rfvi"
    assert len(settings.adversaries(settings.iterations - 1)) == len(ADVERSARIES)


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
    for settings in (pendulum, cartpole):
        assert (settings.amsgrad, settings.keep_optimiser, settings.weight_decay) == (True, False, 1e-6)
        assert [each.alpha for each in settings.adversaries(0)] == [0.025, 0.1, 0.025, 0.15]
        assert (settings.loss_power, settings.step_periods, settings.final_learning_rate) == (
            1.0,
            (1,),
            settings.learning_rate,
        )


def test_the_paper_preset_knows_no_robot_by_its_name(slider: str) -> None:
    """A robot of one joint gets the settings of the authors' pendulum, whatever its name."""
    pendulum = make_settings("paper", modelgen.load("pendulum", parallel=False))
    assert make_settings("paper", modelgen.load("slider", directory=slider, parallel=False)) == pendulum


def test_unknown_names_get_a_suggestion() -> None:
    robot = modelgen.load("pendulum", parallel=False)
    with pytest.raises(SolverError, match=r"unknown preset 'papr'.*`paper`"):
        make_settings("papr", robot)
    with pytest.raises(SolverError, match=r"unknown setting 'learnin_rate'.*`learning_rate`"):
        make_settings("fast", robot, learnin_rate=1.0)


def test_cfvi_is_a_preset_without_adversaries() -> None:
    robot = modelgen.load("pendulum", dtype="float32", parallel=False)
    settings = make_settings("fast", robot, algorithm="cfvi")
    assert settings.algorithm == "cfvi"
    assert all(settings.adversaries(k) == () for k in range(settings.iterations))
    usual = make_settings("fast", robot)
    changed = {name for name, value in vars(usual).items() if value != getattr(settings, name)}
    assert changed == {*NO_ADVERSARIES, "iterations", "step_periods"}
    assert settings.iterations >= usual.iterations * usual.adversary_ramp[0]
    with pytest.raises(SolverError, match="cfvi has no adversaries, but alpha_action is above 0"):
        make_settings("fast", robot, algorithm="cfvi", alpha_action=3.0)
    with pytest.raises(SolverError, match=r"unknown algorithm 'cfv'\. Did you mean `cfvi`"):
        make_settings("fast", robot, algorithm="cfv")


def test_settings_of_version_0_1_are_read() -> None:
    stated = {"algorithm": "cfvi", "alpha_action": 3.0, "sampled": 1.0, "holds": [4, 2], "width": 8}
    expected = Settings(**NO_ADVERSARIES, reaction_periods=1.0, step_periods=(4, 2), width=8)
    assert read_settings(stated) == expected
    assert read_settings(stated | {"algorithm": "rfvi"}) == dataclasses.replace(expected, **usual_radii(action=3.0))


def usual_radii(**others: float) -> dict[str, Any]:
    """The defaults of `Settings`, some changed."""
    return {kind.setting(): others.get(kind.name, kind.usual) for kind in ADVERSARIES}


def test_the_adversary_grows_between_the_shares_of_its_ramp() -> None:
    settings = Settings(iterations=10, adversary_ramp=(0.2, 0.6), alpha_action=2.0)
    shares = [settings.adversary_share(k) for k in range(10)]
    assert shares == pytest.approx([0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1, 1])
    assert settings.adversaries(0) == settings.adversaries(2) == ()
    radii = [{each.name: each.alpha for each in settings.adversaries(k)}["action"] for k in (4, 9)]
    assert radii == pytest.approx([1.0, 2.0])
    assert Settings(adversary_ramp=(0.0, 0.0)).adversary_share(0) == 1.0
    assert Settings(iterations=10, adversary_ramp=(0.5, 0.5)).adversary_share(4) == 0.0


def test_amsgrad_is_of_adam() -> None:
    with pytest.raises(SolverError, match="setting amsgrad is of the optimiser adam, and this is soap"):
        Settings(optimiser="soap", amsgrad=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimiser", "sgd"),
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
        ("final_learning_rate", math.inf),
        ("trace_decay", 1.0),
        ("trace_floor", 0.0),
        ("alpha_parameters", 1.1),
        ("alpha_state", -0.1),
        ("step_periods", ()),
        ("step_periods", (2, 0)),
        ("step_periods", (1.5,)),
        ("modulation", "none"),
        ("device", "gpu"),
        ("states", 10**400),
        ("width", 64.0),
        ("width", "64"),
        ("amsgrad", 1),
    ],
)
def test_values_out_of_range_are_named(name: str, value: Any) -> None:
    with pytest.raises(SolverError, match=rf"setting {name} is "):
        Settings(**{name: value})


@pytest.mark.parametrize(
    "changes", [{"members": 10**8}, {"layers": 10**8}, {"width": 10**5}, {"members": 90, "layers": 90, "width": 9_000}]
)
def test_networks_beyond_any_memory_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SolverError, match="weights; give smaller ones"):
        Settings(**changes)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()).map(tuple)


@given(st.sampled_from(NAMES), VALUES)
def test_any_value_gives_settings_or_a_solver_error(name: str, value: object) -> None:
    try:
        settings = Settings(**{name: value})  # type: ignore[arg-type]
    except SolverError:
        return
    assert getattr(settings, name) == value


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "seed": st.integers(0, 2**32 - 1),
            "width": st.integers(1, 512),
            "learning_rate": st.floats(1e-6, 1.0),
            "trace_decay": st.floats(0.0, 0.99),
            "step_periods": st.lists(st.integers(1, 8), min_size=1, max_size=4).map(tuple),
            "modulation": st.sampled_from(["wiener", "stationary"]),
            "alpha_parameters": st.floats(0.0, 0.9),
        },
    )
)
def test_settings_survive_the_command_line(changes: dict[str, Any]) -> None:
    words = []
    for name, value in changes.items():
        words += ["--" + name.replace("_", "-"), *map(str, value if isinstance(value, tuple) else [value])]
    words_given = read("solver train", train.Options, ["pendulum", *words], dict, print)
    assert completed("solver train", train.Options, words_given).settings == Settings(**changes)


def test_holds_take_equal_shares_of_the_iterations() -> None:
    settings = Settings(iterations=10, step_periods=(4, 2))
    assert [settings.trace(k).step_periods for k in range(10)] == [4] * 5 + [2] * 5
    short = Settings(iterations=1, step_periods=(4, 2, 1))
    assert short.trace(0).step_periods == 4


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
        assert (s.step_periods[0], s.step_periods[-1]) == (2 * hold, max(1, hold // 2))
        assert (s.basin, s.metric) == (True, True)
        assert (s.reaction_periods, s.target_share, s.limit_cost, s.loss_scale) == (1.0, 0.1, 1.0, 0.2)
        assert s.on_policy_share == 0.5


@pytest.mark.parametrize("algorithm", ["rfvi", "cfvi"])
def test_the_next_phase_is_where_the_steps_change_or_the_adversaries_begin(algorithm: str) -> None:
    radii = NO_ADVERSARIES if algorithm == "cfvi" else {}
    s = Settings(iterations=20, step_periods=(4, 2, 2, 2, 1), adversary_ramp=(0.5, 0.7), **radii)
    begins = [4, 16, 17] if algorithm == "cfvi" else [4, 10, 16, 17]
    for k in range(20):
        growing = algorithm == "rfvi" and k >= 10 and s.adversary_share(k) < 1.0  # from its first iteration on
        assert s.next_phase(k) == (k if growing else next((begin for begin in begins if begin > k), k)), k
        changed = k > 0 and s.trace(k).step_periods != s.trace(k - 1).step_periods
        assert (k in (4, 16)) == changed
