"""What the parameters leave unexplained: the share that no sensor explains, and the disturbances that would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modelgen.arrays import Array
from modelgen.identification.confidence import LEVEL
from modelgen.identification.fit import Fit
from modelgen.identification.model import Model
from modelgen.identification.starts import loss, settle, weights
from modelgen.identification.windows import Windows

SURE = 3.0  # standard deviations of its estimate by which a residual must exceed the sensor's noise
ROUNDING = 1e-12  # of a projection onto what the inputs do not reach: as good as nothing
NAMED = 0.3  # of the variance of a missing force that one cause must explain to be named
REST = 1e-3  # of a velocity's limit: slower than this is at rest


@dataclass(frozen=True)
class Misfit:
    """How much larger residuals are than the noise of the sensors, which is independent from sample to sample."""

    ratio: Array  # (n,) size of the residuals in sizes of the noise; NaN where not measured
    noise: Array  # (n,) standard deviation of the noise, in the states' units; NaN where not measured
    excess: float  # loss of the residuals that the noise does not explain; zero where it explains all


def misfit(parts: Sequence[tuple[Windows, Array]], deviations: Array) -> Misfit:
    """Compare residuals (K, N, n), in units of `deviations` (n,), with their changes from sample to sample.

    The noise is independent, so that half of a change's mean square is its variance; the error of a model is smooth and
    cancels. Counts of an encoder are not independent: the noise is at least that of rounding to the smallest change
    that the sensor shows.
    """
    n = len(deviations)
    count, total, change, pairs, least = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for windows, residuals in parts:
        known = ~np.isnan(windows.measured)
        both = known[1:] & known[:-1]
        count += known.sum(axis=(0, 1))
        total += loss(residuals).sum(axis=(0, 1), where=known)
        pairs += both.sum(axis=(0, 1))
        change += loss(np.diff(residuals, axis=0) / np.sqrt(2)).sum(axis=(0, 1), where=both)
        steps = np.abs(np.diff(windows.measured, axis=0)) / deviations
        least = np.minimum(least, np.min(steps, axis=(0, 1), where=both & (steps > 1e-6), initial=np.inf))
    rounding = np.where(np.isfinite(least), least, 0.0) ** 2 / 12
    noise = np.maximum(change / np.maximum(pairs, 1), np.minimum(rounding, 1.0))
    excess = total - count * noise
    measured = (count > 0) & (noise > 0)
    ratio = np.sqrt(np.divide(total, count * noise, out=np.full(n, np.nan), where=measured))
    sure = excess > SURE * np.sqrt(count)
    return Misfit(ratio, np.where(measured, np.sqrt(noise) * deviations, np.nan), float(excess[sure].sum()))


@dataclass(frozen=True)
class Radii:
    """Sizes that 95 % of the windows, or samples, stay below."""

    state: Array  # (n,) of what is added to xdot; zero for coordinates, whose rates are exact
    action: Array  # (m,) of what is added to u
    observation: Array  # (n,) of a sensor's repeatability; NaN where the state was not measured
    causes: tuple[str, ...] = ()  # what the missing forces go with, in words


def radii(model: Model, windows: Windows, fit: Fit) -> Radii:
    """Estimate one constant disturbance of the velocities' rates for each window, and split it by the range of B."""
    robot = model.robot
    n, v = len(robot.state_names), robot.metadata.velocities
    pushes = np.eye(n)[:, v]
    settled = settle(model, windows, fit.settled.starts, fit.theta, fit.deviations, robust=True, pushes=pushes)
    J, weight = settled.pushed, weights(settled.residuals, robust=True)
    inverse = np.linalg.pinv(np.einsum("kwia,kwi,kwib->wab", J, weight, J, optimize=True), hermitian=True)
    score = np.einsum("kwia,kwi,kwi->wa", J, weight, settled.residuals, optimize=True)
    push = np.einsum("wab,wb->wa", inverse, score)  # what has to be taken off to make the residual zero
    B = np.asarray(robot.affine_dynamics(settled.starts, fit.theta[: len(robot.parameter_names)])[1])[:, v]
    to_action = np.linalg.pinv(B)
    rest = np.eye(len(B[0])) - B @ to_action
    rest[np.abs(rest) < ROUNDING] = 0.0  # where the inputs reach all that moves, nothing is left for the state
    state = _typical(np.einsum("wab,wb->wa", rest, push), rest @ inverse @ rest.transpose(0, 2, 1))
    action = _typical(np.einsum("wab,wb->wa", to_action, push), to_action @ inverse @ to_action.transpose(0, 2, 1))
    motion = model.simulate(windows, settled.starts, fit.theta).x[..., v]
    causes = _causes(model, windows, motion, push, np.einsum("wab,wb->wa", to_action, push))
    whole = np.zeros(n)
    whole[v] = state
    return Radii(whole, action, _repeatability(windows, fit), causes)


def _causes(model: Model, windows: Windows, velocities: Array, push: Array, force: Array) -> tuple[str, ...]:
    """The causes that go with the missing forces, in words.

    velocities: (K, N, q); push: (N, q) of their rates, and force: (N, m) of the inputs, to be taken off. A joint that
    an input drives is judged by the force, any other by the rate.
    """
    robot = model.robot
    lasting = np.concatenate([windows.steps > 0, np.zeros((1, windows.steps.shape[1]), bool)])[..., None]
    samples = np.maximum(lasting.sum(axis=0), 1)

    def mean(values: Array) -> Array:
        return np.asarray((values * lasting[: len(values)]).sum(axis=0) / samples)

    v = robot.metadata.velocities
    names, limits = robot.state_names[v], np.asarray(robot.state_limits)[v]
    rates, signs = mean(velocities), mean(np.tanh(velocities / (REST * limits)))
    driven = {
        robot.metadata.rate(entry.coordinate): index
        for index, entry in enumerate(robot.metadata.inputs)
        if entry.coordinate
    }
    words = []
    for index, name in enumerate(names):
        own = driven.get(v.start + index)
        missing = -(push[:, index] if own is None else force[:, own])
        what = f"the rate of `{name}`" if own is None else f"`{robot.input_names[own]}`"
        causes = {
            f"the sign of `{name}`: state dry friction there, robot.dry_friction": signs[:, index],
            f"`{name}`: state damping there, robot.damp": rates[:, index],
        }
        if own is not None:
            causes["the input itself: its size is another, --estimate gain"] = mean(windows.inputs[..., [own]])[:, 0]
        causes["nothing that changes: a constant force or an offset, --estimate offset"] = np.ones(len(missing))
        shares = {cause: _share(missing, shape) for cause, shape in causes.items()}
        cause = max(shares, key=lambda one: shares[one])
        if shares[cause] > NAMED:
            words.append(f"{100 * shares[cause]:.0f} % of what {what} lacks goes with {cause}")
    return tuple(words)


def _share(missing: Array, cause: Array) -> float:
    """The share of a force's mean square that a cause explains, both (N,)."""
    power = float(missing @ missing) * float(cause @ cause)
    return float(missing @ cause) ** 2 / power if power > 0 else 0.0


def _typical(values: Array, covariance: Array) -> Array:
    """The size that 95 % of the values (N, d) stay below, without the share that is noise of the estimate, (d,)."""
    noise, power = np.einsum("waa->a", covariance) / len(values), (values**2).mean(axis=0)
    share = np.maximum(0.0, 1.0 - noise / np.where(power > 0, power, 1.0)) * (power > 0)
    return np.asarray(np.quantile(np.abs(values), LEVEL, axis=0) * np.sqrt(share))


def _repeatability(windows: Windows, fit: Fit) -> Array:
    """From the differences of neighbouring residuals, in which the model's slow errors cancel, (n,)."""
    known = ~np.isnan(windows.measured)
    both, jumps = known[1:] & known[:-1], np.diff(fit.settled.residuals, axis=0)
    sizes = [
        np.quantile(np.abs(jumps[..., i][both[..., i]]), LEVEL) / np.sqrt(2) if both[..., i].any() else np.nan
        for i in range(known.shape[2])
    ]
    return np.array(sizes) * fit.deviations
