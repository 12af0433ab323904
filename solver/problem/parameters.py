"""Changed parameters of a plant, from words such as `mass=1.3x`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.problem.problem import Problem


def left_all_bounds(problem: Problem, theta: Tensor) -> SolverError:
    """The error for rollouts at the parameters theta (p,) whose states are not finite."""
    values = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return SolverError(
        f"rollouts at {values} left all bounds; change the parameters by less, or raise the task's control_rate"
    )


def changed_parameters(problem: Problem, changes: list[str]) -> Tensor:
    """theta (p,) after changes such as `mass=1.3x` (times nominal), `mass=+0.05` (added) or `mass=1.1` (set)."""
    names = problem.robot.parameter_names
    theta = problem.theta.clone()
    changed = set[str]()
    for change in changes:
        name, separator, text = (part.strip() for part in change.partition("="))
        if name not in names:
            raise SolverError(
                f"robot {problem.robot.name} has no parameter '{name}'.{suggestion(name, names)} Parameters: "
                f"{', '.join(names)}"
            )
        if name in changed:
            raise SolverError(f"{name} is changed twice in {' '.join(changes)}; write its last value only")
        changed.add(name)
        i = names.index(name)
        try:
            number = float(text.removesuffix("x"))
        except ValueError:
            number = math.nan
        if not separator or not abs(number) < torch.finfo(theta.dtype).max:
            raise SolverError(f"cannot read '{change}'; write {name}=1.3x, {name}=+0.05 or {name}=1.1")
        if text.endswith("x") and problem.theta[i] == 0.0 and number != 1.0:
            raise SolverError(f"{name} is 0 in the model, and so is any multiple of it; add to it, as in {name}=+0.1")
        if text.endswith("x"):
            theta[i] = problem.theta[i] * number
        elif text[0] in "+-":
            theta[i] = problem.theta[i] + number
        else:
            theta[i] = number
    if not bool(torch.isfinite(theta).all()):
        raise SolverError(f"the changes {' '.join(changes)} leave no finite parameters: {theta.tolist()}")
    for name, number, lower in zip(names, theta.tolist(), problem.theta_bounds[:, 0].tolist(), strict=True):
        if lower > 0.0 >= number:
            raise SolverError(
                f"the changes {' '.join(changes)} make {name} {number:g}, positive by its bounds in the model; "
                f"write {name}=0.5x, or {name}=-0.05 to take 0.05 off the nominal value"
            )
    return theta
