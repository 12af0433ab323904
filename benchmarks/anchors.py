"""Sets that the verified controllers of Li and others (arXiv 2506.01356) bring to their targets, as JSON.

python benchmarks/anchors.py CLONE > docs/results/data/anchors.json

CLONE: https://github.com/Verified-Intelligence/Two-Stage_Neural_Controller_Training. A set is {W < level} of the stored
Lyapunov function W, in the box of its verification, with the angle modulo a turn: a state counts if one of its angles
does. The levels are those of the authors' program (0.95) and of their example (0.99). Areas and volumes are sampled.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats.qmc import Sobol

LEVELS, SEEDS, STATES, TURNS = (0.95, 0.99), range(5), 2**21, 4
#: Folder of a system -> half widths of its box of verification in SI units, and which of them is the angle's.
SYSTEMS = {
    "pendulum/smalltorque": ((19.2, 64.8), 0),
    "pendulum/bigtorque": ((20.0, 100.0), 0),
    "path_tracking/smalltorque": ((10.0, 10.0), 1),
    "path_tracking/bigtorque": ((10.0, 10.0), 1),
    "cartpole": ((3.6, 2.4, 12.0, 12.0), 1),
}


def lyapunov(stored: Mapping[str, torch.Tensor], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """W (N,) of states (N, n): layers with tanh between them, and a sigmoid."""
    weights = [name for name in stored if name.startswith("lyapunov.layers") and name.endswith("weight")]
    value = torch.from_numpy(x).float()
    for name in weights:
        value = (value if name == weights[0] else value.tanh()) @ stored[name].T
        value = value + stored[name.replace("weight", "bias")]
    return np.asarray(value[:, 0].sigmoid().double())


def volumes(checkpoint: Path, box: Sequence[float], angle: int) -> list[float]:
    """Area or volume of the set of each level, in the product of the states' units."""
    reach = np.array(box)
    most, reach[angle] = reach[angle], math.pi
    x = Sobol(len(box), rng=0).random(STATES) * 2 * reach - reach
    stored = torch.load(checkpoint, weights_only=True, map_location="cpu")["state_dict"]
    least = np.full(STATES, np.inf)
    for turn in range(-TURNS, TURNS + 1):
        turned = x.copy()
        turned[:, angle] += 2 * math.pi * turn
        inside = np.abs(turned[:, angle]) <= most
        least[inside] = np.minimum(least[inside], lyapunov(stored, turned[inside]))
    return [float((least < level).mean() * np.prod(2 * reach)) for level in LEVELS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    models = parser.parse_args().clone / "models"
    found = {
        name: [volumes(models / name / "finetune" / f"seed_{seed}.pth", *box) for seed in SEEDS]
        for name, box in SYSTEMS.items()
    }
    print(json.dumps({"levels": LEVELS, "sets": found}))


if __name__ == "__main__":
    main()
