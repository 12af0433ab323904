"""Comparison of recordings with the predictions of a file of `modelgen identify`, and how often its bands hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification import identified_file
from modelgen.identification.forecast import AHEAD, LEADS, Bands, Forecasts, forecasts, needed
from modelgen.identification.model import KINDS, Model
from modelgen.identification.recordings import Recording
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent


@dataclass(frozen=True)
class Predictor:
    """A model with its parameters, and the bands about its predictions."""

    model: Model
    theta: Array  # (p,) the robot's parameters and the effects
    deviations: Array  # (n,) of the residuals; 1 where a state was not measured
    shape: Array  # of the set of the robot's own parameters
    bands: Bands
    content: float  # of the samples, that the bands are to hold


@dataclass(frozen=True)
class Worst:
    """The prediction of one state with the largest error for its band."""

    recording: int
    begin: float  # s in the recording, where the past ends
    lead: Array  # (K,) s ahead
    error: Array  # (K,) predicted minus measured
    half_width: Array  # (K,)

    def results(self, recordings: Sequence[Recording]) -> dict[str, Any]:
        """The sample that is off by most half widths: its file, its time in it, how far ahead, by how much (SI)."""
        size = in_half_widths(self.error, self.half_width)
        at = int(size.argmax())
        place = {"recording": str(recordings[self.recording].path), "seconds": self.begin + float(self.lead[at])}
        off = {"off": abs(float(self.error[at])), "half_widths": float(size[at])}
        return place | {"ahead": float(self.lead[at])} | off


@dataclass(frozen=True)
class PredictedState:
    """One measured state."""

    state: int
    predictions: int
    share: float  # of the samples that are within the band
    worst: Worst


def in_half_widths(error: Array, half_width: Array) -> Array:
    """The size of errors (...) in half widths (...) of their band; infinite outside of a band without width."""
    sizes = np.abs(error)
    return np.divide(sizes, half_width, out=np.where(sizes > 0.0, np.inf, 0.0), where=half_width > 0.0)


def read(path: Path, robot: CompiledRobot) -> Predictor:
    """The predictor of a file of `modelgen identify`.

    Raises ModelError as `identified_file.read` does, and for a file without predictions or with another time ahead.
    """
    content, _ = identified_file.read(path, robot)
    ahead, names = content.prediction, Tangent(robot.metadata).names
    if ahead is None:
        raise ModelError(
            f"{path} has no bands about the motion ahead: no recording had a stretch without a gap that is long "
            "enough. Identify again with longer recordings."
        )
    kinds = {effect.kind for effect in content.effects.values()}
    model = Model(robot, tuple(kind for kind in KINDS if kind in kinds), ahead.longest_delay, ahead.known_delay)
    if not (
        len(ahead.seconds) == LEADS and np.isclose(ahead.seconds[-1], AHEAD) and ahead.fit.keys() == set(model.names)
    ):
        raise ModelError(
            f"the predictions of {path} were edited, or an older version wrote them. Identify again with "
            f"`modelgen identify {robot.name} LOG.csv ...`."
        )
    missing = (np.nan,) * LEADS  # of a state that is not measured
    half_width, spread = (
        np.array([table[name] or missing for name in names], float).T for table in (ahead.half_width, ahead.spread)
    )
    none = np.zeros((LEADS, 0, len(names)))  # of the errors that the bands were made of
    bands = Bands(np.array(ahead.seconds), half_width, spread, ahead.blocks, ahead.confidence, none)
    theta = np.array([ahead.fit[name] for name in model.names])
    deviations = np.array([ahead.deviations[name] for name in names])
    return Predictor(model, theta, deviations, content.shape, bands, ahead.content)


@dataclass(frozen=True)
class Comparison:
    """Recordings and their predictions."""

    predictor: Predictor
    recordings: tuple[Recording, ...]
    outcomes: tuple[PredictedState, ...]
    left_out: tuple[Recording, ...]  # without a stretch that is long enough

    @property
    def holds(self) -> bool:
        """Whether the bands of all states hold as many samples as stated."""
        return all(each.share >= self.predictor.content for each in self.outcomes)

    def results(self) -> dict[str, Any]:
        """The content of `modelgen predict --json`; half widths of a band without width are null."""
        robot, names, states = self.predictor.model.robot, self.predictor.model.tangent.names, {}
        for each in self.outcomes:
            worst = each.worst.results(self.recordings)
            worst["half_widths"] = worst["half_widths"] if np.isfinite(worst["half_widths"]) else None
            states[names[each.state]] = dict(predictions=each.predictions, share=each.share, worst=worst)
        whole = {"robot": robot.name, "content": self.predictor.content, "holds": self.holds}
        return whole | {"states": states, "left_out": [str(each.path) for each in self.left_out]}

    def text(self) -> str:
        """A line for every state, and where its prediction was worst; a line for every recording left out."""
        lines, states = [], self.predictor.model.tangent.entries
        content, least = self.predictor.content, needed(self.predictor.model, self.recordings)
        for each in self.outcomes:
            (name, unit, _), worst = states[each.state], each.worst.results(self.recordings)
            lines.append(
                f"{name}: {each.share:.1%} of the samples of {each.predictions} predictions are within the band"
                f"{'' if each.share >= content else f', fewer than the {content:.0%} that the file states'}; "
                f"worst in {worst['recording']} at {worst['seconds']:.3g} s, {worst['ahead']:.2g} s ahead: "
                f"off by {worst['off']:.3g} {unit}, {worst['half_widths']:.3g} half widths"
            )
        lines += [f"{each.path} is left out: no stretch of {least:.3g} s without a gap" for each in self.left_out]
        return "\n".join(lines)


def predict(predictor: Predictor, recordings: Sequence[Recording]) -> Comparison:
    """The share of samples within the bands, for every state that is measured now and was measured before.

    Raises ModelError where there is nothing to predict.
    """
    ahead = forecasts(predictor.model, recordings, predictor.theta, predictor.deviations, predictor.shape)
    bands = predictor.bands.about(ahead) if len(ahead.begin) else ahead.errors
    compared = np.isfinite(ahead.errors) & np.isfinite(bands)
    states = np.flatnonzero(compared.any(axis=(0, 1)))
    if not len(states):
        raise ModelError(
            f"there is nothing to compare: a recording needs a stretch of {needed(predictor.model, recordings):.3g} s "
            "without a gap, in which a state is measured that the file has a band for. Record longer, or identify with "
            "recordings of the same sensors."
        )
    outcomes = tuple(_outcome(int(state), ahead, bands, compared[..., state]) for state in states)
    left_out = tuple(each for index, each in enumerate(recordings) if index not in ahead.recording)
    return Comparison(predictor, tuple(recordings), outcomes, left_out)


def _outcome(state: int, found: Forecasts, bands: Array, compared: NDArray[np.bool_]) -> PredictedState:
    errors, widths = found.errors[..., state], bands[..., state]
    ratio = np.full(errors.shape, -1.0)
    ratio[compared] = in_half_widths(errors[compared], widths[compared])
    each = int(ratio.max(axis=0).argmax())
    rows = compared[:, each]
    worst = Worst(
        int(found.recording[each]),
        float(found.begin[each]),
        found.lead[rows, each],
        errors[rows, each],
        widths[rows, each],
    )
    return PredictedState(state, int(compared.any(axis=0).sum()), float((ratio[compared] <= 1.0).mean()), worst)
