"""Each check of a derived model: its error names the symbol and the line."""

from __future__ import annotations

from inspect import currentframe
from typing import Any

import numpy as np
import pytest
from sympy import cos, exp, log, sin, sqrt

from modelgen import LogCos, ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.ignored import ignorable
from modelgen.derivation.numeric import numpy_evaluator


class Draft:
    """A valid robot with two coordinates; a test spoils it in one place."""

    def __init__(self) -> None:
        self.robot = Robot("draft")
        self.s = self.robot.prismatic("slide", limit=1, rate_limit=2)
        self.q = self.robot.revolute("turn", continuous=True, rate_limit=3)
        self.mass = self.robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2))
        self.force = self.robot.input("force", 3, "N")
        self.cost = self.s**2 + sin(self.q / 2) ** 2

    def bodies(self) -> None:
        self.robot.point_mass(self.mass, (self.s, 0))
        self.robot.point_mass(0.3, (self.s + sin(self.q), cos(self.q)))
        self.robot.apply(self.s, self.force)

    def check(self, **task: Any) -> EquationsOfMotion:
        """The equations of motion. Raises ModelError if a check fails."""
        statement = {
            "state_cost": self.cost,
            "action_cost": LogCos(1),
            "start": {},
            "horizon": 5,
            "weight_at_horizon": 0.5,
            "control_rate": 100,
        }
        self.robot.task(**{**statement, **task})
        equations = equations_of_motion(self.robot)
        check_domain(self.robot, equations)
        return equations

    def rejected(self, *words: str, **task: Any) -> None:
        with pytest.raises(ModelError) as caught:
            self.check(**task)
        message = str(caught.value)
        assert "test_domain_checks.py:" in message
        assert "\n" not in message
        for word in words:
            assert word in message, message


@pytest.fixture
def draft() -> Draft:
    return Draft()


def test_a_valid_robot_passes(draft: Draft) -> None:
    draft.bodies()
    M = draft.check().mass_matrix
    assert M[0, 0] == draft.mass + 0.3
    assert (M[0, 1] - 0.3 * cos(draft.q)).expand() == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda draft: draft.robot.apply(draft.s, exp(1000 * draft.s)),
        lambda draft: draft.robot.apply(draft.s, 1e-3 * draft.force * exp(1000 * draft.s)),
        lambda draft: draft.robot.apply(draft.s, exp(1000 * draft.s) - exp(1000 * draft.s**2)),
        lambda draft: draft.robot.potential_energy(exp(1000 * draft.s)),
    ],
)
def test_an_overflow_names_its_line(draft: Draft, spoil: Any) -> None:
    draft.bodies()
    line = spoil.__code__.co_firstlineno
    spoil(draft)
    draft.rejected(f"test_domain_checks.py:{line}: ", "1000*slide", "at slide = ")


def test_an_overflow_of_the_cost_names_the_task(draft: Draft) -> None:
    draft.bodies()
    draft.cost = exp(1000 * draft.s**2) - 1
    draft.rejected("the state cost is inf")
    with pytest.raises(ModelError) as caught:
        check_domain(draft.robot, equations_of_motion(draft.robot))
    assert caught.value.place == draft.robot.declared_task.place != draft.robot.place


def test_an_overflow_of_a_product_of_finite_factors_names_the_robot(draft: Draft) -> None:
    draft.bodies()
    draft.robot.apply(exp(600 * draft.s), exp(600 * draft.s))
    with pytest.raises(ModelError, match="`slide` is inf") as caught:
        draft.check()
    assert caught.value.place == draft.robot.place


def test_an_unused_parameter_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.parameter("spare", 1, "J", tolerance=0.5)
    draft.rejected("`spare`", "no effect")


def test_an_unused_fixed_parameter_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.parameter("spare", 1, "kg", fixed=True)
    draft.rejected("`spare`", "no effect")


def test_a_parameter_without_influence_on_forces_is_refused(draft: Draft) -> None:
    draft.bodies()
    spare = draft.robot.parameter("spare", 1, "J", tolerance=0.5)
    draft.robot.potential_energy(spare)
    draft.rejected("`spare`", "no effect")


def test_a_parameter_of_the_cost_alone_is_accepted(draft: Draft) -> None:
    draft.bodies()
    weight = draft.robot.parameter("weight", 1, "1", tolerance=0.5)
    draft.cost += weight * draft.s**2
    equations = draft.check()
    assert weight in equations.parameters
    assert weight in equations.state_cost.free_symbols


def test_an_unused_input_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.input("idle", 1, "N")
    draft.rejected("`idle`", "robot.apply(coordinate, idle)")


def test_a_coordinate_without_inertia_is_refused(draft: Draft) -> None:
    draft.bodies()
    loose = draft.robot.prismatic("loose", limit=1, rate_limit=1)
    draft.cost += loose**2
    draft.rejected("`loose`", "`loose.rate`", "robot.point_mass")


def test_a_singular_mass_matrix_is_refused(draft: Draft) -> None:
    draft.robot.point_mass(draft.mass, (draft.s + draft.q, 0))
    draft.robot.apply(draft.s, draft.force)
    draft.rejected("not positive definite", "`slide`, `turn`")


def test_a_mass_matrix_that_is_singular_somewhere_is_refused(draft: Draft) -> None:
    draft.robot.point_mass(draft.mass, (draft.s, 0))
    draft.robot.kinetic_energy((draft.q.rate * (1 + sin(draft.q))) ** 2)
    draft.robot.kinetic_energy(-(draft.q.rate**2) / 2)
    draft.robot.apply(draft.s, draft.force)
    draft.rejected("not positive definite", "inertia along `turn` is -", "turn = ")


def test_a_mass_that_may_be_negative_is_refused(draft: Draft) -> None:
    light = draft.robot.parameter("light", 0.1, "kg", bounds=(-3, 1))
    draft.robot.kinetic_energy(light * draft.s.rate**2 / 2)
    draft.bodies()
    draft.rejected("not positive definite", "`slide`", "light = ")


def test_a_force_that_is_not_finite_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.apply(draft.s, log(draft.s))
    draft.rejected("force in the row of `slide` is nan", "slide = -")


def test_a_cost_that_is_not_finite_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("state cost is nan", state_cost=sqrt(draft.s))


def test_a_cost_that_is_not_zero_at_the_target_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("state cost is 2 at the target (slide = 0", state_cost=draft.cost + 2)


def test_a_cost_of_another_target_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("at the target (slide = 0.5", "target=dict(", target={"slide": 0.5})


def test_a_cost_that_is_zero_at_the_target_passes(draft: Draft) -> None:
    draft.bodies()
    equations = draft.check(state_cost=(draft.s - 0.5) ** 2, target={"slide": 0.5})
    assert equations.state_cost.subs(draft.s, 0.5) == 0


def test_a_cost_that_jumps_where_an_angle_wraps_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("`turn`", "(pi * sin((turn", state_cost=(draft.q - 1) ** 2, target={"turn": 1})


def test_a_cost_that_is_zero_everywhere_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("zero everywhere", state_cost=0)


def test_a_cost_with_the_wrong_sign_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("Turn its sign", state_cost=-(draft.s**2))


@pytest.mark.parametrize(("factor", "built"), [(1e15, True), (1e18, False)])
def test_a_cost_too_large_for_single_precision_is_refused(draft: Draft, factor: float, built: bool) -> None:
    draft.bodies()
    if built:
        draft.check(state_cost=factor * draft.s**2)
    else:
        draft.rejected("divide all costs", state_cost=factor * draft.s**2)


def test_a_continuous_joint_whose_equations_do_not_repeat_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.spring(draft.q, 0.5)
    draft.rejected("`turn`", 'robot.revolute("turn", limit=')


def test_a_weak_spring_of_an_endless_angle_is_refused_beside_a_strong_one(draft: Draft) -> None:
    draft.bodies()
    draft.robot.spring(draft.s, 4e6)
    draft.robot.spring(draft.q, 0.05)
    draft.rejected("`turn`", 'robot.revolute("turn", limit=')


def test_a_cost_that_jumps_is_refused_beside_a_large_one(draft: Draft) -> None:
    draft.bodies()
    draft.rejected("`turn`", "jumps", state_cost=(1e4 * draft.s) ** 2 + (draft.q + draft.q**2 / 10) ** 2)


def test_a_drawing_that_is_not_finite_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.draw(line=[(0, 0), (draft.q, 0)])
    line = currentframe().f_lineno + 1  # type: ignore[union-attr]
    draft.robot.draw(line=[(0, 0), (sqrt(0.25 - sin(draft.q) ** 2), 0)])
    draft.rejected(f":{line}:", "(sqrt(", "is nan at")


def test_a_drawing_that_is_not_finite_at_the_target_is_refused(draft: Draft) -> None:
    """No sample lies at the target."""
    draft.bodies()
    draft.robot.draw(line=[(0, 0), (1 / sin(draft.q), 1)])
    draft.rejected("(1/sin(turn), 1) is inf at", "turn = 0,")


def test_a_named_point_that_is_not_real_is_refused(draft: Draft) -> None:
    draft.bodies()
    draft.robot.point("tip", (sqrt(0.25 - sin(draft.q) ** 2), 0))
    draft.rejected("the point `tip` (sqrt(", "is nan at")


def test_a_named_point_may_use_a_fixed_parameter(draft: Draft) -> None:
    draft.bodies()
    length = draft.robot.parameter("length", 0.5, "m", fixed=True)
    draft.robot.draw(line=[(0, 0), (length, 0)])
    draft.robot.point("tip", (length * sin(draft.q), 0))
    draft.robot.point_mass(0.1, (draft.s + length * sin(draft.q), length * cos(draft.q)))
    draft.check()


def test_a_rod_of_a_body_without_mass_is_refused_with_advice(draft: Draft) -> None:
    draft.bodies()
    payload = draft.robot.parameter("payload", 0.5, "kg", bounds=(0, 1))
    draft.robot.body(payload, 0.1, (draft.s, 1), draft.q)
    draft.rejected("rod of a body", "robot.draw(")


def test_gravity_may_be_a_fixed_parameter_of_a_robot_of_links(draft: Draft) -> None:
    moon = draft.robot.parameter("moon", 1.62, "m/s^2", fixed=True)
    draft.robot.gravity(moon)
    slider = draft.robot.link("slider", draft.s, axis="x", mass=draft.mass)
    draft.robot.link("rod", draft.q, on=slider, mass=0.3, centre=(0, 0, 0.5), inertia=0.01)
    draft.robot.apply(draft.s, draft.force)
    equations = draft.check()
    assert moon not in equations.parameters
    force = numpy_evaluator([*equations.state, *equations.parameters], equations.force, equations.definitions)
    level = force(*np.array([[0.0, np.pi / 2, 0.0, 0.0, 1.0]]).T)  # the rod is level: 0.3 kg at 0.5 m
    assert level[0, 1, 0] == pytest.approx(0.3 * 1.62 * 0.5)


@pytest.mark.parametrize("free", [(), ("turn",)])
def test_a_coordinate_on_which_nothing_depends_is_named(free: tuple[str, ...]) -> None:
    draft = Draft()
    draft.robot.point_mass(draft.mass, (draft.s, 0))
    draft.robot.kinetic_energy(0.01 * draft.q.rate**2)
    draft.robot.apply(draft.s, draft.force)
    draft.robot.apply(draft.q, 0.1 * draft.force)
    draft.cost = draft.s**2 + draft.q.rate**2
    message = ignorable(draft.robot, draft.check(free=free))
    assert "nothing depends on `turn`" in message
    assert "robot.ignore(turn)" in message
    assert ("free=['turn']" in message) == (not free)


def test_a_displacement_of_a_body_in_space_is_named_as_it_is_written() -> None:
    robot = Robot("drifter")
    robot.gravity(0)
    torque = robot.input("torque", 1, "N m")
    base = robot.floating("base", limit=1, rate_limit=1, turn_rate_limit=1)
    robot.link("body", base, mass=1.0, inertia=0.1)
    robot.apply(base.turn[0], torque)
    robot.task(
        state_cost=base.away().dot(base.away()),
        action_cost=LogCos(1),
        start=dict(base=((0, 0, 0), 1)),
        horizon=1,
        weight_at_horizon=0.6,
        control_rate=20,
    )
    assert "Write robot.ignore(base.position[0])" in ignorable(robot, equations_of_motion(robot))


def test_no_coordinate_is_named_where_all_matter() -> None:
    draft = Draft()
    draft.bodies()
    assert ignorable(draft.robot, draft.check()) == ""
