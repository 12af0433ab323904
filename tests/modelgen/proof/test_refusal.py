"""A model that is wrong somewhere on the domain is refused with its line, expression and point, and is refuted."""

from __future__ import annotations

import time

import pytest
from sympy import Abs, cos, exp, pi, sign, sin, sympify

from tests.modelgen.support.proofs import Draft, built, proof, statuses


@pytest.fixture
def draft() -> Draft:
    return Draft()


def test_a_valid_robot_is_proven(draft: Draft) -> None:
    robot = draft.bodies().finished()
    built(robot)
    assert set(statuses(robot).values()) == {"proven"}


def test_a_pole_between_all_samples_is_refused(draft: Draft) -> None:
    draft.bodies().robot.apply(draft.s, draft.force / (draft.s - 0.25))
    draft.rejected("test_refusal.py:", "`slide - 0.25`", "0 at slide = 0.25.")


def test_a_weak_pole_is_refused(draft: Draft) -> None:
    draft.bodies().robot.apply(draft.s, 1e-9 / (draft.s - 0.123456789))
    draft.rejected("`slide - 0.123456789`", "slide = 0.123456789.")


@pytest.mark.slow
def test_a_pole_without_a_change_of_sign_is_refused(draft: Draft) -> None:
    draft.bodies().robot.apply(draft.s, 1 / (1 - cos(draft.s - 0.3) + (draft.q - 0.2) ** 2))
    draft.rejected("divisor", "slide = 0.3", "turn = 0.2")


def test_a_pole_at_a_parameter_is_refused(draft: Draft) -> None:
    draft.bodies().robot.apply(draft.s, 1 / (draft.mass - 1.75))
    draft.rejected("`mass - 1.75`", "mass = 1.75.")


def test_a_pole_at_a_rate_is_refused(draft: Draft) -> None:
    draft.bodies().robot.apply(draft.s, 1 / (draft.s.rate - 1.5))
    draft.rejected("slide_rate = 1.5")


@pytest.mark.slow
def test_coefficients_by_coordinates_keep_their_sign_on_the_whole_domain(draft: Draft) -> None:
    draft.bodies().robot.damp(draft.s, draft.mass * draft.s**2)
    built(draft.finished())
    for line, words in (
        (lambda robot, s: robot.damp(s, 1.5 - s - s**2), "damping coefficient `-slide**2 - slide + 1.5`"),
        (lambda robot, s: robot.motor(s, 1.0, gear_efficiency=0.95 + 0.1 * s), "must not exceed 1, and what is left"),
        (lambda robot, s: robot.rotor(s, 0.001 * cos(2 * s)), "rotor inertia"),
    ):
        other = Draft().bodies()
        line(other.robot, other.s)
        other.rejected(words, "slide = ")


def test_a_coefficient_is_judged_between_the_corners_of_its_parameters(draft: Draft) -> None:
    """It is positive at the nominal mass of 1 and at the bounds of 0.5 and 2."""
    draft.bodies().robot.damp(draft.s, (draft.mass - 1.5) ** 2 - 0.01)
    draft.rejected("damping coefficient", "mass = 1.")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("sqrt(s - 0.9)", "argument of a root"),
        ("sqrt((s - 0.5) ** 2 + (q - 0.5) ** 2)", "argument of a root"),
        ("log(s + 0.999)", "argument of a logarithm"),
        ("asin(1.001 * s)", "argument of asin"),
        ("acos(q / 1.999)", "argument of acos"),
        ("tan(q)", "argument of tan"),
        ("atan2(s, q)", "point of an angle"),
        ("(s + 0.99) ** q", "base of a power"),
        ("exp(1 / (s**2 - 0.01))", "divisor"),
    ],
)
@pytest.mark.slow
def test_functions_outside_their_domain_are_refused(draft: Draft, expression: str, words: str) -> None:
    draft.bodies().robot.apply(draft.s, sympify(expression, {"s": draft.s, "q": draft.q}))
    draft.rejected(words, "test_refusal.py:")


@pytest.mark.parametrize(
    "expression",
    [
        "sqrt((s - 0.5) ** 2 + (q - 0.5) ** 2 + 1e-6)",
        "1 / (s - 1.25)",
        "1 / (q**2 - 4.1)",  # negative everywhere
        "log(s + 1.001) * asin(0.99 * s)",
        "tan(0.78 * q) + atan2(s, q + 2.1)",
        "(s**2) ** 1.5",
        "tanh(s / 1e-9)",
    ],
)
@pytest.mark.slow
def test_expressions_that_stay_inside_their_domain_are_proven(draft: Draft, expression: str) -> None:
    draft.bodies().robot.apply(draft.s, sympify(expression, {"s": draft.s, "q": draft.q}))
    robot = draft.finished()
    built(robot)
    assert set(statuses(robot).values()) == {"proven"}


@pytest.mark.slow
def test_an_energy_needs_one_more_slope_than_a_force(draft: Draft) -> None:
    draft.bodies().robot.apply(draft.s, ((draft.s - 0.1) ** 2 + (draft.q - 0.1) ** 2) ** 1.25)
    assert "refuted" not in statuses(draft.finished()).values()
    other = Draft().bodies()
    other.robot.potential_energy(((other.s - 0.1) ** 2 + (other.q - 0.1) ** 2) ** 1.25)
    other.rejected("argument of a root")


@pytest.mark.slow
def test_an_inertia_that_vanishes_at_one_point_is_refused(draft: Draft) -> None:
    draft.robot.kinetic_energy(draft.mass * (draft.s - 0.777) ** 2 * draft.s.rate**2 / 2)
    draft.robot.kinetic_energy(draft.q.rate**2)
    draft.robot.apply(draft.s, draft.force)
    draft.rejected("`slide`", "(slide - 0.777)**2/2` is 0 at slide = 0.777")
    assert draft.line == "draft.robot.kinetic_energy(draft.mass * (draft.s - 0.777) ** 2 * draft.s.rate**2 / 2)"


@pytest.mark.slow
def test_a_mass_matrix_that_is_singular_at_one_angle_is_refused(draft: Draft) -> None:
    """det M = m**2 (1 - cos(turn - 0.3)**2 / 1) vanishes where the point moves along the rail."""
    draft.robot.kinetic_energy(
        draft.mass * (draft.s.rate**2 + draft.q.rate**2 + 2 * cos(draft.q - 0.3) * draft.s.rate * draft.q.rate) / 2
    )
    draft.robot.apply(draft.s, draft.force)
    draft.rejected("`turn`", "`slide`", "turn = 0.3")


def test_a_mass_matrix_that_is_indefinite_in_a_corner_of_the_bounds_is_refused(draft: Draft) -> None:
    draft.bodies().robot.kinetic_energy(-0.3 * draft.mass**4 * draft.s.rate**2 * sin(draft.q / 2) ** 8)
    draft.rejected("not positive definite")


@pytest.mark.slow
def test_a_cost_that_is_negative_near_the_target_is_refused(draft: Draft) -> None:
    draft.cost = draft.s**2 + 0.8 * draft.s * draft.s.rate + 0.1 * draft.s.rate**2 + draft.q**2 + draft.q.rate**2
    draft.bodies().rejected("the state cost `slide**2 + ", "` is -")


@pytest.mark.slow
def test_a_cost_that_is_negative_only_far_from_the_target_is_refused(draft: Draft) -> None:
    draft.cost += -6 * exp(-(((draft.s - 0.9) / 0.01) ** 2) - ((draft.q - 1.9) / 0.01) ** 2) * draft.s**2
    draft.bodies().rejected("the state cost `", "` is -", "slide = 0.", "turn = 1.")


@pytest.mark.slow
def test_the_search_is_limited_by_processor_time(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the wall clock runs a thousand times as fast, as on a busy machine."""
    clock = time.monotonic
    for name in ("monotonic", "perf_counter", "time"):
        monkeypatch.setattr(time, name, lambda: 1000 * clock())
    draft.cost += -6 * exp(-(((draft.s - 0.9) / 0.01) ** 2) - ((draft.q - 1.9) / 0.01) ** 2) * draft.s**2
    draft.bodies().rejected("the state cost `", "` is -")


@pytest.mark.slow
def test_a_cost_that_is_negative_for_some_parameter_is_refused(draft: Draft) -> None:
    weight = draft.robot.parameter("weight", 0.1, "", bounds=(-0.01, 0.2))
    draft.cost += (weight - 1) * draft.s**2 + 1e-3 * draft.s**4
    draft.bodies().rejected("the state cost `", "` is -", "weight = -0.01")


def test_a_cost_whose_value_at_the_target_is_negative_for_some_parameter_is_refused(draft: Draft) -> None:
    """At the nominal weight the target costs nothing, and with every weight it is the cheapest state."""
    weight = draft.robot.parameter("weight", 0.1, "", bounds=(0.05, 0.2))
    draft.cost += weight - 0.1
    draft.bodies().rejected("the state cost `", "` is -0.05", "weight = 0.05")


@pytest.mark.slow
def test_a_positive_cost_that_is_not_a_sum_of_squares_is_proven(draft: Draft) -> None:
    draft.cost = draft.s**2 + 0.8 * draft.s * draft.s.rate + 0.2 * draft.s.rate**2 + 1 - cos(draft.q) + draft.q.rate**2
    robot = draft.bodies().finished()
    built(robot)
    assert statuses(robot)["state cost never negative"] == "proven"


@pytest.mark.slow
def test_a_cost_with_another_target_is_proven(draft: Draft) -> None:
    draft.cost = draft.s**2 + 2 + 2 * cos(draft.q) - 2 * (1 + cos(1.0)) - 2 * sin(1.0) * (1.0 - draft.q)
    draft.cost = draft.cost + (draft.q - 1.0) ** 2 * 1.5
    robot = draft.bodies().finished(target={"turn": 1.0})
    assert statuses(robot)["state cost never negative"] == "proven"


def test_a_cost_that_falls_from_a_kink_at_its_target_is_refused(draft: Draft) -> None:
    """Its second derivative is positive wherever it has one."""
    draft.cost += -0.3 * Abs(draft.s)
    draft.bodies().rejected("the state cost `", "is -0.0225 at slide = ")


def test_a_divisor_that_is_negative_between_two_jumps_is_refused(draft: Draft) -> None:
    """Its slope is zero wherever it has one, and samples miss the gap."""
    gap = sign(draft.s + 0.30001) - sign(draft.s + 0.3)
    draft.bodies().robot.apply(draft.s, draft.force / (0.5 - gap))
    draft.rejected("divisor", "at slide = -0.3000")


@pytest.mark.slow
def test_an_undecided_quantity_is_reported_with_its_smallest_value(draft: Draft) -> None:
    s, q = draft.s, draft.q
    fast = 70 * s * q + 30 * q.rate
    hard = 1.668 - sin(fast) - cos(fast + s.rate * q / 10)  # positive, because the sum is at most 2 cos(pi/4 + ...)
    draft.bodies().robot.apply(draft.s, 1 / hard)
    (divisor,) = [finding for finding in proof(draft.finished(), 0.1) if finding.what.startswith("divisor")]
    assert divisor.status == "no violation found"
    for word in ("at slide = ", "Undecided", "% of the domain of 4 variables"):
        assert word in divisor.note


def test_the_value_of_a_fixed_parameter_is_used(draft: Draft) -> None:
    edge = draft.robot.parameter("edge", 0.5, "", fixed=True)
    draft.bodies().robot.apply(draft.s, draft.force * pi / (draft.s - edge))
    draft.rejected("at slide = 0.5.")
