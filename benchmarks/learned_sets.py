"""Three policies for one identified robot: trained at its nominal parameters, against a hand-set ellipsoid, and against
the set that the recordings leave. Tried on fits of withheld recordings and on the harsh plant.

    python benchmarks/learned_sets.py --robot pendulum --seeds 3 --out runs/learned-pendulum
    python benchmarks/learned_sets.py --robot realaigym_real --generated DIR --out runs/learned-real \\
        --logs log1.csv ... --withheld log9.csv log10.csv --columns shoulder=pos1+pi ...

Without --logs the recordings are simulated on the harsh plant with parameters that are drawn. The policies are
`cfvi`; `rfvi` on an ellipsoid with semi-axes of 15 % of every parameter and the preset's other radii; and
`rfvi --identified`. All three take the identified centre as nominal parameters. A plant is the model at the parameters
that fit two withheld recordings, each with the next one and the last with the first, nominal or harsh (there with the
observer): in one real recording a joint may stand still. The worst quarter is the mean of the returns of that quarter
of the plants. results.json is written after every training; a run that was cut off goes on from there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from simulated_logs import drawn, of_harsh

import modelgen
from modelgen.files import replacing
from modelgen.identification import identified_file, result
from modelgen.identification.columns import columns
from modelgen.identification.fit import fit
from modelgen.identification.identified_file import IdentifiedFile, Sizes
from modelgen.identification.identify import identify
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording, read
from modelgen.loader import CompiledRobot
from solver.cli import main as solver
from solver.evaluation import evaluate
from solver.runs.kinds import kind_in
from solver.training.settings import make_settings

POLICIES = ("nominal", "hand", "learned")
HAND = 0.15  # of every parameter
WINDOW, RECORDED, SECONDS = 0.5, 6, 6.0  # s; recordings to identify from, and as many withheld; s of each
MARGIN = 1e-3  # of a parameter's range: a plant's parameters stay so far within their bounds


def main() -> None:
    """Parse; identify; train and try what is not done yet; print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--robot", default="pendulum")
    parser.add_argument("--generated", default=None, metavar="DIR", help="folder of artifacts")
    parser.add_argument("--seeds", type=int, default=3, help="of trainings")
    parser.add_argument("--first", type=int, default=0, help="first seed of trainings, and seed of the recordings")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--logs", nargs="*", type=Path, default=[], help="recordings to identify from")
    parser.add_argument("--withheld", nargs="*", type=Path, default=[], help="recordings whose fits are plants")
    parser.add_argument("--columns", nargs="*", default=[])
    parser.add_argument("--train", nargs=argparse.REMAINDER, default=[], help="last: further options of `solver train`")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    robot = modelgen.load(options.robot, directory=options.generated, parallel=False)
    options.out.mkdir(parents=True, exist_ok=True)
    prepared = options.out / "plants.json"
    if not prepared.exists():
        prepare(robot, options, prepared)
    plants = json.loads(prepared.read_text(encoding="utf-8"))
    path = options.out / "results.json"
    done: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["each"] if path.exists() else []
    for seed in range(options.first, options.first + options.seeds):
        for policy in POLICIES:
            if any(each["policy"] == policy and each["seed"] == seed for each in done):
                continue
            began, folder = time.process_time(), options.out / f"{policy}-seed{seed}"
            train(robot, options, policy, seed, folder)
            spent = time.process_time() - began
            tried = try_out(folder, plants, options)
            done.append({"policy": policy, "seed": seed, "processor_seconds": round(spent, 1), **tried})
            away = {name: distances(options.out / f"{name}.json", plants) for name in ("learned", "hand")}
            report = {"robot": robot.name, "plants": plants, "semi_axes": away, "summary": summary(done), "each": done}
            save(path, report)
    print(json.dumps(summary(done), indent=1))


def prepare(robot: CompiledRobot, options: argparse.Namespace, path: Path) -> None:
    """Identify from the first recordings, and fit the withheld ones in pairs; write both sets and the plants."""
    if options.logs:
        where = columns(options.columns, robot.metadata)
        logs, withheld = (
            [read(each, robot.metadata, where) for each in some] for some in (options.logs, options.withheld)
        )
    else:
        random = np.random.default_rng(options.first)
        truth, periods = drawn(robot, random), int(random.integers(1, 4))
        both = of_harsh(robot, truth, 2 * RECORDED, SECONDS, periods, options.first)
        logs, withheld = both[:RECORDED], both[RECORDED:]
    if not withheld:
        raise SystemExit("name recordings to withhold: --withheld LOG.csv ...")
    found = identify(Model(robot, ("delay",)), logs, WINDOW, lambda line: print(line, flush=True))
    content = result.content(robot, logs, found)
    identified_file.write(options.out / "learned.json", content)
    identified_file.write(options.out / "hand.json", by_hand(content))
    pairs = [(each, withheld[(index + 1) % len(withheld)]) for index, each in enumerate(withheld)]
    save(path, {"parameters": [fitted(robot, pair) for pair in pairs]})


def save(path: Path, report: dict[str, Any]) -> None:
    """Write JSON whole or not at all."""
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def by_hand(content: IdentifiedFile) -> IdentifiedFile:
    """The same centre with a set that nobody measured."""
    shape = np.diag((HAND * content.centre) ** 2).tolist()
    region = dataclasses.replace(content.ellipsoid, shape=tuple(map(tuple, shape)))
    n, m = len(content.radii.state), len(content.radii.action)
    radii = Sizes((0.0,) * n, (0.0,) * m, (0.0,) * n)
    return dataclasses.replace(content, ellipsoid=region, unidentifiable=(), radii=radii)


def fitted(robot: CompiledRobot, logs: Sequence[Recording]) -> dict[str, float]:
    """Parameters of recordings, within the declared bounds."""
    _, one = fit(Model(robot, ("delay",)), logs, WINDOW, lambda _: None)
    low, high = np.asarray(robot.parameter_bounds).T
    margin = MARGIN * (high - low)
    values = np.clip(one.theta[: len(low)], low + margin, high - margin)
    return dict(zip(robot.parameter_names, values.tolist(), strict=True))


def distances(path: Path, plants: dict[str, Any]) -> list[float]:
    """How many semi-axes of a set every plant lies from its centre: at most 1 in the set."""
    region = json.loads(path.read_text(encoding="utf-8"))["ellipsoid"]
    away = [[each[name] for name in region["names"]] - np.array(region["centre"]) for each in plants["parameters"]]
    return [float(np.sqrt(each @ np.linalg.solve(np.array(region["shape"]), each))) for each in away]


def train(robot: CompiledRobot, options: argparse.Namespace, policy: str, seed: int, folder: Path) -> None:
    """Train, or go on with a training that was cut off. Raises SystemExit where it fails."""
    kind = kind_in(folder)
    if kind is not None and kind.done(folder) < kind.training.read(folder).length:
        words = ["train", "--resume", str(folder)]
    elif kind is not None:
        return
    else:
        words = ["train", robot.name, "--out", str(folder), "--seed", str(seed), "--threads", "1"]
        words += ["--identified", str(options.out / ("learned.json" if policy == "learned" else "hand.json"))]
        words += ["--algorithm", "cfvi" if policy == "nominal" else "rfvi", *options.train]
        words += ["--generated", options.generated] if options.generated else []
        if policy == "hand":
            usual = make_settings("fast", robot, "rfvi").adversaries
            words += ["--adversaries", *(f"{name}={usual[name]}" for name in ("state", "action", "observation"))]
    code = solver(words)
    if code:
        raise SystemExit(f"`solver {' '.join(words)}` ended with exit code {code}")


def try_out(folder: Path, plants: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Mean return and success rate at the nominal parameters and on every plant."""
    nominal = evaluate(folder, episodes=options.episodes, generated=options.generated).statistics
    tried: list[dict[str, Any]] = []
    returns, successes = [], []
    for parameters in plants["parameters"]:
        for plant in ("nominal", "harsh"):
            found = evaluate(
                folder,
                episodes=options.episodes,
                parameters=parameters,
                plant=plant,
                observer=plant == "harsh",
                generated=options.generated,
            ).statistics
            returns.append(found["return_mean"])
            successes.append(found["success_rate"])
            tried.append({"plant": plant, "return": returns[-1], "success": successes[-1]})
    return {
        "nominal_return": nominal["return_mean"],
        "nominal_success": nominal["success_rate"],
        "worst_quarter": worst_quarter(returns),
        "mean_success": float(np.mean(successes)),
        "plants": tried,
    }


def worst_quarter(returns: Sequence[float]) -> float:
    """The mean of the worst quarter, of at least one."""
    return float(np.mean(np.sort(returns)[: max(1, len(returns) // 4)]))


def summary(done: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Means over the seeds that are done."""
    keys = ("nominal_return", "nominal_success", "worst_quarter", "mean_success", "processor_seconds")
    found: dict[str, dict[str, float]] = {}
    for policy in POLICIES:
        own = [each for each in done if each["policy"] == policy]
        if own:
            means: dict[str, float] = {key: float(np.mean([each[key] for each in own])) for key in keys}
            found[policy] = {"seeds": float(len(own)), **means}
    return found


if __name__ == "__main__":
    main()
