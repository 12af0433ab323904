"""The proof that a mass matrix is positive definite on the whole domain.

A matrix is monotone (Loewner's order) in a mass or central inertia whose derivative of the kinetic energy is never
negative, so that such parameters stand at their lower bounds. In a box, X M X' with X = M(centre)^(-1/2) is 1 plus
terms whose norms are bounded; M is positive definite where they add up to less than 1.

A tree of links needs no box of all its coordinates. M is positive definite where every pivot of the elimination from
the leaves to the root is, and the pivot of a joint is at least the inertia of its own link (an articulated inertia is
the link's own plus positive semidefinite terms: Featherstone, Rigid Body Dynamics Algorithms, 2008, section 7.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Matrix, Symbol, eye, zeros

from modelgen.derivation.equations import Definition, EquationsOfMotion, used
from modelgen.derivation.frames import Frame, Intermediates, frames_of, placement
from modelgen.derivation.lowering import scalars
from modelgen.program.differentiate import forward
from modelgen.program.graph import Graph, Node
from modelgen.proof.guards import Domain, domain
from modelgen.proof.intervals import enclosures
from modelgen.proof.quantity import stated_quantity
from modelgen.proof.subdivision import Boxes, Judge, Judgement, Shown, subdivided
from modelgen.statement.robot import Robot, fixed_values

Array = NDArray[np.float64]

ROUNDING = 1e-13  # of a product of three small matrices, relative to its factors


@dataclass(frozen=True)
class Block:
    """A symmetric matrix of expressions and where it must be positive definite."""

    name: str
    matrix: Matrix
    definitions: tuple[Definition, ...]
    whole: Domain

    @cached_property
    def domain(self) -> Domain:
        """The symbols that the matrix depends on."""
        return self.whole.of([*self.matrix, *(value for _, value in self.definitions)])

    @cached_property
    def nodes(self) -> tuple[Graph, tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
        """A graph; its inputs (d,); the entries of the lower triangle (k,); and their derivatives (k d,)."""
        size = self.matrix.rows
        entries = [self.matrix[i, j] for i in range(size) for j in range(i + 1)]
        graph, inputs, nodes = scalars(self.domain.symbols, entries, self.definitions)
        columns = [forward(graph, nodes, each) for each in inputs]
        return graph, inputs, nodes, tuple(column[k] for k in range(len(nodes)) for column in columns)

    def enclosed(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Centre and radius (N, n, n) of the matrix over boxes."""
        graph, inputs, nodes, _ = self.nodes
        return _central(self._square(end) for end in enclosures(graph, nodes, inputs, lower, upper))

    def slopes(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Centre and radius (N, d, n, n) of its derivatives over boxes."""
        graph, inputs, nodes, slopes = self.nodes
        ends = enclosures(graph, slopes, inputs, lower, upper)
        shape = len(lower), len(nodes), len(inputs)
        return _central(self._square(np.moveaxis(end.reshape(shape), 1, 2)) for end in ends)

    def _square(self, triangle: Array) -> Array:
        """Lower triangles in the last axis as symmetric matrices."""
        size = self.matrix.rows
        rows, columns = np.tril_indices(size)
        full = np.empty((*triangle.shape[:-1], size, size))
        full[..., rows, columns] = full[..., columns, rows] = triangle
        return full


def _central(ends: Iterable[Array]) -> tuple[Array, Array]:
    low, high = ends
    centre = (low + high) / 2
    return centre, np.maximum(high - centre, centre - low) * (1 + 1e-15)


def proven(block: Block, fixed: Sequence[Symbol], seconds: float) -> Shown:
    """Whether a block is positive definite on its domain, the `fixed` symbols at their lower bounds."""
    lower, upper = block.domain.lower.copy(), block.domain.upper.copy()
    for k, symbol in enumerate(block.domain.symbols):
        if symbol in fixed:
            upper[k] = lower[k]
    return subdivided(lower, upper, _definite(block), seconds)


def _definite(block: Block) -> Judge:
    """M is positive definite in boxes: 1 - sum_j r_j |X dM/dx_j X'| > 0 with half widths r and X M(c) X' = 1."""

    def judge(boxes: Boxes) -> Judgement:
        with np.errstate(all="ignore"):
            centre, radius = (boxes.lower + boxes.upper) / 2, (boxes.upper - boxes.lower) / 2 * (1 + 1e-15)
            C, error = block.enclosed(centre, centre)
            G, spread = block.slopes(boxes.lower, boxes.upper)
            sound = np.asarray(np.isfinite(C).all(axis=(1, 2)) & np.isfinite(G + spread).all(axis=(1, 2, 3)))
            C, G = np.where(sound[:, None, None], C, 0.0), np.where(sound[:, None, None, None], G, 0.0)
            spread = np.where(sound[:, None, None, None], spread, 0.0)
            eigenvalues, vectors = np.linalg.eigh(C)
            X = np.swapaxes(vectors, 1, 2) / np.sqrt(np.maximum(eigenvalues, 1e-300))[:, :, None]
            size = np.abs(X)
            missed = _norm(X @ C @ np.swapaxes(X, 1, 2) - np.eye(C.shape[1])) + _norm(
                size @ (error + ROUNDING * np.abs(C)) @ np.swapaxes(size, 1, 2)
            )
            X, size = X[:, None], size[:, None]
            turned, around = (
                X @ G @ np.swapaxes(X, 2, 3),
                size @ (spread + ROUNDING * np.abs(G)) @ np.swapaxes(size, 2, 3),
            )
            doubt = (np.abs(np.linalg.eigvalsh(turned)).max(axis=2) + _norm(around)) * radius
            holds = sound & (eigenvalues[:, 0] > 0) & (missed + doubt.sum(axis=1) < 1 - 1e-9)
        broken = sound & (eigenvalues[:, 0] < -ROUNDING * eigenvalues[:, -1])
        return Judgement(holds, broken, boxes, np.where(np.isfinite(doubt) & sound[:, None], doubt, radius))

    return judge


def _norm(matrices: Array) -> Array:
    """The largest sum of a row's sizes, above the spectral norm."""
    largest: Array = np.abs(matrices).sum(axis=-1).max(axis=-1)
    return largest


def blocks(robot: Robot, equations: EquationsOfMotion) -> list[tuple[Block, list[Symbol]]]:
    """Matrices that together prove M positive definite, and the parameters that may stand at their lower bounds."""
    whole = domain(robot)
    own = own_inertias(robot, whole)
    if own is not None:
        return [(block, []) for block in own]
    matrix = equations.mass_matrix
    block = Block("mass matrix", matrix, used(equations.definitions, list(matrix)), whole)
    return [(block, monotone(robot, block))]


def monotone(robot: Robot, block: Block) -> list[Symbol]:
    """The parameters in which the kinetic energy never falls, at any rates: M rises with them in Loewner's order."""
    if robot.system or robot.links:
        return []
    return [
        each.symbol
        for each in robot.parameters
        if not each.fixed
        and each.symbol in block.domain.symbols
        and _never_negative(sum(energy.value.diff(each.symbol) for energy in robot.kinetic), robot, block.whole)
    ]


def _never_negative(expression: Expr, robot: Robot, whole: Domain) -> bool:
    """Whether the graph shows it, such as a sum of squares times masses."""
    inside = stated_quantity(expression.xreplace(fixed_values(robot)), whole)
    return bool(inside.enclosure(inside.domain.lower[None], inside.domain.upper[None])[0][0] >= 0)


def own_inertias(robot: Robot, whole: Domain) -> list[Block] | None:
    """For each link with mass, its inertia along its own joint and the massless ones before it.

    None for other robots, and for trees with a massless end.
    """
    energies = [each.value for each in robot.kinetic]
    if not robot.links or robot.system or not all(_never_negative(each, robot, whole) for each in energies):
        return None
    names = Intermediates(robot.symbols)
    frames = frames_of(robot.links, names)
    known = fixed_values(robot)
    open_joints = {number for number, frame in enumerate(frames) if frame.joint}
    found = []
    for number in reversed(range(len(frames))):
        chain = _chain(frames, number, open_joints)
        if frames[number].mass == 0 or not chain:
            continue
        found.append(_own_inertia(frames, chain, number, names, known, whole))
        open_joints -= set(chain)
    return None if open_joints else found


def _chain(frames: Sequence[Frame], number: int, open_joints: set[int]) -> list[int]:
    """The frames with a joint, from this one rootward, that move it and have no mass themselves; this one first."""
    chain, at = [], number
    while True:
        if at in open_joints:
            chain.append(at)
        parent = frames[at].parent
        if parent is None or frames[parent].mass != 0 or (frames[parent].joint and parent not in open_joints):
            return chain
        at = parent


def _own_inertia(
    frames: Sequence[Frame],
    chain: Sequence[int],
    number: int,
    names: Intermediates,
    known: dict[Symbol, Expr],
    whole: Domain,
) -> Block:
    """M of one link when only the joints of its chain move: v_a' m v_b + ... in the frame of the link."""
    link, twists, at = frames[number], list[tuple[Matrix, Matrix]](), number
    turned, shift = eye(3), zeros(3, 1)  # the link's frame in that of `at`
    while True:
        joint = frames[at].joint
        if at in chain and joint:
            omega = joint.axis if joint.kind == "revolute" else zeros(3, 1)
            velocity = zeros(3, 1) if joint.kind == "revolute" else joint.axis
            twists.append((turned.T * omega, turned.T * (velocity + omega.cross(shift))))
        parent = frames[at].parent
        if parent is None or at == chain[-1]:
            break
        rotation, position = placement(frames[at], names)
        turned, shift, at = rotation * turned, position + rotation * shift, parent
    m, h, I = link.mass, link.first_moment, link.inertia

    def entry(i: int, j: int) -> Expr:
        (w, v), (o, u) = twists[i], twists[j]
        return m * v.dot(u) + v.dot(o.cross(h)) + u.dot(w.cross(h)) + (w.T * I * o)[0]

    matrix = Matrix(len(twists), len(twists), lambda i, j: entry(max(i, j), min(i, j))).xreplace(known)
    definitions = tuple((symbol, value.xreplace(known)) for symbol, value in used(names.definitions, list(matrix)))
    return Block(f"own inertia of `{link.name}`", matrix, definitions, whole)
