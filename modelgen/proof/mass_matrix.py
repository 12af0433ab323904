"""The proof that a mass matrix is positive definite on the whole domain.

M grows (in Loewner's order) with a mass or central inertia if the kinetic energy's derivative by it is never negative.
Such a parameter is set to its lower bound. In a box, X M X' with X = M(centre)^(-1/2) is 1 plus terms with bounded
norms; M is positive definite if the norms add up to less than 1.

A tree of links does not need a box of all its coordinates. M is positive definite if every pivot of the elimination
from the leaves to the root is positive. The pivot of a joint is at least the inertia of its own link, because an
articulated inertia is the link's own plus positive semidefinite terms (Featherstone, Rigid Body Dynamics Algorithms,
2008, section 7.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sympy import Expr, Matrix, Symbol, eye, zeros

from modelgen.arrays import Array
from modelgen.derivation.equations import Definition, EquationsOfMotion, used
from modelgen.derivation.frames import Frame, Intermediates, frames_of, placement
from modelgen.program.differentiate import forward
from modelgen.program.graph import Node
from modelgen.proof.guards import Domain, Nodes, domain, nodes_of, quantity_of
from modelgen.proof.search import Boxes, Judge, Judgement, ProofProgress, subdivide
from modelgen.statement.robot import Robot, fixed_values

FLOATING = 4  # frames with a joint of a floating joint
ROUNDING = 1e-13  # of a product of three small matrices, relative to the factors


@dataclass(frozen=True)
class Block:
    """A symmetric matrix of expressions, and the domain on which it must be positive definite."""

    name: str
    matrix: Matrix
    definitions: tuple[Definition, ...]
    whole: Domain

    @property
    def domain(self) -> Domain:
        """The symbols that the matrix depends on."""
        return self.within.domain

    @cached_property
    def within(self) -> Nodes:
        """The entries of the lower triangle (k,)."""
        size = self.matrix.rows
        entries = [self.matrix[i, j] for i in range(size) for j in range(i + 1)]
        return nodes_of(entries, self.whole, self.definitions)

    @cached_property
    def derivatives(self) -> tuple[Node, ...]:
        """The derivatives (k d,) of the entries by the symbols of the domain."""
        graph, nodes = self.within.graph, self.within.nodes
        columns = [forward(graph, nodes, node) for node in self.within.inputs]
        return tuple(column[k] for k in range(len(nodes)) for column in columns)

    def enclosed(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Centre and radius (N, n, n) of the matrix over boxes."""
        return _central(self._square(end) for end in self.within.bounds(self.within.nodes, lower, upper))

    def slopes(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Centre and radius (N, d, n, n) of the derivatives over boxes."""
        ends = self.within.bounds(self.derivatives, lower, upper)
        shape = len(lower), len(self.within.nodes), len(self.within.inputs)
        return _central(self._square(np.moveaxis(end.reshape(shape), 1, 2)) for end in ends)

    def _square(self, triangle: Array) -> Array:
        """Symmetric matrices of lower triangles in the last axis."""
        size = self.matrix.rows
        rows, columns = np.tril_indices(size)
        full = np.empty((*triangle.shape[:-1], size, size))
        full[..., rows, columns] = full[..., columns, rows] = triangle
        return full


def _central(ends: Iterable[Array]) -> tuple[Array, Array]:
    """Centre and radius of intervals."""
    low, high = ends
    centre = (low + high) / 2
    return centre, np.maximum(high - centre, centre - low) * (1 + 1e-15)


def prove_block(block: Block, fixed: Sequence[Symbol], seconds: float) -> ProofProgress:
    """The progress of the proof that a block is positive definite, with the `fixed` symbols at their lower bounds."""
    lower, upper = block.domain.lower.copy(), block.domain.upper.copy()
    for k, symbol in enumerate(block.domain.symbols):
        if symbol in fixed:
            upper[k] = lower[k]
    return subdivide(lower, upper, _definite(block), seconds)


def _definite(block: Block) -> Judge:
    """Judge of M > 0: 1 - sum_j r_j |X dM/dx_j X'| > 0 with half widths r and X M(centre) X' = 1."""

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
    """The largest absolute row sum, which bounds the spectral norm."""
    largest: Array = np.abs(matrices).sum(axis=-1).max(axis=-1)
    return largest


def blocks(robot: Robot, equations: EquationsOfMotion) -> list[tuple[Block, list[Symbol]]]:
    """Matrices that together prove M > 0, and for each the parameters that may be at their lower bounds."""
    whole = domain(robot)
    own = own_inertias(robot, whole)
    if own is not None:
        return [(block, []) for block in own]
    matrix = equations.mass_matrix
    block = _block("mass matrix", matrix, used(equations.definitions, list(matrix)), whole)
    return [(block, monotone(robot, block))]


def monotone(robot: Robot, block: Block) -> list[Symbol]:
    """The parameters with which the kinetic energy never falls, at any rates: M grows with them in Loewner's order.

    Lengths of closed loops and wheels are left out, because they also change which rates are possible.
    """
    lengths = {symbol for loop in block.domain.loops for symbol in loop.parameters}
    lengths |= {symbol for rolling in robot.rolls.values() for symbol in rolling.rate.free_symbols}
    if robot.system or robot.links:
        return []
    return [
        parameter.symbol
        for parameter in robot.parameters
        if not parameter.fixed
        and parameter.symbol not in lengths
        and parameter.symbol in block.domain.symbols
        and _never_negative(sum(energy.value.diff(parameter.symbol) for energy in robot.kinetic), robot, block.whole)
    ]


def _never_negative(expression: Expr, robot: Robot, whole: Domain) -> bool:
    """Whether one enclosure shows it, as for a sum of squares times masses."""
    return quantity_of(expression.xreplace(fixed_values(robot)), whole).range[0] >= 0


def own_inertias(robot: Robot, whole: Domain) -> list[Block] | None:
    """For each link with mass, its inertia along its own joint and along the massless joints before it.

    None for other robots, for robots that roll, and for trees with a massless end.
    """
    energies = [energy.value for energy in robot.kinetic]
    if (
        not robot.links
        or robot.system
        or robot.rolls
        or not all(_never_negative(energy, robot, whole) for energy in energies)
    ):
        return None
    names = Intermediates(robot.symbols)
    frames = frames_of(robot.links, names)
    known = fixed_values(robot)
    open_joints = {number for number, frame in enumerate(frames) if frame.joint}
    inertias = []
    for number in reversed(range(len(frames))):
        chain = _chain(frames, number, open_joints)
        if frames[number].mass == 0 or not chain:
            continue
        inertias.append(_own_inertia(frames, chain, number, names, known, whole))
        open_joints -= set(chain)
    return None if open_joints else inertias


def _chain(frames: Sequence[Frame], number: int, open_joints: set[int]) -> list[int]:
    """The frame and the massless frames between it and the next mass or closed joint rootward, those with a joint."""
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
    """M of one link if only the joints of its chain move: v_a' m v_b + ... in the frame of the link."""
    link, twists, at = frames[number], list[tuple[Matrix, Matrix]](), number
    turned, shift = eye(3), zeros(3, 1)  # pose of the link's frame in the frame `at`
    while True:
        for motion in frames[at].motions if at in chain else ():
            omega = motion.axis if motion.turns else zeros(3, 1)
            velocity = zeros(3, 1) if motion.turns else motion.axis
            twists.append((turned.T * omega, turned.T * (velocity + omega.cross(shift))))
        parent = frames[at].parent
        if parent is None or at == chain[-1]:
            break
        rotation, position = placement(frames[at], names)
        joint = frames[at].joint
        if joint and joint.ball and len(chain) == FLOATING:
            rotation = frames[at].rotation  # M of three displacements and three turns is as definite at any rotation
        turned, shift, at = rotation * turned, position + rotation * shift, parent
    m, h, I = link.mass, link.first_moment, link.inertia

    def entry(i: int, j: int) -> Expr:
        (w, v), (o, u) = twists[i], twists[j]
        return m * v.dot(u) + v.dot(o.cross(h)) + u.dot(w.cross(h)) + (w.T * I * o)[0]

    matrix = Matrix(len(twists), len(twists), lambda i, j: entry(max(i, j), min(i, j))).xreplace(known)
    definitions = tuple((symbol, value.xreplace(known)) for symbol, value in used(names.definitions, list(matrix)))
    return _block(f"own inertia of `{link.name}`", matrix, definitions, whole)


def _block(name: str, matrix: Matrix, definitions: Sequence[Definition], whole: Domain) -> Block:
    """The block with quaternions of length one."""
    return Block(name, whole.on(matrix), tuple((symbol, whole.on(value)) for symbol, value in definitions), whole)
