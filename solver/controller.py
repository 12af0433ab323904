"""Policies of runs with an observer, for a robot that measures positions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from modelgen.errors import checked, suggestion
from solver.errors import SolverError
from solver.observer import Sensing, make_sensing, usual_counts
from solver.observer.observability import LONGEST, UnknownDelay, make_observer
from solver.plants.outcome import Controller
from solver.policy import NO_ROTATION, turned
from solver.problem import Problem
from solver.problem.domain import farthest, numbers_in
from solver.problem.parameters import Change, changed_parameters, require_told_names
from solver.runs.kinds import description_of, load_rollout_policy, names_to_estimate
from solver.runs.shipped import named

COMPLETE = 2  # first measurements, of which no entry may be missing: they give positions and velocities


class PositionController:
    """Policy of a run with an observer. A call maps measured positions, and rates if measured, to the input.

    A call is one control period. The observer assumes that every returned input is sent to the robot. A copy and a
    pickle begin as after `reset`.
    """

    def __init__(
        self,
        problem: Problem,
        act: Controller,
        sensing: Sensing,
        longest_delay: int | None,
        again: Callable[[], PositionController],
        estimate: Sequence[str] = (),
        known: torch.Tensor | None = None,
    ) -> None:
        # again: loads the same controller.
        self._act, self._problem, self._again = act, problem, again
        self._observer = make_observer(problem, sensing, longest_delay, estimate)
        if known is not None:
            self._observer.know(known)
        theta = problem.theta if known is None else known
        self._parameters = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
        self._names, self._measured = problem.robot.state_names[: sensing.entries], 0  # measurements since the start
        self._farthest = np.array(farthest(problem.robot.metadata)[: sensing.entries])

    def __reduce__(self) -> Any:
        return self._again, ()

    def __repr__(self) -> str:
        robot = self._problem.robot
        arguments, rate = ", ".join(self._names), robot.metadata.task.control_rate
        return f"<controller of {robot.name}: ({arguments}) -> {', '.join(robot.input_names)}, {rate:g} Hz>"

    def reset(self) -> None:
        """Forget all measurements and inputs. Call it before the robot starts again."""
        self._observer.reset()
        self._measured = 0

    def __call__(self, measured: ArrayLike | Mapping[str, float]) -> NDArray[np.float32]:
        """Input (m,) for the current measurement in SI units: positions (q,), or positions and rates (n,), or by name.

        An entry that is no number, or beyond 1e6 and ten times its limit, counts as not measured: the model alone moves
        the state on. Where too many are missing, the observer begins anew, and the input is the trim. Raises
        SolverError for another shape, and for a quaternion that is zero.
        """
        exact = numbers_in(measured, self._names, "the measurement").astype(np.float64)
        if exact.shape != (len(self._names),):
            raise SolverError(
                f"the measurement is {exact.tolist()}; give {len(self._names)} numbers: {', '.join(self._names)}"
            )
        exact = np.where(np.abs(exact) <= self._farthest, exact, math.nan)
        array = turned(exact, self._problem.geometry).astype(np.float32)
        for rotation in self._problem.geometry.rotations:
            if np.linalg.norm(array[rotation.quaternion]) <= NO_ROTATION:
                raise SolverError(f"the measured quaternion of `{rotation.name}` is zero, which is no rotation")
        if self._measured < COMPLETE and not np.isfinite(array).all():
            return self._begin_anew()
        x, theta = self._observer.estimate(torch.from_numpy(array)[None]), self._observer.parameters
        if not bool(torch.isfinite(x).all()):
            return self._begin_anew()
        self._measured += 1
        rows = self._problem.told(self._observer.upright(x), self._problem.theta if theta is None else theta)
        u = self._observer.compensate(self._act(rows)[0])
        self._observer.sent(u)
        result: NDArray[np.float32] = u[0].numpy()
        return result

    def _begin_anew(self) -> NDArray[np.float32]:
        """The trim, after a reset."""
        self.reset()
        trim: NDArray[np.float32] = self._problem.trim.numpy().copy()
        return trim

    @property
    def normalised_innovation(self) -> float:
        """Squared normalised innovation of the last measurement.

        Its mean is the number of measured values if the model is right, and larger if not. Raises SolverError before
        the first measurement.
        """
        if not self._measured:
            raise SolverError("there is no measurement since the start or `reset`; call the controller with one first")
        return float(self._observer.normalised_innovation[0])

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the robot in SI units: the last estimates, and the nominal values of the others."""
        found = self._observer.parameters
        return self._parameters if found is None else dict(zip(self._parameters, found[0].tolist(), strict=True))

    @property
    def delay(self) -> int:
        """Control periods from a measurement until its input acts: the given delay, or the most probable so far."""
        return int(self._observer.delay[0]) if isinstance(self._observer, UnknownDelay) else self._observer.delay


@checked(SolverError)
def load_controller(
    folder: str | PathLike[str],
    generated: str | None = None,
    reaction_periods: float | None = None,
    *,
    counts: Mapping[str, float] | None = None,
    delay: int = 0,
    longest_delay: int | None = None,
    rates: Mapping[str, float] | None = None,
    estimate: Sequence[str] = (),
    told: Mapping[str, Change] = MappingProxyType({}),
) -> PositionController:
    """Policy of a run with an observer, for a robot that measures positions, or positions and rates.

    counts: step of an encoder in the unit of its coordinate, by the name of the coordinate; by default a turn has 2048
    steps, and a length has steps of 0.025 mm. rates: standard deviation of the white noise of a measured rate in its
    unit, by the name of the state, for all rates or for none. delay: control periods from a measurement until its input
    acts. longest_delay: upper bound of an unknown delay, which the observer then estimates. estimate: parameters that
    the observer estimates too: names, `all`, or `told` for those that the policy is told. The policy is told their
    estimates in every call, held within the trained ranges. told: parameters that the policy and the observer are told,
    where the training gave some; the others are nominal. The estimate of a told parameter starts at its told value.
    Raises the errors of `load_policy`, and SolverError for an unknown name, a number out of range, or a parameter that
    the measurements do not show.
    """
    folder, generated = named(folder, generated)
    estimate, known = names_to_estimate(folder, estimate), None
    if estimate:
        problem, act, _ = load_rollout_policy(folder, generated, reaction_periods, contexts=True)
        require_told_names(folder, description_of(folder).told_among(problem.robot.parameter_names), told)
        known = changed_parameters(problem, told)
        if problem.context is not None:
            problem.context.require_within(known)
    else:
        problem, act, _ = load_rollout_policy(folder, generated, reaction_periods, told)
    names, steps = tuple(problem.tangent.names[: problem.robot.metadata.pose]), usual_counts(problem)
    _require("counts", counts or {}, names, "the positive step of the encoder")
    for name, step in (counts or {}).items():
        steps[names.index(name)] = step
    if longest_delay is not None and delay != 0:
        raise SolverError("delay and longest_delay are both given; give delay if it is known, or else longest_delay")
    longest = None if longest_delay is None else _periods("longest_delay", longest_delay)
    noise = None if rates is None else steps.new_tensor(_deviations(problem, rates))
    sensing = make_sensing(problem, steps, delay=_periods("delay", delay), rates=noise)
    options: dict[str, Any] = {
        "counts": counts,
        "delay": delay,
        "longest_delay": longest_delay,
        "rates": rates,
        "estimate": estimate,
    }
    again = partial(load_controller, folder, generated, reaction_periods, **options, told=dict(told))
    return PositionController(problem, act, sensing, longest, again, estimate, known)


def _deviations(problem: Problem, rates: Mapping[str, float]) -> list[float]:
    """Standard deviations of measured rates. Raises SolverError unless all rates, and no others, are named."""
    names = problem.robot.state_names[problem.robot.metadata.nq :]
    _require("rates", rates, names, "the positive standard deviation of its noise")
    if set(rates) != set(names):
        raise SolverError(
            f"rates has {', '.join(rates) or 'no name'}; give the standard deviations of {', '.join(names)}"
        )
    return [rates[name] for name in names]


def _require(argument: str, given: Mapping[str, float], names: tuple[str, ...], what: str) -> None:
    """Raises SolverError unless all names are in `names` and all numbers are finite and positive."""
    for name, value in given.items():
        if name not in names:
            raise SolverError(
                f"{argument} has unknown name '{name}'.{suggestion(name, names)} Names: {', '.join(names)}"
            )
        if not 0.0 < value < float("inf"):
            raise SolverError(f"{argument} of {name} is {value}; give {what}, in SI units")


def _periods(name: str, value: int) -> int:
    """Whole number of control periods. Raises SolverError with the argument's name for other values."""
    try:
        periods = operator.index(value)
    except TypeError:
        periods = -1
    if not 0 <= periods <= LONGEST:
        raise SolverError(f"{name} is {value!r}; give a whole number of control periods from 0 to {LONGEST}")
    return periods
