"""Policy and value function of a run as pure functions of JAX, under `jit`, `vmap` and `grad`.

The formulas are those of `solver.value.network.Ensemble.forward` and of `solver.game.policies`, for one state; the
tests compare them. A derivative of the policy is that of the equation which its iterations solve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from torch import Tensor

from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent
from solver.errors import SolverError
from solver.game.policies import CONTRACTIONS, NEWTON_STEPS, SHORTEST, SMALL, solved
from solver.jax.environment import apart_from, normalised
from solver.problem.domain import farthest, numbers_in, require_states
from solver.problem.geometry import ENTRIES, matrix_entries
from solver.problem.parameters import require_told_names
from solver.training.solution import Solution
from solver.value.family import REACH, TURN
from solver.value.network import DIAGONAL_FLOOR, Ensemble
from solver.value.told import Told, told_by

Function = Callable[..., Any]


@dataclass(frozen=True)
class JaxSolution:
    """Functions of JAX arrays: one state (n,), or N states (N, n).

    Those of a family take the parameters that the policy is told by name, in SI units: a number, or for N states (N,)
    numbers. They are held within the ranges of the training, and nominal by default, where that is in its range.
    States count as in `solver.Policy`: an entry far beyond its limit is confined, and one that is not finite gives NaN.
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

    A solution with contexts gives functions that are told them. Raises ModelError for another dtype.
    """
    robot, told = solution.problem.robot.with_kernels("jax", dtype), told_by(solution.problem, solution.ensemble)
    with jax.ensure_compile_time_eval():  # a first call may lie in a transformation, whose values must not be kept
        frame = _frame(solution, robot, told, np.dtype(dtype))
    value = _value(solution.ensemble, Tangent(robot.metadata), np.dtype(dtype))
    hold = solution.run.settings.hold
    policy = _policy(robot, value, hold.seconds(solution.problem), hold.drift)
    nominal = {} if told is None else told.nominal
    wrap = _Checked(robot, np.dtype(dtype), nominal, frame)
    return JaxSolution(robot, solution.label, wrap(policy), wrap(value), wrap(jax.grad(value)))


class _Frame(NamedTuple):
    """What depends on the context."""

    metric: Any  # (n_z, n_z) W
    bend: Any
    cost: Any  # (nt, nt) P
    level: Any
    shift: Any  # (n,) of the target
    entries: Any  # (k,) the context between -1 and 1
    theta: Any  # (p,)
    trim: Any  # (m,)
    slope: Any  # (m,) of the kernel's action cost there


def _frame(solution: Solution, robot: CompiledRobot, told: Told | None, dtype: np.dtype[Any]) -> Function:
    """The frame of the told values (k,) in SI units."""
    problem, features, basin = solution.problem, solution.ensemble.features, solution.value.basin

    def fixed(tensor: Tensor) -> Any:
        return jnp.asarray(tensor.detach().cpu().numpy().astype(dtype))

    own = problem.action_cost.slope
    trim = jnp.asarray(robot.trim, dtype) if own is None else fixed(problem.trim)
    slope = jnp.zeros_like(trim) if own is None else fixed(own)
    theta = jnp.asarray(robot.nominal_parameters, dtype)
    if told is None:
        constant = _Frame(
            fixed(features.metric),
            float(features.bend),
            fixed(basin.cost),
            basin.level,
            0.0,
            trim[:0],
            theta,
            trim,
            slope,
        )
        return lambda _: constant
    degrees, places = told.degrees.numpy(), told.context.columns.tolist()
    middle, half = fixed(told.context.middle), fixed(told.context.half)
    polynomial, form, lower = fixed(told.polynomial), fixed(told.form), np.tril_indices(told.errors)
    across = np.tril_indices(told.features)
    shift = told.context.shift
    moved = jnp.zeros((len(places), len(problem.target)), dtype) if shift is None else fixed(shift)

    def of(values: Any) -> _Frame:
        c = jnp.clip((values - middle) / half, -1.0, 1.0)
        powers = [jnp.ones_like(c), c]
        for _ in range(int(degrees.max()) - 1):
            powers.append(2.0 * c * powers[-1] - powers[-2])
        terms = jnp.stack(powers)[degrees, np.arange(len(places))].prod(1)
        numbers, own = terms @ polynomial, theta.at[np.array(places)].set(middle + half * c)
        here = told.share / numbers[0]
        factor = jnp.zeros((told.errors, told.errors), dtype).at[lower].set(numbers[1:])
        unit = jnp.tril(factor, -1) + jnp.eye(told.errors, dtype=dtype)
        cost = (unit / jnp.diagonal(factor)) @ unit.T
        triangle = jnp.concatenate([jnp.stack([jnp.ones_like(here), here]), cost[lower]]) @ form
        part = jnp.zeros((told.features, told.features), dtype).at[across].set(triangle)
        bend = jnp.where(here > 0.0, 1.0 / jnp.where(here > 0.0, REACH * here, 1.0), 0.0)
        metric = jnp.linalg.cholesky(part + jnp.tril(part, -1).T)  # symmetric, as its derivative takes for granted
        target = fixed(told.context.target) + c @ moved
        held = robot.trim_at(target, own) if problem.moving_trim else trim
        there = robot.action_cost(held)[1] if problem.moving_trim else slope
        return _Frame(metric, bend, cost, here, c @ moved, c, own, held, there)

    return of


class _Checked:
    """Makes a function of one state from a function of one or of many, jitted, whose arguments are checked."""

    def __init__(
        self, robot: CompiledRobot, dtype: np.dtype[Any], nominal: Mapping[str, float | None], frame: Function
    ) -> None:
        self._names, self._dtype, self._nominal, self._frame = robot.state_names, dtype, nominal, frame
        self._rotations = robot.metadata.rotations
        self._farthest = np.array(farthest(robot.metadata))

    def __call__(self, of_one: Function) -> Function:
        """The function of (n,) or (N, n)."""

        def near(x: Any, values: Any) -> Any:
            confined = jnp.where(jnp.isfinite(x), jnp.clip(x, -self._farthest, self._farthest), jnp.nan)
            return of_one(normalised(confined, self._rotations), self._frame(values))

        single, batch = jax.jit(near), jax.jit(jax.vmap(near))

        def checked(x: Any, **told: Any) -> Any:
            if self._dtype == np.float64 and not jax.config.jax_enable_x64:
                raise SolverError(
                    "JAX is set to 32 bits, and would round these functions of float64; write "
                    "jax.config.update('jax_enable_x64', True) at the beginning, or take dtype='float32'"
                )
            x = numbers_in(x, self._names, numpy=jnp).astype(self._dtype)
            require_states(x.shape, self._names)
            return (single if x.ndim == 1 else batch)(x, self._values(told, x.shape[:-1]))

        return checked

    def _values(self, told: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
        """Told values (..., k). Raises SolverError for an unknown name, another shape, and a value that is missing."""
        require_told_names("these functions", tuple(self._nominal), told)
        for name, usual in self._nominal.items():
            if usual is None and name not in told:
                raise SolverError(f"the nominal {name} is outside the range of the training; give it, as in {name}=1.2")
        for name, value in told.items():
            if np.shape(value) not in ((), shape):
                raise SolverError(f"{name} has shape {np.shape(value)}; give one number, or one for each state")
        values = [jnp.broadcast_to(told.get(name, value), shape) for name, value in self._nominal.items()]
        return jnp.stack(values, -1).astype(self._dtype) if values else jnp.zeros((*shape, 0), self._dtype)


def _value(ensemble: Ensemble, tangent: Tangent, dtype: np.dtype[Any]) -> Function:
    """V of one state (n,) and a frame.

    Raises SolverError for networks that take more than sines, cosines, rotation matrices and scaled states.
    """
    rotations = ensemble.rotations
    inputs = 2 * len(ensemble.angles) + len(ensemble.others) + ENTRIES * len(rotations)
    if (len(ensemble.factors[0].weights[0]), len(ensemble.metric)) != (inputs + ensemble.told, inputs):
        raise SolverError(
            "the networks of this run take more than sines, cosines, rotation matrices and scaled states, and have no "
            "form in JAX; use run.policy of NumPy or Torch arrays"
        )

    def fixed(tensor: Tensor) -> Any:
        return tensor.detach().cpu().numpy().astype(dtype)

    features, basin, first = ensemble.features, ensemble.basin, ensemble.factors[0]
    angles, others, diagonal, rows = (
        tensor.cpu().numpy() for tensor in (features.angles, features.others, first.diagonal, first.rows)
    )
    scale, at_target, column_sum = map(fixed, (features.scale, features.at_target, first.column_sum))
    target, continuous = fixed(basin.target), basin.continuous.cpu().numpy()
    layers = [
        (np.stack([fixed(w) for w in weights]), np.stack([fixed(b) for b in biases]))
        for weights, biases in zip(
            zip(*(member.weights for member in ensemble.factors), strict=True),
            zip(*(member.biases for member in ensemble.factors), strict=True),
            strict=True,
        )
    ]

    def network(x: Any, frame: _Frame) -> Any:
        x = normalised(x, rotations) - frame.shift  # whose slope is tangent to the sphere
        angle, turned = x[angles], [jnp.stack(matrix_entries(x[each.quaternion])) for each in rotations]
        z = jnp.concatenate([jnp.sin(angle), jnp.cos(angle), x[others] * scale, *turned])
        error = (z - at_target) @ frame.metric
        error = error * jax.lax.rsqrt(1.0 + frame.bend * (error @ error))
        seen = jnp.concatenate([z, frame.entries])
        hidden = jnp.broadcast_to(seen, (len(layers[0][0]), len(seen)))  # (members, n_z + k)
        for weight, bias in layers[:-1]:
            hidden = jnp.tanh(jnp.einsum("ki,kij->kj", hidden, weight) + bias)
        weight, bias = layers[-1]
        entries = jnp.einsum("ki,kij->kj", hidden, weight) + bias
        entries = jnp.where(diagonal, jax.nn.softplus(entries) + DIAGONAL_FLOOR, entries)
        y = (entries * error[rows]) @ column_sum
        return -(y * y).sum(-1).mean()

    def overlaid(x: Any, frame: _Frame) -> Any:
        shifted = normalised(x, rotations) - frame.shift
        e = shifted - target
        e = jnp.where(continuous, e - TURN * jax.lax.stop_gradient(jnp.round(e / TURN)), e)
        if rotations:
            states, places = tangent.plain
            e = jnp.zeros(tangent.size, dtype).at[np.array(places)].set(e[np.array(states)])
            for rotation, turn in tangent.rotations:
                apart = apart_from(target[rotation.quaternion], shifted[rotation.quaternion])
                e = e.at[turn].set(2.0 * jnp.where(apart[0] < 0.0, -apart[1:], apart[1:]))
        distance = e @ frame.cost @ e
        return jnp.where(distance < frame.level, -distance, network(x, frame))

    return network if basin.level == 0.0 else overlaid


def _policy(robot: CompiledRobot, value: Function, seconds: float, drift: bool) -> Function:
    """Input (m,) of one state (n,) and a frame: the closed form, or the one that is held for `seconds`.

    drift: as in `solver.game.policies.HeldInputPolicy`.
    """
    gradient = jax.grad(value)

    def closed_form(x: Any, frame: _Frame) -> Any:
        w = gradient(x, frame) @ robot.affine_dynamics(x, frame.theta)[1]
        return robot.optimal_input(w + frame.slope)

    def held(x: Any, frame: _Frame) -> Any:
        a, B = robot.affine_dynamics(x, frame.theta)
        if drift:
            x = normalised(x + seconds * (a + B @ frame.trim), robot.metadata.rotations)
            B = robot.affine_dynamics(x, frame.theta)[1]
        w = gradient(x, frame) @ B
        closed = robot.optimal_input(w + frame.slope) - frame.trim
        least = SHORTEST * robot.input_limits
        steps = jnp.where(jnp.abs(closed) < least, jnp.copysign(least, closed), closed)
        moved = jax.vmap(lambda column, step: gradient(x + seconds * column * step, frame) @ B)(
            B.T, steps
        )  # a row a step
        p = _semidefinite(((w - moved) / steps[:, None]).T)
        found = _one_input(robot, frame, closed, w, p[0]) if len(steps) == 1 else _contracted(robot, frame, w, p)
        return robot.optimal_input(found + frame.slope)

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


def _one_input(robot: CompiledRobot, frame: _Frame, closed: Any, w: Any, p: Any) -> Any:
    """Argument w - p d (1,) of one input u0 + d = grad g~(w - p d), by Newton's method or bisection."""
    side = jnp.copysign(jnp.ones_like(w), w)

    def excess(d: Any) -> Any:
        return side * (robot.action_cost(frame.trim + side * d)[1] - frame.slope) + p * d - jnp.abs(w)

    def solve(residual: Function, high: Any) -> Any:
        def iterate(_: Any, bounds: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            low, high, d = bounds
            above = residual(d) > 0.0
            low, high = jnp.where(above, low, d), jnp.where(above, d, high)
            step = d - residual(d) / (robot.action_cost(frame.trim + side * d)[2] + p)
            return low, high, jnp.where((step >= low) & (step <= high), step, 0.5 * (low + high))

        return jax.lax.fori_loop(0, NEWTON_STEPS, iterate, (jnp.zeros_like(high), high, high))[2]

    return w - p * (side * jax.lax.custom_root(excess, jnp.abs(closed), solve, _linear_solution))


def _contracted(robot: CompiledRobot, frame: _Frame, w: Any, p: Any) -> Any:
    """Argument y = w - P d (m,) of several inputs u0 + d = grad g~(y): (I + P S) y = w, S = diag(d_i/y_i)."""
    inputs = range(len(w))

    def residual(y: Any) -> Any:
        return y + p @ (robot.optimal_input(y + frame.slope) - frame.trim) - w

    def solve(_: Function, start: Any) -> Any:
        def iterate(_: Any, at: Any) -> Any:
            away = jnp.where(jnp.abs(at) < SMALL, SMALL, at)
            share = (robot.optimal_input(away + frame.slope) - frame.trim) / away
            rows = [[p[i, j] * share[j] + float(i == j) for j in inputs] for i in inputs]
            return jnp.stack(solved(rows, list(w)))

        return jax.lax.fori_loop(0, CONTRACTIONS, iterate, start)

    return jax.lax.custom_root(residual, w, solve, _linear_solution)


def _linear_solution(matrix: Function, right: Any) -> Any:
    """x (m,) of A x = right, with A given as the linear function x -> A x."""
    return jnp.linalg.solve(jax.jacfwd(matrix)(right), right)
