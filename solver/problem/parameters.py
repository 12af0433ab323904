"""Changed parameters of a plant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.problem.problem import Problem


@dataclass(frozen=True)
class Relative:
    """A parameter relative to its nominal value: nominal * factor + added."""

    factor: float = 1.0
    added: float = 0.0

    def __str__(self) -> str:
        return f"{self.added:+.9g}" if self.added else f"{self.factor:.9g}x"


#: A value in SI units, or one relative to the nominal value.
Change = float | Relative


def in_words(changes: Mapping[str, Change]) -> str:
    """Changes in the form of the command line: mass=1.3x length=+0.1 damping=0.2."""
    return " ".join(
        f"{name}={change if isinstance(change, Relative) else f'{change:.9g}'}" for name, change in changes.items()
    )


def left_all_bounds(problem: Problem, theta: Tensor) -> SolverError:
    """Error to raise if rollouts at the parameters theta (p,) reach states that are not finite."""
    values = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return SolverError(
        f"rollouts at {values} reached states that are not finite; change the parameters by less, or raise the task's "
        "control_rate"
    )


def changed_parameters(problem: Problem, changes: Mapping[str, Change]) -> Tensor:
    """Parameters theta (p,) with some of them changed from their nominal values.

    Raises SolverError for an unknown name, a change that is no number, a factor of a parameter that is 0, and a value
    that is not finite, or not positive although the bounds of the model file are.
    """
    names = problem.robot.parameter_names
    theta = problem.theta.clone()
    for name, change in changes.items():
        if name not in names:
            raise SolverError(
                f"robot {problem.robot.name} has no parameter '{name}'.{suggestion(name, names)} Parameters: "
                f"{', '.join(names)}"
            )
        if not isinstance(change, Real | Relative):
            raise SolverError(
                f"{name} is {change!r}; give a number in SI units, solver.Relative(1.3) for 1.3 times the model's, "
                "or solver.Relative(added=0.1) to add to it"
            )
        i = names.index(name)
        number = max(abs(change.factor), abs(change.added)) if isinstance(change, Relative) else abs(change)
        if not number < torch.finfo(theta.dtype).max:
            raise SolverError(f"the change {in_words({name: change})} is not a finite number in float32")
        if isinstance(change, Relative):
            if problem.theta[i] == 0.0 and change.factor != 1.0:
                raise SolverError(f"{name} is 0 in the model, so a factor cannot change it; write {name}=+0.1")
            theta[i] = problem.theta[i] * float(change.factor) + float(change.added)
        else:
            theta[i] = float(change)
    if not bool(torch.isfinite(theta).all()):
        raise SolverError(f"the changes {in_words(changes)} give parameters that are not finite: {theta.tolist()}")
    for name, number, lower in zip(names, theta.tolist(), problem.theta_bounds[:, 0].tolist(), strict=True):
        if lower > 0.0 >= number:
            raise SolverError(
                f"the changes {in_words(changes)} set {name} to {number:g}, but its bounds in the model are positive; "
                f"write {name}=0.5x, or {name}=-0.05 to subtract 0.05 from the nominal value"
            )
    return theta
