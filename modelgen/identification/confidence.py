"""How far the true parameters may be from the fit: cluster-robust over blocks, inflated by held-out motion.

Textbook standard errors take residuals for independent. Those of a real robot are not, because its model is not exact.
The covariance H^-1 (sum of g g') H^-1 (K.-Y. Liang and S. Zeger, "Longitudinal data analysis using generalized linear
models", Biometrika 73, 1986) sums the scores g over blocks that are longer than the residual's correlation. A fit has
small residuals in the block that says most, so that the sum is too small where few blocks say much: each g is divided
by the share of the information that the other blocks have (R. Bell and D. McCaffrey, "Bias reduction in standard errors
for linear regression with multi-stage samples", Survey Methodology 28, 2002; their jackknife).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.starts import Settled, bends, weights
from modelgen.identification.windows import Windows

LEVEL = 0.95
UNCORRELATED = 0.1  # the residual's correlation has ended where it is below this
LONGER = 3  # times that a block is longer than the correlation


@dataclass(frozen=True)
class Scores:
    """Gradient of the loss (N, r) and its curvature (N, r, r) of every window, in the seen directions."""

    gradient: Array
    curvature: Array


def scores(settled: Settled, scale: Array) -> Scores:
    """Scores by the columns of scale (p, r), in the parameters' units. The loss is `soft_l1`, as in the fit."""
    J = settled.sensitivity @ scale
    weight = weights(settled.residuals, robust=True)
    return Scores(
        np.einsum("kwi,kwi,kwia->wa", weight, settled.residuals, J, optimize=True),
        np.einsum("kwia,kwi,kwib->wab", J, bends(settled.residuals, robust=True), J, optimize=True),
    )


def moved(before: Array, after: Array) -> float:
    """Squared change of residuals (K, N, n), weighted by the curvature of the loss.

    Where motions are linear in theta, this is the change of theta in the metric of the curvature. It is zero for a
    change of theta that moves nothing.
    """
    return float((bends(before, robust=True) * (after - before) ** 2).sum())


def correlation_seconds(windows: Windows, residuals: Array) -> float:
    """The first lag at which the residual's correlation is below UNCORRELATED, the longest of all sensors."""
    longest = 0
    for index in range(residuals.shape[2]):
        products = np.zeros(residuals.shape[0] * residuals.shape[1])
        for recording in np.unique(windows.recording):
            which = windows.recording == recording
            known = ~np.isnan(windows.measured[:, which, index])
            series = residuals[:, which, index].T[known.T]
            power = np.abs(np.fft.rfft(series, 2 * len(series) + 1)) ** 2
            products[: len(series)] += np.fft.irfft(power, 2 * len(series) + 1)[: len(series)]
        if products[0] > 0:
            longest = max(longest, int((products < UNCORRELATED * products[0]).argmax()))
    return longest * windows.period


def blocks(windows: Windows, correlation: float) -> NDArray[np.intp]:
    """The block of every window (N,): neighbours in one recording, together longer than the correlation (s)."""
    size = max(1, math.ceil(LONGER * correlation / windows.seconds - 1e-9))
    block, count = np.zeros(len(windows.recording), np.intp), 0
    for recording in np.unique(windows.recording):
        which = np.flatnonzero(windows.recording == recording)
        parts = max(1, len(which) // size)
        block[which] = count + np.arange(len(which)) * parts // len(which)
        count += parts
    return block


def folds(windows: Windows, most: int = 10) -> NDArray[np.intp]:
    """The fold of every window (N,): whole recordings; quarters of the recording where there is only one."""
    count = int(windows.recording.max()) + 1
    if count == 1:
        return np.arange(len(windows.recording)) * 4 // len(windows.recording)
    return windows.recording % min(count, most)


def covariance(scored: Scores, block: NDArray[np.intp]) -> Array:
    """Cluster-robust covariance (r, r) of the fit, residuals being in standard deviations. Raises ModelError where the
    blocks are too few."""
    count, size = int(block.max()) + 1, scored.gradient.shape[1]
    if count < size + 2:
        raise ModelError(
            f"the recordings hold {count} stretches that are longer than the correlation of the residual, and show "
            f"{size} combinations of parameters. A confidence set needs at least {size + 2} stretches. "
            f"Record longer, or more often."
        )
    curvature = np.zeros((count, size, size))
    np.add.at(curvature, block, scored.curvature)
    whole = curvature.sum(axis=0)
    # The change of the fit without each block.
    away = np.einsum("bij,bj->bi", np.linalg.pinv(whole - curvature, hermitian=True), _sums(scored.gradient, block))
    # Few blocks may seem to agree by chance: in no direction is the fit known better than with independent residuals.
    root = np.linalg.cholesky(whole)
    sizes, vectors = np.linalg.eigh(root.T @ away.T @ away @ root * (count - 1) / count)
    columns = np.linalg.solve(root.T, vectors)
    return np.asarray((columns * np.maximum(sizes, 1.0)) @ columns.T)


def _sums(gradient: Array, block: NDArray[np.intp]) -> Array:
    """Sum of the gradients in every block, (B, r)."""
    return np.stack([np.bincount(block, column) for column in gradient.T], axis=1)


def _spread(gradient: Array, block: NDArray[np.intp]) -> Array:
    """The sum over blocks of g g', (r, r)."""
    sums = _sums(gradient, block)
    return np.asarray(sums.T @ sums)


def inflation(scored: Scores, block: NDArray[np.intp], fold: NDArray[np.intp], changes: Sequence[float]) -> float:
    """Ratio of the mean square change of held-out predictions to the change that independent blocks explain.

    changes: for every fold, how far the fit without it has `moved` its predictions. At least 1, so that the set is
    never narrower than by the blocks.
    """
    whole = scored.curvature.sum(axis=0)
    expected = 0.0
    for index in range(len(changes)):
        held = fold == index
        curvature = scored.curvature[held].sum(axis=0)
        inverse = np.linalg.pinv(whole - curvature, hermitian=True)  # the rest may see less
        _, own = np.unique(block[held], return_inverse=True)
        expected += float(np.trace(curvature @ inverse @ _spread(scored.gradient[held], own) @ inverse))
    return max(1.0, sum(changes) / expected) if expected > 0 else 1.0


def quantile(size: int, count: int) -> float:
    """Squared radius of the set in which the truth lies with probability LEVEL: Hotelling's T^2 of `count` blocks."""
    return float(size * (count - 1) / (count - size) * fdtri(size, count - size, LEVEL))
