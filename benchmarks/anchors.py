"""Sets that the verified controllers of Li and others (arXiv 2506.01356) bring to their targets, as JSON.

python benchmarks/anchors.py CLONE > docs/results/data/anchors.json

CLONE: https://github.com/Verified-Intelligence/Two-Stage_Neural_Controller_Training. A set is {W < level} of the stored
Lyapunov function W, in the box of its verification, with the angle modulo a turn: a state counts if one of its angles
does. The levels are those of the authors' program (0.95) and of their example (0.99).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

LEVELS, SEEDS, GRID, TURNS = (0.95, 0.99), range(5), (400, 2001), 4
#: Folder of a system -> largest angle (rad) and other state of its box of verification; which column is the angle.
SYSTEMS = {
    "pendulum/smalltorque": (19.2, 64.8, 0),
    "pendulum/bigtorque": (20.0, 100.0, 0),
    "path_tracking/smalltorque": (10.0, 10.0, 1),
    "path_tracking/bigtorque": (10.0, 10.0, 1),
}


def lyapunov(stored: Mapping[str, torch.Tensor], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """W (N,) of states (N, 2): layers with tanh between them, and a sigmoid."""
    weights = [name for name in stored if name.startswith("lyapunov.layers") and name.endswith("weight")]
    value = torch.from_numpy(x).float()
    for name in weights:
        value = (value if name == weights[0] else value.tanh()) @ stored[name].T
        value = value + stored[name.replace("weight", "bias")]
    return np.asarray(value[:, 0].sigmoid().double())


def areas(checkpoint: Path, angle: float, other: float, column: int) -> list[float]:
    """Area of the set of each level, in rad times the unit of the other state."""
    turned = (np.arange(GRID[0]) + 0.5) / GRID[0] * 2 * math.pi - math.pi
    grid = np.stack(np.meshgrid(turned, np.linspace(-other, other, GRID[1]), indexing="ij"), -1).reshape(-1, 2)
    stored = torch.load(checkpoint, weights_only=True, map_location="cpu")["state_dict"]
    least, columns = np.full(len(grid), np.inf), [column, 1 - column]
    for turn in range(-TURNS, TURNS + 1):
        x = grid + np.array([2 * math.pi * turn, 0.0])
        inside = np.abs(x[:, 0]) <= angle
        least[inside] = np.minimum(least[inside], lyapunov(stored, x[inside][:, columns]))
    return [float((least < level).mean() * 4 * math.pi * other) for level in LEVELS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    models = parser.parse_args().clone / "models"
    found = {
        name: [areas(models / name / "finetune" / f"seed_{seed}.pth", *box) for seed in SEEDS]
        for name, box in SYSTEMS.items()
    }
    print(json.dumps({"levels": LEVELS, "areas": found}))


if __name__ == "__main__":
    main()
