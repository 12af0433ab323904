"""A family on random robots: every rollout draws all told parameters and references, which may jump.

    python benchmarks/family_plants.py RUN [--episodes 200] [--jump 4] [--unknown pull_x pull_y pull_z]

Prints two lines for each way: the family is told the true values, or the estimates of an observer that measures
positions and starts at the nominal values. --unknown: the components of a constant force that nobody knows, of SHARE of
the weight of each robot in a random direction. --estimate: parameters that the observer estimates beside the told ones.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from solver.evaluation import Circumstances, at_rest, begun, roll_out
from solver.evaluation.source import source_of
from solver.problem import Problem
from solver.problem.parameters import TOLD
from solver.runs.kinds import description_of

WAYS: dict[str, tuple[str, ...]] = {"told": (), "estimated": (TOLD,)}
GRAVITY, SHARE = 9.81, 0.1


def unknown(problem: Problem, robots: Tensor, names: list[str], seed: int) -> None:
    """Give the robots (N, p) a force in a random direction."""
    direction = torch.randn(len(robots), len(names), generator=torch.Generator().manual_seed(seed))
    weight = GRAVITY * robots[:, problem.robot.parameter_names.index("mass"), None]
    columns = [problem.robot.parameter_names.index(name) for name in names]
    robots[:, columns] = SHARE * weight * torch.nn.functional.normalize(direction)


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--jump", type=float)
    parser.add_argument("--unknown", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--estimate", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args()
    source, names = source_of(options.run, None, None, None), description_of(options.run).told_names

    def begin(problem: Problem, theta: Tensor, believed: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        starts, robots = begun(problem, theta, believed, names, options.episodes, seed)
        if options.unknown:
            unknown(problem, robots, options.unknown, seed + 2)
        return starts, robots

    for way in options.ways:
        estimate = (*WAYS[way], *options.estimate) if WAYS[way] else ()
        conditions = Circumstances({}, "nominal", (), bool(estimate), None, estimate, None, False, options.jump)
        found = roll_out(source, conditions, begin, None, source.references)
        result = found.result
        success, limited = result.success.float().mean(), result.at_limit.any(1).float().mean()
        print(
            f"{way}: return {float(result.returns.mean()):.2f}, success {100 * float(success):.1f} %, "
            f"at a limit {100 * float(limited):.0f} %"
        )
        errors = at_rest(found.problem, result).items()
        print("    at rest " + ", ".join(f"{name} {mean:.2g}, at most {most:.2g}" for name, (mean, most) in errors))


if __name__ == "__main__":
    main()
