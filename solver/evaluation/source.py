"""Where a policy for rollouts comes from: a run, a policy, an agent of Stable-Baselines3, or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.outcome import Controller
from solver.policy import Policy
from solver.problem import Problem
from solver.problem.domain import numbers_in
from solver.problem.parameters import Change, at_references
from solver.problem.robots import load_robot
from solver.runs import kinds
from solver.runs.kinds import RolloutPolicy
from solver.runs.shipped import named


@dataclass(frozen=True)
class PolicySource:
    """A policy that can be loaded for rollouts."""

    name: str
    load: Callable[[Mapping[str, Change], bool], RolloutPolicy]  # from told parameters, and whether with contexts
    told_names: tuple[str, ...] = ()  # parameters that it can be told
    references: tuple[str, ...] = ()  # those of them that are set-points
    told: Mapping[str, Change] = field(default_factory=dict)  # and what it is told unless the caller says otherwise
    reaction_periods: float | None = None
    untold: tuple[str, ...] = ()  # set-points of its robot that a function is not told, and its task has

    @property
    def estimated(self) -> tuple[str, ...]:
        """Parameters that it is told and that an observer can estimate."""
        return tuple(name for name in self.told_names if name not in self.references)

    def told_among(self, names: Sequence[str] | Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the names that it can be told."""
        return tuple(name for name in names if name in self.told_names)


def source_of(
    subject: Any, generated: str | None, reaction_periods: float | None, robot: str | CompiledRobot | None
) -> PolicySource:
    """The source of a policy. robot: of a function or an agent that does not know it.

    Raises SolverError for another object, and for a robot beside a run that has its own.
    """
    if isinstance(subject, Policy) and subject.origin is not None:
        folder, own, periods, told = subject.origin
        generated, periods = generated or own, periods if reaction_periods is None else reaction_periods
        return _stored(folder, generated, periods, told, robot)
    if isinstance(subject, str | PathLike):
        return _stored(*named(subject, generated), reaction_periods, {}, robot)
    if reaction_periods is not None:
        raise SolverError("reaction_periods is for runs of value iteration; leave it out for a function or an agent")
    make = _agent(subject, robot, generated) if hasattr(subject, "predict") else _function(subject, robot, generated)
    made = make({})
    return PolicySource(made.label, lambda values, _: make(values), untold=made.problem.robot.metadata.references)


def _stored(
    folder: str | Path,
    generated: str | None,
    periods: float | None,
    told: Mapping[str, Change],
    robot: str | CompiledRobot | None,
) -> PolicySource:
    if robot is not None:
        raise SolverError(f"robot is given, and {folder} has its own; leave robot out")

    def load(told: Mapping[str, Change], contexts: bool) -> RolloutPolicy:
        return kinds.load_rollout_policy(folder, generated, periods, told, contexts)

    run = kinds.description_of(folder)
    return PolicySource(str(folder), load, run.told_names, run.reference_names, told, periods)


def _robot_of(subject: Any, robot: str | CompiledRobot | None, generated: str | None) -> CompiledRobot:
    """Float32 kernels of the robot of a function."""
    robot = getattr(subject, "robot", None) if robot is None else robot
    if isinstance(robot, CompiledRobot):
        generated, robot = str(robot.folder.parent), robot.name
    if not isinstance(robot, str):
        raise SolverError(f"it is unknown which robot {subject!r} controls; name it, for example with robot='pendulum'")
    return load_robot(robot, "cpu", generated)


#: Makes a policy with the problem of the robot at some references.
Make = Callable[[Mapping[str, Change]], RolloutPolicy]


def _function(subject: Any, robot: str | CompiledRobot | None, generated: str | None) -> Make:
    """A function that maps states (N, n) in float32 of NumPy to inputs (N, m)."""
    if not callable(subject):
        raise SolverError(
            f"{subject!r} is no policy; give a run folder, the name of a shipped policy, a run, a policy, an agent of "
            "Stable-Baselines3, or a function that maps states (N, n) to inputs (N, m)"
        )
    compiled = _robot_of(subject, robot, generated)
    label = getattr(subject, "__name__", type(subject).__name__)

    def inputs(x: Tensor) -> Any:
        return subject(x.numpy().copy())

    def make(references: Mapping[str, Change]) -> RolloutPolicy:
        problem = at_references(compiled, references)
        return RolloutPolicy(problem, _controller(problem, inputs, label), f"{compiled.name}, {label}")

    return make


def _agent(subject: Any, robot: str | CompiledRobot | None, generated: str | None) -> Make:
    """An agent of Stable-Baselines3, called with the observations of its environment in every control period."""
    from solver.plants.episodes import features

    environment = _environment(subject)
    if robot is None and environment is not None:
        problem, observation = environment.problem, environment.observation
        if problem.context is not None or environment.counts is not None:
            raise SolverError("the agent observes encoders or given parameters; give a function of the states instead")
    else:
        problem = Problem(_robot_of(subject, robot, generated))
        size = subject.observation_space.shape[0]
        sizes = {features(problem, problem.target[None]).shape[1]: "features", len(problem.target): "state"}
        if size not in sizes:
            raise SolverError(
                f"the agent has observations of {size} numbers, and {problem.robot.name} has "
                f"{' or '.join(f'{size} ({name})' for size, name in sizes.items())}"
            )
        limited = bool(np.all(np.abs(subject.observation_space.high) <= 1.0))
        observation = "features" if limited else sizes[size]
    label = type(subject).__name__
    normalised = subject.get_vec_normalize_env() if hasattr(subject, "get_vec_normalize_env") else None

    def inputs(x: Tensor) -> Any:
        seen = (features(problem, x) if observation == "features" else x).numpy()
        seen = seen if normalised is None else normalised.normalize_obs(seen)
        return problem.input_of(torch.from_numpy(subject.predict(seen, deterministic=True)[0]).clamp(-1.0, 1.0))

    def make(references: Mapping[str, Change]) -> RolloutPolicy:
        task = at_references(problem.robot, references)
        return RolloutPolicy(task, _controller(task, inputs, label), f"{task.robot.name}, {label}")

    return make


def _environment(agent: Any) -> Any:
    """The robot's environment in the wrappers of an agent's environment; None for an agent without one."""
    environment = agent.get_env() if hasattr(agent, "get_env") else None
    if environment is None:
        return None
    own = getattr(environment, "environments", None)
    found = own if own is not None else environment.get_attr("unwrapped")[0]
    return found if hasattr(found, "episodes") else None


def _controller(problem: Problem, inputs: Callable[[Tensor], Any], label: str) -> Controller:
    """Controller whose inputs are clipped to the limits."""

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        given = numbers_in(inputs(x), problem.robot.input_names, f"the result of {label}")
        u = torch.from_numpy(given.astype(np.float32))  # a copy: JAX gives arrays that are read-only
        shape = (len(x), len(problem.input_limits))
        if u.shape != shape:
            raise SolverError(
                f"{label} returned an array of shape {tuple(u.shape)} for states {tuple(x.shape)}; {shape} is needed"
            )
        lost = torch.isfinite(x).all(1) & ~torch.isfinite(u).all(1)
        if bool(lost.any()):
            where = x[lost][0].tolist()
            raise SolverError(f"{label} returned {u[lost][0].tolist()} at the state {where}; return finite inputs")
        u = torch.minimum(torch.maximum(u, problem.lower_input), problem.upper_input)
        return u, problem.action_cost.cost(u)

    return act
