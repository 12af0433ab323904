"""Fit of the parameters to windows: bounded, robust least squares over theta, with the best start of every window.

Every window has a start of its own, so that N small problems are solved side by side by damped Gauss-Newton. What is
left of the residual's derivative by theta when the starts follow is the variable projection of G. Golub and V. Pereyra
("The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", SIAM J. Numer.
Anal. 10, 1973) in the approximation of L. Kaufman (BIT 15, 1975).

Residuals and deviations are of the nt numbers of a `Model`; a start is moved by small errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import chdtri

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.model import Model, Motion
from modelgen.identification.recordings import Recording
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
    residuals: Array  # (K, N, nt), simulated minus measured
    sensitivity: Array  # (K, N, nt, p), the residuals' derivatives by theta while the starts follow
    starts_by_theta: Array  # (N, nt, p)
    pushed: Array  # (K, N, nt, l), like `sensitivity` for constant disturbances


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
    """The best starts from a guess (N, n). deviations: (nt,) of the sensors; pushes: (n, l) as in `simulate`.

    Where a motion does not stay finite, the residuals are not finite either.
    """
    known, limits, moved = ~np.isnan(windows.measured), model.tangent.limits, model.tangent.moved
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
        tried = model.simulate(windows.chosen(left), moved(starts[left], step[left]), theta, pushes)
        there = residuals(tried.x, left)
        with np.errstate(invalid="ignore", over="ignore"):
            better = cost(there, robust) <= cost(found[:, left], robust) * (1 + 1e-12)
        which, damped = left[better], damping[left]
        starts[which] = moved(starts[which], step[which])
        for all_windows, new in zip(motion, tried, strict=True):
            all_windows[:, which] = new[:, better]
        damping[left] = np.where(better, np.maximum(damped / 10, DAMPING), np.maximum(damped * 10, 1e-3))
    step = np.where(np.abs(step) < CLOSE * limits, step, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        found = residuals(motion.x + np.einsum("kwij,wj->kwi", motion.dx_dstart, step))
        return eliminated(motion, moved(starts, step), found, weigh, robust)


def _normal(J: Array, weight: Array) -> Array:
    """The sum of J' W J of every window, (N, nt, nt)."""
    return np.asarray(np.einsum("kwia,kwi,kwib->wab", J, weight, J, optimize=True))


def _step(motion: Motion, found: Array, weigh: Array, damping: Array, robust: bool) -> tuple[Array, Array]:
    """Damped Gauss-Newton (Levenberg and Marquardt) for every start, (N, nt), and the expected gain, (N,)."""
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
    """Residuals `found` (K, N, nt) of a motion, with derivatives from which the starts are eliminated."""
    by_start = motion.dx_dstart * weigh[..., None]
    others = np.concatenate([motion.dx_dtheta, motion.dx_dpush], axis=3) * weigh[..., None]
    weight, p = weights(found, robust), motion.dx_dtheta.shape[3]
    if not (np.isfinite(others).all() and np.isfinite(by_start).all() and np.isfinite(found).all()):
        follow = np.zeros((len(starts), by_start.shape[3], others.shape[3]))
    else:
        mixed = np.einsum("kwia,kwi,kwib->wab", by_start, weight, others, optimize=True)
        normal = _normal(by_start, weight)
        size = np.sqrt(np.einsum("waa->wa", normal))  # starts have units of their own, as a pressure and a length
        unit = 1.0 / np.where(size > 0, size, 1.0)
        inverse = np.linalg.pinv(normal * unit[:, None] * unit[..., None], hermitian=True)
        follow = -unit[..., None] * (inverse @ (unit[..., None] * mixed))
        others = others + np.einsum("kwia,wab->kwib", by_start, follow, optimize=True)
    return Settled(starts, found, others[..., :p], follow[..., :p], others[..., p:])


Progress = Callable[[str], None]

SHORT = 4  # the first fit's windows are this many times shorter: short motions are nearly linear in theta
TOLERANCE = 1e-8  # of the loss; of half of a parameter's range
EVALUATIONS = 60  # most of a search
PULL = 1.0  # standard deviations for half of a range: as much as the declared bounds say, once for all samples
#: Of half of a range: the search begins inside of the bounds by this much; nearer, a bound holds a parameter.
EDGE = 1e-4
FLOOR = 1e-9  # a sensor deviates by at least this share of the state's limit: noiseless data has no scale of its own
MOST = 0.8  # of the residuals: their size gives the deviation
REFITS = 3  # the deviations of the sensors are estimated from the residuals, and the residuals depend on them


@dataclass(frozen=True)
class Fit:
    """Parameters that fit the windows best."""

    theta: Array  # (p,)
    deviations: Array  # (nt,) standard deviations of the residuals; 1 where a state is not measured
    settled: Settled
    remaining: Array  # (p,) the next Newton step, which is zero at the minimum


def fit(model: Model, recordings: Sequence[Recording], seconds: float, progress: Progress) -> tuple[Windows, Fit]:
    """Windows of `seconds`, and the fit to them: first to shorter windows and by squares, then with a robust loss.

    Raises ModelError where the recordings cannot be cut into windows or no motion of the model stays finite.
    """
    short = _shortest(model, recordings, seconds)
    progress(f"first fit, {short.steps.shape[1]} windows of {short.seconds:.3g} s")
    bend = np.diff(short.changes, axis=0) / 2  # away from a straight line through the neighbours
    deviations = _floored(model, short, spread_of(bend, ~np.isnan(bend)))
    short = model.resolved(short, short.starts, model.nominal, deviations)
    fitted = fit_windows(model, short, model.nominal, short.starts, deviations, robust=False)
    windows = model.cut(recordings, seconds)
    theta, starts = fitted.theta, windows.starts
    deviations = _deviations(model, windows, fitted.settled.residuals * deviations, short)
    for number in range(REFITS):
        progress(f"fit {number + 1} of {REFITS}, {windows.steps.shape[1]} windows of {seconds:g} s")
        windows = model.resolved(windows, starts, theta, deviations)
        fitted = fit_windows(model, windows, theta, starts, deviations, robust=True)
        theta, starts = fitted.theta, fitted.settled.starts
        residuals = fitted.settled.residuals * deviations
        last, deviations = deviations, _deviations(model, windows, residuals, windows)
        if np.allclose(last, deviations, rtol=0.02):
            break
    return windows, fitted


def fit_windows(model: Model, windows: Windows, theta: Array, starts: Array, deviations: Array, robust: bool) -> Fit:
    """Fit from theta (p,) and starts (N, n), with given deviations (nt,). Raises ModelError for an infinite motion.

    Combinations that the motion hardly shows stay near the model file's values: the noise would drive a fit without
    them to a bound. The search counts in half ranges from where it begins. SciPy's first trust region has the size of
    the first point, and the size 1 at zero.
    """
    lower, upper = model.bounds.T
    half = (upper - lower) / 2
    first = np.clip(theta, lower + EDGE * half, upper - EDGE * half)
    best = settle(model, windows, starts, first, deviations, robust)
    if not np.isfinite(best.sensitivity).all():
        raise ModelError(
            f"the motion of `{model.robot.name}` does not stay finite over windows of {windows.seconds:g} s from the "
            f"measured states. Compare units and signs of the columns with the model file, or write a smaller --window."
        )
    last, at, last_at = best, first, first

    def evaluated(z: Array) -> Settled:
        nonlocal best, at, last, last_at
        new = first + half * z
        if not np.array_equal(new, last_at):
            guess = model.tangent.moved(best.starts, best.starts_by_theta @ (new - at))
            last, last_at = settle(model, windows, guess, new, deviations, robust), new
            # The starts of a step that was too long lead nowhere: the next evaluation begins from the best one.
            better = cost(last.residuals, robust).sum() <= cost(best.residuals, robust).sum()
            if better and np.isfinite(last.sensitivity).all():
                best, at = last, new
        return last

    known = ~np.isnan(windows.measured)
    usual, pull = (model.nominal - first) / half, PULL * np.eye(len(theta))
    solution = scipy.optimize.least_squares(
        lambda z: np.concatenate([evaluated(z).residuals[known], PULL * (z - usual)]),
        np.zeros(len(theta)),
        jac=lambda z: np.concatenate([evaluated(z).sensitivity[known] * half, pull]),
        bounds=((lower - first) / half, (upper - first) / half),
        loss="soft_l1" if robust else "linear",
        f_scale=ROBUST if robust else 1.0,
        xtol=TOLERANCE,
        ftol=TOLERANCE,
        gtol=TOLERANCE,
        max_nfev=EVALUATIONS,
    )
    theta, settled = first + half * solution.x, evaluated(solution.x)
    return Fit(theta, deviations, settled, _newton_step(model, settled, theta, robust))


def _newton_step(model: Model, settled: Settled, theta: Array, robust: bool) -> Array:
    """The step (p,) to the minimum of the quadratic model of the loss at theta (p,), within the bounds."""
    lower, upper = model.bounds.T
    half = (upper - lower) / 2
    J, weight = settled.sensitivity * half, weights(settled.residuals, robust)
    gradient = np.einsum("kwi,kwi,kwia->a", weight, settled.residuals, J, optimize=True)
    gradient += PULL**2 * (theta - model.nominal) / half
    curvature = np.einsum("kwia,kwi,kwib->ab", J, bends(settled.residuals, robust), J, optimize=True)
    curvature += PULL**2 * np.eye(len(theta))
    held = (theta - lower < EDGE * half) & (gradient > 0) | (upper - theta < EDGE * half) & (gradient < 0)
    free = np.flatnonzero(~held)
    step = np.zeros(len(theta))
    step[free] = -np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
    return np.asarray(np.clip(theta + half * step, lower, upper) - theta)


def _shortest(model: Model, recordings: Sequence[Recording], seconds: float) -> Windows:
    """Shorter windows for the first fit; the windows themselves where sampling and delays leave too little of these."""
    try:
        return model.cut(recordings, min(seconds, max(seconds / SHORT, model.least_seconds)))
    except ModelError:
        return model.cut(recordings, seconds)


def _deviations(model: Model, windows: Windows, residuals: Array, of: Windows) -> Array:
    """Deviations (nt,) of the residuals (K, N, nt) of the windows `of`."""
    return _floored(model, windows, spread_of(residuals, ~np.isnan(of.measured)))


def spread_of(values: Array, known: NDArray[np.bool_]) -> Array:
    """The standard deviation of every state, (nt,), from the size that MOST of its values stay below.

    Outliers do not move it much. Nor does a joint that stands still for most of a recording, which moves the median.
    """
    sizes, usual = [np.abs(values[..., i][known[..., i]]) for i in range(values.shape[2])], np.sqrt(chdtri(1, 1 - MOST))
    return np.array([np.quantile(size, MOST) / usual if len(size) else 0.0 for size in sizes])


def _floored(model: Model, windows: Windows, deviations: Array) -> Array:
    """Deviations of at least a share of the limits; 1 where a state is not measured."""
    measured = ~np.isnan(windows.measured).all(axis=(0, 1))
    return np.where(measured, np.maximum(deviations, FLOOR * model.tangent.limits), 1.0)
