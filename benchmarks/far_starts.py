"""Whether the fit of `modelgen identify` finds the parameters from far away, and what a better start could save.

    python benchmarks/far_starts.py pendulum cartpole furuta --starts 20

Recordings are of the model (six of 6 s, as in benchmarks/confidence_sets.py, no delay), at parameters that are drawn.
The fit begins at corners of the bounds that are drawn, 2 % of the range from them, and once at the true parameters. No
first stage, such as a regression of filtered inverse dynamics, could begin nearer than that. A fit has arrived where
its loss is at most 1 % above the least of all.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from simulated_logs import drawn, of_model

import modelgen
from modelgen.identification.fit import cost, fit
from modelgen.identification.model import Model

WINDOW, CORNER = 0.5, 0.02  # s; of a range


def main() -> None:
    """Parse, fit, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.robots:
        print(json.dumps({"robot": name, **measured(name, options.starts, options.seed)}), flush=True)


def measured(name: str, count: int, seed: int) -> dict[str, float]:
    """Fits that arrive, and medians of processor seconds of those and of the fit from the truth."""
    robot, random = modelgen.load(name, parallel=False), np.random.default_rng(seed)
    truth = drawn(robot, random)
    logs = of_model(robot, truth, 6, 6.0, 0.0, random)
    low, high = np.asarray(robot.parameter_bounds).T
    corners = [low + (high - low) * (CORNER + (1 - 2 * CORNER) * random.integers(0, 2, len(low))) for _ in range(count)]
    losses, seconds = [], []
    for start in (truth, *corners):
        model = Model(robot)
        model.nominal, began = start, time.process_time()
        _, found = fit(model, logs, WINDOW, lambda _: None)
        # The loss in the residuals' own deviations is nearly the same for all: in the sensors' counts it is not.
        residuals = found.settled.residuals * found.deviations / np.asarray(robot.state_limits)
        losses.append(float(cost(1e4 * residuals, robust=True).sum()))
        seconds.append(time.process_time() - began)
    arrived = np.array(losses[1:]) <= 1.01 * min(losses)
    return {
        "starts": count,
        "arrived": int(arrived.sum()),
        "processor_seconds": float(np.median(seconds[1:])),
        "processor_seconds_from_the_truth": seconds[0],
    }


if __name__ == "__main__":
    main()
