"""Limits of a family of pendulums: the shortest swing-up, and what the optimum of the task's cost does in more time.

    python benchmarks/family_limits.py RUN --points 1,1.25 1.25,1.25 1.5,1.5

A point is the mass and the length, as factors of the nominal ones. The shortest time follows from Pontryagin's maximum
principle: extremals run backward from the edge of the success box until one meets the hanging pendulum. The optimum is
the solution on a grid, without adversaries. RUN is a family that is told mass and length.
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import Tensor

from solver.game import Game
from solver.game.policies import Hold
from solver.oracles.grid import solve
from solver.plants.outcome import controller, rollouts, settling_periods, tolerances
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.training.solution import load_solution

STEP, LONGEST, NEAR = 0.01, 8.0, 0.05  # s, s, and a distance of states in rad
ON_EDGE, DIRECTIONS = 160, 720  # states on the edge of the box, and directions of the costate there


def edge(position: float, rate: float) -> Tensor:
    """States (ON_EDGE, 2) on the edge of a box about zero."""
    share = torch.linspace(0.0, 4.0, ON_EDGE + 1, dtype=torch.float64)[:-1]
    side, along = share.floor(), 2.0 * (share - share.floor()) - 1.0
    corners = [(along, -1.0), (1.0, along), (-along, 1.0), (-1.0, -along)]
    states = [torch.stack([torch.as_tensor(v).double().expand(ON_EDGE) for v in one], 1) for one in corners]
    chosen = torch.stack(states)[side.long(), torch.arange(ON_EDGE)]
    return chosen * chosen.new_tensor([position, rate])


def shortest(problem: Problem) -> float:
    """Seconds in which a pendulum gets from rest below into the tolerances of a success; infinite if never."""
    mass, length = problem.theta.tolist()
    weight, drive = 1.5 * 9.81 / length, 3.0 * float(problem.input_limits[0]) / (mass * length**2)
    position, rate = (float(each[0]) for each in tolerances(problem))
    turn = 2.0 * math.pi * torch.arange(DIRECTIONS, dtype=torch.float64) / DIRECTIONS
    states = edge(position, rate)[:, None].expand(-1, DIRECTIONS, -1)
    costates = torch.stack([turn.cos(), turn.sin()], 1)[None].expand(ON_EDGE, -1, -1)
    y = torch.cat([states, costates], 2).reshape(-1, 4)

    def backward(y: Tensor) -> Tensor:
        angle, speed, by_angle, by_speed = y.unbind(1)
        faster = weight * angle.sin() - drive * by_speed.sign()
        return -torch.stack([speed, faster, -weight * angle.cos() * by_speed, -by_angle], 1)

    for step in range(round(LONGEST / STEP)):
        k1 = backward(y)
        k2 = backward(y + 0.5 * STEP * k1)
        k3 = backward(y + 0.5 * STEP * k2)
        y = y + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + backward(y + STEP * k3))
        away = torch.remainder(y[:, 0], 2.0 * math.pi) - math.pi
        if float(torch.hypot(away, y[:, 1] / math.sqrt(weight)).min()) < NEAR:
            return (step + 1) * STEP
    return math.inf


def anywhere(run: str, seconds: float, robots: int = 200) -> float:
    """Share of random robots of the family, from random starts, that the told policy brings up in this time."""
    solution = load_solution(run, contexts=True)
    rows = solution.problem.sample_starts(robots, torch.Generator().manual_seed(7))
    return float(rollouts(solution.problem, solution.controller(), rows, seconds=seconds).success.float().mean())


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--points", nargs="+", required=True, metavar="MASS,LENGTH")
    parser.add_argument("--seconds", nargs="+", type=float, default=[5.0, 8.0, 10.0])
    options = parser.parse_args()
    for seconds in options.seconds:
        print(f"Of 200 random robots, told, {100 * anywhere(options.run, seconds):.0f} % succeed in {seconds:g} s.")
    heads = [f"{way}, {seconds:g} s" for way in ("optimum", "told") for seconds in options.seconds]
    print("| mass | length | shortest | " + " | ".join(heads) + " |\n|" + "---|" * (3 + len(heads)))
    robot = load_robot("pendulum", "cpu", None)
    for point in options.points:
        factors = [float(number) for number in point.split(",")]
        values = [factor * value for factor, value in zip(factors, robot.nominal_parameters, strict=True)]
        problem = Problem(robot.with_nominal(values))
        rest = settling_periods(problem) * problem.control_step
        coarse = solve(Game(problem), (121, 121))
        optimum = solve(Game(problem), (241, 241), seconds=6.0, begin=coarse)
        told = load_solution(options.run, told=dict(zip(robot.parameter_names, values, strict=True)))
        x = problem.sample_starts(100, torch.Generator().manual_seed(0))
        cells = [*(f"{factor:g}" for factor in factors), f"{shortest(problem):.2f} s and {rest:.1f} s at rest"]
        for act in (controller(problem, optimum, Hold(1.0)), told.controller()):
            for seconds in options.seconds:
                found = rollouts(problem, act, x, seconds=seconds)
                cells.append(f"{float(found.returns.mean()):.2f}, {100 * float(found.success.float().mean()):.0f} %")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
