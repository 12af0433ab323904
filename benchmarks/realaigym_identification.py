"""How well identified models predict the joint torques of RealAIGym's real double pendulum (design C.1).

    git clone https://github.com/dfki-ric-underactuated-lab/double_pendulum D
    python benchmarks/realaigym_identification.py D [--identified FILE ...] [--write DIR]

The metric, fixed before anything was compared. Positions and measured torques pass a Butterworth filter of fourth order
at 10 Hz forwards and backwards, 500 Hz. Velocities and accelerations are central differences of the filtered positions.
Half a second is left out at both ends of a recording. The error is the root mean square of (torque of the model minus
measured torque) over both joints and all samples together. Held out are, first, every recording once (fit to the nine
others, errors pooled); second, the two recordings of swing-ups (fit to the eight others).

The repository's models 1.0, 2.0 and 3.0 are computed from their nine base parameters; it does not say which of the
recordings they were fitted to. Ours is a linear regression in the same nine, by the loss soft_l1 at three standard
deviations, with inertias and frictions that are not negative; and any file of `modelgen identify` for the model
benchmarks/realaigym/realaigym_real.py. --write makes files at 100 Hz for that command: positions as they are, torques
averaged over the samples for which they are held. They are cut from the repository's recordings, (c) DFKI GmbH, BSD-3.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.signal import butter, filtfilt

Array = NDArray[np.float64]

RECORDINGS = "data/experiment_records/design_C.1/sys_id/20230629"
MODELS = "data/system_identification/identified_parameters/design_C.1"
SWING_UPS = ("20230629-154220", "20230629-154548")
GRAVITY, LENGTH, GEAR = 9.81, 0.2, 6.0
CUTOFF, TRIMMED = 10.0, 0.5  # Hz, s
STEEP, SMOOTHING = 100.0, 0.1  # of the friction: s/rad of theirs, rad/s of tanh in the file of `modelgen identify`
ROBUST, REWEIGHTED = 3.0, 8  # standard deviations; iterations
EVERY = 5  # samples at 500 Hz for one in the fit and in the files of --write: a fifth holds all below 10 Hz
NAMES = ("I1 + m2 l1^2", "I2", "Ir", "m1 r1 + m2 l1", "m2 r2", "b1", "b2", "cf1", "cf2")


class Filtered(NamedTuple):
    """A recording behind the filter, without its ends."""

    regressor: Array  # (K, 2, 9), torques of both joints by the base parameters
    smooth: Array  # the same with friction as in the file of `modelgen identify`
    torques: Array  # (K, 2)


def main() -> None:
    """Parse, compute, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("--identified", type=Path, nargs="*", default=[])
    parser.add_argument("--write", type=Path, default=None, metavar="DIR")
    options = parser.parse_args()
    tables = {path.parent.name: table(path) for path in sorted((options.repository / RECORDINGS).glob("*/*.csv"))}
    tables = {name: each for name, each in tables.items() if each}  # some may be pointers of Git LFS
    if not set(SWING_UPS) < set(tables):
        raise SystemExit(f"{options.repository / RECORDINGS} does not hold the recordings; it holds {list(tables)}")
    if options.write:
        for name, columns in tables.items():
            write(options.write / f"{name}.csv", columns)
    names = list(tables)
    data = [filtered(tables[name]) for name in names]
    up = [names.index(name) for name in SWING_UPS]
    rest = [index for index in range(len(names)) if index not in up]
    report: dict[str, object] = {"recordings": names, "names": NAMES}
    for path in sorted((options.repository / MODELS).glob("model_[123].0/model_parameters.yml")):
        report[path.parent.name] = scored(base(numbers(path)), data, up)
    everything = fit(data)
    left_out = [error(fit([*data[:i], *data[i + 1 :]]), data[i : i + 1]) for i in range(len(data))]
    rows = [len(each.torques) for each in data]
    report["ours"] = {
        **scored(everything, data, up),
        "each_left_out": left_out,
        "left_out": float(np.sqrt(np.average(np.square(left_out), weights=rows))),
        "swing_ups_left_out": error(fit([data[i] for i in rest]), [data[i] for i in up]),
    }
    plain = [plainly(data), plainly([data[i] for i in rest])]
    report["ours, plain least squares"] = {
        "base_parameters": plain[0].tolist(),
        "all": error(plain[0], data),
        "swing_ups_left_out": error(plain[1], [data[i] for i in up]),
    }
    for path in options.identified:
        report[str(path)] = scored(of_file(path), data, up, smooth=True)
    print(json.dumps(report, indent=1))


def table(path: Path) -> dict[str, Array]:
    """Columns of a recording; empty for a pointer of Git LFS."""
    with path.open(encoding="utf-8") as file:
        header = file.readline().strip().split(",")
        if "pos_meas1" not in header:
            return {}
        values = np.loadtxt(file, delimiter=",")
    return dict(zip(header, values.T, strict=True))


def filtered(columns: dict[str, Array]) -> Filtered:
    """By the metric's filter, on an even grid."""
    time = columns["time"]
    period = float(np.median(np.diff(time)))
    at = np.arange(time[0], time[-1], period)
    b, a = butter(4, CUTOFF * 2 * period)

    def smooth(name: str) -> Array:
        return np.asarray(filtfilt(b, a, np.interp(at, time, columns[name])))

    q = np.stack([smooth("pos_meas1"), smooth("pos_meas2")], axis=1)
    v = np.gradient(q, period, axis=0)
    acceleration = np.gradient(v, period, axis=0)
    torques = np.stack([smooth("tau_meas1"), smooth("tau_meas2")], axis=1)
    kept = (at >= at[0] + TRIMMED) & (at <= at[-1] - TRIMMED)
    q, v, acceleration = q[kept], v[kept], acceleration[kept]
    theirs, ours = np.arctan(STEEP * v), np.tanh(v / SMOOTHING)
    return Filtered(regressor(q, v, acceleration, theirs), regressor(q, v, acceleration, ours), torques[kept])


def regressor(q: Array, v: Array, acceleration: Array, friction: Array) -> Array:
    """Torques of both joints for one of every base parameter, in the order of NAMES, (K, 2, 9). q: from hanging."""
    (q1, q2), (v1, v2), (a1, a2), (f1, f2) = q.T, v.T, acceleration.T, friction.T
    none, both, weight = np.zeros_like(q1), a1 + a2, GRAVITY * np.sin(q1 + q2)
    upper = LENGTH * (np.cos(q2) * (2 * a1 + a2) - np.sin(q2) * (2 * v1 * v2 + v2**2)) + weight
    lower = LENGTH * (np.cos(q2) * a1 + np.sin(q2) * v1**2) + weight
    rotors = (GEAR**2 + 1) * a1 - GEAR * a2, GEAR**2 * a2 - GEAR * a1
    first = [a1, both, rotors[0], GRAVITY * np.sin(q1), upper, v1, none, f1, none]
    second = [none, both, rotors[1], none, lower, none, v2, none, f2]
    return np.stack([np.stack(first, axis=1), np.stack(second, axis=1)], axis=1)


def rows_of(data: Sequence[Filtered]) -> tuple[Array, Array]:
    """A fifth of the rows of the regression, (K, 9), and the torques, (K,)."""
    regressors = [each.regressor[::EVERY].reshape(-1, len(NAMES)) for each in data]
    return np.concatenate(regressors), np.concatenate([each.torques[::EVERY].ravel() for each in data])


def plainly(data: Sequence[Filtered]) -> Array:
    """Base parameters (9,) by least squares, whatever their signs."""
    A, torques = rows_of(data)
    return np.asarray(np.linalg.lstsq(A, torques, rcond=None)[0])


def fit(data: Sequence[Filtered]) -> Array:
    """Base parameters (9,) that are not negative, by iteratively reweighted least squares."""
    A, torques = rows_of(data)
    weight, theta = np.ones(len(torques)), np.zeros(len(NAMES))
    for _ in range(REWEIGHTED):
        # In the triangular factor of the weighted regressor: nine rows for the bounded problem.
        Q, R = np.linalg.qr(A * weight[:, None])
        theta = lsq_linear(R, Q.T @ (torques * weight), (0.0, np.inf)).x
        away = A @ theta - torques
        weight = (1 + (away / (ROBUST * 1.4826 * np.median(np.abs(away)))) ** 2) ** -0.25
    return np.asarray(theta)


def error(theta: Array, data: Sequence[Filtered], smooth: bool = False) -> float:
    """Root mean square over both joints and all samples, N m."""
    parts = [(each.smooth if smooth else each.regressor) @ theta - each.torques for each in data]
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2)))


def scored(theta: Array, data: Sequence[Filtered], up: Sequence[int], smooth: bool = False) -> dict[str, object]:
    """Errors on recordings as they are, whatever the model has seen."""
    return {
        "base_parameters": theta.tolist(),
        "all": error(theta, data, smooth),
        "each": [error(theta, [each], smooth) for each in data],
        "swing_ups": error(theta, [data[i] for i in up], smooth),
    }


def numbers(path: Path) -> dict[str, float]:
    """The file of one of the repository's models."""
    lines = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines() if ":" in line)
    return {name.strip(): float(value) for name, _, value in lines}


def base(m: dict[str, float]) -> Array:
    """Base parameters of masses, lengths and inertias (about each link's joint)."""
    moment = m["m1"] * m["r1"] + m["m2"] * m["l1"]
    own = [m["I1"] + m["m2"] * m["l1"] ** 2, m["I2"], m["Ir"], moment, m["m2"] * m["r2"]]
    return np.array([*own, m["b1"], m["b2"], m["cf1"], m["cf2"]])


def of_file(path: Path) -> Array:
    """Base parameters of a file of `modelgen identify` for benchmarks/realaigym/realaigym_real.py."""
    each = {name: entry["value"] for name, entry in json.loads(path.read_text(encoding="utf-8"))["parameters"].items()}
    upper = each["upper_own"] + (LENGTH * each["lower_moment"]) ** 2 / each["lower_inertia"]
    damping, friction = (
        [each[f"{joint}_{kind}"] for joint in ("shoulder", "elbow")] for kind in ("damping", "friction")
    )
    return np.array(
        [upper, each["lower_inertia"], each["rotor"], each["upper_moment"], each["lower_moment"], *damping, *friction]
    )


def write(path: Path, columns: dict[str, Array]) -> None:
    """A recording at a fifth of its rate."""
    rows = len(columns["time"]) // EVERY * EVERY
    kept = [columns[name][:rows:EVERY] for name in ("time", "pos_meas1", "pos_meas2")]
    held = [columns[name][:rows].reshape(-1, EVERY).mean(axis=1) for name in ("tau_meas1", "tau_meas2")]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, np.column_stack([*kept, *held]), "%.9g", ",", header="time,pos1,pos2,tau1,tau2", comments="")


if __name__ == "__main__":
    main()
