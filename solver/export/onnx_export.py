"""Export of a policy as one ONNX graph: x (N, n) -> u (N, m), V (N, 1), dV_dx (N, n), any N, float32.

The graph of a family has a second input, the context (N, k) in SI units, one for each state.

It has the formulas of `solver.value.frozen`, `solver.value.family` and `solver.game.policies` in operations of
ONNX. B(x) and the action cost come from the robot's CasADi functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import casadi
import numpy as np

from modelgen.backends.casadi import compiled
from modelgen.loader import CompiledRobot
from modelgen.metadata import Rotation
from solver.export.onnx_graph import OnnxGraph, OnnxTensor, entries, where
from solver.export.onnx_value import Frame, frame_of, frame_of_contexts, joined, summed, value_of
from solver.game.policies import CONTRACTIONS, NEWTON_STEPS, SHORTEST, SMALL, held_seconds, solved
from solver.problem.problem import FARTHEST
from solver.training.solution import Solution
from solver.value.told import told_by


def emit(solution: Solution, label: str) -> bytes:
    """Content of the .onnx file. A solution with contexts gives a graph with the input `context`."""
    robot, told = solution.problem.robot.with_kernels("casadi"), told_by(solution.problem, solution.ensemble)
    graph = OnnxGraph()
    n, m = len(robot.metadata.states), len(robot.metadata.inputs)
    x = _normalised(_confined(OnnxTensor(graph, "x")), solution.problem.geometry.rotations, n)
    frame = frame_of(solution) if told is None else frame_of_contexts(told, OnnxTensor(graph, "context"))
    value, gradient = value_of(solution, frame, x)
    policy = _Policy(solution, robot, frame)
    outputs = {"u": (policy(x, gradient), m), "V": (value, 1), "dV_dx": (gradient, n)}
    inputs, facts = {"x": n}, _facts(solution, robot, label)
    if told is not None:
        inputs, facts = inputs | {"context": len(told.parameters)}, facts | {"context": json.dumps(told.described())}
    content: bytes = graph.model(inputs, outputs, facts).SerializeToString()
    return content


def _confined(x: OnnxTensor) -> OnnxTensor:
    """States within +-FARTHEST, with NaN for entries that are not finite."""
    above = where(x.graph.constant(FARTHEST) < x, FARTHEST, x)
    return where(abs(x) < np.inf, where(above < -FARTHEST, -FARTHEST, above), np.nan)


def _normalised(x: OnnxTensor, rotations: Sequence[Rotation], n: int) -> OnnxTensor:
    """States (N, n) with quaternions of length one."""
    for rotation in rotations:
        entries = list(range(rotation.coordinate, rotation.coordinate + 4))
        q = x.picked(entries)
        joined, order = x | q / x.graph.apply("Sqrt", (q * q).row_sum()), list(range(n))
        order[rotation.coordinate : rotation.coordinate + 4] = range(n, n + 4)
        x = joined.picked(order)
    return x


def _facts(solution: Solution, robot: CompiledRobot, label: str) -> dict[str, str]:
    """Metadata of the file, with lists as JSON."""
    metadata, content = robot.metadata, robot.metadata.content()

    def described(entries: Any) -> str:
        kept = ("name", "unit", "limit", "meaning", "middle", "trim")
        return json.dumps([{name: entry[name] for name in kept if name in entry} for entry in entries])

    return {
        "robot": robot.name,
        "policy": label,
        "states": described(content["states"]),
        "inputs": described(content["inputs"]),
        "control_rate": repr(metadata.task.control_rate),
        "reaction_periods": repr(solution.run.settings.reaction_periods),
        "artifact": robot.hash,
    }


class _Policy:
    """Policy in ONNX: inputs (N, m) within their limits, from states (N, n) and dV/dx (N, n)."""

    def __init__(self, solution: Solution, robot: CompiledRobot, frame: Frame) -> None:
        self._solution, self._robot, self._frame = solution, robot, frame
        problem = solution.problem
        self._limits = [entry.limit for entry in robot.metadata.inputs]
        self._seconds = held_seconds(problem, solution.run.settings.reaction_periods)
        self._optimal = partial(entries, robot.casadi_function("optimal_input"))
        cost, u = robot.casadi_function("action_cost"), casadi.SX.sym("u", len(self._limits))
        self._slopes = casadi.Function("slopes", [u], [casadi.vertcat(*cost(u)[1:])])
        own = problem.action_cost.slope  # of the kernel's cost at the trim
        self._trim: list[Any] = (
            [entry.trim for entry in robot.metadata.inputs] if own is None else problem.trim.tolist()
        )
        self._slope: list[Any] | None = None if own is None else own.tolist()
        if problem.moving_trim:
            self._trim, self._slope = self._moving_trim()

    def _theta(self, context: Any) -> Any:
        """Parameters (p,) of CasADi with the symbols of the told ones in place."""
        theta, problem = casadi.SX(self._robot.nominal_parameters), self._solution.problem
        assert problem.context is not None
        for i, place in enumerate(problem.context.columns.tolist()):
            theta[place] = context[i]
        return theta

    def _moving_trim(self) -> tuple[list[Any], list[Any]]:
        """Trims, and slopes of the kernel's cost there, as m columns each."""
        problem, values = self._solution.problem, self._frame.values
        assert problem.context is not None
        assert values is not None
        context, m = casadi.SX.sym("context", len(problem.context)), len(self._trim)
        target = casadi.SX(problem.context.target.tolist())
        if problem.context.shift is not None:
            c = (context - problem.context.middle.numpy()) / problem.context.half.numpy()
            target += casadi.mtimes(problem.context.shift.numpy().T, c)
        program = self._robot.trim_program
        trim = compiled(program.graph, program.function("trim"), self._robot.name)(target, self._theta(context))
        found = entries(casadi.Function("trim", [context], [casadi.densify(trim)]), values)
        columns = [entry for entry in found if entry is not None]
        slopes = entries(self._slopes, joined(columns))[:m]
        return columns, [slope if slope is not None else columns[0] * 0.0 for slope in slopes]

    def __call__(self, x: OnnxTensor, gradient: OnnxTensor) -> OnnxTensor:
        b = self._control_matrix(x)
        w = self._gain(b, gradient)
        argument = self._held(x, b, w) if self._seconds else w
        return joined(self._closed(argument))

    def _control_matrix(self, x: OnnxTensor) -> list[list[OnnxTensor | None]]:
        """B(x) as m columns of n entries (N, 1)."""
        n, m, values = len(self._robot.metadata.states), len(self._limits), self._frame.values
        state, theta = casadi.SX.sym("x", n), self._robot.nominal_parameters
        if values is not None:
            context = casadi.SX.sym("context", len(self._solution.run.given))
            state, theta, x = casadi.vertcat(state, context), self._theta(context), x | values
        matrix = casadi.sparsify(self._robot.casadi_function("affine_dynamics")(state[:n], theta)[1])
        flat = entries(casadi.Function("control_matrix", [state], [matrix]), x)
        return [flat[k * n : (k + 1) * n] for k in range(m)]

    def _gain(self, b: list[list[OnnxTensor | None]], gradient: OnnxTensor) -> list[OnnxTensor]:
        """w = B^T dV/dx as m columns."""
        slopes = gradient.columns(len(b[0]))
        parts = [[e * s for e, s in zip(column, slopes, strict=True) if e is not None] for column in b]
        return [summed(each) for each in parts]

    def _away(self, w: list[OnnxTensor]) -> list[OnnxTensor]:
        """grad g~(w) - u0 as m columns."""
        return [u - trim for u, trim in zip(self._closed(w), self._trim, strict=True)]

    def _closed(self, w: list[OnnxTensor]) -> list[OnnxTensor]:
        """grad g~(w) as m columns."""
        moved = w if self._slope is None else [each + slope for each, slope in zip(w, self._slope, strict=True)]
        return [entry for entry in self._optimal(joined(moved)) if entry is not None]

    def _held(self, x: OnnxTensor, b: list[list[OnnxTensor | None]], w: list[OnnxTensor]) -> list[OnnxTensor]:
        """Argument w(d) of the policy for a held input, which solves u0 + d = grad g~(w(d))."""
        closed, chords = self._away(w), []
        for column, u, limit in zip(b, closed, self._limits, strict=True):
            size = u.graph.apply("Max", abs(u), SHORTEST * limit)
            step = where(u < 0.0, -size, size)
            moved = [step * 0.0 if entry is None else entry * step * self._seconds for entry in column]
            beside = self._gain(b, value_of(self._solution, self._frame, x + joined(moved))[1])
            chords.append([(here - there) / step for here, there in zip(w, beside, strict=True)])
        m = range(len(w))
        p = _semidefinite([[(chords[k][i] + chords[i][k]) * 0.5 for k in m] for i in m])
        return [self._one_input(closed[0], w[0], p[0][0])] if len(w) == 1 else self._contracted(w, p)

    def _one_input(self, closed: OnnxTensor, w: OnnxTensor, p: OnnxTensor) -> OnnxTensor:
        """Newton's method, with bisection if a step leaves the range; as in `solver.game.policies`."""
        size, high = abs(w), abs(closed)
        low, d, side = high * 0.0, high, where(w < 0.0, -1.0, high * 0.0 + 1.0)
        for _ in range(NEWTON_STEPS):
            u = side * d + self._trim[0]
            first, second = (entry if entry is not None else u * 0.0 for entry in entries(self._slopes, u))
            first = first if self._slope is None else first - self._slope[0]
            excess = side * first + p * d - size
            above = excess.graph.constant(0.0) < excess
            low, high = where(above, low, d), where(above, d, high)
            step = d - excess / (second + p)
            outside = u.graph.apply("Or", step < low, high < step)
            d = where(outside, (low + high) * 0.5, step)
        return w - p * (side * d)

    def _contracted(self, w: list[OnnxTensor], p: list[list[OnnxTensor]]) -> list[OnnxTensor]:
        """Repeated linear solutions; as in `solver.game.policies`."""
        at = w
        for _ in range(CONTRACTIONS):
            away = [where(abs(y) < SMALL, SMALL, y) for y in at]
            share = [u / y for u, y in zip(self._away(away), away, strict=True)]
            rows = [[entry * s for entry, s in zip(row, share, strict=True)] for row in p]
            at = solved([[e + 1.0 if i == k else e for k, e in enumerate(row)] for i, row in enumerate(rows)], w)
        return at


def _semidefinite(rest: list[list[OnnxTensor]]) -> list[list[OnnxTensor]]:
    """Positive semidefinite matrix near a symmetric matrix; as in `solver.game.policies`."""
    apply, m = rest[0][0].graph.apply, range(len(rest))
    matrix: list[list[OnnxTensor]] = [[rest[0][0] * 0.0 for _ in m] for _ in m]
    for j in m:
        root = [apply("Sqrt", apply("Max", rest[i][i], 0.0)) for i in m]
        column = {
            i: apply("Max", -root[i], apply("Min", root[i], rest[i][j] / apply("Max", root[j], SMALL))) for i in m[j:]
        }
        for i in m[j:]:
            for k in m[j:]:
                product = column[i] * column[k]
                matrix[i][k], rest[i][k] = matrix[i][k] + product, rest[i][k] - product
    return matrix
