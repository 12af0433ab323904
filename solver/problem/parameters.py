"""Changed parameters of a plant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.problem.problem import Problem


@dataclass(frozen=True)
class Relative:
    """A parameter relative to its nominal value, which is multiplied by `factor`, or to which `added` is added."""

    factor: float = 1.0
    added: float = 0.0

    def __str__(self) -> str:
        return f"{self.added:+.9g}" if self.added else f"{self.factor:.9g}x"


#: A value in SI units, or one relative to the nominal value.
Change = float | Relative


def in_words(changes: Mapping[str, Change]) -> str:
    """The changes as the command line writes them: mass=1.3x length=+0.1 damping=0.2."""
    return " ".join(
        f"{name}={change if isinstance(change, Relative) else f'{change:.9g}'}" for name, change in changes.items()
    )


def left_all_bounds(problem: Problem, theta: Tensor) -> SolverError:
    """The error for rollouts at the parameters theta (p,) whose states are not finite."""
    values = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return SolverError(
        f"rollouts at {values} left all bounds; change the parameters by less, or raise the task's control_rate"
    )


def changed_parameters(problem: Problem, changes: Mapping[str, Change]) -> Tensor:
    """theta (p,) with some parameters changed from their nominal values.

    Raises SolverError for an unknown name, and for a parameter that is not finite, is zero and multiplied, or is no
    longer positive although its bounds are.
    """
    names = problem.robot.parameter_names
    theta = problem.theta.clone()
    for name, change in changes.items():
        if name not in names:
            raise SolverError(
                f"robot {problem.robot.name} has no parameter '{name}'.{suggestion(name, names)} Parameters: "
                f"{', '.join(names)}"
            )
        i = names.index(name)
        if isinstance(change, Relative):
            if problem.theta[i] == 0.0 and change.factor != 1.0:
                raise SolverError(f"{name} is 0 in the model, and so is any multiple of it; write {name}=+0.1")
            theta[i] = problem.theta[i] * change.factor + change.added
        else:
            theta[i] = change
    if not bool(torch.isfinite(theta).all()):
        raise SolverError(f"the changes {in_words(changes)} make parameters that are not finite: {theta.tolist()}")
    for name, number, lower in zip(names, theta.tolist(), problem.theta_bounds[:, 0].tolist(), strict=True):
        if lower > 0.0 >= number:
            raise SolverError(
                f"the changes {in_words(changes)} make {name} {number:g}, but its bounds in the model are positive; "
                f"write {name}=0.5x, or {name}=-0.05 to take 0.05 off the nominal value"
            )
    return theta
