"""Cost against uncertainty: every policy on robots whose parameters are wrong by up to a share, in one picture.

    python benchmarks/uncertainty.py FAMILY [RUN ...] --parameters mass length --figure uncertainty.png

Of each share r, every rollout draws the parameters uniformly within r of their nominal values. The family is told them,
or finds them out: it is told the estimates of an observer that measures positions and starts at the nominal values. A
RUN is not told. All rollouts begin alike and last as long as those of the family. Prints a table in Markdown; in the
picture, the colour of a point is the success.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import matplotlib as mpl
import torch
from torch import Tensor

from solver.evaluation import Circumstances, roll_out
from solver.evaluation.source import source_of
from solver.plants.outcome import sample_starts
from solver.problem import Problem
from solver.problem.parameters import TOLD
from solver.runs.kinds import load_rollout_policy

mpl.use("Agg")
import matplotlib.pyplot as plt


@dataclass(frozen=True)
class Robots:
    """Random robots whose parameters are within a share of the nominal ones."""

    parameters: tuple[str, ...]
    share: float
    episodes: int

    def begin(self, problem: Problem, theta: Tensor, _: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Starts (N, n + k) as a family is told, and parameters (N, p)."""
        generator = torch.Generator().manual_seed(seed + 1)
        robots = theta.repeat(self.episodes, 1)
        columns = [problem.robot.parameter_names.index(name) for name in self.parameters]
        draw = 2.0 * torch.rand(self.episodes, len(columns), generator=generator) - 1.0
        robots[:, columns] *= 1.0 + self.share * draw
        told = None if problem.context is None else problem.context.of(robots)
        return sample_starts(problem, self.episodes, seed, told), robots

    def tried(self, run: str, way: str, seconds: float) -> tuple[float, float]:
        """Mean return and success of a policy that is `told`, finds out (`estimated`), or is told `nothing`."""
        source = source_of(run, None, None, None)
        estimate = (TOLD,) if way == "estimated" else ()
        conditions = Circumstances({}, "nominal", (), bool(estimate), None, estimate, None, False)
        result = roll_out(source, conditions, self.begin, seconds, () if way == "nothing" else self.parameters).result
        return float(result.returns.mean()), float(result.success.float().mean())


def drawn(path: str, shares: list[float], curves: dict[str, list[tuple[float, float]]]) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (label, points), line in zip(curves.items(), ("-", "--", "-.", ":"), strict=False):
        costs, colours = [-mean for mean, _ in points], [success for _, success in points]
        percent = [100.0 * share for share in shares]
        axes.plot(percent, costs, line, color="0.4", label=label, zorder=1)
        marks = axes.scatter(
            percent, costs, c=colours, cmap="RdYlGn", vmin=0.5, vmax=1.0, s=60, edgecolor="0.2", zorder=2
        )
    figure.colorbar(marks, label="success", extend="min")
    axes.set(xlabel="parameters wrong by up to, %", ylabel="mean cost of a rollout")
    axes.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="FAMILY [RUN ...]")
    parser.add_argument("--parameters", nargs="+", required=True)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1 * share for share in range(7)])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--figure", required=True)
    options = parser.parse_args()
    family, *others = options.runs
    seconds = load_rollout_policy(family).problem.horizon
    ways = [(run, "nothing") for run in others] + [(family, "told"), (family, "estimated")]
    labels = [run if way == "nothing" else f"family, {way}" for run, way in ways]
    print("| wrong by up to | " + " | ".join(labels) + " |\n|" + "---|" * (1 + len(labels)))
    curves: dict[str, list[tuple[float, float]]] = {label: [] for label in labels}
    for share in options.shares:
        robots = Robots(tuple(options.parameters), share, options.episodes)
        for label, (run, way) in zip(labels, ways, strict=True):
            curves[label].append(robots.tried(run, way, seconds))
        cells = [f"{mean:.2f}, {100 * success:.0f} %" for mean, success in (curves[label][-1] for label in labels)]
        print(f"| {100 * share:g} % | " + " | ".join(cells) + " |", flush=True)
    drawn(options.figure, options.shares, curves)


if __name__ == "__main__":
    main()
