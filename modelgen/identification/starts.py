"""The starts of the windows that fit best at given parameters, and how they follow the parameters.

Every window has a start of its own, so that N small problems are solved side by side by damped Gauss-Newton. What is
left of the residual's derivative by theta when the starts follow is the variable projection of G. Golub and V. Pereyra
("The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", SIAM J. Numer.
Anal. 10, 1973) in the approximation of L. Kaufman (BIT 15, 1975).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.identification.model import Model
from modelgen.identification.simulation import Motion
from modelgen.identification.windows import Windows

ROBUST = 3.0  # standard deviations beyond which a residual counts by its size, not by its square
ITERATIONS = 40
GAIN = 1e-6  # a step that is expected to lower a window's loss by a smaller share is the last one
CLOSE = 1e-6  # of the states' limits: a step this small is taken along the derivative without simulating again
DAMPING = 1e-7


@dataclass(frozen=True)
class Settled:
    """N windows with their best starts. Residuals are in standard deviations, zero where nothing was measured."""

    starts: Array  # (N, n)
    residuals: Array  # (K, N, n), simulated minus measured
    sensitivity: Array  # (K, N, n, p), the residuals' derivatives by theta while the starts follow
    starts_by_theta: Array  # (N, n, p)
    pushed: Array  # (K, N, n, l), like `sensitivity` for constant disturbances


def weights(residuals: Array, robust: bool) -> Array:
    """rho'(r^2) of the loss `soft_l1` of scipy.optimize.least_squares with f_scale=ROBUST; ones where not robust."""
    return 1.0 / np.sqrt(1.0 + (residuals / ROBUST) ** 2) if robust else np.ones_like(residuals)


def bends(residuals: Array, robust: bool) -> Array:
    """Half of the loss's second derivative by each residual; ones where not robust."""
    return (1.0 + (residuals / ROBUST) ** 2) ** -1.5 if robust else np.ones_like(residuals)


def loss(residuals: Array) -> Array:
    """The loss `soft_l1` of residuals in standard deviations, elementwise: the square of a small one."""
    return np.asarray(2 * ROBUST**2 * (np.sqrt(1.0 + (residuals / ROBUST) ** 2) - 1.0))


def cost(residuals: Array, robust: bool) -> Array:
    """The loss of every window, (N,)."""
    return np.asarray((loss(residuals) if robust else residuals**2).sum(axis=(0, 2)))


def settle(
    model: Model,
    windows: Windows,
    guess: Array,
    theta: Array,
    deviations: Array,
    robust: bool,
    pushes: Array | None = None,
) -> Settled:
    """The best starts from a guess (N, n). deviations: (n,) of the sensors; pushes: (n, l) as in `simulate`.

    Where a motion does not stay finite, the residuals are not finite either.
    """
    known, limits = ~np.isnan(windows.measured), np.asarray(model.robot.state_limits)
    measured = np.where(known, windows.measured, 0.0)
    weigh = known / deviations

    def residuals(x: Array, which: NDArray[np.intp] | slice = slice(None)) -> Array:
        return np.where(known[:, which], (x - measured[:, which]) / deviations, 0.0)

    starts, damping = guess.copy(), np.full(len(guess), DAMPING)
    motion = model.simulate(windows, starts, theta, pushes)
    for _ in range(ITERATIONS):
        found = residuals(motion.x)
        step, gain = _step(motion, found, weigh, damping, robust)
        with np.errstate(invalid="ignore", over="ignore"):
            last = (np.abs(step) < CLOSE * limits).all(axis=1) | (gain <= GAIN * cost(found, robust))
        if not np.isfinite(step).all() or last.all():
            break
        left = np.flatnonzero(~last)  # few of many, where motion is chaotic
        tried = model.simulate(windows.chosen(left), starts[left] + step[left], theta, pushes)
        there = residuals(tried.x, left)
        with np.errstate(invalid="ignore", over="ignore"):
            better = cost(there, robust) <= cost(found[:, left], robust) * (1 + 1e-12)
        which, damped = left[better], damping[left]
        starts[which] += step[which]
        for all_windows, new in zip(motion, tried, strict=True):
            all_windows[:, which] = new[:, better]
        damping[left] = np.where(better, np.maximum(damped / 10, DAMPING), np.maximum(damped * 10, 1e-3))
    step = np.where(np.abs(step) < CLOSE * limits, step, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        found = residuals(motion.x + np.einsum("kwij,wj->kwi", motion.dx_dstart, step))
        return eliminated(motion, starts + step, found, weigh, robust)


def _normal(J: Array, weight: Array) -> Array:
    """The sum of J' W J of every window, (N, n, n)."""
    return np.asarray(np.einsum("kwia,kwi,kwib->wab", J, weight, J, optimize=True))


def _step(motion: Motion, found: Array, weigh: Array, damping: Array, robust: bool) -> tuple[Array, Array]:
    """Damped Gauss-Newton (Levenberg and Marquardt) for every start, (N, n), and the expected gain, (N,)."""
    with np.errstate(invalid="ignore", over="ignore"):
        J, weight = motion.dx_dstart * weigh[..., None], weights(found, robust)
        normal, gradient = _normal(J, weight), np.einsum("kwia,kwi->wa", J, weight * found)
        scale = np.einsum("waa->wa", normal)
        normal = normal + (damping[:, None] * scale + 1e-300)[..., None] * np.eye(len(J[0, 0, 0]))
        if not np.isfinite(normal).all():
            return np.full_like(gradient, np.nan), np.full(len(gradient), np.nan)
        step = -np.asarray(np.linalg.solve(normal, gradient[..., None]))[..., 0]
        return step, -(step * gradient).sum(axis=1)


def eliminated(motion: Motion, starts: Array, found: Array, weigh: Array, robust: bool) -> Settled:
    """Residuals `found` (K, N, n) of a motion, with derivatives from which the starts are eliminated."""
    by_start = motion.dx_dstart * weigh[..., None]
    others = np.concatenate([motion.dx_dtheta, motion.dx_dpush], axis=3) * weigh[..., None]
    weight, p = weights(found, robust), motion.dx_dtheta.shape[3]
    if not (np.isfinite(others).all() and np.isfinite(by_start).all() and np.isfinite(found).all()):
        follow = np.zeros((*starts.shape, others.shape[3]))
    else:
        mixed = np.einsum("kwia,kwi,kwib->wab", by_start, weight, others, optimize=True)
        follow = -np.linalg.pinv(_normal(by_start, weight), hermitian=True) @ mixed
        others = others + np.einsum("kwia,wab->kwib", by_start, follow, optimize=True)
    return Settled(starts, found, others[..., :p], follow[..., :p], others[..., p:])
