"""How often the statements of `modelgen identify` are true: simulated recordings of robots with known parameters.

    python benchmarks/confidence_sets.py --robot pendulum --sets 100 --out pendulum.json
    python benchmarks/confidence_sets.py --robot pendulum --sets 100 --harsh --out pendulum-harsh.json

Every set draws true parameters, makes recordings, and identifies from them.

In recordings of the model (sensor noise, counts of encoders, a known delay) the 95 % set is to hold the truth. The
oracle knows the noise, and takes the residuals for independent. Where only a product of two parameters shows, all
factors of that product move alike. The set holds the truth when it holds parameters that move alike: they have the
centre's value in the directions that are left open, and their motion is nearest to the truth's. Open directions are not
counted.

With --harsh the recordings are of the harsh plant (stiction, backlash, a weak drive, encoders, noise, an unknown delay
of one to three control periods, which is estimated), which the model lacks. There the set is to hold the true
parameters themselves. The bands about the motion predicted 0.5 s ahead are to hold 95 % of the samples of every sensor
in --unseen further recordings; 0 leaves the bands out.

--out is written after every set, and a run that was cut off goes on from it.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.special import chdtri
from simulated_logs import NOISE, counted, drawn, of_harsh, of_model

import modelgen
from modelgen.errors import ModelError
from modelgen.files import replacing
from modelgen.identification.confidence import LEVEL
from modelgen.identification.fit import settle
from modelgen.identification.forecast import LEADS, forecasts
from modelgen.identification.identify import Identified, identify
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

WINDOWS, STEPS = 24, 5  # of the fit that finds parameters which move alike


def main() -> None:
    """Parse, measure set by set, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", default="pendulum")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--recordings", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a recording")
    parser.add_argument("--window", type=float, default=0.5)
    parser.add_argument("--delay", type=float, default=0.02, help="s, known; not with --harsh")
    parser.add_argument("--harsh", action="store_true", help="recordings of the harsh plant")
    parser.add_argument("--unseen", type=int, default=16, help="recordings to test bands on, with --harsh; 0 for none")
    parser.add_argument("--out", type=Path, default=None, help="file to write after every set, and to go on from")
    options = parser.parse_args()
    robot = modelgen.load(options.robot, parallel=False)
    asked = {key: value for key, value in vars(options).items() if key not in ("sets", "out")}
    sets: list[dict[str, Any]] = []
    if options.out is not None and options.out.exists():
        before = json.loads(options.out.read_text(encoding="utf-8"))
        if before["options"] != asked:
            raise SystemExit(f"{options.out} was measured with other options: {before['options']}")
        sets = before["each"]
    for seed in range(len(sets), options.sets):
        began = time.process_time()
        try:
            entry = (harsh_set if options.harsh else model_set)(robot, options, seed)
        except ModelError as error:
            entry = {"refused": str(error)}
        sets.append({"seed": seed, "processor_seconds": round(time.process_time() - began, 2), **entry})
        report = {"options": asked, "machine": platform.processor() or platform.machine(), **summary(sets)}
        if options.out is not None:
            with replacing(options.out) as beside:
                beside.write_text(json.dumps({**report, "each": sets}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(summary(sets), indent=1))


def summary(sets: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts over sets, and medians over what they say."""
    done = [each for each in sets if "refused" not in each]
    report: dict[str, Any] = {
        "sets": len(sets),
        "held": sum(each["holds"] for each in done),
        "refused": len(sets) - len(done),
        "median_processor_seconds": float(np.median([each["processor_seconds"] for each in sets])),
    }
    if not done:
        return report
    if "half_width_by_oracle" in done[0]:
        ratios = np.concatenate([each["half_width_by_oracle"] for each in done])
        report["median_half_width_by_oracle"] = float(np.median(ratios))
        report["largest_half_width_by_oracle"] = float(ratios.max())
        report["mean_directions_identified"] = float(np.mean([len(each["half_width_by_oracle"]) for each in done]))
        return report
    tables = [key for key, value in done[0].items() if isinstance(value, dict)]
    for key in tables:
        columns = {name: [each[key][name] for each in done] for name in done[0][key]}
        report[f"median_{key}"] = {name: float(np.median(values)) for name, values in columns.items()}
    for key in ("directions_identified", "widened", "confidence"):
        if key in done[0]:
            report[f"median_{key}"] = float(np.median([each[key] for each in done]))
    if "bands_hold" in done[0]:
        report["bands_held"] = sum(each["bands_hold"] for each in done)
    return report


def model_set(robot: CompiledRobot, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Whether the set holds the truth, and its half widths compared with the oracle's."""
    random = np.random.default_rng(seed)
    truth = drawn(robot, random)
    logs = of_model(robot, truth, options.recordings, options.seconds, options.delay, random)
    found = identify(Model(robot, known_delay=options.delay), logs, options.window, lambda _: None)
    half = np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
    seen = null_space(found.ellipsoid.unidentified.T)  # orthonormal, in units of half of each range
    away = alike(found, truth, seen)
    shape = seen.T @ (found.ellipsoid.shape / np.outer(half, half)) @ seen
    ratios = np.sqrt(np.diag(shape)) / oracle(found, truth, half[:, None] * seen)
    return {"holds": bool(away @ np.linalg.solve(shape, away) <= 1.0), "half_width_by_oracle": ratios.tolist()}


def harsh_set(robot: CompiledRobot, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Whether the set holds the truth, its half widths, the true values and the declared half ranges."""
    random = np.random.default_rng(seed)
    truth, periods = drawn(robot, random), int(random.integers(1, 4))
    logs = of_harsh(robot, truth, options.recordings + options.unseen, options.seconds, periods, seed)
    found = identify(Model(robot, ("delay",)), logs[: options.recordings], options.window, lambda _: None)
    region, half = found.ellipsoid, np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
    away, shape = (truth - region.centre) / half, region.shape / np.outer(half, half)
    distance = float(np.sqrt(away @ np.linalg.pinv(shape, rcond=1e-12, hermitian=True) @ away))
    widths = np.minimum(np.sqrt(np.diag(shape)), 1.0)  # a set within the declared bounds is no wider than these
    entry: dict[str, Any] = {
        "holds": distance <= 1.0,
        "distance": distance,
        "delay_periods": periods,
        "directions_identified": len(truth) - region.unidentified.shape[1],
        "widened": found.widened,
        "half_width_by_truth": dict(zip(robot.parameter_names, (widths * half / truth).tolist(), strict=True)),
        "half_width_by_range": dict(zip(robot.parameter_names, widths.tolist(), strict=True)),
        "error_by_truth": dict(zip(robot.parameter_names, ((region.centre - truth) / truth).tolist(), strict=True)),
    }
    return entry | (bands_of(found, logs[options.recordings :]) if options.unseen else {})


def bands_of(found: Identified, unseen: list[Recording]) -> dict[str, Any]:
    """Whether the bands hold 95 % of recordings that nothing has used, and how wide they are at their end: in the
    coordinate's unit (the median of these recordings), beside the half width that would just do, and beside that about
    `it stays where it is`."""
    bands, robot = found.bands, found.model.robot
    if bands is None:
        raise ModelError("no recording is long enough for a prediction")
    ahead = forecasts(found.model, unseen, found.theta, found.deviations, found.ellipsoid.shape)
    widths = bands.about(ahead)
    within = np.where(np.isnan(ahead.errors), np.nan, np.abs(ahead.errors) <= widths)
    last = replace(ahead, errors=ahead.errors / ahead.scale(bands.spread)).largest()[-1]
    at_the_end = np.median(widths[ahead.part == LEADS - 1], axis=0)
    tables: dict[str, dict[str, float]] = {
        key: {}
        for key in ("share_at_the_end", "share_of_all", "half_width", "half_width_by_exact", "half_width_by_motion")
    }
    for index, name in enumerate(robot.state_names[: len(robot.metadata.coordinates)]):
        usual, width = float(bands.half_width[-1, index]), float(at_the_end[index])
        tables["share_at_the_end"][name] = float(np.nanmean(last[:, index] <= usual))
        tables["share_of_all"][name] = float(np.nanmean(within[..., index]))
        tables["half_width"][name] = width
        tables["half_width_by_exact"][name] = usual / float(np.nanquantile(last[:, index], LEVEL))
        tables["half_width_by_motion"][name] = width / moved(unseen, index)
    holds = all(share >= LEVEL for share in tables["share_at_the_end"].values())
    return {"bands_hold": holds, "confidence": bands.confidence, "predictions": bands.blocks, **tables}


def moved(logs: list[Recording], index: int) -> float:
    """The size that a coordinate's change in 0.5 s stays below in 95 % of the samples."""
    changes = []
    for log in logs:
        later = np.searchsorted(log.time, log.time + 0.5 - 1e-9)
        first = np.flatnonzero(later < len(log.time))
        changes.append(log.states[later[first], index] - log.states[first, index])
    return float(np.quantile(np.abs(np.concatenate(changes)), LEVEL))


def alike(found: Identified, truth: Array, seen: Array) -> Array:
    """(r,) in the directions seen: the parameters that move most as the truth does, less the centre. They are the
    centre's in all other directions."""
    half, windows = np.ptp(found.model.bounds, axis=1) / 2, found.windows
    some = np.unique(np.linspace(0, len(windows.recording) - 1, WINDOWS).round().astype(int))
    windows = windows.chosen(some)
    deviations = np.where(np.isnan(found.residual), 1.0, found.residual)
    wanted = settle(found.model, windows, windows.starts, truth, deviations, robust=False).residuals
    theta = found.ellipsoid.centre
    for _ in range(STEPS):
        settled = settle(found.model, windows, windows.starts, theta, deviations, robust=False)
        J = (settled.sensitivity * half) @ seen
        normal = np.einsum("kwia,kwib->ab", J, J, optimize=True)
        gradient = np.einsum("kwia,kwi->a", J, settled.residuals - wanted)
        theta = theta - half * (seen @ np.linalg.solve(normal, gradient))
    return np.asarray(seen.T @ ((theta - found.ellipsoid.centre) / half))


def oracle(found: Identified, truth: Array, directions: Array) -> Array:
    """Half widths (r,) along directions (p, r) of the set that knows the noise, in the same windows."""
    robot, windows = found.model.robot, found.windows
    step = counted(robot)
    deviations = np.ones(len(robot.state_names))
    deviations[: len(step)] = step * np.sqrt(NOISE**2 + 1 / 12)
    J = settle(found.model, windows, windows.starts, truth, deviations, robust=False).sensitivity @ directions
    information = np.einsum("kwia,kwib->ab", J, J)
    return np.asarray(np.sqrt(chdtri(directions.shape[1], 1 - LEVEL) * np.diag(np.linalg.inv(information))))


if __name__ == "__main__":
    main()
