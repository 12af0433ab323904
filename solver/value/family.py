"""The quadratic form of every context: P(c), a polynomial in c, and the features and the basin that it gives.

Where a context has references, the target moves: features and basin of a row are those of its own target.

P(c) solves the Riccati equation of the robot with the told parameters of c. It is smooth, so that a Chebyshev
polynomial of moderate degree gives it for thousands of contexts in a millisecond. `solver.local.basin` fits it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import mul

import torch
from torch import Tensor

from solver.value.features import Features
from solver.value.quadratic_form import Basin

DEGREES = {1: 12, 2: 8, 3: 6, 4: 5, 5: 4}  # of the polynomial, by the number of told parameters
REACH = 100.0  # errors are measured by the basin's quadratic form up to this multiple of its level


def exponents(told: int) -> Tensor:
    """Degrees (b, k) of the Chebyshev polynomials in every term, for k told parameters: DEGREES[k] at most in all."""
    most = DEGREES[told]
    return torch.tensor([row for row in product(range(most + 1), repeat=told) if sum(row) <= most])


def terms(c: Tensor, degrees: Tensor) -> Tensor:
    """Products (N, b) of the Chebyshev polynomials with the given degrees (b, k) in the entries of c (N, k)."""
    each = c.T.contiguous()  # (k, N)
    chebyshev = [torch.ones_like(each), each]
    for _ in range(DEGREES[len(each)] - 1):
        chebyshev.append(2.0 * each * chebyshev[-1] - chebyshev[-2])
    table = torch.stack(chebyshev, 1)  # (k, degree + 1, N)
    return reduce(mul, (table[i].index_select(0, degrees[:, i]) for i in range(len(each)))).T


@dataclass(frozen=True)
class BasinFamily:
    """The basins of all contexts. `coefficients` (b, nt^2 + 1) of the terms of `degrees` (b, k) give P(c), and the cost
    that P(c) gives to a state with every entry at its limit. The level of a basin is a share of this cost.

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
        basin = replace(self.alike, cost=numbers[:, :-1].reshape(-1, size, size), level=self.level * numbers[:, -1])
        return basin if self.shift is None else replace(basin, target=basin.target + rows[:, n:] @ self.shift)


@dataclass(frozen=True)
class Frame:
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
