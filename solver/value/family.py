"""The basin: states near the target where V is a quadratic form, the solution of the Riccati equation.

V = -e^T P e with the error e = x - target of `solver.problem.geometry`, where e^T P e < level. A network fits V over
the whole domain. Near the target its error is large compared with V, and there V decides whether a robot balances.
`solver.local.basin` computes P and the level. docs/concepts/basin.md explains both.

The quadratic form of every context: P(c), a polynomial in c, and the features and the basin that it gives.

Where a context has references, the target moves: features and basin of a row are those of its own target.

P(c) solves the Riccati equation of the robot with the told parameters of c. It is P = M diag(1/r) M^T with ones on
the diagonal of the lower triangle M, and Chebyshev polynomials of moderate degree give M and r for thousands of
contexts in a millisecond. `solver.local.basin` fits them. r is smooth even where the inputs lose control of the robot:
P^-1 solves a Riccati equation too, and becomes singular there, while P and its logarithm grow without bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from math import comb
from operator import mul

import numpy as np
import torch
from torch import Tensor

from modelgen.arrays import Array
from modelgen.metadata import Rotation
from solver.problem.geometry import TURN, Geometry
from solver.value.features import Features, times

__all__ = ["TURN", "Basin"]


@dataclass(frozen=True)
class Basin:
    """Sublevel set of a quadratic form, e^T P e < level. A level of 0 makes the basin empty.

    The basin of N contexts has P (N, n, n) and N levels, one for each of the N states that its methods take.
    """

    target: Tensor  # (n,)
    continuous: Tensor  # (n,) bool, True for continuous angles
    cost: Tensor  # (nt, nt) or (N, nt, nt) P
    level: float | Tensor  # or (N,)
    rotations: tuple[Rotation, ...] = ()
    unit: float = 0.0  # where the basin is empty: the level that stands for one; 0: there is no form

    @property
    def empty(self) -> bool:
        """Whether there is no basin."""
        return isinstance(self.level, float) and self.level == 0.0

    @property
    def scale(self) -> float | Tensor:
        """Level by which errors are measured, and states near the target drawn."""
        return self.unit if self.empty else self.level

    def at(self, rows: Tensor) -> Basin:  # noqa: ARG002
        """This basin, which is the same for all rows (N, n + k)."""
        return self

    def error(self, x: Tensor) -> Tensor:
        """Error e (N, nt) of x (N, n)."""
        return self.geometry.error(x, self.target)

    @cached_property
    def geometry(self) -> Geometry:
        """The errors of states."""
        return Geometry(self.continuous, self.rotations)

    def distance(self, x: Tensor) -> Tensor:
        """e^T P e (N,) of x (N, n)."""
        e = self.error(x)
        return (times(e, self.cost) * e).sum(1)

    def quadratic(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the quadratic form at x (N, n), and a mask (N,) of the states in the basin."""
        e = self.error(x)
        slope = times(e, self.cost)
        distance = (slope * e).sum(1)
        return -distance, self.geometry.pull_back(x, self.target, -2.0 * slope), distance < self.level

    def overlaid(self, x: Tensor, value: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at x (N, n): the quadratic form in the basin, `value` and `gradient` outside."""
        if self.empty:
            return value, gradient
        quadratic, slope, inside = self.quadratic(x)
        return torch.where(inside, quadratic, value), torch.where(inside[:, None], slope, gradient)


DEGREES = {1: 12, 2: 8, 3: 6, 4: 5, 5: 5}  # of the polynomial, by the number of told parameters
NARROWEST = 2.0**-16  # half a box of contexts in which a polynomial is searched for a zero
MOST_BOXES = 5_000  # of such a search; a polynomial that needs more counts as one that is not positive
REACH = 100.0  # errors are measured by the basin's quadratic form up to this multiple of its level


def exponents(told: int, shift: Tensor | None = None) -> Tensor:
    """Degrees (b, k) of the Chebyshev polynomials in every term, for k entries: DEGREES[k] at most in all.

    shift: (k, n), what the entries add to the target. Set-points take no degree from the parameters: terms of the k'
    parameters alone have the degree DEGREES[k'], because P(c) often depends on the parameters only.
    """
    references = [] if shift is None else torch.nonzero(shift.any(1))[:, 0].tolist()
    most, alone = DEGREES[told], DEGREES.get(told - len(references), 0)
    rows = product(range(max(most, alone) + 1), repeat=told)
    kept = [row for row in rows if sum(row) <= (alone if not any(row[i] for i in references) else most)]
    return torch.tensor(kept)


def terms(c: Tensor, degrees: Tensor) -> Tensor:
    """Products (N, b) of the Chebyshev polynomials with the given degrees (b, k) in the entries of c (N, k)."""
    each = c.T.contiguous()  # (k, N)
    chebyshev = [torch.ones_like(each), each]
    plain = len(degrees) == comb(len(each) + DEGREES[len(each)], len(each))  # a maximum would wait for a GPU
    for _ in range((DEGREES[len(each)] if plain else max(DEGREES.values())) - 1):
        chebyshev.append(2.0 * each * chebyshev[-1] - chebyshev[-2])
    table = torch.stack(chebyshev, 1)  # (k, degree + 1, N)
    return reduce(mul, (table[i].index_select(0, degrees[:, i]) for i in range(len(each)))).T


def crossing(coefficients: Tensor, degrees: Tensor) -> Array | None:
    """A context (k,) where the polynomial with the coefficients (b,) of `terms` is not positive, or None.

    A context where it cannot be shown to be positive counts as one where it is not.

    Bernstein coefficients of a polynomial on a box bound it, and those of the corners are its values there. A box
    whose bound is not positive is halved. The error of a bound falls with the square of the width. Positive means more
    than what the evaluation in single precision rounds.
    """
    of, a = degrees.cpu().numpy(), coefficients.detach().cpu().double().numpy()
    least = float((len(of) + of.sum(1).max() ** 2) * torch.finfo(torch.float32).eps * np.abs(a).sum())
    highest = of.max(0)
    whole = np.zeros(tuple(highest + 1))
    whole[tuple(of.T)] = a
    for axis, degree in enumerate(highest):
        whole = _along(axis, _bernstein(int(degree)), whole)
    boxes = [(whole, np.zeros(len(highest)), np.ones(len(highest)))]  # coefficients, middle and half widths
    tried = 0
    while boxes:
        box, middle, half = boxes.pop()
        tried += 1
        if box.min() > least:
            continue
        corners = box[np.ix_(*[[0, -1]] * box.ndim)]
        lowest = np.array(np.unravel_index(corners.argmin(), corners.shape))
        if corners.min() <= least or half.max() < NARROWEST or tried > MOST_BOXES:
            return np.asarray(middle + half * (2.0 * lowest - 1.0))
        axis = int(np.argmax([np.abs(np.diff(box, 2, axis=i)).max(initial=0.0) for i in range(box.ndim)]))
        degree = box.shape[axis] - 1
        lower = np.array([[comb(i, j) / 2.0**i for j in range(degree + 1)] for i in range(degree + 1)])  # de Casteljau
        step = 0.5 * half * (np.arange(box.ndim) == axis)
        boxes += [(_along(axis, lower, box), middle - step, half - step)]
        boxes += [(_along(axis, lower[::-1, ::-1], box), middle + step, half - step)]
    return None


def _bernstein(degree: int) -> Array:
    """Matrix (d + 1, d + 1) from coefficients of the Chebyshev to those of the Bernstein polynomials of a degree d."""
    each = np.arange(degree + 1)
    angle = np.pi * (each + 0.5) / (degree + 1)
    share = 0.5 * (1.0 + np.cos(angle))[:, None]
    powers = np.array([comb(degree, i) for i in each]) * share**each * (1.0 - share) ** (degree - each)
    return np.asarray(np.linalg.solve(powers, np.cos(angle[:, None] * each)))


def _along(axis: int, matrix: Array, tensor: Array) -> Array:
    """A tensor, multiplied by a matrix along an axis."""
    return np.moveaxis(np.tensordot(matrix, tensor, (1, axis)), 0, axis)


def factored(forms: Tensor) -> Tensor:
    """Numbers (N, n (n + 1)/2) of N positive definite forms M diag(1/r) M^T: M row by row of the lower triangle, and r
    on its diagonal."""
    root: Tensor = torch.linalg.cholesky(forms)
    pivots = root.diagonal(dim1=-2, dim2=-1)
    rows, columns = torch.tril_indices(*forms.shape[-2:])
    unit: Tensor = root / pivots[..., None, :] - torch.diag_embed(1.0 - pivots**-2)
    return unit[..., rows, columns]


def composed(numbers: Tensor, size: int) -> Tensor:
    """The forms (N, n, n) of the numbers (N, n (n + 1)/2) of `factored`. size: n."""
    rows, columns = torch.tril_indices(size, size, device=numbers.device)
    factor = numbers.new_zeros(len(numbers), size, size)
    factor[:, rows, columns] = numbers
    unit = factor.tril(-1) + torch.eye(size).to(numbers)
    return (unit / factor.diagonal(dim1=1, dim2=2)[:, None]) @ unit.mT


@dataclass(frozen=True)
class BasinFamily:
    """The basins of all contexts. `coefficients` (b, nt (nt + 1)/2 + 1) of the terms of `degrees` (b, k) give the
    `factored` P(c), and the reciprocal of the cost that P(c) gives to a state with every entry at its limit. The level
    of a basin is a share of this cost.

    alike: a basin with the share as its level, and with the target of the context 0. shift (k, n): what the entries of
    a context add to the target, or None where it stands still.
    """

    alike: Basin
    degrees: Tensor
    coefficients: Tensor
    shift: Tensor | None = None

    @property
    def level(self) -> float | Tensor:
        """The share."""
        return self.alike.level

    @property
    def empty(self) -> bool:
        """Whether there are no basins."""
        return self.alike.empty

    def at(self, rows: Tensor) -> Basin:
        """Basin of N contexts, those of the rows (N, n + k)."""
        if self.empty:
            return self.alike
        n, size = len(self.alike.target), self.alike.cost.shape[-1]
        numbers = terms(rows[:, n:], self.degrees) @ self.coefficients
        basin = replace(self.alike, cost=composed(numbers[:, :-1], size), level=self.level / numbers[:, -1])
        return basin if self.shift is None else replace(basin, target=basin.target + rows[:, n:] @ self.shift)


@dataclass(frozen=True)
class ContextFrame:
    """Features and basin of a value function. They are the same for all states, or those of the state's context.

    shift: as of `BasinFamily`.
    """

    features: Features
    basin: Basin | BasinFamily
    states: int  # n
    shift: Tensor | None = None

    @property
    def _middle(self) -> Tensor:
        """Target (n,) of the context 0, from which the features measure states that were shifted."""
        return self.basin.alike.target if isinstance(self.basin, BasinFamily) else self.basin.target

    def at(self, rows: Tensor) -> tuple[Tensor, Features, Basin]:
        """States x (N, n) of the rows (N, n + k), and their features and basin."""
        basin = self.basin.at(rows)
        features = self.features
        if isinstance(basin.level, Tensor):
            features = features.measured_by(basin.cost, self._middle, REACH * basin.level)
        if self.shift is not None:
            features = replace(features, shift=rows[:, self.states :] @ self.shift)
        return rows[:, : self.states], features, basin

    def inputs(self, z: Tensor, rows: Tensor) -> Tensor:
        """Inputs (N, n_z + k) of the networks: the features z (N, n_z), then the contexts of the rows."""
        return torch.cat([z, rows[:, self.states :]], 1) if rows.shape[1] > self.states else z
