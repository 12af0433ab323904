"""Trained policies and value functions as NumPy functions, for tests on a robot and for other programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from modelgen.errors import checked
from modelgen.loader import CompiledRobot
from modelgen.metadata import Metadata
from solver.errors import SolverError
from solver.plants.outcome import Controller
from solver.problem.domain import by_name, farthest, numbers_in, require_states
from solver.problem.geometry import TURN, Geometry
from solver.problem.parameters import Change, is_number, require_told_names
from solver.runs import kinds
from solver.runs.kinds import description_of
from solver.runs.shipped import named, run_folder
from solver.training.gain import MakeGain, SmoothPolicy, differentiable
from solver.training.solution import Solution, load_solution
from solver.value.frozen import FrozenValue

if TYPE_CHECKING:
    from solver.jax.solution import JaxSolution


NO_ROTATION = 0.5  # a shorter quaternion is no rotation
MOST_TOLD = 64  # combinations of told values whose policies are kept in memory
InJax = Callable[[str], "JaxSolution"]  # from float32 or float64 to functions of JAX
Origin = tuple[str, str | None, float | None, Mapping[str, Change]]
Values = tuple[tuple[str, float], ...]  # of told parameters, by name


class Tellable:
    """A function of states of a run that a call can tell parameters: `told` are their names."""

    def __init__(
        self,
        robot: CompiledRobot,
        label: str,
        in_jax: InJax | None,
        told: tuple[str, ...],
        tell: Callable[[Values], Any] | None,
        origin: Origin | None,
    ) -> None:
        # in_jax: makes its form in JAX. tell: makes that of some values of `told`. origin: arguments of `load_policy`
        # that give it again. Each is None where it has none.
        self.robot, self.label, self.told, self.state_names = robot, label, told, robot.state_names
        self.origin = origin
        self._in_jax, self._read = in_jax, _States(robot.metadata, told)
        self._tell = None if tell is None else lru_cache(MOST_TOLD)(tell)

    @property
    def _stored(self) -> tuple[str, str | None, float | None, dict[str, Change]]:
        """The origin. It is loaded from there where it is pickled or copied, for example for another process."""
        if self.origin is None:
            raise SolverError(f"{self.label} has no run folder, so it cannot be pickled or copied")
        folder, generated, periods, told = self.origin
        return folder, generated, periods, dict(told)

    def _told_that(self, told: Mapping[str, Any]) -> Any:
        """The function of the robot with some values of told parameters."""
        require_told_names(self.label, self.told, told)
        values = {}
        for name, given in told.items():
            value = given.item() if getattr(given, "ndim", None) == 0 else given  # of NumPy, Torch or JAX
            if not is_number(value) or not math.isfinite(value):
                raise SolverError(f"{name} is {given!r}; give one finite number, in SI units")
            values[name] = float(value)
        assert self._tell is not None
        return self._tell(tuple(sorted(values.items())))


class Policy(Tellable):
    """Policy of a run as a function of arrays, at `control_rate` (Hz).

    `state_names` and `input_names` are those of x and u, `limits` (m,) half of the ranges of the inputs, `told` the
    parameters that a call can tell it, and `robot` its robot.
    """

    def __init__(
        self,
        act: Controller,
        robot: CompiledRobot,
        label: str,
        in_jax: InJax | None = None,
        told: tuple[str, ...] = (),
        tell: Callable[[Values], Policy] | None = None,
        origin: Origin | None = None,
        gain: MakeGain | None = None,
    ) -> None:
        # gain: makes its derivative, None where it has none.
        super().__init__(robot, label, in_jax, told, tell, origin)
        self._act, self._make_gain, self.input_names = act, gain, robot.input_names
        self.control_rate = robot.metadata.task.control_rate  # Hz
        self.limits = np.asarray(robot.input_limits, np.float64)  # (m,) half of their ranges

    def __reduce__(self) -> Any:
        return load_policy, self._stored

    def __repr__(self) -> str:
        inputs = ", ".join(f"{entry.name} {entry.range} {entry.unit}" for entry in self.robot.metadata.inputs)
        arguments = ", ".join((*self.state_names, *self.told))
        return f"<policy {self.label}: ({arguments}) -> {inputs}, {self.control_rate:g} Hz>"

    @overload
    def __call__(self, x: torch.Tensor, **told: float) -> torch.Tensor: ...
    @overload
    def __call__(self, x: ArrayLike | Mapping[str, ArrayLike], **told: float) -> NDArray[np.float32]: ...

    def __call__(self, x: Any, **told: float) -> Any:
        """Inputs (N, m) or (m,) within the limits at states (N, n) or (n,), in SI units.

        told: values of parameters that the training gave, in SI units; the others are nominal.
        Lists and NumPy arrays give float32 arrays of NumPy, and so do states by name (a mapping, or of pandas). Torch
        tensors give float32 tensors on their device, with a gradient, also under `vmap`, `jacrev` and `jacfwd` of
        `torch.func`. JAX arrays give JAX arrays, also under `jit`, `vmap` and `grad`. An entry beyond 1e6, or ten times
        its limit if that is more, counts as that; a state that is not finite, or has a quaternion of zero, gives NaN.
        Raises SolverError for another shape, for a parameter that the policy cannot be told, and for a derivative of a
        policy without a value function, or within a transformation of JAX.
        """
        if told:
            return self._told_that(told)(x)
        if (functions := _of_jax(x, self._in_jax)) is not None:
            return functions.policy(x)
        if isinstance(x, torch.Tensor):
            require_states(tuple(x.shape), self.state_names)
            return differentiable(x, self._inputs, self._gain) if x.is_floating_point() else self._inputs(x)
        return self._inputs(x).numpy()

    def _inputs(self, x: ArrayLike) -> torch.Tensor:
        """Inputs at one state or many, on the device of a tensor."""
        states, single = self._read(x)
        u = self._act(states)[0]
        u = u[0] if single else u
        return u.to(x.device) if isinstance(x, torch.Tensor) else u

    def _gain(self) -> SmoothPolicy:
        """Derivative of the policy. Raises SolverError for a policy without a value function."""
        if self._make_gain is None:
            raise SolverError(f"{self.label} has no value function, and so no derivative; give it a tensor without one")
        return self._make_gain()


class Value(Tellable):
    """Value function of a run as a function of arrays. `told` are the parameters that a call can tell it."""

    def __init__(
        self,
        value: FrozenValue,
        robot: CompiledRobot,
        label: str,
        in_jax: InJax | None = None,
        told: tuple[str, ...] = (),
        tell: Callable[[Values], Value] | None = None,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(robot, label, in_jax, told, tell, origin)
        self._value = value

    def __reduce__(self) -> Any:
        folder, generated, _, told = self._stored
        return load_value, (folder, generated, told)

    def __repr__(self) -> str:
        return f"<value function of {self.label}: ({', '.join((*self.state_names, *self.told))})>"

    @overload
    def __call__(self, x: torch.Tensor, **told: float) -> tuple[torch.Tensor, torch.Tensor]: ...
    @overload
    def __call__(self, x: ArrayLike | Mapping[str, ArrayLike], **told: float) -> tuple[Any, NDArray[np.float32]]: ...

    def __call__(self, x: Any, **told: float) -> Any:
        """V (N,) and dV/dx (N, n) at states (N, n); a float and (n,) at one state (n,).

        told, and the kind of the results: as in `Policy`. Raises SolverError for another shape, for a parameter that V
        cannot be told, and for a tensor that requires a gradient.
        """
        if told:
            return self._told_that(told)(x)
        if (functions := _of_jax(x, self._in_jax)) is not None:
            return functions.value(x), functions.gradient(x)
        if isinstance(x, torch.Tensor) and x.requires_grad:
            raise SolverError("x requires a gradient, which does not flow through V; give x.detach(), and use dV/dx")
        states, single = self._read(x)
        value, gradient = self._value(states)
        if isinstance(x, torch.Tensor):
            value, gradient = value.to(x.device), gradient.to(x.device)
            return (value[0], gradient[0]) if single else (value, gradient)
        return (float(value[0]), gradient[0].numpy()) if single else (value.numpy(), gradient.numpy())


def _of_jax(x: Any, in_jax: InJax | None) -> JaxSolution | None:
    """The functions of JAX for an array of JAX; None for other arrays, and for a policy that is called by NumPy's.

    Raises SolverError within a transformation of JAX for a policy that has no form there.
    """
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(x, jax.Array):
        return None
    if in_jax is not None:
        return in_jax("float64" if x.dtype == np.float64 else "float32")
    if isinstance(x, jax.core.Tracer):
        raise SolverError("a policy without a value function has no form in JAX; call it outside of jit, vmap and grad")
    return None


def _forms_in_jax(solution: Solution) -> InJax:
    """Makes the functions of a solution in JAX."""

    @cache
    def in_jax(dtype: str) -> JaxSolution:
        from solver.jax.solution import make

        return make(solution, dtype)

    return in_jax


class _States:
    """Reads states of a robot from arrays."""

    def __init__(self, robot: Metadata, told: tuple[str, ...]) -> None:
        self._told = told  # parameters, which are no states
        self.names, self._geometry = tuple(state.name for state in robot.states), Geometry.of(robot)
        self._farthest = np.array(farthest(robot))

    def __call__(self, x: ArrayLike) -> tuple[torch.Tensor, bool]:
        """States (N, n) as a tensor, with quaternions of length one, and whether they were one state (n,).

        A quaternion of zero is NaN. Raises SolverError for another shape, and for a told parameter among names.
        """
        if lost := [name for name in self._told if name in by_name(x)]:
            raise SolverError(f"x has {lost[0]}, which is no state; give it beside x, as in policy(x, {lost[0]}=0.1)")
        exact = numbers_in(x.detach() if isinstance(x, torch.Tensor) else x, self.names).astype(np.float64)
        require_states(exact.shape, self.names)
        near = np.where(np.isfinite(exact), np.clip(exact, -self._farthest, self._farthest), np.nan)
        array = np.atleast_2d(np.array(turned(near, self._geometry), dtype=np.float32, order="C"))
        for rotation in self._geometry.rotations:
            array[~array[:, rotation.quaternion].any(1)] = np.nan
        states = torch.from_numpy(array)
        self._geometry.normalise(states)
        return states, exact.ndim == 1


def turned(exact: NDArray[np.float64], geometry: Geometry) -> NDArray[np.float64]:
    """The first k entries (..., k) of states, with continuous angles in [-pi, pi]: float32 has no digits for turns."""
    wraps = geometry.continuous.numpy()[: exact.shape[-1]]
    return np.where(wraps, exact - TURN * np.round(exact / TURN), exact)


@checked(SolverError)
def load_policy(
    folder: str | PathLike[str],
    generated: str | None = None,
    reaction_periods: float | None = None,
    told: Mapping[str, Change] = MappingProxyType({}),
) -> Policy:
    """Policy of a run of any kind: `policy(x)` maps (N, n) to (N, m).

    folder: of the run, or the name of a shipped policy. generated: folder of artifacts if it has moved.
    reaction_periods: control periods that an input acts before the next one can, by default as in training; 0 is the
    closed form. told: parameters that the policy is told unless a call tells them, where the training gave some.
    Raises SolverError for a folder without a run, a damaged checkpoint, another artifact, for `reaction_periods` of a
    run without a value function, and for a parameter that the policy cannot be told.
    """
    folder, generated = named(folder, generated)
    origin = folder, generated, reaction_periods, told
    if kinds.kind_of(run_folder(folder)).command != "train":
        problem, act, label = kinds.load_rollout_policy(folder, generated, reaction_periods, told)
        return Policy(act, problem.robot, label, origin=origin)
    require_told_names(folder, description_of(folder).told_names, told)
    return _told_policy(load_solution(folder, generated, reaction_periods, contexts=True), origin)


def _told_policy(family: Solution, origin: Origin) -> Policy:
    """Policy of a solution that is told the values at the end of its origin."""
    folder, generated, periods, told = origin
    solution = family.told_that(told)

    def tell(values: Values) -> Policy:
        return _told_policy(family, (folder, generated, periods, {**told, **dict(values)}))

    robot = solution.problem.robot
    names = solution.run.told_among(robot.parameter_names)
    act, in_jax, gain = solution.controller(), _forms_in_jax(solution), cache(partial(SmoothPolicy, solution))
    return Policy(act, robot, solution.label, in_jax, names, tell, origin, gain)


@checked(SolverError)
def load_value(
    folder: str | PathLike[str], generated: str | None = None, told: Mapping[str, Change] = MappingProxyType({})
) -> Value:
    """Value function of a run: `value(x)` gives V (N,) and dV/dx (N, n).

    folder, generated, told: as in `load_policy`. Raises SolverError for a folder without a run, a damaged checkpoint,
    another artifact, a baseline, which has no value function, and a parameter that V cannot be told.
    """
    folder, generated = named(folder, generated)
    require_told_names(folder, description_of(folder).told_names, told)
    return _told_value(load_solution(folder, generated, contexts=True), (folder, generated, None, told))


def _told_value(family: Solution, origin: Origin) -> Value:
    """Value function of a solution that is told the values at the end of its origin."""
    folder, generated, periods, told = origin
    solution = family.told_that(told)

    def tell(values: Values) -> Value:
        return _told_value(family, (folder, generated, periods, {**told, **dict(values)}))

    run, robot = solution.run, solution.problem.robot
    return Value(solution.value, robot, run.label, _forms_in_jax(solution), run.told_names, tell, origin)
