"""Policy and value function of a run as pure functions of JAX, under `jit`, `vmap` and `grad`.

The formulas are those of `solver.value.network.Ensemble.forward` and of `solver.game.policies`, for one state; the
tests compare them. A derivative of the policy is that of the equation which its iterations solve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.policies import CONTRACTIONS, NEWTON_STEPS, SHORTEST, SMALL, held_seconds, solved
from solver.problem.problem import FARTHEST
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR, Ensemble
from solver.value.quadratic_form import TURN

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class JaxSolution:
    """Functions of JAX arrays: one state (n,), or N states (N, n).

    States count as in `solver.Policy`: an entry beyond 1e6 is 1e6, and one that is not finite gives NaN.
    """

    robot: CompiledRobot  # of the backend jax
    label: str
    policy: Function  # u (m,) or (N, m)
    value: Function  # V, a number or (N,)
    gradient: Function  # dV/dx, (n,) or (N, n)

    def __repr__(self) -> str:
        return f"<functions of JAX of {self.label}: policy, value, gradient, {self.robot.dtype}>"


def make(solution: Solution, dtype: str = "float32") -> JaxSolution:
    """Functions of a run. dtype: of their results, float32 or float64; the weights are those of the training.

    Raises ModelError for another dtype, and SolverError for a told robot with another trim.
    """
    solution.require_own_trim()
    robot = solution.problem.robot.with_kernels("jax", dtype)
    value = _value(solution.ensemble, np.dtype(dtype))
    seconds = held_seconds(solution.problem, solution.run.settings.reaction_periods)
    wrap = _Checked(robot, np.dtype(dtype))
    return JaxSolution(robot, solution.label, wrap(_policy(robot, value, seconds)), wrap(value), wrap(jax.grad(value)))


class _Checked:
    """Makes a function of one state from a function of one or of many, jitted, whose arguments are checked."""

    def __init__(self, robot: CompiledRobot, dtype: np.dtype[Any]) -> None:
        self._names, self._dtype = robot.state_names, dtype

    def __call__(self, of_one: Function) -> Function:
        """The function of (n,) or (N, n)."""

        def near(x: Any) -> Any:
            return of_one(jnp.where(jnp.isfinite(x), jnp.clip(x, -FARTHEST, FARTHEST), jnp.nan))

        single, batch = jax.jit(near), jax.jit(jax.vmap(near))

        def checked(x: Any) -> Any:
            shape, size = np.shape(x), len(self._names)
            if len(shape) not in (1, 2) or shape[-1] != size:
                raise SolverError(
                    f"x has shape {shape}; give one state ({size},) or states (N, {size}) with the columns "
                    f"{', '.join(self._names)}"
                )
            if self._dtype == np.float64 and not jax.config.jax_enable_x64:
                raise SolverError(
                    "JAX is set to 32 bits, and would round these functions of float64; write "
                    "jax.config.update('jax_enable_x64', True) at the beginning, or take dtype='float32'"
                )
            x = jnp.asarray(x, self._dtype)
            return single(x) if x.ndim == 1 else batch(x)

        return checked


def _value(ensemble: Ensemble, dtype: np.dtype[Any]) -> Function:
    """V of one state (n,). Raises SolverError for networks that take more than sines, cosines and scaled states."""
    inputs = 2 * len(ensemble.angles) + len(ensemble.others)
    if (len(ensemble.factors[0].weights[0]), len(ensemble.metric)) != (inputs, inputs):
        raise SolverError(
            "the networks of this run take more than sines, cosines and scaled states, and have no form in JAX; use "
            "run.policy of NumPy or Torch arrays"
        )

    def fixed(tensor: Tensor) -> Any:
        return tensor.detach().cpu().numpy().astype(dtype)

    features, basin, first = ensemble.features, ensemble.basin, ensemble.factors[0]
    angles, others, diagonal, rows = (
        tensor.cpu().numpy() for tensor in (features.angles, features.others, first.diagonal, first.rows)
    )
    scale, at_target, metric, column_sum = map(
        fixed, (features.scale, features.at_target, features.metric, first.column_sum)
    )
    bend, target, continuous, cost = (
        float(features.bend),
        fixed(basin.target),
        basin.continuous.cpu().numpy(),
        fixed(basin.cost),
    )
    layers = [
        (np.stack([fixed(w) for w in weights]), np.stack([fixed(b) for b in biases]))
        for weights, biases in zip(
            zip(*(member.weights for member in ensemble.factors), strict=True),
            zip(*(member.biases for member in ensemble.factors), strict=True),
            strict=True,
        )
    ]

    def network(x: Any) -> Any:
        angle = x[angles]
        z = jnp.concatenate([jnp.sin(angle), jnp.cos(angle), x[others] * scale])
        error = (z - at_target) @ metric
        error = error * jax.lax.rsqrt(1.0 + bend * (error @ error))
        hidden = jnp.broadcast_to(z, (len(layers[0][0]), len(z)))  # (members, n_z)
        for weight, bias in layers[:-1]:
            hidden = jnp.tanh(jnp.einsum("ki,kij->kj", hidden, weight) + bias)
        weight, bias = layers[-1]
        entries = jnp.einsum("ki,kij->kj", hidden, weight) + bias
        entries = jnp.where(diagonal, jax.nn.softplus(entries) + DIAGONAL_FLOOR, entries)
        y = (entries * error[rows]) @ column_sum
        return -(y * y).sum(-1).mean()

    def overlaid(x: Any) -> Any:
        e = x - target
        e = jnp.where(continuous, e - TURN * jax.lax.stop_gradient(jnp.round(e / TURN)), e)
        distance = e @ cost @ e
        return jnp.where(distance < basin.level, -distance, network(x))

    return network if basin.level == 0.0 else overlaid


def _policy(robot: CompiledRobot, value: Function, seconds: float) -> Function:
    """Input (m,) of one state (n,): the closed form, or the one that is held for `seconds`."""
    gradient = jax.grad(value)
    trim = robot.trim

    def slope(x: Any, B: Any) -> Any:
        return gradient(x) @ B

    def closed_form(x: Any) -> Any:
        return robot.optimal_input(slope(x, robot.affine_dynamics(x)[1]))

    def held(x: Any) -> Any:
        B = robot.affine_dynamics(x)[1]
        w = slope(x, B)
        closed = robot.optimal_input(w) - trim
        least = SHORTEST * robot.input_limits
        steps = jnp.where(jnp.abs(closed) < least, jnp.copysign(least, closed), closed)
        moved = jax.vmap(lambda column, step: slope(x + seconds * column * step, B))(B.T, steps)  # (m, m), a row a step
        p = _semidefinite(((w - moved) / steps[:, None]).T)
        argument = _one_input(robot, closed, w, p[0]) if len(steps) == 1 else _contracted(robot, w, p)
        return robot.optimal_input(argument)

    return held if seconds else closed_form


def _semidefinite(p: Any) -> Any:
    """Positive semidefinite matrix near the symmetric part of p (m, m), as in `solver.game.policies`."""
    rest, columns = 0.5 * (p + p.T), []
    for j in range(len(p)):
        pivots = jnp.diagonal(rest)
        root = jnp.where(pivots > 0.0, jnp.sqrt(jnp.where(pivots > 0.0, pivots, 1.0)), 0.0)  # with finite slopes at 0
        column = jnp.clip(rest[:, j] / jnp.maximum(root[j], SMALL), -root, root)
        column = column.at[:j].set(0.0)
        rest = rest - jnp.outer(column, column)
        columns.append(column)
    factor = jnp.stack(columns, 1)
    return factor @ factor.T


def _one_input(robot: CompiledRobot, closed: Any, w: Any, p: Any) -> Any:
    """Argument w - p d (1,) of one input u0 + d = grad g~(w - p d), by Newton's method or bisection."""
    side = jnp.copysign(jnp.ones_like(w), w)

    def excess(d: Any) -> Any:
        return side * robot.action_cost(robot.trim + side * d)[1] + p * d - jnp.abs(w)

    def solve(residual: Function, high: Any) -> Any:
        def iterate(_: Any, bounds: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            low, high, d = bounds
            above = residual(d) > 0.0
            low, high = jnp.where(above, low, d), jnp.where(above, d, high)
            step = d - residual(d) / (robot.action_cost(robot.trim + side * d)[2] + p)
            return low, high, jnp.where((step >= low) & (step <= high), step, 0.5 * (low + high))

        return jax.lax.fori_loop(0, NEWTON_STEPS, iterate, (jnp.zeros_like(high), high, high))[2]

    return w - p * (side * jax.lax.custom_root(excess, jnp.abs(closed), solve, _linear_solution))


def _contracted(robot: CompiledRobot, w: Any, p: Any) -> Any:
    """Argument y = w - P d (m,) of several inputs u0 + d = grad g~(y): (I + P S) y = w, S = diag(d_i/y_i)."""
    inputs = range(len(w))

    def residual(y: Any) -> Any:
        return y + p @ (robot.optimal_input(y) - robot.trim) - w

    def solve(_: Function, start: Any) -> Any:
        def iterate(_: Any, at: Any) -> Any:
            away = jnp.where(jnp.abs(at) < SMALL, SMALL, at)
            share = (robot.optimal_input(away) - robot.trim) / away
            rows = [[p[i, j] * share[j] + float(i == j) for j in inputs] for i in inputs]
            return jnp.stack(solved(rows, list(w)))

        return jax.lax.fori_loop(0, CONTRACTIONS, iterate, start)

    return jax.lax.custom_root(residual, w, solve, _linear_solution)


def _linear_solution(matrix: Function, right: Any) -> Any:
    """x (m,) of A x = right, with A given as the linear function x -> A x."""
    return jnp.linalg.solve(jax.jacfwd(matrix)(right), right)
