"""The linear-quadratic regulator of a robot near its target: its weights, its existence, its cost-to-go and gain.

The system is xdot = A x + B u with the cost x' Q x + u' R u. A regulator exists if every motion that does not decay is
reached by an input (stabilisability) and seen by the state cost (detectability). Orthonormal staircases decide both
before the Riccati equation is solved (Van Dooren, "The generalized eigenstructure problem in linear system theory",
IEEE TAC 26, 1981). Failures of its solver decide nothing: they are a matter of rounding and differ between processors.

All matrices are expected in units of the states' and inputs' limits, so that 1 is a large state and a large input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent

RANK = 1e-9  # a direction counts as reached or seen above this share of the direction that is reached or seen best
DECAY = 1e-6  # a motion decays if the real part of its eigenvalue is below minus this share of the norm of A


@dataclass(frozen=True)
class Obstacle:
    """A motion that does not decay and that prevents a regulator."""

    reason: str  # "no input reaches" or "the state cost does not see"
    state: int  # the state with the largest part in the motion, of those that are not free
    eigenvalue: complex


def controllable_subspace(A: Array, B: Array) -> Array:
    """Orthonormal basis (n, r) of the span of B, AB, A^2 B, ...

    Each block is made orthonormal before it is multiplied by A, so that no power of A is formed.
    """
    basis = np.zeros((len(A), 0))
    block, A = _normalised(B), _normalised(A)
    while block.shape[1]:
        left, sizes, _ = np.linalg.svd(block - basis @ (basis.T @ block), full_matrices=False)
        new = left[:, sizes > RANK]
        basis = np.hstack([basis, new])
        block = A @ new
    return basis


def observable_subspace(A: Array, Q: Array) -> Array:
    """Orthonormal basis (n, r) of the states that the cost x' Q x sees, at once or later."""
    return controllable_subspace(A.T, Q)


def obstacle(A: Array, B: Array, Q: Array, free: Sequence[int] = ()) -> Obstacle | None:
    """The fastest growing motion that no input reaches or that the state cost does not see; None if there is none.

    free: states that need not come to the target. They may carry what no input changes, such as the angular momentum of
    a satellite, which its wheels take up.
    """
    out_of_reach = _complement(controllable_subspace(A, B))
    unobserved = _complement(observable_subspace(A, Q))
    # x = (left eigenvector)' z evolves without inputs out of reach; unobserved motions are the right eigenvectors
    uncontrolled = _persistent(A.T, out_of_reach, "no input reaches", free, carried=True)
    return uncontrolled or _persistent(A, unobserved, "the state cost does not see", free)


def cost_to_go(A: Array, B: Array, Q: Array, R: Array) -> Array | None:
    """P (n, n) of the least cost x' P x, exactly zero for states that the cost does not see.

    Requires that `obstacle` finds none. The Riccati equation is solved for the observable part only. None if double
    precision cannot solve it.
    """
    from scipy.linalg import solve_continuous_are, solve_continuous_lyapunov  # few commands need it

    basis = observable_subspace(A, Q)
    if not basis.shape[1]:
        return np.zeros_like(A)
    A_part, B_part = basis.T @ A @ basis, basis.T @ B
    try:
        Q_part = basis.T @ Q @ basis
        if B.shape[1]:
            P_part = solve_continuous_are(A_part, B_part, Q_part, R)
        else:
            P_part = solve_continuous_lyapunov(A_part.T, -Q_part)
    except (np.linalg.LinAlgError, ValueError):
        return None
    if not np.linalg.eigvals(A_part - B_part @ np.linalg.solve(R, B_part.T @ P_part)).real.max() < 0:
        return None
    P: Array = basis @ P_part @ basis.T
    unobserved = np.linalg.norm(basis, axis=1) < RANK
    P[unobserved], P[:, unobserved] = 0.0, 0.0
    return P


def gain(A: Array, B: Array, Q: Array, R: Array) -> Array | None:
    """K (m, n) of u = -K x, exactly zero for states that the cost does not see. None as in `cost_to_go`."""
    P = cost_to_go(A, B, Q, R)
    return None if P is None else gain_of(P, B, R)


def gain_of(P: Array, B: Array, R: Array) -> Array:
    """K (m, n) of u = -K x, where x' P x is the least cost."""
    return np.asarray(np.linalg.solve(R, B.T @ P), np.float64)


def _persistent(A: Array, subspace: Array, reason: str, free: Sequence[int], carried: bool = False) -> Obstacle | None:
    """The obstacle of a motion in an invariant subspace (n, r) of A that does not decay; None if all decay.

    A motion of free states alone is no obstacle. carried: nor are motions that do not grow, where the free states can
    make up for each of them.
    """
    if not subspace.shape[1]:
        return None
    values, vectors = np.linalg.eig(subspace.T @ A @ subspace)
    size = float(np.linalg.norm(A))
    worst = int(values.real.argmax())
    if values[worst].real < -DECAY * size:
        return None
    lasting = subspace @ vectors[:, values.real >= -DECAY * size]
    steady = values[worst].real <= DECAY * size
    if carried and free and steady and np.linalg.matrix_rank(lasting[list(free)], RANK) == lasting.shape[1]:
        return None
    shares = np.abs(subspace @ vectors[:, worst])
    shares[list(free)] = 0.0
    if not shares.max() > RANK:
        return None
    clean = (part if abs(part) > DECAY * size else 0.0 for part in (values[worst].real, values[worst].imag))
    return Obstacle(reason, int(np.round(shares / shares.max(), 6).argmax()), complex(*clean))


def _complement(basis: Array) -> Array:
    """Orthonormal basis (n, n - r) of the complement of an orthonormal basis (n, r)."""
    complete, _, _ = np.linalg.svd(basis, full_matrices=True)
    return np.asarray(complete[:, basis.shape[1] :])


def _normalised(matrix: Array) -> Array:
    return matrix / max(float(np.linalg.norm(matrix)), 1e-300)


def weights(robot: CompiledRobot) -> tuple[Array, Array]:
    """Q (nt, nt) and R (m, m) of the task's cost near its target, e' Q e + u' R u, in SI units; e as in `Tangent`."""
    tangent, target = Tangent(robot.metadata), np.array(robot.metadata.task.target)
    scale = tangent.limits
    steps = 1e-4 * scale
    ends = []
    for sign in (1, -1):
        x = tangent.moved(np.tile(target, (tangent.size, 1)), sign * np.diag(steps))
        slopes = np.asarray(robot.state_cost(x)[1])
        ends.append((slopes[:, None] @ tangent.basis(x))[:, 0])
    curvature = (ends[0] - ends[1]) / (2 * steps[:, None]) * np.outer(scale, scale)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 4)
    values = np.where(values > 1e-9 * values.max(), values, 0.0)  # without the noise of differences
    Q = (vectors * values) @ vectors.T / np.outer(scale, scale)
    return Q, np.diag(np.asarray(robot.action_cost(np.array([robot.trim]))[2])[0] / 2)
