"""Largest errors of P(c), the quadratic form near the target of a family, at contexts that its fit has not seen.

    python benchmarks/family_fit.py

prints the table of docs/concepts/families.md: by how much the cost of an error grows over the ranges, and the largest
error of P(c) in any direction, at CONTEXTS contexts and the corners of the ranges.
"""

from __future__ import annotations

from pathlib import Path

import torch

import modelgen
from modelgen.derivation import model_file
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.policies import Hold
from solver.local.basin import find_basin, misfit, riccati_solutions
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.robots import load_robot
from solver.value.family import BasinFamily

ROOT = Path(__file__).parents[1]
CONTEXTS, SEED = 1000, 5
BOARD, ACROBOT = "examples/realaigym/pendubot_board.py", "examples/realaigym/acrobot_board.py"
FAMILIES = [  # a robot of the gallery or a model file, and what it is told: shares of the nominal values, or SI units
    ("pendulum", "0.5x:1.5x", "mass length"),
    ("cartpole", "0.5x:1.5x", "pole_mass pole_half_length"),
    ("cartpole_quanser", "0.8x:1.2x", "cart_mass pole_half_length cart_damping resistance motor_constant"),
    ("acrobot", "0.7x:1.3x", "upper_mass upper_length upper_centre lower_mass lower_centre"),
    ("realaigym_acrobot", "0.75x:1.25x", "upper_centre upper_inertia lower_mass lower_centre lower_inertia"),
    ("benchmarks/unseen/two_poles.py", "", "long_length=0.8:1.2 short_length=0.25:0.65"),
    (BOARD, "", "damping=-0.06:0.06 lower_moment=0.85x:1.2x lower_inertia=0.85x:1.15x"),
    (
        ACROBOT,
        "0.87x:1.13x",
        "upper_inertia lower_sum=-0.25:0.25 lower_difference=-0.25:0.2 margin=1.2:1.7 damping=-0.06:0.005",
    ),
    (BOARD, "", "damping=-0.06:0.1 lower_moment=0.85x:1.2x lower_inertia=0.85x:1.2x"),
    ("furuta", "0.5x:1.5x", "arm_length pendulum_mass pendulum_length resistance torque_constant"),
]


def given(robot: CompiledRobot, words: str, each: str) -> tuple[Given, ...]:
    """The told parameters. each: the range of all words that have none."""

    def end(name: str, text: str) -> float:
        nominal = robot.nominal_parameters[robot.parameter_names.index(name)]
        return float(text[:-1]) * nominal if text.endswith("x") else float(text)

    found = []
    for word in words.split():
        name, _, between = word.partition("=")
        found.append(Given(name, *(end(name, text) for text in (between or each).split(":"))))
    return tuple(found)


def measured(robot: str, each: str, words: str) -> tuple[float, float | str]:
    """By how much the cost of an error grows, and the largest share by which P(c) misses it, or why it is refused."""
    if robot.endswith(".py"):
        compiled = modelgen.compile(model_file.load(str(ROOT / robot)), dtype="float32")
    else:
        compiled = load_robot(robot, "cpu", None)
    problem = Problem(compiled, given=given(compiled, words, each))
    assert problem.context is not None
    c = problem.context.draw(CONTEXTS, torch.Generator().manual_seed(SEED))
    c = torch.cat([c, problem.context.corners()])
    found = riccati_solutions(problem, c.double())
    assert found is not None, "no regulator for some robot of the family"
    exact = torch.as_tensor(found[0])
    costs = (exact.diagonal(dim1=1, dim2=2) * problem.tangent_limits.double() ** 2).sum(1)
    growth = float(costs.max() / costs.min())
    try:
        basin = find_basin(problem, Hold(1.0))
    except SolverError as error:
        return growth, str(error)
    assert isinstance(basin, BasinFamily), "no basin"
    fitted = basin.at(torch.cat([problem.target.expand(len(c), -1), c], 1)).cost.double()
    return growth, float(misfit(problem, exact, fitted).max())


if __name__ == "__main__":
    print("| robot | told | P grows by | largest error |\n|---|---|---|---|")
    for name, each, words in FAMILIES:
        growth, error = measured(name, each, words)
        last = f"refused: {error}" if isinstance(error, str) else f"{100.0 * error:.2g} %"
        print(f"| {Path(name).stem} | {words} {each} | {growth:.2g} | {last} |", flush=True)
