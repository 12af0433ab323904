"""Proofs of mass matrices against eigenvalues at samples, and against matrices that are known to be singular."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sympy import Matrix, cos, symbols

from modelgen import Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import evaluator
from modelgen.derivation.sampling import samples
from modelgen.proof.guards import Domain, domain
from modelgen.proof.mass_matrix import Block, blocks, monotone, own_inertias, proven
from tests.modelgen.support.proofs import finished
from tests.modelgen.support.trees import Tree, as_robot, trees

X, Y, P = symbols("x y p", real=True)


def block(matrix: Matrix, **bounds: tuple[float, float]) -> Block:
    names = [symbol for symbol in (X, Y, P) if str(symbol) in bounds]
    lower, upper = np.array([bounds[str(symbol)] for symbol in names], np.float64).T
    return Block("test", matrix, (), Domain(tuple(names), lower, upper))


def smallest(robot: Robot) -> float:
    """The smallest eigenvalue of M at samples."""
    equations = equations_of_motion(robot)
    x, theta = samples(robot)
    function = evaluator([*equations.state, *equations.parameters], equations.mass_matrix, equations.definitions)
    return float(np.linalg.eigvalsh(function(*x.T, *theta.T)).min())


def test_a_matrix_that_is_barely_definite_is_proven_and_one_that_is_barely_not_is_refuted() -> None:
    for gap, complete in ((1e-3, True), (-1e-3, False)):
        shown = proven(block(Matrix([[1 + gap, cos(X)], [cos(X), 1]]), x=(-4, 4)), [], 5.0)
        assert shown.complete == complete
        assert (shown.violation is None) == complete


def test_a_singular_matrix_is_not_proven() -> None:
    """det = sin(x)**2 is zero at 0 alone, which is no corner of a box that is halved."""
    shown = proven(block(Matrix([[1, cos(X)], [cos(X), 1]]), x=(-1, 2)), [], 0.5)
    assert not shown.complete
    assert shown.left > 0


def test_lengths_scale_rows_without_harm() -> None:
    """Entries of very different sizes: M = D N D with D = diag(1, p), p over three decades."""
    N = Matrix([[1, cos(X) / 2], [cos(X) / 2, 1]])
    D = Matrix([[1, 0], [0, P]])
    assert proven(block(D * N * D, x=(-4, 4), p=(1e-3, 1)), [], 5.0).complete


def test_a_parameter_with_a_negative_share_of_the_energy_is_not_monotone() -> None:
    robot = Robot("draft")
    q = robot.revolute("turn", limit=2, rate_limit=3)
    light, heavy = (robot.parameter(name, 1.0, "", bounds=(0.5, 2)) for name in ("light", "heavy"))
    robot.kinetic_energy((heavy * (1 + q**2) - light / 10) * q.rate**2)
    robot.apply(q, robot.input("drive", 1, ""))
    finished(robot, state_cost=q**2)
    ((whole, fixed),) = blocks(robot, equations_of_motion(robot))
    assert fixed == monotone(robot, whole) == [heavy]
    assert proven(whole, fixed, 5.0).complete


def test_negative_bounds_of_a_mass_are_found() -> None:
    robot = Robot("draft")
    s = robot.prismatic("slide", limit=1, rate_limit=3)
    robot.kinetic_energy(robot.parameter("mass", 1.0, "kg", bounds=(-0.1, 2)) * s.rate**2 / 2)
    robot.apply(s, robot.input("drive", 1, "N"))
    finished(robot, state_cost=s**2)
    ((whole, fixed),) = blocks(robot, equations_of_motion(robot))
    assert not proven(whole, fixed, 5.0).complete


def test_a_seven_joint_arm_is_proven_by_its_links_and_not_by_its_coordinates() -> None:
    robot = load(str(SHIPPED / "large" / "arm7.py"))
    own = own_inertias(robot, domain(robot))
    assert own
    assert len(own) == 7
    for each in own:
        assert len(each.domain.symbols) <= 1
        assert proven(each, [], 5.0).complete


def test_a_point_mass_on_its_own_axis_is_not_proven() -> None:
    robot = Robot("draft")
    q = robot.revolute("turn", limit=2, rate_limit=3)
    robot.link("bob", q, mass=1.0, centre=(0, 0.3, 0), axis="y")
    robot.apply(q, robot.input("drive", 1, ""))
    finished(robot, state_cost=q**2)
    own = own_inertias(robot, domain(robot))
    assert own
    assert not proven(own[0], [], 1.0).complete


def test_a_massless_link_between_two_joints_counts_with_the_next() -> None:
    robot = Robot("draft")
    a, b = (robot.revolute(name, limit=1, rate_limit=3) for name in ("first", "second"))
    frame = robot.link("frame", a, axis="x")
    robot.link("bob", b, on=frame, mass=1.0, centre=(0, 0, 0.3), axis="y", inertia=0.01)
    robot.apply(a, robot.input("drive", 1, ""))
    finished(robot, state_cost=a**2 + b**2)
    own = own_inertias(robot, domain(robot))
    assert own
    assert [each.matrix.shape for each in own] == [(2, 2)]
    assert proven(own[0], [], 5.0).complete
    assert smallest(robot) > 0


def test_a_massless_end_has_no_own_inertia() -> None:
    robot = Robot("draft")
    a, b = (robot.revolute(name, limit=1, rate_limit=3) for name in ("first", "second"))
    arm = robot.link("arm", a, mass=1.0, inertia=0.1)
    robot.link("tip", b, on=arm)
    robot.apply(a, robot.input("drive", 1, ""))
    finished(robot, state_cost=a**2 + b**2)
    assert own_inertias(robot, domain(robot)) is None


@settings(max_examples=8)
@given(trees())
@pytest.mark.slow
def test_own_inertias_bound_the_pivots_of_random_trees(tree: Tree) -> None:
    """det M is at least the product of the blocks' determinants, at every sample (Fischer's inequality for pivots)."""
    robot = as_robot(tree)
    own = own_inertias(robot, domain(robot))
    if own is None:
        assert smallest(robot) < 1e-9 or any(bar.kind == "fixed" for bar in tree.bars)
        return
    assert all(proven(each, [], 5.0).complete for each in own)
    equations = equations_of_motion(robot)
    x, theta = samples(robot, 40)
    symbols = [*equations.state, *equations.parameters]
    M = evaluator(symbols, equations.mass_matrix, equations.definitions)(*x.T, *theta.T)
    product = np.ones(len(x))
    for each in own:
        product *= np.linalg.det(evaluator(symbols, each.matrix, each.definitions)(*x.T, *theta.T))
    assert (np.linalg.det(M) >= product * (1 - 1e-9)).all()
    assert (product > 0).all()


@pytest.mark.parametrize("name", ["cartpole", "furuta", "acrobot", "ball_on_beam"])
def test_shipped_robots(name: str) -> None:
    robot = load(str(SHIPPED / f"{name}.py"))
    assert all(proven(part, fixed, 20.0).complete for part, fixed in blocks(robot, equations_of_motion(robot)))
    assert smallest(robot) > 0
