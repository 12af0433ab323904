"""Proofs of mass matrices against eigenvalues at samples, and against matrices that are singular by construction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sympy import Matrix, cos, symbols

from modelgen import Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import numpy_evaluator, samples
from modelgen.proof.guards import Domain, domain
from modelgen.proof.mass_matrix import Block, blocks, monotone, own_inertias, prove_block
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
    function = numpy_evaluator([*equations.state, *equations.parameters], equations.mass_matrix, equations.definitions)
    return float(np.linalg.eigvalsh(function(*x.T, *theta.T)).min())


def test_a_barely_definite_matrix_is_proven_and_a_barely_indefinite_one_is_refuted() -> None:
    for gap, complete in ((1e-3, True), (-1e-3, False)):
        shown = prove_block(block(Matrix([[1 + gap, cos(X)], [cos(X), 1]]), x=(-4, 4)), [], 5.0)
        assert shown.complete == complete
        assert (shown.violation is None) == complete


def test_a_singular_matrix_is_not_proven() -> None:
    """det = sin(x)**2 vanishes only at 0, which is not a corner of a halved box."""
    shown = prove_block(block(Matrix([[1, cos(X)], [cos(X), 1]]), x=(-1, 2)), [], 0.5)
    assert not shown.complete
    assert shown.left > 0


def test_a_matrix_with_entries_of_very_different_size_is_proven() -> None:
    """M = D N D with D = diag(1, p), p over three decades."""
    N = Matrix([[1, cos(X) / 2], [cos(X) / 2, 1]])
    D = Matrix([[1, 0], [0, P]])
    assert prove_block(block(D * N * D, x=(-4, 4), p=(1e-3, 1)), [], 5.0).complete


def test_a_parameter_that_can_reduce_the_energy_is_not_monotone() -> None:
    robot = Robot("draft")
    q = robot.revolute("turn", limit=2, rate_limit=3)
    light, heavy = (robot.parameter(name, 1.0, "", bounds=(0.5, 2)) for name in ("light", "heavy"))
    robot.kinetic_energy((heavy * (1 + q**2) - light / 10) * q.rate**2)
    robot.apply(q, robot.input("drive", 1, ""))
    finished(robot, state_cost=q**2)
    ((whole, fixed),) = blocks(robot, equations_of_motion(robot))
    assert fixed == monotone(robot, whole) == [heavy]
    assert prove_block(whole, fixed, 5.0).complete


def test_a_mass_with_negative_bounds_is_not_proven() -> None:
    robot = Robot("draft")
    s = robot.prismatic("slide", limit=1, rate_limit=3)
    robot.kinetic_energy(robot.parameter("mass", 1.0, "kg", bounds=(-0.1, 2)) * s.rate**2 / 2)
    robot.apply(s, robot.input("drive", 1, "N"))
    finished(robot, state_cost=s**2)
    ((whole, fixed),) = blocks(robot, equations_of_motion(robot))
    assert not prove_block(whole, fixed, 5.0).complete


@pytest.mark.slow
def test_a_seven_joint_arm_is_proven_by_the_own_inertias_of_its_links() -> None:
    robot = load(str(SHIPPED / "large" / "arm7.py"))
    own = own_inertias(robot, domain(robot))
    assert own
    assert len(own) == 7
    for inertia in own:
        assert len(inertia.domain.symbols) <= 1
        assert prove_block(inertia, [], 5.0).complete


def test_a_point_mass_on_its_own_axis_is_not_proven() -> None:
    robot = Robot("draft")
    q = robot.revolute("turn", limit=2, rate_limit=3)
    robot.link("bob", q, mass=1.0, centre=(0, 0.3, 0), axis="y")
    robot.apply(q, robot.input("drive", 1, ""))
    finished(robot, state_cost=q**2)
    own = own_inertias(robot, domain(robot))
    assert own
    assert not prove_block(own[0], [], 1.0).complete


def test_a_massless_link_between_two_joints_belongs_to_the_next_link() -> None:
    robot = Robot("draft")
    a, b = (robot.revolute(name, limit=1, rate_limit=3) for name in ("first", "second"))
    frame = robot.link("frame", a, axis="x")
    robot.link("bob", b, on=frame, mass=1.0, centre=(0, 0, 0.3), axis="y", inertia=0.01)
    robot.apply(a, robot.input("drive", 1, ""))
    finished(robot, state_cost=a**2 + b**2)
    own = own_inertias(robot, domain(robot))
    assert own
    assert [inertia.matrix.shape for inertia in own] == [(2, 2)]
    assert prove_block(own[0], [], 5.0).complete
    assert smallest(robot) > 0


def test_a_tree_with_a_massless_end_has_no_own_inertias() -> None:
    robot = Robot("draft")
    a, b = (robot.revolute(name, limit=1, rate_limit=3) for name in ("first", "second"))
    arm = robot.link("arm", a, mass=1.0, inertia=0.1)
    robot.link("tip", b, on=arm)
    robot.apply(a, robot.input("drive", 1, ""))
    finished(robot, state_cost=a**2 + b**2)
    assert own_inertias(robot, domain(robot)) is None


@settings(max_examples=3)
@given(trees())
@pytest.mark.slow
def test_own_inertias_bound_the_pivots_of_random_trees(tree: Tree) -> None:
    """det M is at least the product of the blocks' determinants, at every sample (Fischer's inequality for pivots)."""
    robot = as_robot(tree)
    own = own_inertias(robot, domain(robot))
    if own is None:
        assert smallest(robot) < 1e-9 or any(bar.kind == "fixed" for bar in tree.bars)
        return
    assert all(prove_block(inertia, [], 5.0).complete for inertia in own)
    equations = equations_of_motion(robot)
    x, theta = samples(robot, 40)
    symbols = [*equations.state, *equations.parameters]
    M = numpy_evaluator(symbols, equations.mass_matrix, equations.definitions)(*x.T, *theta.T)
    product = np.ones(len(x))
    for inertia in own:
        product *= np.linalg.det(numpy_evaluator(symbols, inertia.matrix, inertia.definitions)(*x.T, *theta.T))
    assert (np.linalg.det(M) >= product * (1 - 1e-9)).all()
    assert (product > 0).all()


@pytest.mark.parametrize("name", ["cartpole", "furuta", "acrobot", "ball_on_beam"])
@pytest.mark.slow
def test_shipped_robots_are_proven(name: str) -> None:
    robot = load(str(SHIPPED / f"{name}.py"))
    assert all(prove_block(part, fixed, 20.0).complete for part, fixed in blocks(robot, equations_of_motion(robot)))
    assert smallest(robot) > 0
