"""Changed parameters of a plant, written as `mass=1.3x`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.problem.problem import Problem


def left_all_bounds(problem: Problem, theta: Tensor) -> SolverError:
    """Error to raise if rollouts at the parameters theta (p,) reach states that are not finite."""
    values = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return SolverError(
        f"rollouts at {values} reached states that are not finite; change the parameters by less, or raise the task's "
        "control_rate"
    )


def changed_parameters(problem: Problem, changes: list[str]) -> Tensor:
    """Parameters theta (p,) after changes: `mass=1.3x` multiplies the nominal value, `mass=+0.05` adds to it, and
    `mass=1.1` replaces it.

    Raises SolverError for a name that the robot lacks or that appears twice, for text that is not a number, and for a
    value that is not finite, or not positive where the model file's bounds are.
    """
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
            raise SolverError(f"{name} is 0 in the model, so a factor cannot change it; add to it, as in {name}=+0.1")
        if text.endswith("x"):
            theta[i] = problem.theta[i] * number
        elif text[0] in "+-":
            theta[i] = problem.theta[i] + number
        else:
            theta[i] = number
    if not bool(torch.isfinite(theta).all()):
        raise SolverError(f"the changes {' '.join(changes)} give parameters that are not finite: {theta.tolist()}")
    for name, number, lower in zip(names, theta.tolist(), problem.theta_bounds[:, 0].tolist(), strict=True):
        if lower > 0.0 >= number:
            raise SolverError(
                f"the changes {' '.join(changes)} set {name} to {number:g}, but its bounds in the model are positive; "
                f"write {name}=0.5x, or {name}=-0.05 to subtract 0.05 from the nominal value"
            )
    return theta
