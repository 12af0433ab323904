"""Unit strings, the dimensions of expressions by scaling, and the errors for terms that do not fit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Abs, Rational, Symbol, cos, exp, pi, sin, sqrt, sympify, tanh

from modelgen import LogCos, ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.statement.terms import Dimensions
from modelgen.units import BASE, dimension, named, parse


@pytest.mark.parametrize(
    ("unit", "kg", "m", "s", "A"),
    [
        ("1", 0, 0, 0, 0),
        ("rad", 0, 0, 0, 0),
        ("kg m^2", 1, 2, 0, 0),
        ("kg*m**2", 1, 2, 0, 0),
        ("N", 1, 1, -2, 0),
        ("N m", 1, 2, -2, 0),
        ("kg m²", 1, 2, 0, 0),
        ("m/s²", 0, 1, -2, 0),
        ("kg·m²·s⁻²", 1, 2, -2, 0),
        ("N m s/rad", 1, 2, -1, 0),
        ("N s/m", 1, 0, -1, 0),
        ("kg/(m s^2)", 1, -1, -2, 0),
        ("1/s", 0, 0, -1, 0),
        ("m s^-2", 0, 1, -2, 0),
        ("m/s^2", 0, 1, -2, 0),
        ("Ohm", 1, 2, -3, -2),
        ("V/A", 1, 2, -3, -2),
        ("N m/A", 1, 2, -2, -1),
        ("V s/rad", 1, 2, -2, -1),
        ("H", 1, 2, -2, -2),
        ("Wb/A", 1, 2, -2, -2),
        ("F V/s", 0, 0, 0, 1),
        ("T m^2", 1, 2, -2, -1),
    ],
)
def test_units_are_read(unit: str, kg: int, m: int, s: int, A: int) -> None:
    found = parse(unit, "unit")
    assert found is not None
    assert list(found[:4]) == [kg, m, s, A]


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("mm", ['is "mm"', "value in m"]),
        ("deg", ["pi / 180"]),
        ("rpm", ["2 * pi / 60"]),
        ("Nm", ['write "N m"']),
        ("Nm/A", ['write "N m/A"']),
        ("deg/s", ["pi / 180", '"rad/s"']),
        ("V/rpm", ["divided by (2 * pi / 60)", '"V s/rad"']),
        ("g cm²", ["0.001", "(0.01)^2", '"kg m^2"']),
        ("Nm^2", ['"N m^2"']),
        ("mNm", ["0.001", '"N m"']),
        ("%", ["0.01", '"1"']),
        ("N/m s", ["two ways", '"N/(m s)"', '"N s/m"']),
        ("N/m/s", ["two strokes"]),
        ("kgs", ["`kgs` is no unit known here", "Did you mean `kg`?"]),
        (" ", ["no unit known here"]),
        ("furlong", ["`furlong`", "kg m^2"]),
        ("m^x", ["m^x"]),
        ("m^^2", ["m^^2"]),
        ("(m", ["(m"]),
        ("m/", ["m/"]),
    ],
)
def test_other_units_are_refused(unit: str, words: list[str]) -> None:
    for declare in (
        lambda: Robot("r").parameter("p", 1, unit, fixed=True),
        lambda: Robot("r").input("u", 1, unit),
        lambda: Robot("r").speed("w", limit=1, unit=unit),
    ):
        with pytest.raises(ModelError) as caught:
            declare()
        assert re.match(r".*test_units\.py:\d+: the unit of `[puw]`", str(caught.value))
        for word in words:
            assert word in str(caught.value)


@given(st.text(alphabet="kgmsNVAOhrad 1/^*()-2", max_size=12))
def test_any_text_is_a_unit_or_a_taught_error(text: Any) -> None:
    try:
        found = parse(text, "unit")
    except ModelError as error:
        assert str(error)  # noqa: PT017
    else:
        assert (found is None) == (not text)
        assert found is None or len(found) == len(BASE)


def test_a_current_as_a_rate_is_shown_the_statement_of_a_state() -> None:
    """The charge as a coordinate, and the inductance as its inertia."""
    robot = Robot("motor")
    charge = robot.prismatic("charge", limit=100, rate_limit=10)
    inductance = robot.parameter("inductance", 0.02, "H", fixed=True)
    with pytest.raises(ModelError, match=r"charge_rate.*robot\.state\(\"current\".*robot\.flow\(current"):
        robot.kinetic_energy(inductance * charge.rate**2 / 2)


def test_names_of_dimensions() -> None:
    assert named(dimension("J")) == "kg m^2/s^2 (J, N m)"
    assert named(dimension("rad")) == "no unit (rad)"
    assert named(dimension("1/s")) == "1/s"
    assert named(dimension("kg/(m s)")) == "kg/(m s)"
    for each in ("kg m^2/s^2", "1/s", "kg/(m s)", "kg", "s A^2/(kg m)"):
        assert named(dimension(each)).partition(" (")[0].replace("(", "").replace(")", "") == each.replace(
            "(", ""
        ).replace(")", "")


UNITS = {"a": "kg", "b": "m", "c": "m", "d": "N m", "e": "s", "f": "1"}
SYMBOLS = {name: Symbol(name, positive=True) for name in UNITS}


def scaled(expression: Any, factors: Sequence[float]) -> float:
    """By how much the value changes when the units of mass, length and time change."""
    values = {symbol: 1.3 + 0.1 * place for place, symbol in enumerate(SYMBOLS.values())}
    changed = {
        symbol: values[symbol] * math.prod(f ** float(p) for f, p in zip(factors, dimension(UNITS[name]), strict=False))
        for name, symbol in SYMBOLS.items()
    }
    return float(expression.subs(changed)) / float(expression.subs(values))


expressions = st.recursive(
    st.sampled_from([*SYMBOLS.values(), sympify(2), Rational(1, 3), pi]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] / pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, st.sampled_from([2, -1, Rational(1, 2)])).map(lambda pair: pair[0] ** pair[1]),
        inner.map(tanh),
        inner.map(sqrt),
        inner.map(lambda each: Abs(each) + each),
    ),
    max_leaves=6,
)


@given(expressions)
def test_dimensions_say_how_values_scale(expression: Any) -> None:
    """A term that is judged, and all of whose numbers are pure, scales with its units."""
    units = {symbol: UNITS[name] for name, symbol in SYMBOLS.items()}
    try:
        found = Dimensions(units, frozenset(units), "term").of(expression)
    except ModelError:
        return
    pure = not any(each.is_Add for each in expression.atoms() | set(expression.find(lambda each: each.is_Add)))
    if found and found.sure and pure:
        for place in range(3):
            factors = [1.0, 1.0, 1.0]
            factors[place] = 1.7
            assert scaled(expression, factors) == pytest.approx(1.7 ** float(found.dimension[place]), rel=1e-9)


def test_sums_scale_too() -> None:
    a, b, c = (SYMBOLS[name] for name in "abc")
    units = {symbol: UNITS[name] for name, symbol in SYMBOLS.items()}
    dimensions = Dimensions(units, frozenset(units), "term")
    found, root = dimensions.of(a * (b**2 + 3 * b * c) / 2), dimensions.of(sqrt(b))
    assert found is not None
    assert root is not None
    assert list(found.dimension[:3]) == [1, 2, 0]
    assert scaled(a * (b**2 + 3 * b * c) / 2, [1, 1.7, 1]) == pytest.approx(1.7**2)
    assert root.dimension[1] == Fraction(1, 2)


def pendulum() -> tuple[Any, ...]:
    robot = Robot("pendulum")
    q = robot.revolute("q", continuous=True, rate_limit=5)
    s = robot.prismatic("s", limit=1, rate_limit=5)
    mass = robot.parameter("mass", 1, "kg", tolerance=0.5)
    length = robot.parameter("length", 1, "m", tolerance=0.5)
    return robot, q, s, mass, length, robot.input("force", 1, "N")


WRONG = {
    "kinetic energy": lambda p: p.r.kinetic_energy(p.m * p.l * p.q.rate**2 / 2),
    "kinetic": lambda p: p.r.kinetic_energy(p.m * p.s.rate**2 / 2 + p.m * p.q.rate**2 / 2),
    "potential energy": lambda p: p.r.potential_energy(p.m * p.l * cos(p.q)),
    "applied force": lambda p: p.r.apply(p.q, p.f),
    "applied": lambda p: p.r.apply(p.s, p.f * p.s),
    "mass": lambda p: p.r.point_mass(p.l, (p.s, 0)),
    "position": lambda p: p.r.point_mass(p.m, (p.m * sin(p.q), 0)),
    "inertia of the body": lambda p: p.r.body(p.m, p.m * p.l, (p.s, 0), p.q),
    "angle of the body": lambda p: p.r.body(p.m, p.m * p.l**2, (p.s, 0), p.q + p.l),
    "gravity": lambda p: p.r.gravity(p.l),
    "damping coefficient": lambda p: p.r.damp(p.s, p.m),
    "stiffness": lambda p: p.r.spring(p.s, p.m),
    "rest position": lambda p: p.r.spring(p.s, 2, rest=p.m),
    "friction": lambda p: p.r.dry_friction(p.s, p.m, smoothing=0.1),
    "smoothing rate": lambda p: p.r.dry_friction(p.s, 2, smoothing=p.l),
    "limit": lambda p: p.r.end_stops(p.s, p.m, 100, width=0.1),
    "width": lambda p: p.r.end_stops(p.s, 1, 100, width=p.m),
    "ratio": lambda p: p.r.coupling(p.s, p.q, ratio=p.m, stiffness=1),
    "gear": lambda p: p.r.motor(p.s, 1, gear=p.l),
    "torque": lambda p: p.r.motor(p.s, p.f),
    "corner speed": lambda p: p.r.motor(p.s, p.f * p.l, corner_speed=p.l),
    "voltage": lambda p: p.r.dc_motor(p.q, p.f, resistance=1, torque_constant=1),
    "resistance": lambda p: p.r.dc_motor(p.q, 1, resistance=p.l, torque_constant=1),
    "rotor inertia": lambda p: p.r.rotor(p.q, p.m),
    "centre of `a`": lambda p: p.r.link("a", p.q, mass=p.m, centre=(0, 0, p.m)),
    "inertia of `a`": lambda p: p.r.link("a", p.q, mass=p.m, inertia=p.m * p.l),
    "turn of `a`": lambda p: p.r.link("a", p.q, mass=p.m, turned=(0, p.l, 0)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_term_that_does_not_fit_is_named(what: Any) -> None:
    with pytest.raises(ModelError) as caught:
        WRONG[what](SimpleNamespace(**dict(zip("rqsmlf", pendulum(), strict=True))))
    message = str(caught.value)
    assert re.match(rf".*test_units\.py:\d+: the {re.escape(what)}.* contains the term .*, which is in ", message), (
        message
    )
    assert "it should be in" in message
    assert "`mass` in kg" in message or "`length` in m" in message or "`force` in N" in message


def test_the_message_in_full() -> None:
    robot, q, _, mass, length, _ = pendulum()
    with pytest.raises(ModelError) as caught:
        robot.kinetic_energy(mass * length**2 * q.rate**2 / 2 + mass * length * q.rate**2)
    assert str(caught.value).partition(": ")[2] == (
        "the kinetic energy contains the term length*mass*q_rate**2, which is in kg m/s^2 (N) (`length` in m, `mass` "
        "in kg); it should be in kg m^2/s^2 (J, N m). Correct the term or a unit. A number with a unit of its own is a "
        "parameter with fixed=True, or has a decimal point: 2.0 * ..."
    )


def test_sums_and_arguments_inside_a_term() -> None:
    robot, _, s, mass, length, force = pendulum()
    for act, words in (
        (lambda: robot.apply(s, force * (length + mass) / length), ["length + mass", "`mass` in kg"]),
        (lambda: robot.apply(s, force * tanh(length)), ["tanh(length)", "takes an angle or a plain number"]),
        (lambda: robot.apply(s, force * exp(force * length)), ["exp(force*length)", "(J, N m)"]),
    ):
        with pytest.raises(ModelError) as caught:
            act()
        for word in words:
            assert word in str(caught.value), str(caught.value)


def test_what_cannot_be_judged_passes() -> None:
    """Bare numbers may stand for lengths, masses and gravity."""
    robot, q, s, mass, length, force = pendulum()
    robot.kinetic_energy(0.5 * mass * 0.3**2 * q.rate**2)
    robot.kinetic_energy(q.rate**2 / 2 + s.rate**2)
    robot.potential_energy(9.81 * mass * length * cos(q) + 5 * s**2)
    robot.apply(q, 0.3 * force)
    robot.apply(q - 2 * s, -2 * s.rate)
    robot.damp(s + 0.1 * q, 3)
    robot.spring(s, 3 * force / force)
    robot.point_mass(2, (s + sin(q), cos(q)))
    robot.point_mass(mass, (s + sin(q), cos(q)))
    robot.apply(s, force * (s + 1) / length)
    robot.apply(s, force / sqrt(1 + s.rate**2))
    robot.apply(s, force * tanh(100 * q.rate))
    task(robot, s**2)
    assert equations_of_motion(robot).parameters == (mass, length)


def test_plain_numbers_of_a_user_without_units() -> None:
    robot = Robot("lazy")
    q = robot.revolute("q", limit=1, rate_limit=1)
    m, l = (robot.parameter(name, 1, "1", tolerance=0.5) for name in ("m", "l"))
    robot.kinetic_energy(m * l**2 * q.rate**2 / 2)
    robot.apply(q, robot.input("u", 1, "1") * l - m * q.rate)
    task(robot, q**2)
    equations = equations_of_motion(robot)
    assert equations.mass_matrix[0] == m * l**2
    assert equations.input_matrix[0] == l


def test_a_quantity_without_a_stated_unit_may_be_anything() -> None:
    robot, q, s, mass, length, _ = pendulum()
    some = robot.parameter("some", 1, "", tolerance=0.5)
    robot.kinetic_energy(some * mass * q.rate**2)
    robot.apply(s, some * length)
    task(robot, s**2)
    equations = equations_of_motion(robot)
    assert equations.mass_matrix[0, 0] == 2 * some * mass
    assert equations.force[1] == some * length


def task(robot: Robot, cost: Any) -> None:
    robot.task(state_cost=cost, action_cost=LogCos(1), start={}, horizon=1, weight_at_horizon=0.5, control_rate=100)


def test_costs_weigh_with_plain_numbers_but_arguments_have_no_unit() -> None:
    robot, q, s, mass, length, _ = pendulum()
    task(robot, 3 * s**2 + sin(q / 2) ** 2 + tanh(10 * (s - length)) ** 2 + (s + length * sin(q)) ** 2 + mass * s**2)
    robot, q, s, mass, length, _ = pendulum()
    with pytest.raises(ModelError, match=r"cos\(mass\).*kg"):
        task(robot, s**2 + 1 - cos(mass))
    with pytest.raises(ModelError, match=r"length .*m .*mass .*kg"):
        task(robot, s**2 + tanh(s / (length + mass)) ** 2)


@pytest.mark.parametrize(
    "path", sorted(SHIPPED.glob("*.py")) + sorted((SHIPPED / "large").glob("*.py")), ids=lambda p: p.stem
)
@pytest.mark.slow
def test_shipped_models_fit(path: Any) -> None:
    if not path.stem.startswith("_"):
        assert load(str(path)).name == path.stem


def test_a_long_term_is_abridged() -> None:
    robot = Robot("long")
    q = robot.revolute("q", limit=1)
    mass: Any = robot.parameter("mass", 1.0, "kg", fixed=True)
    nested: Any = q
    for _ in range(100):
        nested = sin(nested)
    with pytest.raises(ModelError, match=r"mass\*sin\(sin.* \.\.\. .*kg") as caught:
        robot.potential_energy(mass * nested)
    assert len(str(caught.value)) < 500
