"""Value function of an exported policy in operations of ONNX: V and dV/dx of one robot, or of all contexts."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from solver.export.onnx_graph import OnnxTensor, where
from solver.problem.geometry import ENTRIES
from solver.training.solution import Solution
from solver.value.family import REACH, TURN, Basin
from solver.value.features import Features
from solver.value.network import DIAGONAL_FLOOR, Factor
from solver.value.told import Told


@dataclass(frozen=True)
class Frame:
    """What depends on the context: constants, or tensors with one row a sample. Matrices are lists of columns then."""

    metric: Any  # W (n_z, n_z)
    bend: Any
    cost: Any  # P (nt, nt)
    level: Any
    entries: OnnxTensor | None = None  # (N, k) the context between -1 and 1
    values: OnnxTensor | None = None  # (N, k) and in SI units
    shift: OnnxTensor | None = None  # (N, n) what references add to the target


def frame_of(solution: Solution) -> Frame:
    """The frame of one robot."""
    features, basin = solution.ensemble.features, solution.value.basin
    return Frame(features.metric.numpy(), float(features.bend), basin.cost.numpy(), basin.level)


def frame_of_contexts(told: Told, context: OnnxTensor) -> Frame:
    """The frame of the contexts (N, k) in SI units, held within the ranges of the training."""
    middle, half = told.context.middle.numpy(), told.context.half.numpy()
    c = (context - middle) / half
    c = where(context.graph.constant(1.0) < c, 1.0, where(c < -1.0, -1.0, c))
    powers, one = [], c * 0.0 + 1.0
    chebyshev = [one, c]
    for _ in range(int(told.degrees.max()) - 1):
        chebyshev.append(c * 2.0 * chebyshev[-1] - chebyshev[-2])
    for i in range(len(middle)):
        column = joined([each.picked([i]) for each in chebyshev])
        powers.append(column.picked(told.degrees[:, i].tolist()))
    product = reduce(operator.mul, powers)
    numbers = product @ told.polynomial.numpy()
    level, cost = numbers.graph.apply("Exp", numbers.picked([0])) * told.share, _composed(numbers, told.errors)
    triangle = [cost[j].picked([i]) for i in range(told.errors) for j in range(i + 1)]
    sums = joined([one.picked([0]), level, *triangle]) @ told.form.numpy()
    places = _triangle(told.features)
    form = [sums.picked([places[max(i, j)][min(i, j)] for i in range(told.features)]) for j in range(told.features)]
    bend = context.graph.constant(1.0) / (level * REACH) if told.share else 0.0
    shift = None if told.context.shift is None else c @ told.context.shift.numpy()
    return Frame(_cholesky(form), bend, cost, level if told.share else 0.0, c, c * half + middle, shift)


def _triangle(size: int) -> list[list[int]]:
    """Places of the entries of a lower triangle, row by row."""
    return [[i * (i + 1) // 2 + j for j in range(i + 1)] for i in range(size)]


def _composed(numbers: OnnxTensor, size: int) -> list[OnnxTensor]:
    """Columns (N, nt) of the forms that `solver.value.family.composed` makes of the numbers after the first one."""
    lower = np.tril(np.ones((size, size), np.float32), -1)
    places = [[1 + row[j] if j < i else 0 for i, row in enumerate(_triangle(size))] for j in range(size)]
    factor = [numbers.picked(places[j]) * lower[:, j] + np.eye(size, dtype=np.float32)[j] for j in range(size)]
    pivots = numbers.graph.apply("Exp", numbers.picked([1 + row[-1] for row in _triangle(size)]))
    return [
        summed([factor[l] * (pivots.picked([l]) * factor[l].picked([j])) for l in range(j + 1)]) for j in range(size)
    ]


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
    return e @ matrix if isinstance(matrix, np.ndarray) else joined([(e * column).row_sum() for column in matrix])


def _times_transposed(e: OnnxTensor, matrix: Any) -> OnnxTensor:
    """Rows e_i^T M^T (N, n), with one matrix or N of them."""
    if isinstance(matrix, np.ndarray):
        return e @ matrix.T
    return summed([e.picked([j]) * column for j, column in enumerate(matrix)])


def value_of(solution: Solution, frame: Frame, x: OnnxTensor) -> tuple[OnnxTensor, OnnxTensor]:
    """V (N, 1) and dV/dx (N, n) of the ensemble with its basin."""
    features, members = solution.ensemble.features, solution.ensemble.factors
    x = x if frame.shift is None else x - frame.shift
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
    basin: Basin, frame: Frame, x: OnnxTensor, value: OnnxTensor, gradient: OnnxTensor
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


def summed(values: list[OnnxTensor]) -> OnnxTensor:
    """Sum of tensors."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def joined(columns: list[OnnxTensor]) -> OnnxTensor:
    """Tensor (N, k) with these columns."""
    return columns[0].graph.apply("Concat", *columns, axis=1)
