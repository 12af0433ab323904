"""What the parameters leave unexplained, as sizes of disturbances: of the state's rate, the action, the observation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.identification.confidence import LEVEL
from modelgen.identification.fit import Fit
from modelgen.identification.model import Model
from modelgen.identification.starts import settle, weights
from modelgen.identification.windows import Windows

Array = NDArray[np.float64]

ROUNDING = 1e-12  # of a projection onto what the inputs do not reach: as good as nothing


@dataclass(frozen=True)
class Radii:
    """Sizes that 95 % of the windows, or samples, stay below."""

    state: Array  # (n,) of what is added to xdot; zero for coordinates, whose rates are exact
    action: Array  # (m,) of what is added to u
    observation: Array  # (n,) of a sensor's repeatability; NaN where the state was not measured


def radii(model: Model, windows: Windows, fit: Fit) -> Radii:
    """Estimate one constant disturbance of the velocities' rates for each window, and split it by the range of B."""
    robot = model.robot
    n, count = len(robot.state_names), len(robot.metadata.coordinates)
    pushes = np.eye(n)[:, count:]
    settled = settle(model, windows, fit.settled.starts, fit.theta, fit.deviations, robust=True, pushes=pushes)
    J, weight = settled.pushed, weights(settled.residuals, robust=True)
    inverse = np.linalg.pinv(np.einsum("kwia,kwi,kwib->wab", J, weight, J, optimize=True), hermitian=True)
    score = np.einsum("kwia,kwi,kwi->wa", J, weight, settled.residuals, optimize=True)
    push = np.einsum("wab,wb->wa", inverse, score)  # what has to be taken off to make the residual zero
    B = np.asarray(robot.affine_dynamics(settled.starts, fit.theta[: len(robot.parameter_names)])[1])[:, count:]
    to_action = np.linalg.pinv(B)
    rest = np.eye(n - count) - B @ to_action
    rest[np.abs(rest) < ROUNDING] = 0.0  # where the inputs reach all that moves, nothing is left for the state
    state = _typical(np.einsum("wab,wb->wa", rest, push), rest @ inverse @ rest.transpose(0, 2, 1))
    action = _typical(np.einsum("wab,wb->wa", to_action, push), to_action @ inverse @ to_action.transpose(0, 2, 1))
    return Radii(np.concatenate([np.zeros(count), state]), action, _repeatability(windows, fit))


def _typical(values: Array, covariance: Array) -> Array:
    """The size that 95 % of the values (N, d) stay below, without the share that is noise of the estimate, (d,)."""
    noise, power = np.einsum("waa->a", covariance) / len(values), (values**2).mean(axis=0)
    share = np.maximum(0.0, 1.0 - noise / np.where(power > 0, power, 1.0)) * (power > 0)
    return np.asarray(np.quantile(np.abs(values), LEVEL, axis=0) * np.sqrt(share))


def _repeatability(windows: Windows, fit: Fit) -> Array:
    """From the differences of neighbouring residuals, in which the model's slow errors cancel, (n,)."""
    known = ~np.isnan(windows.measured)
    both, jumps = known[1:] & known[:-1], np.diff(fit.settled.residuals, axis=0)
    found = [
        np.quantile(np.abs(jumps[..., i][both[..., i]]), LEVEL) / np.sqrt(2) if both[..., i].any() else np.nan
        for i in range(known.shape[2])
    ]
    return np.array(found) * fit.deviations
