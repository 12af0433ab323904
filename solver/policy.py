"""Trained policies and value functions as plain NumPy functions, for tests on a robot and for other programs."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.observer.sensing import Sensing, make_sensing, usual_counts
from solver.observer.unknown_delay import UnknownDelay, make_observer
from solver.plants.rollouts import Controller
from solver.problem.problem import FARTHEST, Problem
from solver.runs import kinds
from solver.training.solution import load_solution
from solver.value.frozen import FrozenValue


class Policy:
    """Policy of a run as a function of arrays."""

    def __init__(self, act: Controller, robot: CompiledRobot, label: str) -> None:
        self._act, self.robot, self.label = act, robot, label
        self.state_names, self.input_names = robot.state_names, robot.input_names
        self.control_rate = robot.metadata.task.control_rate  # Hz
        self.limits = np.asarray(robot.input_limits, np.float64)  # (m,) half of their ranges

    def __repr__(self) -> str:
        inputs = ", ".join(f"{entry.name} {entry.range} {entry.unit}" for entry in self.robot.metadata.inputs)
        return f"<policy {self.label}: ({', '.join(self.state_names)}) -> {inputs}, {self.control_rate:g} Hz>"

    def __call__(self, x: ArrayLike) -> NDArray[np.float32]:
        """Inputs (N, m) or (m,) within the limits, for states (N, n) or (n,) in SI units.

        The state of an entry beyond 1e6 is that with 1e6; a state that is not finite gives NaN. Raises SolverError for
        another shape.
        """
        states, single = _states(x, self.state_names)
        u: NDArray[np.float32] = self._act(states)[0].numpy()
        return u[0] if single else u


class Value:
    """Value function of a run as a function of arrays."""

    def __init__(self, value: FrozenValue, robot: CompiledRobot) -> None:
        self._value, self.robot, self.state_names = value, robot, robot.state_names

    def __repr__(self) -> str:
        return f"<value function of {self.robot.name}: ({', '.join(self.state_names)})>"

    def __call__(self, x: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """V (N,) and dV/dx (N, n) at states (N, n); a number and (n,) at one state (n,).

        Raises SolverError for another shape.
        """
        states, single = _states(x, self.state_names)
        value, gradient = (result.numpy() for result in self._value(states))
        return (value[0], gradient[0]) if single else (value, gradient)


def _states(x: ArrayLike, names: tuple[str, ...]) -> tuple[torch.Tensor, bool]:
    """States (N, n) as a tensor, and whether they were one state (n,). Raises SolverError for another shape."""
    try:
        given = np.asarray(x.detach().cpu() if isinstance(x, torch.Tensor) else x)
        if given.dtype.kind not in "biuf":
            raise TypeError(f"its dtype is {given.dtype}")
        exact = np.asarray(given, np.float64)
        near = np.where(np.isfinite(exact), np.clip(exact, -FARTHEST, FARTHEST), np.nan)
        array = np.array(near, dtype=np.float32, order="C")
    except (TypeError, ValueError, RuntimeError) as error:
        raise SolverError(f"x is no array of real numbers: {error}; give (N, {len(names)}) floats") from error
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise SolverError(
            f"x has shape {array.shape}; give one state ({len(names)},) or one row a sample (N, {len(names)}), columns "
            f"{', '.join(names)}"
        )
    return torch.from_numpy(np.atleast_2d(array)), array.ndim == 1


def load_policy(
    folder: str | Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
) -> Policy:
    """Load the policy of a run folder, of any kind of run: `policy(x)` maps (N, n) to (N, m).

    reaction_periods: control periods that an input acts before the next one can, by default as in training; 0 is the
    closed form. Errors are those of
    `solver.runs.kinds.load_controller`.
    """
    problem, act, label = kinds.load_controller(folder, generated, reaction_periods)
    return Policy(act, problem.robot, label)


class PositionController:
    """The policy of a run with the observer's memory: positions, and rates where they are measured, in; input out; one
    control period a call.

    The observer takes every input that a call returns as sent to the robot.
    """

    def __init__(self, problem: Problem, act: Controller, sensing: Sensing, longest_delay: int | None) -> None:
        self._act, self._observer = act, make_observer(problem, sensing, longest_delay)
        self._names = problem.robot.state_names[: len(sensing.deviation)]

    def reset(self) -> None:
        """Forget the measurements and inputs so far; call it before the robot is started again."""
        self._observer.reset()

    def __call__(self, measured: ArrayLike) -> NDArray[np.float32]:
        """The input (m,) for what is measured now, in SI units: positions (q,), or with rates (n,). Raises SolverError
        for another shape and for numbers that are not finite."""
        array = np.array(measured, dtype=np.float32)
        if array.shape != (len(self._names),) or not np.isfinite(array).all():
            raise SolverError(
                f"the measurement is {array.tolist()}; give {len(self._names)} finite numbers: {', '.join(self._names)}"
            )
        u = self._observer.compensate(self._act(self._observer.estimate(torch.from_numpy(array)[None]))[0])
        self._observer.sent(u)
        result: NDArray[np.float32] = u[0].numpy()
        return result

    @property
    def normalised_innovation(self) -> float:
        """Of the last measurement, squared: as many as its numbers on average where the robot is as the model says,
        more where it is not."""
        return float(self._observer.normalised_innovation[0])

    @property
    def delay(self) -> int:
        """Control periods from a measurement until its input acts: those stated, or the likeliest so far."""
        return int(self._observer.delay[0]) if isinstance(self._observer, UnknownDelay) else self._observer.delay


def load_controller(
    folder: str | Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
    *,
    counts: Mapping[str, float] | None = None,
    delay: int = 0,
    longest_delay: int | None = None,
    rates: Mapping[str, float] | None = None,
) -> PositionController:
    """Load the policy of a run with an observer, for a robot that measures positions only, or rates too.

    counts: the smallest step of an encoder, in the unit of its coordinate, by the coordinate's name; 2048 counts a turn
    or 0.025 mm where none is given. rates: where they are measured, the standard deviation of the white noise of each
    of them, in its unit, by the state's name. delay: whole control periods from a measurement until its input acts.
    longest_delay: where the delay is not known, the most that it may be; the observer then finds it. Errors are those
    of `load_policy`, and SolverError for a coordinate or a number that cannot be.
    """
    problem, act, _ = kinds.load_controller(folder, generated, reaction_periods)
    names, steps = problem.robot.metadata.coordinates, usual_counts(problem)
    _require("counts", counts or {}, names, "the positive step of the encoder")
    for name, step in (counts or {}).items():
        steps[names.index(name)] = step
    noise = None
    if rates is not None:
        names = problem.robot.state_names[len(names) :]
        _require("rates", rates, names, "the positive standard deviation of its noise")
        if set(rates) != set(names):
            raise SolverError(
                f"rates has {', '.join(rates) or 'no name'}; give the deviation of each: {', '.join(names)}"
            )
        noise = steps.new_tensor([rates[name] for name in names])
    if longest_delay is not None and delay != 0:
        raise SolverError("delay states it and longest_delay asks to find it; give one of them")
    longest = None if longest_delay is None else _periods("longest_delay", longest_delay)
    sensing = make_sensing(problem, steps, delay=_periods("delay", delay), rates=noise)
    return PositionController(problem, act, sensing, longest)


def _require(argument: str, given: Mapping[str, float], names: tuple[str, ...], what: str) -> None:
    """Raise SolverError unless all names are among `names`, and all numbers finite and positive."""
    for name, value in given.items():
        if name not in names:
            raise SolverError(f"{argument} has '{name}', which is none of {', '.join(names)}.{suggestion(name, names)}")
        if not 0.0 < value < float("inf"):
            raise SolverError(f"{argument} of {name} is {value}; give {what}, in SI units")


def _periods(name: str, value: int) -> int:
    """A whole number of control periods. Raises SolverError, with the argument's name, for anything else."""
    try:
        periods = operator.index(value)
    except TypeError:
        periods = -1
    if periods < 0:
        raise SolverError(f"{name} is {value!r}; give a whole number of control periods, 0 or more")
    return periods


def load_value(folder: str | Path, generated: str | None = None) -> Value:
    """Load the value function of a run folder: `value(x)` gives V (N,) and dV/dx (N, n).

    Raises SolverError for a folder without a run, a damaged checkpoint, another artifact, and a kind of run without a
    value function.
    """
    solution = load_solution(folder, generated)
    return Value(solution.value, solution.problem.robot)
