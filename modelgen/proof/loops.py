"""Closed loops on boxes: enclosures of dependent coordinates, and the proof that Newton's method closes the loops.

In a box of the variables w with centre c, let Y = J(c)^-1. If Krawczyk's operator maps a box Z of the dependent
coordinates z into its inside, then every w of the box has exactly one z in Z, and J is regular for all of them
(Neumaier, Interval Methods for Systems of Equations, 1990, section 5.1). The guess g differs from z by at most
|g(c) - z(c)| + |g' - dz/dw| |w - c|, and a step of Newton's method from an error e leaves at most L e^2 / (1 - kappa),
with a bound L of Y d2gap/dz2 and kappa of 1 - Y J.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sympy import Matrix, Symbol

from modelgen.arrays import Array
from modelgen.derivation.equations import used
from modelgen.derivation.frames import Intermediates
from modelgen.derivation.loops import LoopGroup
from modelgen.derivation.lowering import scalars
from modelgen.derivation.numeric import compiled_evaluator
from modelgen.program.differentiate import forward
from modelgen.program.graph import Graph, Node
from modelgen.proof.intervals import Interval, enclosures

ROUNDING = 1e-13  # of products of small matrices, relative to the factors
ATTEMPTS = 5  # boxes Z, each wider than the last
CLOSED = 1e-12  # rad or m: largest error of a dependent coordinate in exact arithmetic


@dataclass(frozen=True)
class EnclosedLoop:
    """A closure with its variables among the symbols of a domain."""

    closure: LoopGroup
    symbols: tuple[Symbol, ...]  # of the domain

    @cached_property
    def columns(self) -> list[int]:
        """Places of the variables among the symbols."""
        return [self.symbols.index(symbol) for symbol in self.closure.variables]

    @cached_property
    def _solution(self) -> Callable[[Array], Array]:
        return compiled_evaluator(self.closure.variables, Matrix(self.closure.dependent), self.closure.solution)

    def values(self, points: Array) -> Array:
        """z (N, d) as the program computes it, at points (N, symbols)."""
        return self._solution(points[:, self.columns])[:, :, 0]

    @cached_property
    def _nodes(self) -> tuple[Graph, tuple[Node, ...], dict[str, tuple[Node, ...]]]:
        """A graph with the inputs (w, z), and the nodes of the gap, J, G, dJ/dz and the slopes dz/dw, row by row."""
        closure, d = self.closure, len(self.closure.dependent)
        entries = [*closure.gap, *closure.J, *closure.G, *closure.slopes]
        graph, inputs, nodes = scalars(
            (*closure.variables, *closure.dependent), entries, used(closure.kinematics, closure.slopes)
        )
        ends = np.cumsum([d, d * d, d * len(closure.variables), d * len(closure.variables)])
        groups = dict(zip(("gap", "J", "G", "slopes"), np.split(np.array(nodes), ends[:-1]), strict=True))
        made = {name: tuple(int(node) for node in group) for name, group in groups.items()}
        curved = [forward(graph, made["J"], z) for z in inputs[len(closure.variables) :]]
        made["H"] = tuple(column[k] for k in range(d * d) for column in curved)
        return graph, inputs, made

    @cached_property
    def _guess(self) -> tuple[Graph, tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
        """A graph, its inputs, and the nodes of the guess (d,) and its slopes along the joints (d k,)."""
        closure, names = self.closure, Intermediates(self.closure.taken)
        values = [value for _, value in closure.guess.expressions(names)]
        graph, inputs, nodes = scalars(closure.variables, values, names.definitions)
        columns = [forward(graph, nodes, node) for node in inputs]
        return graph, inputs, nodes, tuple(column[i] for i in range(len(nodes)) for column in columns)

    def _bounds(self, name: str, lower: Array, upper: Array, shape: Sequence[int]) -> tuple[Array, Array]:
        """Centre and radius (N, *shape) of a group of nodes over boxes of (w, z)."""
        graph, inputs, groups = self._nodes
        low, high = enclosures(graph, groups[name], inputs, lower, upper)
        centre = (low + high) / 2
        radius = np.maximum(high - centre, centre - low) * (1 + 1e-15)
        return centre.reshape(len(lower), *shape), radius.reshape(len(lower), *shape)

    def enclosed(self, lower: Array, upper: Array) -> Interval:
        """Bounds (N, d) of z over boxes with corners (N, symbols); infinite where a box is too large to tell."""
        with np.errstate(all="ignore"):
            z, radius = self._solved(lower[:, self.columns], upper[:, self.columns])[:2]
        return z - radius, z + radius

    def _solved(self, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
        """z at the centres (N, d), radii (N, d) of Krawczyk's boxes, infinite where there is none, and Y (N, d, d)."""
        d, k = len(self.closure.dependent), len(self.closure.variables)
        centre, reach = (lower + upper) / 2, (upper - lower) / 2 * (1 + 1e-15)
        z = self._solution(centre)[:, :, 0]
        sound = np.asarray(np.isfinite(z).all(axis=1))
        z = np.where(sound[:, None], z, 0.0)
        at = np.hstack([centre, z])
        J, _ = self._bounds("J", at, at, (d, d))
        sound &= np.isfinite(J).all(axis=(1, 2)) & (np.abs(np.linalg.det(np.nan_to_num(J))) > 1e-200)
        Y = np.linalg.inv(np.where(sound[:, None, None], J, np.eye(d)))
        gap, error = self._bounds("gap", at, at, (d,))
        left = np.abs(np.einsum("nij,nj->ni", Y, gap)) + np.einsum("nij,nj->ni", np.abs(Y), error)
        wide = np.hstack([lower, z]), np.hstack([upper, z])
        left += np.einsum("nij,nj->ni", _largest(Y, *self._bounds("G", *wide, (d, k))), reach)
        radius, found = 1.1 * left + 1e-300, np.full((len(z), d), np.inf)
        for _ in range(ATTEMPTS):
            box = np.hstack([lower, z - radius]), np.hstack([upper, z + radius])
            C, spread = self._bounds("J", *box, (d, d))
            inside = left + np.einsum("nij,nj->ni", _largest(Y, C, spread, less=True), radius)
            proven = sound & (inside < radius).all(axis=1)
            found = np.where(proven[:, None] & np.isinf(found), inside, found)
            radius = 1.2 * np.where(np.isfinite(inside), inside, radius)
        return z, found, Y

    def closes(self, lower: Array, upper: Array) -> tuple[NDArray[np.bool_], Array]:
        """Whether the loop closes in boxes of the variables (N, w), and the doubt (N, w) along each of them."""
        d, k = len(self.closure.dependent), len(self.closure.variables)
        with np.errstate(all="ignore"):
            centre, reach = (lower + upper) / 2, (upper - lower) / 2 * (1 + 1e-15)
            z, radius, Y = self._solved(lower, upper)
            known = np.asarray(np.isfinite(radius).all(axis=1))
            radius = np.where(known[:, None], radius, 0.0)
            box = np.hstack([lower, z - radius]), np.hstack([upper, z + radius])
            slopes, spread = self._bounds("slopes", *box, (d, k))
            graph, inputs, nodes, slopes_of = self._guess
            low, high = enclosures(graph, slopes_of, inputs, lower, upper)
            apart = np.abs((low + high).reshape(-1, d, k) / 2 - slopes) + (high - low).reshape(-1, d, k) / 2 + spread
            first = enclosures(graph, nodes, inputs, centre, centre)
            doubt = apart * reach[:, None, :]
            error = np.maximum(np.abs(first[0] - z), np.abs(first[1] - z)) + doubt.sum(axis=2)
            known &= np.isfinite(error).all(axis=1)
            around = np.where(known[:, None], radius + error, 0.0)
            box = np.hstack([lower, z - around]), np.hstack([upper, z + around])
            kappa = _largest(Y, *self._bounds("J", *box, (d, d)), less=True).sum(axis=2).max(axis=1)
            curved = _largest(Y, *self._bounds("H", *box, (d, d * d)))
            L = curved.sum(axis=2).max(axis=1) / (1 - kappa)
            size = error.max(axis=1)
            known &= (kappa < 1) & (L * size < 1)
            for _ in range(self.closure.guess.steps):
                size = L * size**2
            holds = known & (size <= CLOSED)
        sides = doubt.max(axis=1) + 1e-3 * reach
        return holds, np.where(np.isfinite(sides).all(axis=1, keepdims=True), sides, reach)


def _largest(Y: Array, centre: Array, radius: Array, less: bool = False) -> Array:
    """Bounds (N, d, m) of |Y A| for all A (N, d, m) within `radius` of `centre`; of |1 - Y A| if `less`."""
    product = Y @ centre
    size = np.abs(Y) @ (radius + ROUNDING * np.abs(centre))
    return np.abs(np.eye(Y.shape[1]) - product if less else product) + size
