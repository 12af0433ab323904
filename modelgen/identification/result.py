"""The file NAME.identified.json: what was identified, from which recordings, for which model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.files import replacing
from modelgen.identification.confidence import LEVEL
from modelgen.identification.identifiability import deciding, in_words, readable
from modelgen.identification.identify import Identified
from modelgen.identification.prediction import stated as predictor
from modelgen.identification.recordings import Recording
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]


def content(
    robot: CompiledRobot, model_hash: str, recordings: Sequence[Recording], found: Identified
) -> dict[str, Any]:
    """The file as a dictionary; a state that was not measured has null for its sensor's figures."""
    region = found.ellipsoid
    columns = zip(robot.parameter_names, region.centre, region.lower, region.upper, region.identified, strict=True)
    return {
        "robot": robot.name,
        "model_hash": model_hash,
        "confidence": LEVEL,
        "parameters": {
            name: {"value": float(value), "lower": float(low), "upper": float(high), "identified": bool(known)}
            for name, value, low, high, known in columns
        },
        "ellipsoid": {
            "names": list(robot.parameter_names),
            "centre": region.centre.tolist(),
            "shape": region.shape.tolist(),
        },
        "effects": effects(found),
        "unidentifiable": unidentifiable(robot, found),
        "fix": [robot.parameter_names[index] for index in deciding(region.unidentified)],
        "radii": {
            "state": found.radii.state.tolist(),
            "action": found.radii.action.tolist(),
            "observation": _numbers(found.radii.observation),
        },
        "prediction": prediction(found),
        "residual": {
            "states": list(robot.state_names),
            "root_mean_square": _numbers(found.residual),
            "correlation_seconds": found.correlation,
            "condition": found.condition,
            "windows": len(found.windows.recording),
            "window_seconds": found.windows.seconds,
            "blocks": found.blocks,
            "inflation": found.inflation,
            "held_out": [
                {
                    "recordings": [str(recordings[index].path) for index in each.recordings],
                    "root_mean_square": _numbers(each.error),
                    "root_mean_square_of_all": _numbers(each.error_of_all),
                }
                for each in found.held_out
            ],
        },
        "recordings": [
            {
                "path": str(each.path),
                "sha256": each.sha256,
                "rows": len(each.time),
                "seconds": float(each.time[-1] - each.time[0]),
            }
            for each in recordings
        ],
    }


def unidentifiable(robot: CompiledRobot, found: Identified) -> list[dict[str, Any]]:
    """Combinations that the recordings leave open: a change of parameters, in words, and why it is left open."""
    region, count = found.whole, len(robot.parameter_names)
    half = np.ptp(found.model.bounds, axis=1) / 2
    reasons = {
        True: "the recorded motion does not depend on it",
        False: "the recordings say less about it than the declared bounds",
    }
    result = []
    for exact, reason in reasons.items():
        for direction in readable(region.unidentified[:, region.exact == exact]).T:
            change = half * direction
            if not direction[:count].any():
                continue  # of effects alone, which say so themselves
            result.append(
                {
                    "direction": dict(zip(robot.parameter_names, change.tolist(), strict=False)),
                    "words": in_words(found.model.names, change, region.centre),
                    "reason": reason,
                }
            )
    return result


def effects(found: Identified) -> dict[str, dict[str, Any]]:
    """What was estimated beside the parameters, by name."""
    region, first = found.whole, len(found.model.robot.parameter_names)
    return {
        effect.name: {
            "kind": effect.kind,
            "of": effect.of,
            "unit": effect.unit,
            "value": float(region.centre[index]),
            "lower": float(region.lower[index]),
            "upper": float(region.upper[index]),
            "identified": bool(region.identified[index]),
        }
        for index, effect in enumerate(found.model.effects, start=first)
    }


def prediction(found: Identified) -> dict[str, Any] | None:
    """The bands about a forecast; null where no recording is long enough for one."""
    bands = found.bands
    if bands is None:
        return None

    missing = np.isnan(bands.half_width)

    def by_state(values: Array) -> dict[str, list[float] | None]:
        columns = np.where(missing, np.nan, values).T
        names = found.model.robot.state_names
        return {n: None if np.isnan(each).any() else each.tolist() for n, each in zip(names, columns, strict=True)}

    return {
        "content": LEVEL,
        "confidence": bands.confidence,
        "blocks": bands.blocks,
        "seconds": bands.seconds.tolist(),
        "half_width": by_state(bands.half_width),
        "spread": by_state(bands.spread),
        **predictor(found.model, found.theta, found.deviations),
    }


def write(path: Path, data: dict[str, Any]) -> None:
    """Write the file whole or not at all. Raises ModelError where it cannot be written."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def text(robot: CompiledRobot, data: dict[str, Any]) -> str:
    """The file's main figures for a terminal."""
    wide = max(len(name) for name in robot.parameter_names)
    lines = contradictions(robot, data)
    lines += [f"{'parameter':<{wide}}  {'value':>12}  {'lower':>12}  {'upper':>12}"]
    for parameter, (name, each) in zip(robot.metadata.parameters, data["parameters"].items(), strict=True):
        note = "" if each["identified"] else "  not identified: declared bounds"
        lines.append(
            f"{name:<{wide}}  {each['value']:>12.6g}  {each['lower']:>12.6g}  {each['upper']:>12.6g} "
            f"{parameter.unit}{note}"
        )
        room = parameter.upper - parameter.lower
        if each["identified"] and min(each["value"] - parameter.lower, parameter.upper - each["value"]) < 1e-4 * room:
            lines.append(f"{'':<{wide}}  the value is at a declared bound: widen the bounds in the model file")
    for name, each in data["effects"].items():
        note = "" if each["identified"] else "  not identified"
        lines.append(f"{name}: {each['value']:.4g} [{each['lower']:.4g}, {each['upper']:.4g}] {each['unit']}{note}")
    condition = data["residual"]["condition"]
    lines.append(f"the combination seen best is seen {condition:.3g} times better than the one seen least (condition)")
    lines += [f"not told apart: {each['words']} ({each['reason']})" for each in data["unidentifiable"]]
    if data["fix"]:
        known = len(robot.parameter_names) - len(data["fix"])
        lines.append(
            f"the recordings give {known} combination{'s' * (known != 1)} of {len(robot.parameter_names)} parameters. "
            f"Measure {', '.join(data['fix'])} in another way and write `fixed=True` there in the model file: then the "
            f"others can be told apart"
        )
    residual = data["residual"]
    lines.append(
        f"{data['confidence']:.0%} set from {residual['blocks']} blocks, inflated {residual['inflation']:.3g} times by "
        f"held-out motion; residual correlated over {residual['correlation_seconds']:.3g} s"
    )
    ahead = data["prediction"]
    if ahead is not None:
        units = {state.name: state.unit for state in robot.metadata.states}
        listed = (f"{n} +- {v[-1]:.3g} {units[n]}" for n, v in ahead["half_width"].items() if v is not None)
        lines.append(
            f"motion {ahead['seconds'][-1]:g} s ahead is within {', '.join(listed)} of a usual prediction in "
            f"{ahead['content']:.0%} of the samples (confidence {ahead['confidence']:.0%}, from {ahead['blocks']} "
            f"stretches of held-out motion); the band grows with what the set leaves open in a prediction"
        )
    for name, values in data["radii"].items():
        names = robot.input_names if name == "action" else robot.state_names
        parts = (f"{n} {'not measured' if v is None else format(v, '.3g')}" for n, v in zip(names, values, strict=True))
        lines.append(f"left unexplained, {name}: {', '.join(parts)}")
    return "\n".join(lines)


def contradictions(robot: CompiledRobot, data: dict[str, Any]) -> list[str]:
    """A warning for every input of which the recordings would need more than the drive has, beside what it gave."""
    return [
        f"warning: these recordings contradict the model: it needs {missing:.3g} {entry.unit} beside `{entry.name}`, "
        f"whose limit is {entry.limit:g}, to explain them. Check sign, zero, unit and column of every quantity: for "
        f"example --columns {entry.name}={entry.name}*-1, or +pi for an angle that is counted from elsewhere"
        for entry, missing in zip(robot.metadata.inputs, data["radii"]["action"], strict=True)
        if missing > entry.limit
    ]


def _numbers(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
