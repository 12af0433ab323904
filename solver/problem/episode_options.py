"""Options of the episodes of an environment, checked for every framework."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Literal, get_args

from solver.errors import SolverError
from solver.problem.problem import Problem, StartDistribution

Observation = Literal["features", "state"]


def episode_actions(
    problem: Problem, start: StartDistribution, randomize: float, seconds: float | None, hold: int
) -> int:
    """Number of actions of an episode; see `solver.gym.environment.Episodes`.

    Raises SolverError for an argument out of range.
    """
    if start not in get_args(StartDistribution):
        raise SolverError(f"start is {start!r}; choices are {', '.join(get_args(StartDistribution))}")
    if not is_number(randomize) or not 0.0 <= randomize < 1.0:
        raise SolverError(f"randomize is {randomize!r}; give a share of the nominal parameters, in [0, 1)")
    task = problem.robot.metadata.task
    length = task.horizon if seconds is None else seconds
    if not is_number(length) or not 0.0 < length < math.inf:
        raise SolverError(f"seconds is {seconds!r}; give a positive length of an episode")
    periods = round(length * task.control_rate)
    if not is_whole(hold) or not 1 <= hold <= periods:
        raise SolverError(
            f"hold is {hold!r}, and an episode has {periods} control periods of {problem.control_step:g} s; give "
            "hold an integer from 1 to the number of control periods"
        )
    return math.ceil(periods / hold)


def require_observation(observation: object) -> None:
    """Raises SolverError unless the observation is one that environments make."""
    if observation not in get_args(Observation):
        raise SolverError(f"observation is {observation!r}; choices are {', '.join(get_args(Observation))}")


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Whether a value is an integer, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)
