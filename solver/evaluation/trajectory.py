"""One rollout of a policy from a state: `solver.simulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from modelgen.errors import checked, suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.evaluation import Circumstances, held_names, require_seconds, roll_out
from solver.evaluation.source import source_of
from solver.plants import PlantName
from solver.plants.outcome import Rollouts
from solver.policy import NO_ROTATION
from solver.problem import Problem
from solver.problem.domain import by_name, numbers_in
from solver.problem.parameters import Change, names_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BESIDE = 1e-4  # of an entry of a quaternion: a smaller change by the limit of its rotation is rounding


@dataclass(frozen=True)
class Trajectory:
    """States and inputs of a robot under a policy, at the control rate."""

    label: str
    state_names: tuple[str, ...]
    input_names: tuple[str, ...]
    t: NDArray[np.float64]  # (T + 1,) s
    x: NDArray[np.float32]  # (T + 1, n) true states in SI units
    u: NDArray[np.float32]  # (T, m) inputs of the policy, each held for a control period
    state_reward: float  # minus the integral of the state cost
    action_reward: float  # minus the integral of the action cost
    is_success: bool  # whether it ends at the target and at rest, as in `solver evaluate`
    parameters: dict[str, float]  # of the plant
    _drawn: tuple[Problem, Rollouts] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        reached = "success" if self.is_success else "no success"
        return f"<trajectory of {self.label}: {self.t[-1]:g} s, return {self.total_reward:.2f}, {reached}>"

    @property
    def total_reward(self) -> float:
        """The return: minus the integral of the cost."""
        return self.state_reward + self.action_reward

    def plot(self) -> Figure:
        """Figure of every state and input over time."""
        from solver.evaluation.plots import over_time

        return over_time(*self._drawn, self.label, "success" if self.is_success else "no success")

    def to_dataframe(self) -> Any:
        """`pandas.DataFrame` with a row for each control period: time (the index), states, inputs.

        The last row has no inputs. Raises SolverError without pandas.
        """
        try:
            import pandas
        except ImportError as error:
            raise SolverError("to_dataframe needs pandas, which is not installed: pip install pandas") from error
        inputs = np.vstack([self.u, np.full((1, self.u.shape[1]), np.nan, np.float32)])
        columns = [*self.state_names, *self.input_names]
        return pandas.DataFrame(np.hstack([self.x, inputs]), columns=columns, index=pandas.Index(self.t, name="time"))


@checked(SolverError)
def simulate(
    policy: Any,
    x0: ArrayLike | Mapping[str, float] | None = None,
    seconds: float | None = None,
    *,
    robot: str | CompiledRobot | None = None,
    parameters: Mapping[str, Change] = MappingProxyType({}),
    plant: PlantName = "nominal",
    harsh: Sequence[str] = (),
    observer: bool = False,
    longest_delay: int | None = None,
    estimate: Sequence[str] = (),
    reaction_periods: float | None = None,
    seed: int | None = None,
    blind: bool = False,
    generated: str | None = None,
) -> Trajectory:
    """Trajectory of a robot under a policy from one state.

    policy: anything that `solver.evaluate` takes. x0: the state (n,), or some states by name, with the others at the
    target; by default the mean of the task's starts. seconds: by default the task's horizon. The other arguments are
    those of `solver.evaluate`.

    Raises SolverError as `solver.evaluate` does, and for a state or a time that is not possible.
    """
    source = source_of(policy, generated, reaction_periods, robot)
    harsh, estimate = names_in(harsh), names_in(estimate)
    conditions = Circumstances(parameters, plant, harsh, observer, longest_delay, estimate, seed, blind)

    def begin(problem: Problem, theta: Tensor, believed: Tensor, seed: int) -> tuple[Tensor, Tensor]:  # noqa: ARG001
        require_seconds(problem, seconds)
        return problem.told(start_state(problem, x0, believed)[None], believed), theta

    found = roll_out(source, conditions, begin, seconds)
    problem, result = found.problem, found.result
    n = len(problem.target)
    return Trajectory(
        label=found.label,
        state_names=problem.robot.state_names,
        input_names=problem.robot.input_names,
        t=np.arange(len(result.x)) / problem.robot.metadata.task.control_rate,
        x=result.x[:, 0, :n].numpy(),
        u=result.u[:, 0].numpy(),
        state_reward=float(result.state_reward[0]),
        action_reward=float(result.action_reward[0]),
        is_success=bool(result.success[0]),
        parameters=dict(zip(problem.robot.parameter_names, found.theta.tolist(), strict=True)),
        _drawn=(problem, result),
    )


def start_state(problem: Problem, x0: ArrayLike | Mapping[str, float] | None, believed: Tensor) -> Tensor:
    """The state (n,) from one of the forms of `simulate`, with quaternions of length one. believed: (p,), of which what
    the policy is told moves start and target."""
    names, robot = problem.robot.state_names, problem.robot
    if problem.context is not None:
        robot = robot.with_nominal(problem.context.known(believed[None], problem.theta)[0].tolist())
    task = robot.metadata.task
    if x0 is None:
        return torch.tensor(task.start_mean)
    if some := by_name(x0):
        named = dict(zip(names, task.target, strict=True))
        for name in some:
            if name not in named:
                raise SolverError(
                    f"the start names no state: {name}.{suggestion(str(name), names)} States: {', '.join(names)}"
                )
        x0 = named | some
    x = torch.from_numpy(numbers_in(x0, names, "the start").astype(np.float32))
    if x.shape != (len(names),) or not bool(torch.isfinite(x).all()):
        raise SolverError(f"the start is {x.tolist()}; give {len(names)} finite numbers: {', '.join(names)}")
    for rotation in problem.geometry.rotations:
        if not float(x[rotation.quaternion].norm()) > NO_ROTATION:
            raise SolverError(f"the quaternion of `{rotation.name}` in the start is zero, which is no rotation")
    problem.geometry.normalise(x[None])
    moved = (problem.confine(x[None])[0] - x).abs() > torch.where(problem.clipped, 0.0, BESIDE)
    moved[problem.continuous] = False
    if beyond := held_names(problem, moved.tolist()):
        raise SolverError(
            f"the start has {', '.join(beyond)} beyond the limit of the robot; give a state within its limits"
        )
    return x
