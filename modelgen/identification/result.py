"""The result of an identification: as the content of its file, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from modelgen.arrays import Array
from modelgen.identification.confidence import LEVEL, deciding, in_words, readable
from modelgen.identification.identified_file import (
    EffectEntry,
    HeldOutError,
    IdentifiedFile,
    OpenDirection,
    OrNull,
    ParameterEntry,
    Prediction,
    RecordingEntry,
    Region,
    Residual,
    Sizes,
)
from modelgen.identification.identify import Identified
from modelgen.identification.recordings import Recording
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent

AT_BOUND = 1e-4  # of a range: a value this near to a bound is at it
WIDER = 1.05  # a set that is wider by a smaller factor is as it was


def content(robot: CompiledRobot, recordings: Sequence[Recording], identified: Identified) -> IdentifiedFile:
    """The content of the file. Figures of a state that was not measured are None."""
    region, radii = identified.ellipsoid, identified.radii
    columns = zip(robot.parameter_names, region.centre, region.lower, region.upper, region.identified, strict=True)
    return IdentifiedFile(
        robot=robot.name,
        model_hash=robot.model_hash,
        confidence=LEVEL,
        parameters={
            name: ParameterEntry(float(value), float(low), float(high), bool(known))
            for name, value, low, high, known in columns
        },
        ellipsoid=Region(
            robot.parameter_names, tuple(region.centre.tolist()), tuple(map(tuple, region.shape.tolist()))
        ),
        effects=effects(identified),
        unidentifiable=unidentifiable(robot, identified),
        fix=tuple(robot.parameter_names[index] for index in deciding(region.unidentified)),
        radii=Sizes(tuple(radii.state.tolist()), tuple(radii.action.tolist()), _or_null(radii.observation)),
        prediction=prediction(identified),
        residual=_residual(recordings, identified),
        recordings=tuple(
            RecordingEntry(str(log.path), log.sha256, len(log.time), float(log.time[-1] - log.time[0]))
            for log in recordings
        ),
    )


def _residual(recordings: Sequence[Recording], identified: Identified) -> Residual:
    return Residual(
        states=tuple(identified.model.tangent.names),
        root_mean_square=_or_null(identified.residual),
        correlation_seconds=identified.correlation,
        condition=identified.condition,
        windows=len(identified.windows.recording),
        window_seconds=identified.windows.seconds,
        blocks=identified.blocks,
        inflation=identified.inflation,
        held_out=tuple(
            HeldOutError(
                tuple(str(recordings[index].path) for index in part.recordings),
                _or_null(part.error),
                _or_null(part.error_of_all),
            )
            for part in identified.held_out
        ),
        noise_ratio=_or_null(identified.misfit.ratio),
        noise=_or_null(identified.misfit.noise),
        widened=identified.widened,
        causes=identified.radii.causes if identified.misfit.excess else (),
    )


def unidentifiable(robot: CompiledRobot, identified: Identified) -> tuple[OpenDirection, ...]:
    """Combinations that the recordings leave open: a change of parameters, in words, and why it is left open."""
    region, count = identified.whole, len(robot.parameter_names)
    half = np.ptp(identified.model.bounds, axis=1) / 2
    reasons = {
        True: "the recorded motion does not depend on it",
        False: "the recordings say less about it than the declared bounds",
    }
    result = []
    for exact, reason in reasons.items():
        for direction in readable(region.unidentified[:, region.exact == exact]).T:
            change = half * direction
            if direction[:count].any():  # a direction of effects alone stands at the effects
                changes = dict(zip(robot.parameter_names, change.tolist(), strict=False))
                result.append(OpenDirection(changes, in_words(identified.model.names, change, region.centre), reason))
    return tuple(result)


def effects(identified: Identified) -> dict[str, EffectEntry]:
    """The estimated effects, by name."""
    region, first = identified.whole, len(identified.model.robot.parameter_names)
    return {
        effect.name: EffectEntry(
            effect.kind,
            effect.of,
            effect.unit,
            float(region.centre[index]),
            float(region.lower[index]),
            float(region.upper[index]),
            bool(region.identified[index]),
        )
        for index, effect in enumerate(identified.model.effects, start=first)
    }


def prediction(identified: Identified) -> Prediction | None:
    """The bands about a forecast and what forecasts; None where no recording is long enough for one."""
    bands, model = identified.bands, identified.model
    if bands is None:
        return None
    missing = np.isnan(bands.half_width)

    def by_state(values: Array) -> dict[str, tuple[float, ...] | None]:
        columns = zip(model.tangent.names, np.where(missing, np.nan, values).T, strict=True)
        return {name: None if np.isnan(column).any() else tuple(column.tolist()) for name, column in columns}

    return Prediction(
        content=LEVEL,
        confidence=bands.confidence,
        blocks=bands.blocks,
        seconds=tuple(bands.seconds.tolist()),
        half_width=by_state(bands.half_width),
        spread=by_state(bands.spread),
        fit=dict(zip(model.names, identified.theta.tolist(), strict=True)),
        deviations=dict(zip(model.tangent.names, identified.deviations.tolist(), strict=True)),
        known_delay=model.known_delay,
        longest_delay=model.blind,
    )


UNIDENTIFIED = "not identified: declared bounds"


def text(robot: CompiledRobot, content: IdentifiedFile) -> str:
    """The file's main figures for a terminal."""
    warnings = [*contradictions(robot, content), *misfits(robot, content)]
    return "\n".join([*warnings, *_parameters(robot, content), *sentences(robot, content)])


def sentences(robot: CompiledRobot, content: IdentifiedFile) -> list[str]:
    """What `text` says after its table: a sentence or a list in each line."""
    residual, lines = content.residual, list[str]()
    for name, effect in content.effects.items():
        note = "" if effect.identified else "  not identified"
        lines.append(f"{name}: {effect.value:.4g} [{effect.lower:.4g}, {effect.upper:.4g}] {effect.unit}{note}")
    lines.append(f"condition {residual.condition:.3g}: the best visible combination relative to the least visible one")
    lines += [f"not told apart: {open_one.words} ({open_one.reason})" for open_one in content.unidentifiable]
    if content.fix:
        sought = len(robot.parameter_names) - len(robot.metadata.references)
        known = sought - len(content.fix)
        lines.append(
            f"the recordings give {known} combination{'s' * (known != 1)} of {sought} parameters. "
            f"Measure {', '.join(content.fix)} in another way and write `fixed=True` there in the model file: then the "
            f"others can be told apart"
        )
    wider = f", {residual.widened:.3g} times wider for what the model lacks" if residual.widened > WIDER else ""
    lines.append(
        f"{content.confidence:.0%} set from {residual.blocks} blocks, inflated {residual.inflation:.3g} times by "
        f"held-out motion{wider}; residual correlated over {residual.correlation_seconds:.3g} s"
    )
    lines += _ahead(robot, content.prediction)
    for kind in ("state", "action", "observation"):
        names = robot.input_names if kind == "action" else Tangent(robot.metadata).names
        parts = _named(names, getattr(content.radii, kind))
        lines += [f"left unexplained, {kind}: {', '.join(parts)}"] if parts else []
    return lines


def parameter_rows(
    robot: CompiledRobot, content: IdentifiedFile, digits: int = 6
) -> list[tuple[str, str, str, str, str, str]]:
    """Name, value, lower and upper end, unit, and a remark or no text, of every parameter but the references."""
    rows = []
    for parameter, (name, entry) in zip(robot.metadata.parameters, content.parameters.items(), strict=True):
        if name in robot.metadata.references:
            continue
        remark = "" if entry.identified else UNIDENTIFIED
        nearest = min(entry.value - parameter.lower, parameter.upper - entry.value)
        if entry.identified and nearest < AT_BOUND * (parameter.upper - parameter.lower):
            remark = "the value is at a declared bound: widen the bounds in the model file"
        value, lower, upper = (f"{number:.{digits}g}" for number in (entry.value, entry.lower, entry.upper))
        rows.append((name, value, lower, upper, parameter.unit, remark))
    return rows


def _parameters(robot: CompiledRobot, content: IdentifiedFile) -> list[str]:
    """A line for every parameter, and a line for a value at a bound."""
    wide = max(len(name) for name in robot.parameter_names)
    lines = [f"{'parameter':<{wide}}  {'value':>12}  {'lower':>12}  {'upper':>12}"]
    for name, value, lower, upper, unit, remark in parameter_rows(robot, content):
        beside = f"  {remark}" if remark == UNIDENTIFIED else ""
        lines.append(f"{name:<{wide}}  {value:>12}  {lower:>12}  {upper:>12} {unit}{beside}")
        if remark and not beside:
            lines.append(f"{'':<{wide}}  {remark}")
    return lines


def _ahead(robot: CompiledRobot, ahead: Prediction | None) -> list[str]:
    """The bands at the end of a forecast."""
    if ahead is None:
        return []
    units = {name: unit for name, unit, _ in Tangent(robot.metadata).entries}
    listed = (f"{name} +- {row[-1]:.3g} {units[name]}" for name, row in ahead.half_width.items() if row is not None)
    return [
        f"motion {ahead.seconds[-1]:g} s ahead is within {', '.join(listed)} of a usual prediction in "
        f"{ahead.content:.0%} of the samples (confidence {ahead.confidence:.0%}, from {ahead.blocks} stretches of "
        f"held-out motion); the band grows with what the set leaves open in a prediction"
    ]


def contradictions(robot: CompiledRobot, content: IdentifiedFile) -> list[str]:
    """A warning for every input whose recorded values would have to be wrong by more than the drive has."""
    return [
        f"warning: these recordings contradict the model: it needs {missing:.3g} {entry.unit} more or less of "
        f"`{entry.name}`, whose limit is {entry.limit:g}, to explain them. Check sign, zero, unit and column of every "
        f"quantity: for example --columns {entry.name}={entry.name}*-1, or +pi for an angle that is counted from "
        "elsewhere"
        for entry, missing in zip(robot.metadata.inputs, content.radii.action, strict=True)
        if missing > entry.limit
    ]


def misfits(robot: CompiledRobot, content: IdentifiedFile) -> list[str]:
    """A warning with the size of the residual where the noise of the sensors does not explain it."""
    residual = content.residual
    if residual.widened <= WIDER:
        return []
    sizes = zip(Tangent(robot.metadata).entries, residual.noise_ratio, residual.noise, strict=True)
    listed = (
        f"that of `{name}` is {ratio:.3g} times its sensor's noise of {noise:.2g} {unit}"
        for (name, unit, _), ratio, noise in sizes
        if ratio is not None and noise is not None
    )
    causes = "; ".join(residual.causes) or (
        "no single cause stands out: compare dry friction, a delay (--estimate delay), backlash, and a flexible joint"
    )
    return [
        f"warning: the model lacks something. Of the residuals, {', '.join(listed)}, correlated over "
        f"{residual.correlation_seconds:.3g} s. The set is {residual.widened:.3g} times wider for it. {causes}"
    ]


def _named(names: Iterable[str], sizes: Iterable[float | None]) -> list[str]:
    return [
        f"{name} {'not measured' if size is None else format(size, '.3g')}"
        for name, size in zip(names, sizes, strict=True)
    ]


def _or_null(values: Array) -> OrNull:
    return tuple(None if np.isnan(value) else float(value) for value in values)
