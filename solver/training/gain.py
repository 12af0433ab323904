"""Gain du/dx of the policy of a run, by automatic differentiation in float64.

The policy solves y = w - P (grad g~(y) - u0) for the argument y of u = grad g~(y) (`solver.game.policies`). Its
derivative is that of this equation, and not of the iterations that solve it: those end at a relative change of 1e-5.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game.policies import solved_argument
from solver.problem.action_cost import TensorActionCost
from solver.problem.domain import farthest
from solver.training.solution import Solution

ONCE = "a policy of Torch tensors can be differentiated once, and here its derivative is differentiated again"
NEWTON = 3  # steps of Newton's method from what the iterations give, whose error is 1e-5 of it


class SmoothPolicy:
    """The policy of a run as a function of states (N, n) in float64 on the CPU, and its derivative.

    solution: without contexts. Away from the edge of the basin and from chords of the shortest length, the policy is
    smooth. A state whose entry is beyond `farthest` has the derivative 0 in it.
    """

    def __init__(self, solution: Solution) -> None:
        self._problem = problem = copy.copy(solution.problem)
        self._ensemble = copy.deepcopy(solution.ensemble).double().requires_grad_(False)
        problem.robot = problem.robot.with_kernels("torch", "float64")
        problem.input_limits, problem.trim = problem.input_limits.double(), problem.trim.double()
        own, problem.action_cost = problem.action_cost.slope, TensorActionCost(problem.robot)
        if own is not None:
            problem.hold(problem.trim)
        self._policy = solution.run.settings.hold.policy(problem, self._value)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs u (N, m) and their derivatives du/dx (N, m, n) at the states x (N, n)."""
        with torch.enable_grad():
            x = x.detach().double().cpu().requires_grad_()
            u = self._input(x)
            rows = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0] for column in u.unbind(1)]
        return u.detach(), torch.stack(rows, 1)

    def _input(self, x: Tensor) -> Tensor:
        """Inputs (N, m) with a graph to the states x (N, n)."""
        most = x.new_tensor(farthest(self._problem.robot.metadata))
        x = self._problem.geometry.normalised(torch.where(x.isfinite(), x.clamp(-most, most), torch.nan))
        w, p = self._policy.equation(x, self._value(x)[1])
        cost = self._problem.action_cost
        if p is None:
            return cost.policy(w)
        with torch.no_grad():
            y = solved_argument(cost, cost.policy(w) - cost.trim, w, p)
        for _ in range(NEWTON):
            y = self._newton(y.detach(), w, p)
        return cost.policy(y)

    def _newton(self, y: Tensor, w: Tensor, p: Tensor) -> Tensor:
        """Newton's step from y (N, m), which has no graph. At a solution, its derivative is the solution's."""
        cost = self._problem.action_cost
        at = y.requires_grad_()
        u = cost.policy(at)
        slope = torch.stack([torch.autograd.grad(one.sum(), at, retain_graph=True)[0] for one in u.unbind(1)], 1)
        at, u = at.detach(), u.detach()
        left = at + torch.einsum("bij,bj->bi", p, u - cost.trim) - w
        matrix = torch.eye(len(cost.trim)).to(y) + p.detach() @ slope
        step: Tensor = torch.linalg.solve_ex(matrix, left[..., None]).result[..., 0]
        return at - step

    def _value(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n), with a graph to x (N, n)."""
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            value = self._ensemble(x)
            return value, torch.autograd.grad(value.sum(), x, create_graph=True)[0]


Inputs = Callable[[Tensor], Tensor]  # from states (N, n) or (n,) to u (N, m) or (m,), by any means
MakeGain = Callable[[], SmoothPolicy]


def differentiable(x: Tensor, inputs: Inputs, gain: MakeGain) -> Tensor:
    """Inputs of `inputs` at x (N, n) or (n,), with the derivative of `gain`, also under `torch.func`.

    A second derivative raises SolverError.
    """
    u: Tensor = _Differentiable.apply(x, inputs, gain)  # type: ignore[no-untyped-call]
    return u


def _slope(x: Tensor, gain: MakeGain) -> Tensor:
    """du/dx (N, m, n) or (m, n) at x (N, n) or (n,), also under `torch.func`."""
    slope: Tensor = _Slope.apply(x, gain)  # type: ignore[no-untyped-call]
    return slope


def _folded(function: Callable[[Tensor], Tensor], x: Tensor, where: int) -> tuple[Tensor, int]:
    """A function of (N, n) or (n,) of a batch with its axis at `where`, as one call; and the axis of its results."""
    x = x.movedim(where, 0)
    if x.ndim <= 2:
        return function(x), 0
    result = function(x.flatten(0, 1))
    return result.reshape(*x.shape[:2], *result.shape[1:]), 0


class _Differentiable(torch.autograd.Function):
    """Inputs of a policy; the derivative is a function of its own, for `jacrev` takes it of a batch."""

    @staticmethod
    def forward(x: Tensor, inputs: Inputs, gain: MakeGain) -> Tensor:  # noqa: ARG004
        return inputs(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Inputs, MakeGain], output: Tensor) -> None:  # noqa: ARG004
        x, _, ctx.gain = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, by_input: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        gain = _slope(x, ctx.gain)
        return torch.einsum("...mn,...m->...n", gain, by_input.to(x.dtype)), None, None

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor, *_: None) -> Tensor:
        (x,) = ctx.saved_tensors
        gain = _slope(x, ctx.gain)
        return torch.einsum("...mn,...n->...m", gain, x_tangent).to(torch.float32)

    @staticmethod
    def vmap(_: Any, axes: tuple[int, None, None], x: Tensor, inputs: Inputs, gain: MakeGain) -> tuple[Tensor, int]:
        return _folded(lambda rows: differentiable(rows, inputs, gain), x, axes[0])


class _Slope(torch.autograd.Function):
    """du/dx (N, m, n) or (m, n) at x (N, n) or (n,), of its dtype and on its device."""

    @staticmethod
    def forward(x: Tensor, gain: MakeGain) -> Tensor:
        slope = gain()(x.reshape(-1, x.shape[-1]))[1].to(x)
        return slope if x.ndim == 2 else slope[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, MakeGain], output: Tensor) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, by_slope: Tensor) -> Any:  # noqa: ARG004
        raise SolverError(ONCE)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:  # noqa: ARG004
        raise SolverError(ONCE)

    @staticmethod
    def vmap(_: Any, axes: tuple[int, None], x: Tensor, gain: MakeGain) -> tuple[Tensor, int]:
        return _folded(lambda rows: _slope(rows, gain), x, axes[0])
