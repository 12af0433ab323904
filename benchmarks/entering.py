"""Share of the states that enter the basin: proven, and by single trajectories, which bound what can be proven.

    solver prove pendulum-rfvi --spread 0.15 --parameters mass --reach 1300 --out reach.json
    python -P benchmarks/entering.py reach.json --within 6

A line for each claim of the file, over the domain and over its states whose last entry is at most `--within`. A sampled
state enters if it does so with nine robots along the diagonal of the spread. The exit code is 1 if a proven one does
not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import solver
from modelgen.arrays import Array
from solver.proof.affine import Mask
from solver.proof.held_loop import HeldLoop
from solver.proof.reach import Found, Grid, in_all_slices
from solver.training.solution import load_solution

STATES, ROBOTS, SECONDS, PARTS = 4096, 9, 12.0, 4  # parts: Runge-Kutta steps in a control period


def proven(loop: HeldLoop, claim: dict[str, Any]) -> Grid:
    """Boxes that are proven for every slice of a claim."""
    slices = [[Found.of(group, len(loop.around)) for group in groups] for groups in claim["reach"]["slices"]]
    return in_all_slices(loop, np.array(claim["shape"]), slices)


def errors(loop: HeldLoop, x: Array) -> Array:
    """Errors (N, n) of states, with angles in -pi to pi."""
    e = x - loop.target
    found: Array = np.where(loop.around, np.remainder(e + np.pi, 2 * np.pi) - np.pi, e)
    return found


def enters(policy: solver.Policy, loop: HeldLoop, shape: Array, x: Array, theta: Array) -> Mask:
    """Which states (N, n) enter {e' shape e <= 1} within the limits, with the input held and parameters theta (p,)."""
    kernels, count, h = loop.robot.with_kernels(), len(x), loop.step / PARTS
    inside, entered, every = np.ones(count, bool), np.zeros(count, bool), np.tile(theta, (count, 1))
    for _ in range(math.ceil(SECONDS / loop.step)):
        e = errors(loop, x)
        entered |= inside & (np.einsum("ni,ij,nj->n", e, shape, e) <= 1)
        u = np.asarray(policy(x), np.float64).reshape(count, -1)
        for _ in range(PARTS):
            k1 = kernels.dynamics(x, u, every)
            k2 = kernels.dynamics(x + h / 2 * k1, u, every)
            k3 = kernels.dynamics(x + h / 2 * k2, u, every)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + kernels.dynamics(x + h * k3, u, every))
            inside &= entered | ((np.abs(errors(loop, x)) <= loop.bound) | loop.around).all(1)
    return entered


def row(name: str, loop: HeldLoop, claim: dict[str, Any], within: float) -> dict[str, Any]:
    """Shares of a claim, in %, of the domain and of its part; and how many states of the proven set do not enter."""
    grid, shape, policy = proven(loop, claim), np.array(claim["shape"]), solver.load(name).policy
    x = np.random.default_rng(0).uniform(grid.lower, grid.upper, (STATES, grid.n))
    robots = [loop.nominal * (1 + share * np.array(claim["spread"])) for share in np.linspace(-1, 1, ROBOTS)]
    robots = robots if any(claim["spread"]) else robots[:1]
    entered = np.logical_and.reduce([enters(policy, loop, shape, x, theta) for theta in robots])
    middles = grid.lower[-1] + (np.arange(grid.k) + 0.5) * grid.width[-1]
    near, part = np.abs(middles) <= within, np.abs(x[:, -1]) <= within
    known = grid.proven[tuple(((x - grid.lower) / grid.width).astype(int).T)]
    return {
        "spread": claim["spread"],
        "proven": [100 * float(grid.proven.mean()), 100 * float(grid.proven[..., near].mean())],
        "sampled": [100 * float(entered.mean()), 100 * float(entered[part].mean())],
        "counterexamples": int((known & ~entered).sum()),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("proof", type=Path, help="file of `solver prove --reach --out`")
    parser.add_argument("--within", type=float, default=math.inf, help="largest size of the last entry of a state")
    options = parser.parse_args()
    proof = json.loads(options.proof.read_text())
    held = HeldLoop(load_solution(proof["policy"]))
    rows = [row(proof["policy"], held, claim, options.within) for claim in proof["claims"] if "reach" in claim]
    print(json.dumps(rows, indent=1))
    sys.exit(any(found["counterexamples"] for found in rows))
