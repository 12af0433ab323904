"""Random kinematic trees compared with Pinocchio and MuJoCo. The program is evaluated node by node, not compiled."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen import engines
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.mechanics import link_energies
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.engines import differences
from modelgen.engines.expressions import builder
from tests.modelgen.support.cases import CASES
from tests.modelgen.support.evaluation import Uncompiled
from tests.modelgen.support.trees import Tree, as_pinocchio, as_robot, trees

pytestmark = pytest.mark.slow

SAMPLES = 4


def sampled(tree: Tree, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and rates (N, n_q)."""
    q, v = np.random.default_rng(seed).uniform(-2, 2, (2, SAMPLES, len(tree.coordinates)))
    return q, v


def close(values: Any, expected: Any, accuracy: float, scale: float = 0.0) -> None:
    """Check every entry to the accuracy times the largest entry, or times the scale if that is larger."""
    np.testing.assert_allclose(values, expected, rtol=0, atol=accuracy * max(np.abs(expected).max(initial=0), scale))


@settings(max_examples=max(CASES // 10, 4), deadline=None)
@given(trees(), st.integers(0, 2**32 - 1))
def test_a_random_tree_agrees_with_pinocchio(tree: Tree, seed: int) -> None:
    """Mass matrix, accelerations and all their derivatives, compared with a model built by Pinocchio directly."""
    pin = pytest.importorskip("pinocchio")
    q, v = sampled(tree, seed)
    x, u = np.hstack([q, v]), np.random.default_rng(seed).uniform(-1, 1, (SAMPLES, 1))
    equations = equations_of_motion(as_robot(tree))
    kernels = Uncompiled(equations, tree.nominal)
    theta = np.tile(tree.nominal, (SAMPLES, 1))
    matrix = numpy_evaluator([*equations.state, *equations.parameters], equations.mass_matrix, equations.definitions)
    M, size = matrix(*x.T, *theta.T), q.shape[1]
    a, B, da_dx, dB_dx, da_dtheta, dB_dtheta = kernels.jacobians(x)
    slopes = da_dx + np.einsum("nijk,nj->nik", dB_dx, u), da_dtheta + np.einsum("nijk,nj->nik", dB_dtheta, u)
    model, order = as_pinocchio(pin, tree, tree.nominal)
    data, rows = model.createData(), np.ix_(order, order)

    def arranged(values: np.ndarray) -> np.ndarray:
        result = np.empty(size)
        result[order] = values
        return result

    def acceleration(at: np.ndarray, sample: int) -> np.ndarray:
        other, _ = as_pinocchio(pin, tree, at)
        force = arranged(u[sample] * np.eye(size)[0])
        return pin.aba(other, other.createData(), arranged(q[sample]), arranged(v[sample]), force)[order]

    for k in range(SAMPLES):
        mass = np.triu(pin.crba(model, data, arranged(q[k])))
        mass = (mass + np.triu(mass, 1).T)[rows]
        close(M[k], mass, 1e-12)
        accuracy = 1e-13 * np.linalg.cond(mass)
        vdot = acceleration(tree.nominal, k)
        scale = 1 + np.abs(vdot).max()
        close((a + np.einsum("nij,nj->ni", B, u))[k], [*v[k], *vdot], accuracy, scale)
        close(B[k, size:, 0], np.linalg.inv(mass)[:, 0], accuracy, scale)
        force = arranged(u[k] * np.eye(size)[0])
        pin.computeABADerivatives(model, data, arranged(q[k]), arranged(v[k]), force)
        by_state = np.hstack([data.ddq_dq[rows], data.ddq_dv[rows]])
        # an error of the acceleration is multiplied by dM/dq and by the inverse once more
        close(slopes[0][k, size:], by_state, 10 * accuracy * np.linalg.cond(mass), scale)
        by_theta, _ = differences(partial(acceleration, sample=k), tree.nominal, 1e-3 * tree.nominal)
        close(slopes[1][k, size:], by_theta, 1e-8 + 1e3 * accuracy, scale)
    costate = np.random.default_rng(seed + 1).uniform(-1, 1, x.shape)
    swept = kernels.hamiltonian_gradient(x, u, costate)
    expected = *(np.einsum("ni,nij->nj", costate, part) for part in slopes), np.einsum("ni,nij->nj", costate, B)
    for ours, theirs in zip((swept[0], swept[2], swept[1]), expected, strict=True):
        close(ours, theirs, 1e-11 * np.linalg.cond(M).max(), 1.0)


@settings(max_examples=max(CASES // 20, 2), deadline=None)
@given(trees(), st.integers(0, 2**32 - 1))
def test_engines_made_from_links_agree_with_the_equations(tree: Tree, seed: int) -> None:
    """An engine of `verify --against` has the accelerations of the equations, and the kinetic energy of `verify`."""
    for engine in engines.ENGINES:
        pytest.importorskip(engine)
    robot = as_robot(tree)
    q, v = sampled(tree, seed)
    x, u = np.hstack([q, v]), np.random.default_rng(seed).uniform(-1, 1, (SAMPLES, 1))
    kernels = Uncompiled(equations_of_motion(robot), tree.nominal)
    a, B = kernels.affine_dynamics(x)
    vdot = (a + np.einsum("nij,nj->ni", B, u))[:, q.shape[1] :]
    symbols = [joint.symbol for joint in robot.joints]
    arguments = [*symbols, *(symbol.rate for symbol in symbols), *(constant.symbol for constant in robot.parameters)]
    definitions, kinetic, _ = link_energies(robot.links, robot.downward_acceleration, robot.symbols)
    columns = [*x.T, *np.tile(tree.nominal, (SAMPLES, 1)).T]
    for name in engines.ENGINES:
        moved = builder(name, robot)(tree.nominal)
        mass = moved.mass_matrix(q)
        accuracy = 1e-11 * np.linalg.cond(mass).max()
        close(moved.acceleration(x, u), vdot, accuracy, 1.0)
        energy = numpy_evaluator(arguments, kinetic, definitions)(*columns)
        close(energy, np.einsum("ni,nij,nj->n", v, mass, v) / 2, 1e-11)
