"""The linear-quadratic regulator of xdot = A x + B u with cost x' Q x + u' R u, and whether there is one.

A regulator exists where every motion that does not decay is reached by an input (stabilisability) and seen by the
state cost (detectability). Both are decided before the Riccati equation is solved, by orthonormal staircases
(Van Dooren, "The generalized eigenstructure problem in linear system theory", IEEE TAC 26, 1981), never by whether
its solver fails: that is a matter of rounding and differs between processors.

All matrices are expected in units of the states' and inputs' limits, so that 1 is a large state and a large input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_continuous_are

Array = NDArray[np.float64]

RANK = 1e-9  # a direction reached or seen less than this, beside the best one, counts as not reached or not seen
DECAY = 1e-6  # a motion decays if the real part of its eigenvalue is below minus this share of the norm of A


@dataclass(frozen=True)
class Obstacle:
    """A motion that does not decay and for which no regulator exists."""

    reason: str  # "no input reaches" or "the state cost does not see"
    state: int  # the state that takes the largest part in it
    eigenvalue: complex


def controllable_subspace(A: Array, B: Array) -> Array:
    """Orthonormal basis (n, r) of the span of B, AB, A^2 B, ...

    Every block is made orthonormal before A multiplies it, so no power of A is formed.
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


def obstacle(A: Array, B: Array, Q: Array) -> Obstacle | None:
    """The fastest growing motion that no input reaches or that the state cost does not see; None if there is none."""
    beyond = _complement(controllable_subspace(A, B))
    unseen = _complement(observable_subspace(A, Q))
    # x = (left eigenvector)' z evolves by itself beyond the inputs; unseen motions are the right eigenvectors.
    return _persistent(A.T, beyond, "no input reaches") or _persistent(A, unseen, "the state cost does not see")


def cost_to_go(A: Array, B: Array, Q: Array, R: Array) -> Array | None:
    """P (n, n) of the least cost x' P x, exactly zero for states that the cost does not see, where `obstacle` finds
    none.

    The Riccati equation is solved for the observable part alone. None where double precision cannot solve it.
    """
    seen = observable_subspace(A, Q)
    if not seen.shape[1]:
        return np.zeros_like(A)
    A_seen, B_seen = seen.T @ A @ seen, seen.T @ B
    try:
        P_seen = solve_continuous_are(A_seen, B_seen, seen.T @ Q @ seen, R)
    except (LinAlgError, ValueError):
        return None
    if not np.linalg.eigvals(A_seen - B_seen @ np.linalg.solve(R, B_seen.T @ P_seen)).real.max() < 0:
        return None
    P: Array = seen @ P_seen @ seen.T
    unseen = np.linalg.norm(seen, axis=1) < RANK
    P[unseen], P[:, unseen] = 0.0, 0.0
    return P


def gain(A: Array, B: Array, Q: Array, R: Array) -> Array | None:
    """K (m, n) of u = -K x, exactly zero for every state that the cost does not see; None as in `cost_to_go`."""
    P = cost_to_go(A, B, Q, R)
    if P is None:
        return None
    return np.asarray(np.linalg.solve(R, B.T @ P), np.float64)


def _persistent(A: Array, subspace: Array, reason: str) -> Obstacle | None:
    """The obstacle that A, restricted to an invariant subspace (n, r), makes if a motion in it does not decay."""
    if not subspace.shape[1]:
        return None
    values, vectors = np.linalg.eig(subspace.T @ A @ subspace)
    size = float(np.linalg.norm(A))
    worst = int(values.real.argmax())
    if values[worst].real < -DECAY * size:
        return None
    shares = np.abs(subspace @ vectors[:, worst])
    clean = (part if abs(part) > DECAY * size else 0.0 for part in (values[worst].real, values[worst].imag))
    return Obstacle(reason, int(np.round(shares / shares.max(), 6).argmax()), complex(*clean))


def _complement(basis: Array) -> Array:
    """Orthonormal basis (n, n - r) of what is orthogonal to the columns of an orthonormal basis (n, r)."""
    complete, _, _ = np.linalg.svd(basis, full_matrices=True)
    return np.asarray(complete[:, basis.shape[1] :])


def _normalised(matrix: Array) -> Array:
    return matrix / max(float(np.linalg.norm(matrix)), 1e-300)
