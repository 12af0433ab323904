"""What a model file may contain, and the error messages for everything else."""

from __future__ import annotations

import keyword
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Abs, Function, I, Max, Min, Symbol, cos, diff, log, pi, sign, sin, symbols

from modelgen import ModelError, Robot
from modelgen.derivation.description import metadata
from modelgen.statement.joints import Coordinate
from tests.modelgen.support.declared import TASK, cart, rejects


def test_error_names_the_users_line() -> None:
    robot = Robot("cart")
    with pytest.raises(ModelError) as caught:
        robot.revolute("angle", rate_limit=1)
    assert caught.value.place is not None
    assert caught.value.place.line == caught.traceback[0].lineno + 1


class TestNames:
    @pytest.mark.parametrize("name", ["2nd", "pole mass", "pole-mass", "", "_x", "größe", "a.b"])
    def test_a_name_with_other_characters_is_refused(self, name: str) -> None:
        rejects(f"`{name}`", "input", action=lambda: Robot("r").input(name, 1, "N"))

    @pytest.mark.parametrize(
        ("name", "valid"), [("pole-mass", "pole_mass"), ("pendülum", "pendulum"), ("質量", "value")]
    )
    def test_the_message_suggests_a_valid_name(self, name: str, valid: str) -> None:
        rejects(f"Write `{valid}`", action=lambda: Robot("r").parameter(name, 1, "kg", fixed=True))

    def test_a_keyword_is_refused_as_a_name(self) -> None:
        rejects("`lambda`", "keyword", "lambda_value", action=lambda: Robot("r").input("lambda", 1, "N"))

    def test_a_name_or_unit_that_is_not_a_string_is_refused(self) -> None:
        rejects("input is 3", action=lambda: Robot("r").input(3, 1, "N"))  # type: ignore[arg-type]
        rejects("coordinate is 3", action=lambda: Robot("r").revolute(3, limit=1, rate_limit=1))  # type: ignore[arg-type]
        rejects("unit of `m`", action=lambda: Robot("r").parameter("m", 1, (0, 2)))  # type: ignore[arg-type]

    def test_time_is_refused_as_a_name(self) -> None:
        rejects("`time`", "recording", action=lambda: Robot("r").input("time", 1, "N"))

    def test_a_name_used_twice_is_refused(self) -> None:
        robot, *_ = cart()
        rejects("`mass`", "twice", action=lambda: robot.input("mass", 1, "N"))

    def test_an_ending_of_rates_is_refused_for_a_speed(self) -> None:
        """The artifact tells by it that a coordinate `forward` is ignored."""
        rejects("`forward_rate`", action=lambda: Robot("r").speed("forward_rate", limit=1, unit="m/s"))

    def test_the_name_of_a_rate_is_refused_for_a_parameter(self) -> None:
        robot, *_ = cart()
        rejects("`s_rate`", "twice", action=lambda: robot.parameter("s_rate", 1, "m", fixed=True))

    @pytest.mark.slow
    @given(st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True))
    def test_every_identifier_that_is_not_a_keyword_is_accepted(self, name: Any) -> None:
        robot = Robot("r")
        if keyword.iskeyword(name):
            with pytest.raises(ModelError, match="keyword"):
                robot.parameter(name, 1, "kg", fixed=True)
        else:
            assert robot.parameter(name, 1, "kg", fixed=True).name == name

    @pytest.mark.slow
    @given(st.text(max_size=8))
    def test_any_text_is_accepted_or_refused_with_a_message(self, name: Any) -> None:
        if name.isidentifier() and name.isascii() and name[0] != "_" and not keyword.iskeyword(name):
            Robot("r").input(name, 1, "N")
        else:
            with pytest.raises(ModelError, match=r"the input"):
                Robot("r").input(name, 1, "N")


class TestNumbers:
    def test_a_limit_of_two_numbers_is_explained(self) -> None:
        pair: Any = (0, 40)
        rejects(
            "one number: the domain is from -limit", action=lambda: Robot("r").prismatic("s", limit=pair, rate_limit=1)
        )

    @given(st.floats(allow_nan=True, allow_infinity=True))
    def test_limits_that_are_not_finite_and_positive_are_refused(self, limit: Any) -> None:
        robot = Robot("r")
        if 1e-15 <= limit <= 1e6:
            robot.prismatic("s", limit=limit, rate_limit=1)
            assert robot.joints[0].limit == limit
        else:
            with pytest.raises(ModelError, match=r"limit of `s` is "):
                robot.prismatic("s", limit=limit, rate_limit=1)

    @given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
    def test_a_value_outside_its_bounds_is_refused(self, value: Any, lower: Any, upper: Any) -> None:
        robot = Robot("r")
        single = all(each == 0 or abs(each) > 1.2e-38 for each in (value, lower, upper))
        if lower <= value <= upper and lower < upper and single:
            robot.parameter("p", value, "1", bounds=(lower, upper))
        else:
            with pytest.raises(ModelError, match="`p`"):
                robot.parameter("p", value, "1", bounds=(lower, upper))

    def test_constants_of_sympy_are_numbers(self) -> None:
        robot = Robot("r")
        robot.revolute("q", limit=pi / 2, rate_limit=1)
        assert robot.joints[0].limit == math.pi / 2

    @pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf, "3", None, True, Symbol("k")])
    def test_a_limit_of_an_input_that_is_not_a_positive_number_is_refused(self, limit: Any) -> None:
        rejects("limit of `u`", action=lambda: Robot("r").input("u", limit, "N"))

    @pytest.mark.parametrize("limit", [1e-200, 1e200])
    def test_a_limit_whose_square_leaves_single_precision_is_refused(self, limit: float) -> None:
        rejects("limit of `u`", "1e-15", "1e+15", action=lambda: Robot("r").input("u", limit, "N"))

    def test_the_message_names_a_value_outside_its_bounds(self) -> None:
        rejects(
            "`m` is 3",
            "(0, 2)",
            action=lambda: Robot("r").parameter("m", 3, "kg", bounds=(0, 2)),
        )

    def test_reversed_bounds_are_refused(self) -> None:
        rejects("write bounds=(1, 2)", action=lambda: Robot("r").parameter("m", 1, "kg", bounds=(2, 1)))

    def test_a_parameter_that_single_precision_cannot_hold_is_refused(self) -> None:
        """The kernels in which policies are trained had infinity or zero in its place."""
        for value in (1e40, 1e-40):
            rejects("`k`", "single precision", action=lambda: Robot("r").parameter("k", value, "N m", tolerance=0.1))  # noqa: B023

    def test_bounds_that_are_not_a_pair_are_refused(self) -> None:
        rejects("bounds=(lower, upper)", action=lambda: Robot("r").parameter("m", 1, "kg", bounds=3))  # type: ignore[arg-type]

    def test_a_parameter_without_bounds_is_refused(self) -> None:
        rejects("`m`", "bounds=", "fixed=True", action=lambda: Robot("r").parameter("m", 1, "kg"))

    def test_equal_bounds_are_refused(self) -> None:
        rejects("`m`", "fixed=True", action=lambda: Robot("r").parameter("m", 1, "kg", bounds=(1, 1)))

    def test_a_tolerance_beside_bounds_or_a_fixed_value_is_refused(self) -> None:
        rejects("`m`", "both", action=lambda: Robot("r").parameter("m", 1, "kg", bounds=(0, 2), tolerance=0.5))
        rejects("`m`", "fixed", action=lambda: Robot("r").parameter("m", 1, "kg", tolerance=0.5, fixed=True))

    @pytest.mark.parametrize("tolerance", [0, -0.1, 1.0, 1.3, 30, "0.1"])
    def test_a_tolerance_that_is_not_between_0_and_1_is_refused(self, tolerance: Any) -> None:
        rejects("tolerance of `m`", action=lambda: Robot("r").parameter("m", 1, "kg", tolerance=tolerance))

    def test_tolerance_is_a_fraction_of_the_value(self) -> None:
        robot = Robot("r")
        robot.parameter("m", -2.0, "kg", tolerance=0.25)
        assert robot.parameters[0].bounds == (-2.5, -1.5)


class TestCoordinates:
    def test_rate_is_a_symbol(self) -> None:
        _, s, *_ = cart()
        assert s.rate == Symbol("s_rate", real=True)

    def test_a_derivative_by_time_is_refused_for_the_rate(self) -> None:
        _, s, mass, _ = cart()
        for by_time in (lambda: s.diff(), lambda: s.diff(symbols("t")), lambda: diff(s, symbols("t"))):
            rejects("s.rate", action=by_time)
        assert (s**2).diff(s) == 2 * s
        assert (s.diff(s), s.diff(mass)) == (1, 0)

    def test_equal_coordinates_of_two_robots_share_nothing(self) -> None:
        first, second = Robot("a"), Robot("b")
        one, two = (robot.revolute("q", limit=1, rate_limit=2) for robot in (first, second))
        assert one == two
        assert isinstance(one, Coordinate)
        assert len(first.joints) == len(second.joints) == 1

    def test_an_angle_needs_either_a_limit_or_continuous(self) -> None:
        wrong: list[dict[str, Any]] = [{}, {"limit": 1, "continuous": True}]
        for options in wrong:
            rejects(
                "`q`",
                "continuous=True",
                "limit=",
                action=lambda: Robot("r").revolute("q", rate_limit=1, **options),  # noqa: B023
            )

    def test_a_continuous_angle_has_the_limit_pi(self) -> None:
        robot = Robot("r")
        robot.revolute("q", continuous=True, rate_limit=1)
        assert robot.joints[0].limit == math.pi


class TestExpressions:
    def test_an_undeclared_symbol_is_refused_with_a_suggestion(self) -> None:
        robot, s, *_ = cart()
        rejects(
            "`maas`",
            "`mass`",
            'robot.parameter("maas"',
            action=lambda: robot.point_mass(Symbol("maas"), (s, 0)),
        )

    def test_a_symbol_with_the_name_of_a_parameter_is_refused(self) -> None:
        robot, s, *_ = cart()
        rejects("`mass`", "same name", action=lambda: robot.point_mass(Symbol("mass"), (s, 0)))

    def test_a_rate_in_a_potential_energy_is_refused(self) -> None:
        robot, s, mass, _ = cart()
        rejects(
            "potential energy contains `s_rate`",
            "robot.apply",
            action=lambda: robot.potential_energy(mass * s.rate),
        )

    def test_an_input_in_an_energy_is_refused(self) -> None:
        robot, s, _, force = cart()
        rejects(
            "kinetic energy contains `force`",
            "robot.apply",
            action=lambda: robot.kinetic_energy(force * s.rate**2),
        )

    def test_an_input_in_the_state_cost_is_refused(self) -> None:
        robot, s, _, force = cart()
        rejects(
            "state cost contains `force`",
            "action_cost",
            action=lambda: robot.task(**{**TASK, "state_cost": s**2 + force**2}),
        )

    @pytest.mark.parametrize("value", ["s", None, True, [1], {}, object()])
    def test_an_energy_that_is_not_an_expression_is_refused(self, value: Any) -> None:
        robot, *_ = cart()
        rejects("potential energy is", action=lambda: robot.potential_energy(value))

    def test_a_function_of_time_is_refused(self) -> None:
        robot, *_ = cart()
        rejects(
            "function q(t)",
            "robot.revolute",
            action=lambda: robot.kinetic_energy(Function("q")(symbols("t")) ** 2),
        )

    def test_an_infinite_energy_is_refused(self) -> None:
        robot, s, mass, _ = cart()
        rejects("not finite", action=lambda: robot.potential_energy(mass * s / (s - s)))

    def test_a_complex_energy_is_refused(self) -> None:
        robot, s, *_ = cart()
        rejects("complex", action=lambda: robot.potential_energy(I * s))

    def test_a_force_along_a_parameter_is_refused(self) -> None:
        robot, _, mass, force = cart()
        rejects("mass", "no coordinate", action=lambda: robot.apply(mass, force))

    @pytest.mark.parametrize("position", [3, (1,), (1, 2, 3, 4), "xy"])
    def test_a_position_that_is_not_a_pair_or_triple_is_refused(self, position: Any) -> None:
        robot, _, mass, _ = cart()
        rejects("height last", action=lambda: robot.point_mass(mass, position))

    def test_gravity_after_a_body_is_refused(self) -> None:
        robot, s, mass, _ = cart()
        robot.point_mass(mass, (s, 0))
        rejects("gravity", "above", action=lambda: robot.gravity(1.62))

    def test_gravity_that_points_up_or_depends_on_a_coordinate_is_refused(self) -> None:
        robot, s, *_ = cart()
        rejects("gravity", "-9.81", action=lambda: robot.gravity(-9.81))
        rejects("contains `s`", action=lambda: robot.gravity(9.81 * s))

    def test_gravity_without_a_body_is_refused(self) -> None:
        robot, s, mass, force = cart()
        robot.gravity(1.62)
        robot.kinetic_energy(mass * s.rate**2 / 2)
        robot.apply(s, force)
        rejects("robot.point_mass", "potential_energy", action=lambda: robot.task(**{**TASK, "state_cost": s**2}))

    @pytest.mark.parametrize("kink", [Abs, sign, lambda y: Max(0, y), lambda y: Min(0, y)])
    def test_kinks_are_refused_where_forces_are_derivatives(self, kink: Any) -> None:
        robot, s, mass, force = cart()
        word = "which has a kink"
        rejects("potential energy", word, action=lambda: robot.potential_energy(mass * kink(s)))
        rejects("position", word, action=lambda: robot.point_mass(mass, (kink(s), 0)))
        rejects("displacement", word, action=lambda: robot.spring(kink(s), 1))
        robot.apply(s, force * kink(s) * 2.0)  # a force itself may have one

    def test_a_fixed_value_that_makes_a_term_infinite_or_complex_is_refused(self) -> None:
        robot, s, _, force = cart()
        none = robot.parameter("none", 0, "1", fixed=True)
        minus = robot.parameter("minus", -1, "1", fixed=True)
        rejects("not finite", action=lambda: robot.apply(s, force * s / none))
        rejects("complex", action=lambda: robot.apply(s, force * log(minus)))

    def test_an_angle_in_degrees_is_refused(self) -> None:
        rejects("180 degrees", action=lambda: Robot("r").revolute("q", limit=180, rate_limit=1))
        rejects("rate_limit of `s`", action=lambda: Robot("r").prismatic("s", limit=1, rate_limit=1e308))

    def test_assignment_to_an_attribute_is_refused_with_the_method_to_call(self) -> None:
        robot, s, mass, _ = cart()

        def assign() -> None:
            robot.kinetic_energy = mass * s.rate**2 / 2  # type: ignore[method-assign]

        rejects("robot.kinetic_energy(...)", action=assign)

        def assign_misspelt() -> None:
            robot.kinetic_energi = 3

        rejects("`kinetic_energy`", action=assign_misspelt)


def test_repr_shows_name_coordinates_inputs_and_free_parameters() -> None:
    robot, *_ = cart()
    robot.parameter("half", 0.5, "1", fixed=True)
    assert repr(robot) == "Robot('cart', coordinates=(s), inputs=(force), parameters=(mass))"


def test_fixed_parameters_are_not_in_theta() -> None:
    robot, s, mass, force = cart()
    half = robot.parameter("half", 0.5, "1", fixed=True)
    robot.kinetic_energy(half * mass * s.rate**2)
    robot.apply(s, force)
    robot.task(**{**TASK, "state_cost": s**2})
    assert [parameter.name for parameter in metadata(robot).parameters] == ["mass"]


def test_symbols_may_have_the_names_of_functions() -> None:
    robot = Robot("odd")
    q = robot.revolute("sin", limit=1, rate_limit=1)
    robot.point_mass(robot.parameter("exp", 1, "kg", tolerance=0.1), (sin(q), cos(q)))
    assert set(robot.symbols) == {"sin", "sin_rate", "exp"}
