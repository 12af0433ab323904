"""Export of a policy as one ONNX graph: x (N, n) -> u (N, m), V (N, 1), dV_dx (N, n), any N, float32.

The graph of a family has a second input, the context (N, k) in SI units, one for each state.

It has the formulas of `solver.value.frozen`, `solver.value.quadratic_form` and `solver.game.policies` in operations of
ONNX. B(x) and the action cost come from the robot's CasADi functions.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import casadi
import numpy as np

from modelgen.loader import CompiledRobot
from modelgen.metadata import Rotation
from solver.export.onnx_graph import OnnxGraph, OnnxTensor, entries, where
from solver.export.told import Told, told_by
from solver.game.policies import CONTRACTIONS, NEWTON_STEPS, SHORTEST, SMALL, held_seconds, solved
from solver.problem.geometry import ENTRIES
from solver.problem.problem import FARTHEST, REGULAR
from solver.training.solution import Solution
from solver.value.family import REACH
from solver.value.features import Features
from solver.value.network import DIAGONAL_FLOOR, Factor
from solver.value.quadratic_form import TURN, Basin


def emit(solution: Solution, label: str) -> bytes:
    """Content of the .onnx file. A solution with contexts gives a graph with the input `context`."""
    robot, told = solution.problem.robot.with_kernels("casadi"), told_by(solution)
    graph = OnnxGraph()
    n, m = len(robot.metadata.states), len(robot.metadata.inputs)
    x = _normalised(_confined(OnnxTensor(graph, "x")), solution.problem.geometry.rotations, n)
    frame = _fixed(solution) if told is None else _of_context(told, OnnxTensor(graph, "context"))
    value, gradient = _value(solution, frame, x)
    policy = _Policy(solution, robot, frame)
    outputs = {"u": (policy(x, gradient), m), "V": (value, 1), "dV_dx": (gradient, n)}
    inputs, facts = {"x": n}, _facts(solution, robot, label)
    if told is not None:
        inputs, facts = inputs | {"context": len(told.parameters)}, facts | {"context": json.dumps(told.described())}
    content: bytes = graph.model(inputs, outputs, facts).SerializeToString()
    return content


@dataclass(frozen=True)
class _Frame:
    """What depends on the context: constants, or tensors with one row a sample. Matrices are lists of columns then."""

    metric: Any  # W (n_z, n_z)
    bend: Any
    cost: Any  # P (nt, nt)
    level: Any
    entries: OnnxTensor | None = None  # (N, k) the context between -1 and 1
    values: OnnxTensor | None = None  # (N, k) and in SI units


def _fixed(solution: Solution) -> _Frame:
    """The frame of one robot."""
    features, basin = solution.ensemble.features, solution.value.basin
    return _Frame(features.metric.numpy(), float(features.bend), basin.cost.numpy(), basin.level)


def _of_context(told: Told, context: OnnxTensor) -> _Frame:
    """The frame of the contexts (N, k) in SI units, held within the ranges of the training."""
    middle, half = told.context.middle.numpy(), told.context.half.numpy()
    c = (context - middle) / half
    c = where(context.graph.constant(1.0) < c, 1.0, where(c < -1.0, -1.0, c))
    powers, one = [], c * 0.0 + 1.0
    chebyshev = [one, c]
    for _ in range(int(told.degrees.max()) - 1):
        chebyshev.append(c * 2.0 * chebyshev[-1] - chebyshev[-2])
    for i in range(len(middle)):
        column = _beside([each.picked([i]) for each in chebyshev])
        powers.append(column.picked(told.degrees[:, i].tolist()))
    product = reduce(operator.mul, powers)
    level = product @ told.level.numpy()[:, None]
    used = bool(told.level.abs().sum() > 0.0)
    form, cost = (
        [product @ matrix[:, :, j].numpy() for j in range(matrix.shape[-1])] for matrix in (told.form, told.cost)
    )
    bend = context.graph.constant(1.0) / (level * REACH) if used else 0.0
    return _Frame(_cholesky(form), bend, cost, level if used else 0.0, c, c * half + middle)


def _cholesky(form: list[OnnxTensor]) -> list[OnnxTensor]:
    """Columns (N, n_z) of the Cholesky factors of N matrices with these columns."""
    factor: list[OnnxTensor] = []
    for j, column in enumerate(form):
        rest = column
        for before in factor:
            rest = rest - before * before.picked([j])
        lower = (np.arange(len(form)) >= j).astype(np.float32)
        factor.append(rest * lower / rest.graph.apply("Sqrt", rest.picked([j])))
    return factor


def _times(e: OnnxTensor, matrix: Any) -> OnnxTensor:
    """Rows e_i^T M (N, n), with one matrix or N of them."""
    return e @ matrix if isinstance(matrix, np.ndarray) else _beside([(e * column).row_sum() for column in matrix])


def _times_transposed(e: OnnxTensor, matrix: Any) -> OnnxTensor:
    """Rows e_i^T M^T (N, n), with one matrix or N of them."""
    if isinstance(matrix, np.ndarray):
        return e @ matrix.T
    return _sum([e.picked([j]) * column for j, column in enumerate(matrix)])


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


def _value(solution: Solution, frame: _Frame, x: OnnxTensor) -> tuple[OnnxTensor, OnnxTensor]:
    """V (N, 1) and dV/dx (N, n) of the ensemble with its basin."""
    features, members = solution.ensemble.features, solution.ensemble.factors
    c = len(features.angles)
    angle, rest = x.picked(features.angles.tolist()), x.picked(features.others.tolist())
    z = x.graph.apply("Sin", angle) | x.graph.apply("Cos", angle) | rest * features.scale.numpy()
    turning = [x.picked(range(each.coordinate, each.coordinate + 4)) for each in features.rotations]
    for q in turning:
        z = z | _matrix(q)
    bend = frame.bend
    straight = _times(z - features.at_target.numpy(), frame.metric)
    shrunk = x.graph.constant(1.0) / x.graph.apply("Sqrt", (straight * straight).row_sum() * bend + 1.0)
    error = straight * shrunk
    inputs = z if frame.entries is None else z | frame.entries
    parts = [_member(member, features, inputs, error) for member in members]
    value, dz, dy = parts[0]
    for more, by_features, by_error in parts[1:]:
        value, dz, dy = value + more, dz + by_features, dy + by_error
    dz = dz.picked(range(features.size)) if frame.entries is not None else dz
    dz = dz + _times_transposed((dy - error * ((dy * error).row_sum() * bend)) * shrunk, frame.metric)
    value, dz = value / float(len(members)), dz / float(len(members))
    sine, cosine = range(c), range(c, 2 * c)
    by_angle = dz.picked(sine) * z.picked(cosine) - dz.picked(cosine) * z.picked(sine)
    first = 2 * c + len(features.others)
    slopes = by_angle | dz.picked(range(2 * c, first)) * features.scale.numpy()
    places = [*features.angles.tolist(), *features.others.tolist()]
    for k, (q, rotation) in enumerate(zip(turning, features.rotations, strict=True)):
        entries = [range(first + ENTRIES * k + 3 * row, first + ENTRIES * k + 3 * row + 3) for row in range(3)]
        turns = [_cross(dz.picked(row), z.picked(row)) for row in entries]
        slopes = slopes | _by_quaternion(q, turns[0] + turns[1] + turns[2])
        places += range(rotation.coordinate, rotation.coordinate + 4)
    return _overlaid(solution.value.basin, frame, x, value, slopes.picked(np.argsort(places).tolist()))


def _product(p: OnnxTensor, q: OnnxTensor) -> OnnxTensor:
    """Products (N, 4) of quaternions."""
    order = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    signs = [[1, -1, -1, -1], [1, 1, 1, -1], [1, -1, 1, 1], [1, 1, -1, 1]]
    rows = [
        (p * q.picked(places) * np.array(sign, np.float32)).row_sum() for places, sign in zip(order, signs, strict=True)
    ]
    return rows[0] | rows[1] | rows[2] | rows[3]


def _cross(a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Cross products (N, 3)."""
    ahead, behind = [1, 2, 0], [2, 0, 1]
    return a.picked(ahead) * b.picked(behind) - a.picked(behind) * b.picked(ahead)


def _by_quaternion(q: OnnxTensor, turns: OnnxTensor) -> OnnxTensor:
    """dV/dq (N, 4), tangent to the sphere, from dV (N, 3) by small turns in the turned frame."""
    return _product(q, turns.picked([0]) * 0.0 | turns * 2.0)


def _matrix(q: OnnxTensor) -> OnnxTensor:
    """Rotation matrices (N, 9), row by row: products of two entries of q, and 1 on the diagonal."""
    pairs = [(a, b) for a in range(4) for b in range(a, 4)]
    products = q.picked([a for a, _ in pairs]) * q.picked([b for _, b in pairs])
    share = np.zeros((len(pairs), ENTRIES), np.float32)
    w, x, y, z = range(4)
    terms = [
        {(y, y): -2, (z, z): -2}, {(x, y): 2, (w, z): -2}, {(x, z): 2, (w, y): 2},
        {(x, y): 2, (w, z): 2}, {(x, x): -2, (z, z): -2}, {(y, z): 2, (w, x): -2},
        {(x, z): 2, (w, y): -2}, {(y, z): 2, (w, x): 2}, {(x, x): -2, (y, y): -2},
    ]  # fmt: skip
    for column, term in enumerate(terms):
        for pair, factor in term.items():
            share[pairs.index(pair), column] = factor
    return products @ share + np.eye(3, dtype=np.float32).ravel()


def _member(
    member: Factor, features: Features, z: OnnxTensor, error: OnnxTensor
) -> tuple[OnnxTensor, OnnxTensor, OnnxTensor]:
    """V (N, 1) of a member, and its derivatives by z and by the error (N, n_z), from one reverse sweep."""
    apply = z.graph.apply
    weights = [weight.detach().numpy() for weight in member.weights]
    biases = [bias.detach().numpy() for bias in member.biases]
    rows, columns, diagonal = member.rows.tolist(), member.column_sum.numpy(), member.diagonal.numpy()
    on_diagonal = z.graph.constant(diagonal[None], np.bool_)
    hidden: list[OnnxTensor] = []
    h = z
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        h = apply("Tanh", h @ weight + bias)
        hidden.append(h)
    raw = h @ weights[-1] + biases[-1]
    entry = where(on_diagonal, apply("Softplus", raw) + DIAGONAL_FLOOR, raw)
    factor = error.picked(rows)
    y = (entry * factor) @ columns
    outer = y @ columns.T * -2.0
    adjoint = outer * factor * where(on_diagonal, apply("Sigmoid", raw), 1.0)
    for weight, h in zip(weights[:0:-1], reversed(hidden), strict=True):
        adjoint = adjoint @ weight.T * (h.graph.constant(1.0) - h * h)
    return -(y * y).row_sum(), adjoint @ weights[0].T, (outer * entry) @ np.eye(features.size)[rows]


def _overlaid(
    basin: Basin, frame: _Frame, x: OnnxTensor, value: OnnxTensor, gradient: OnnxTensor
) -> tuple[OnnxTensor, OnnxTensor]:
    """V and dV/dx, with the quadratic form inside the basin."""
    if isinstance(frame.level, float) and frame.level == 0.0:
        return value, gradient
    away = x - basin.target.numpy()
    turns = basin.continuous.numpy() * TURN
    e = away - x.graph.apply("Round", away / TURN) * turns
    states, places, parts = list(range(len(turns))), list(range(len(turns))), e
    for k, rotation in enumerate(basin.rotations):
        q = x.picked(range(rotation.coordinate, rotation.coordinate + 4))
        goal = basin.target[rotation.quaternion].numpy() * np.array([1, -1, -1, -1], np.float32)
        apart = _product(x.graph.constant(goal[None]), q)
        turn = apart.picked([1, 2, 3]) * 2.0
        parts = parts | where(apart.picked([0]) < 0.0, -turn, turn)
        at, own = states.index(rotation.coordinate), len(turns) + 3 * k
        places[at : at + 4], states[at : at + 4] = [own, own + 1, own + 2], [rotation.coordinate] * 3
    e = parts.picked(places)
    slope = _times(e, frame.cost)
    distance = (slope * e).row_sum()
    inside = distance < frame.level
    return where(inside, -distance, value), where(inside, _pulled_back(basin, x, slope * -2.0, states), gradient)


def _pulled_back(basin: Basin, x: OnnxTensor, by_error: OnnxTensor, states: list[int]) -> OnnxTensor:
    """dV/dx (N, n) from dV/de (N, nt). states: for every entry of e the state, for a rotation that of w three times."""
    if not basin.rotations:
        return by_error
    turning = {rotation.coordinate for rotation in basin.rotations}
    plain = [k for k, state in enumerate(states) if state not in turning]
    slopes, places = by_error.picked(plain), [states[k] for k in plain]
    for rotation in basin.rotations:
        q = x.picked(range(rotation.coordinate, rotation.coordinate + 4))
        goal = basin.target[rotation.quaternion].numpy() * np.array([1, -1, -1, -1], np.float32)
        apart, first = _product(x.graph.constant(goal[None]), q), states.index(rotation.coordinate)
        g = by_error.picked([first, first + 1, first + 2])
        g = where(apart.picked([0]) < 0.0, -g, g)
        slopes = slopes | _by_quaternion(q, g * apart.picked([0]) - _cross(apart.picked([1, 2, 3]), g))
        places += range(rotation.coordinate, rotation.coordinate + 4)
    return slopes.picked(np.argsort(places).tolist())


class _Policy:
    """Policy in ONNX: inputs (N, m) within their limits, from states (N, n) and dV/dx (N, n)."""

    def __init__(self, solution: Solution, robot: CompiledRobot, frame: _Frame) -> None:
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
        """Trims, and slopes of the kernel's cost there, as m columns each; the formula of `Problem.trim_of`."""
        problem, values = self._solution.problem, self._frame.values
        assert problem.context is not None
        assert values is not None
        context, m = casadi.SX.sym("context", len(problem.context)), len(self._limits)
        a, B = self._robot.casadi_function("affine_dynamics")(problem.target.numpy(), self._theta(context))
        limits = problem.state_limits[problem.held].numpy()
        A = casadi.mtimes(casadi.mtimes(casadi.diag(1.0 / limits), B[problem.held, :]), casadi.diag(self._limits))
        normal, wanted = casadi.mtimes(A.T, A), casadi.mtimes(A.T, -a[problem.held] / limits)
        normal += REGULAR * casadi.fmax(casadi.trace(normal), 1e-12) * casadi.SX.eye(m)
        share = solved([[normal[i, k] for k in range(m)] for i in range(m)], [wanted[i] for i in range(m)])
        trim = casadi.vertcat(*share) * self._limits
        found = entries(casadi.Function("trim", [context], [casadi.densify(trim)]), values)
        columns = [entry for entry in found if entry is not None]
        slopes = entries(self._slopes, _beside(columns))[:m]
        return columns, [slope if slope is not None else columns[0] * 0.0 for slope in slopes]

    def __call__(self, x: OnnxTensor, gradient: OnnxTensor) -> OnnxTensor:
        b = self._control_matrix(x)
        w = self._gain(b, gradient)
        argument = self._held(x, b, w) if self._seconds else w
        return _beside(self._closed(argument))

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
        return [_sum([entry * s for entry, s in zip(column, slopes, strict=True) if entry is not None]) for column in b]

    def _away(self, w: list[OnnxTensor]) -> list[OnnxTensor]:
        """grad g~(w) - u0 as m columns."""
        return [u - trim for u, trim in zip(self._closed(w), self._trim, strict=True)]

    def _closed(self, w: list[OnnxTensor]) -> list[OnnxTensor]:
        """grad g~(w) as m columns."""
        moved = w if self._slope is None else [each + slope for each, slope in zip(w, self._slope, strict=True)]
        return [entry for entry in self._optimal(_beside(moved)) if entry is not None]

    def _held(self, x: OnnxTensor, b: list[list[OnnxTensor | None]], w: list[OnnxTensor]) -> list[OnnxTensor]:
        """Argument w(d) of the policy for a held input, which solves u0 + d = grad g~(w(d))."""
        closed, chords = self._away(w), []
        for column, u, limit in zip(b, closed, self._limits, strict=True):
            size = u.graph.apply("Max", abs(u), SHORTEST * limit)
            step = where(u < 0.0, -size, size)
            moved = [step * 0.0 if entry is None else entry * step * self._seconds for entry in column]
            beside = self._gain(b, _value(self._solution, self._frame, x + _beside(moved))[1])
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


def _sum(values: list[OnnxTensor]) -> OnnxTensor:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _beside(columns: list[OnnxTensor]) -> OnnxTensor:
    return columns[0].graph.apply("Concat", *columns, axis=1)


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
