"""States from which every trajectory of the sampled closed loop enters the proven basin, on a grid of boxes.

A box is proven if its image after some periods lies within boxes that are proven already; the first ones are those
within the proven basin. So every trajectory from a proven box enters the basin after a finite number of periods. Where
nothing more can be proven, all open boxes are halved. One period of N boxes, with the input u held, is

    x+ = x + T F + T^2/2 F' F + T^3/6 (F' F)' F + T^4/24 R,   F = a(x, theta) + B(x, theta) u,

by kernels that `modelgen.program.enclosure` makes of the model, R enclosed over all states of the period. Parameters
may be any of their box, other ones in every period.
"""

from __future__ import annotations

import functools
import itertools
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from modelgen.arrays import Array
from modelgen.program.differentiate import forward
from modelgen.program.enclosure import affine
from modelgen.program.functions import Program
from modelgen.program.graph import Graph, Node
from solver.errors import SolverError
from solver.game.policies import make_policy
from solver.proof.affine import rounding, upward
from solver.proof.held_loop import HeldLoop, evaluated, inputs_of
from solver.proof.outside import HeldPolicy, Linear
from solver.training.solution import Solution

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

ORDER = 3  # of Taylor's formula
INFLATIONS = 4  # of the enclosure of the motion in a period
BATCH = 1500  # boxes at once
GRID = 512  # boxes a state in the first grid
FINEST = 2048  # and in the last one
COARSEST = 64  # of the largest cells
GUIDE = 256  # nodes a state of the order
NEAR = 3  # boxes from what is proven, at which a cell is followed
PERIODS = 24  # for which an image is followed
COARSE_PERIODS = 8  # after which a cell larger than a box is halved
WIDEST = 0.15  # half width of an image, by the domain's, beyond which it is not followed
PARTS = 4  # of each symbol of an image
APART = 6  # periods between the trajectories of a cell, beyond which it is halved
NEVER = 1e4  # periods
LONGEST = 800  # trajectories of the order, in periods
SEAM = 1e-9  # of a box: more than the rounding of an index
PIECES = 4  # of the range of each parameter: the bounds of a period are of second order in its width
SMALL = 1e-6  # largest error of a numerical inverse


@dataclass(frozen=True)
class Reach:
    """Result: a grid over the domain, and which of its boxes are proven."""

    lower: Array  # (n,) of the domain
    upper: Array
    proven: Mask  # (k, .., k)
    seconds: float  # processor time
    first: int  # boxes a state of the grid whose boxes within the ellipsoid are the first proven ones
    found: list[Found]  # the others, in the order in which they were proven

    @property
    def share(self) -> float:
        """Proven share of the domain's volume."""
        return float(self.proven.mean())

    def to_json(self) -> dict[str, Any]:
        """Content of `solver prove --reach --json`; `proven` has a row of 0 and 1 for every box of the first state."""
        rows = ["".join("01"[value] for value in row) for row in self.proven.tolist()]
        ends = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {"share": self.share, "seconds": self.seconds} | ends | {"proven": rows}

    def claim(self) -> dict[str, Any]:
        """The boxes as a part of a file (`solver.proof.written`)."""
        groups = [
            np.hstack([part.periods[:, None], part.cells.k[:, None], part.cells.at]).ravel().tolist()
            for part in self.found
        ]
        return {"first": self.first, "seconds": self.seconds, "groups": groups}


class Step:
    """One control period of boxes, for parameters within `spread` (p,) of the nominal ones.

    input_error: largest error (SI units) of the input that the robot's controller computes.
    """

    def __init__(self, solution: Solution, loop: HeldLoop, spread: Array, input_error: float) -> None:
        if len(loop.trim) != 1:
            raise SolverError(f"{loop.robot.name} has {len(loop.trim)} inputs; --reach proves robots of one input")
        self.loop, self.policy, self.input_error = loop, HeldPolicy(solution, loop), input_error
        self.spread = spread
        self.pieces, self.n = _pieces(loop.nominal, spread), len(loop.target)
        self.end, self.rates, self.remainder = self._kernels()
        self.value = solution.value
        self.act = make_policy(solution.problem, solution.value, solution.run.settings.reaction_periods)

    def _kernels(self) -> tuple[Any, Any, Any]:
        """Kernels of x+ without its remainder, of F, and of R, all by (x, u, theta)."""
        loop, n, graph = self.loop, self.n, Graph()
        x, theta = inputs_of(graph, n, "x"), inputs_of(graph, len(loop.nominal), "p")
        u, program = graph.input("u0"), loop.robot.program
        known = dict(zip(program.arguments["x"].entries, x, strict=True))
        known |= dict(zip(program.arguments["theta"].entries, theta, strict=True))
        outputs = {output.name: output.entries for output in program.function("affine_dynamics").outputs}
        a, B = (graph.absorb(program.graph, outputs[name], known) for name in ("a", "B"))
        flow = [graph.add(a[i], graph.mul(B[i], u)) for i in range(n)]
        powers: list[list[Node]] = [x, flow]
        for _ in range(ORDER):
            slopes = [forward(graph, powers[-1], place) for place in x]
            powers.append([graph.sum(graph.mul(slopes[j][i], flow[j]) for j in range(n)) for i in range(n)])
        factor, end = 1.0, list(x)
        for k in range(1, ORDER + 1):
            factor *= loop.step / k
            end = [graph.add(end[i], graph.mul(graph.constant(factor), powers[k][i])) for i in range(n)]
        rest = [graph.mul(graph.constant(factor * loop.step / (ORDER + 1)), value) for value in powers[ORDER + 1]]
        whole, places = Program(graph, (), digest=program.digest), [*x, u, *theta]
        first, second, third = (loop.robot.compiled(affine(whole, roots, places)) for roots in (end, flow, rest))
        return first, second, third

    @np.errstate(all="ignore")  # nothing is known of a wide box, and what is not finite is not shown
    def __call__(self, x: Linear) -> tuple[Linear, Mask]:
        """The boxes after a period, and whether (N,) that is known."""
        u = self.policy(x)
        u = Linear(u.middle, u.slopes, u.rest + self.input_error)
        parts = [self._moved(x, u, theta, spread) for theta, spread in self.pieces]
        found = _hull([image for image, _ in parts])
        return found, np.logical_and.reduce([known for _, known in parts]) & np.isfinite(found.bend).all(1)

    def of_points(self, x: Array) -> list[Array]:
        """The states (N, n) after a period, nearly: of the nominal robot, and of corners of the parameters' box."""
        states = torch.as_tensor(x, dtype=torch.float32)
        u, found = self.act.respond(states, self.value(states)[1]).u.double().numpy(), []
        for signs in itertools.product(*[(-1, 1) if half > 0 else (0,) for half in self.spread]):
            theta = np.broadcast_to(self.loop.nominal + signs * self.spread, (len(x), len(self.spread)))
            values = np.hstack([x, u, theta])
            found.append(evaluated(self.end, values, 0 * values)[0])
        return found

    def _moved(self, x: Linear, u: Linear, theta: Array, spread: Array) -> tuple[Linear, Mask]:
        """x after a period with u held and parameters theta +- spread (p,), and whether (N,) that is known."""
        n, count = self.n, len(x.middle)
        theta, spread = (np.broadcast_to(part, (count, len(part))) for part in (theta, spread))
        middle, radius = np.hstack([x.middle, u.middle, theta]), np.hstack([x.bend, u.bend, spread])
        centre, half, known = self._during(middle, radius)
        beyond = _box(self.remainder, centre, half)
        value, slopes, rest = evaluated(self.end, middle, radius)
        symbols = np.concatenate([x.slopes, u.slopes], 2)  # (d, N, n + 1)
        by_symbols = np.einsum("nij,dnj->dni", slopes[:, :, : n + 1], symbols)
        loose = np.hstack([x.rest, u.rest, spread]) + rounding(radius, middle.shape[1] + 4)
        wide = (np.abs(slopes) @ loose[..., None])[..., 0] + rest + rounding(np.abs(value) + np.abs(beyond[0]))
        return Linear(value + beyond[0], by_symbols, wide + beyond[1]), known

    def _during(self, middle: Array, radius: Array) -> tuple[Array, Array, Mask]:
        """Boxes of (x, u, theta) over a whole period, and whether (N,) they hold it and are within the limits."""
        n, T = self.n, self.loop.step
        centre, half = middle.copy(), radius.copy()
        inside = np.zeros(len(middle), bool)
        for k in range(INFLATIONS):
            speed, spare = _box(self.rates, centre, half)
            move = np.stack([np.minimum(T * (speed - spare), 0.0), np.maximum(T * (speed + spare), 0.0)])
            low, high = middle[:, :n] - radius[:, :n] + move[0], middle[:, :n] + radius[:, :n] + move[1]
            spare = rounding(np.abs(middle[:, :n]) + radius[:, :n] + np.abs(move).max(0), 8)
            low, high = low - spare, high + spare
            inside = (low >= centre[:, :n] - half[:, :n]).all(1) & (high <= centre[:, :n] + half[:, :n]).all(1)
            if k == INFLATIONS - 1:
                break
            grown = 0.02 * (high - low) + 1e-12  # a guess, so that `inside` may become true
            next_c, next_h = 0.5 * (low + high), 0.5 * (high - low) + grown
            centre[:, :n] = np.where(inside[:, None], centre[:, :n], next_c)
            half[:, :n] = np.where(inside[:, None], half[:, :n], next_h)
        states, e = self.loop.robot.metadata.states, np.abs(centre[:, :n] - self.loop.target) + half[:, :n]
        lengths = [i for i, state in enumerate(states) if not state.continuous]
        return centre, half, inside & (e[:, lengths] <= self.loop.bound[lengths]).all(1)


def _pieces(nominal: Array, spread: Array) -> list[tuple[Array, Array]]:
    """Middles and half widths (p,) of boxes that cover the box of parameters, PIECES along each that has a spread."""
    half = np.where(spread > 0, upward(spread / PIECES) + rounding(np.abs(nominal) + spread, 8), 0.0)
    ticks = (2 * np.arange(PIECES) + 1) / PIECES - 1
    sides = [nominal[k] + spread[k] * ticks if spread[k] > 0 else nominal[k : k + 1] for k in range(len(nominal))]
    return [(np.array(middle), half) for middle in itertools.product(*sides)]


def _hull(parts: list[Linear]) -> Linear:
    """What holds all of some sets of the same symbols."""
    middles, slopes = np.stack([part.middle for part in parts]), np.stack([part.slopes for part in parts])
    middle, slope = 0.5 * (middles.min(0) + middles.max(0)), slopes.mean(0)
    apart = np.abs(middles - middle) + np.abs(slopes - slope).sum(1) + np.stack([part.rest for part in parts])
    return Linear(middle, slope, apart.max(0) + rounding(np.abs(middle) + np.abs(slope).sum(0), 2 * len(parts)))


def _box(kernels: Any, middle: Array, radius: Array) -> tuple[Array, Array]:
    """Middles and radii (N, k) of a kernel over boxes."""
    value, slopes, rest = evaluated(kernels, middle, radius)
    return value, upward((np.abs(slopes) @ radius[..., None])[..., 0] + rest, radius.shape[1] + 4)


def parallelotope(x: Linear) -> Linear:
    """A set without a rest that holds x: the symbols take it up, or new ones of a box where that is smaller."""
    G = np.moveaxis(x.slopes, 0, 2)  # (N, n, d)
    n = G.shape[1]
    regular = np.abs(np.linalg.det(G)) > 1e-14 * np.prod(np.abs(G).sum(2) + 1e-300, 1)
    inverse = np.linalg.inv(np.where(regular[:, None, None], G, np.eye(n)))
    size = np.eye(n) + np.abs(G) @ np.abs(inverse)
    error = upward((np.abs(np.eye(n) - G @ inverse) + rounding(size, 2 * n)).sum(2).max(1))
    # e = G inverse (1 - E)^-1 e
    rest = x.rest + (error / (1 - np.minimum(error, 0.5)) * x.rest.max(1))[:, None]
    more = upward((np.abs(inverse) @ rest[..., None])[..., 0], n + 8)
    grown = x.slopes * upward(1 + more.T[:, :, None])
    b = upward(x.bend, len(x.slopes) + 1)
    box = np.zeros_like(x.slopes)
    box[range(n), :, range(n)] = b.T
    smaller = b.prod(1) < np.abs(np.linalg.det(G)) * (1 + more).prod(1)
    use = ~regular | (error > SMALL) | smaller
    return Linear(x.middle, np.where(use[:, None], box, grown), np.zeros_like(x.rest))


class Grid:
    """Boxes of a domain, k a state, some of which are proven."""

    def __init__(self, lower: Array, upper: Array, around: Mask, proven: Mask) -> None:
        self.lower, self.upper, self.around, self.proven = lower, upper, around, proven
        self.n = proven.ndim

    @property
    def k(self) -> int:
        """Boxes a state."""
        return len(self.proven)

    def boxes(self, cells: Cells) -> Linear:
        """The cells as sets of n symbols."""
        width = (self.upper - self.lower) / cells.k[:, None]
        half = upward(0.5 * width + rounding(np.abs(self.lower) + np.abs(self.upper), 8))
        slopes = np.zeros((self.n, len(half), self.n))
        slopes[range(self.n), :, range(self.n)] = half.T
        return Linear(self.lower + (cells.at + 0.5) * width, slopes, np.zeros_like(half))

    def spans(self, x: Linear) -> Numbers:
        """First and last indices (N, p, 2, n) of the boxes that hold the p parts of each set; -1 where there are none.

        The parts are those of the set's symbols cut into PARTS each: a slanted set is in fewer boxes than its hull.
        """
        ticks = (2 * np.arange(PARTS) + 1) / PARTS - 1
        t = np.stack(np.meshgrid(*[ticks] * len(x.slopes), indexing="ij"), -1).reshape(-1, len(x.slopes))
        middle = x.middle[:, None] + np.einsum("pd,dni->npi", t, x.slopes)
        size = np.abs(x.middle) + x.bend
        half = upward(np.abs(x.slopes).sum(0) / PARTS + x.rest + rounding(size, 2 * len(x.slopes) + 4), self.n + 4)
        ends = np.stack([middle - half[:, None], middle + half[:, None]], 2)
        good = np.isfinite(ends).all((1, 2, 3))
        width = (self.upper - self.lower) / self.k
        at = np.floor((np.where(good[:, None, None, None], ends, 0.0) - self.lower) / width + [[-SEAM], [SEAM]])
        at -= np.where(self.around, np.floor(at[:, :, :1] / self.k) * self.k, 0.0)
        good &= (at[:, :, 0] >= 0).all((1, 2)) & (at[:, :, 1] < np.where(self.around, 2, 1) * self.k).all((1, 2))
        good &= (at[:, :, 1] - at[:, :, 0] < self.k).all((1, 2))
        return np.where(good[:, None, None, None], at, -1).astype(np.int64)

    def table(self) -> Array:
        """Numbers of open boxes below every corner, with angles twice."""
        sums = ~self.proven
        for axis in range(self.n):
            sums = np.concatenate([sums, sums], axis) if self.around[axis] else sums
        counts = np.pad(sums, [(1, 0)] * self.n).astype(np.int32)
        for axis in range(self.n):
            np.cumsum(counts, axis, out=counts)
        return counts

    def near(self, cells: Cells, more: int = NEAR) -> Numbers:
        """First and last indices (N, p, 2, n) of the boxes of each cell, and of `more` boxes beside it."""
        wide = (self.k // cells.k)[:, None]
        ends = np.stack([cells.at * wide - more, cells.at * wide + wide - 1 + more], 1)
        ends += np.where(self.around & (ends[:, :1] < 0), self.k, 0)
        ends = np.clip(ends, 0, np.where(self.around, 2, 1) * self.k - 1)
        return np.repeat(ends[:, None], PARTS**self.n, 1)

    def count(self, spans: Numbers, table: Array) -> tuple[Array, Array]:
        """Numbers (N, p) of open and of all boxes of all parts; 1 and 1 for a set that is not within the domain."""
        ends = np.stack([spans[:, :, 0], spans[:, :, 1] + 1], 2)
        total = np.zeros(spans.shape[:2], np.int64)
        for corner in itertools.product((0, 1), repeat=self.n):
            at = tuple(ends[:, :, c, i] for i, c in enumerate(corner))
            total += (-1) ** (self.n - sum(corner)) * table[at]
        known = spans[:, :, 0, 0] >= 0
        return np.where(known, total, 1), np.where(known, (ends[:, :, 1] - ends[:, :, 0]).prod(2), 1)

    def holds(self, spans: Numbers, table: Array) -> Mask:
        """Whether (N,) all boxes of all parts of each set are proven."""
        return np.asarray((self.count(spans, table)[0] == 0).all(1))

    def touches(self, spans: Numbers, table: Array) -> Mask:
        """Whether (N,) a box of each set is proven."""
        left, boxes = self.count(spans, table)
        return np.asarray((left < boxes).any(1))

    def enter(self, cells: Cells) -> None:
        """Mark cells as proven."""
        for k, at in zip(cells.k.tolist(), cells.at.tolist(), strict=True):
            wide = self.k // k
            self.proven[tuple(slice(i * wide, (i + 1) * wide) for i in at)] = True

    def halve(self) -> None:
        """Let the boxes have half the width."""
        for axis in range(self.n):
            self.proven = self.proven.repeat(2, axis)


@dataclass(frozen=True)
class Cells:
    """N boxes of grids of k boxes a state."""

    k: Numbers  # (N,)
    at: Numbers  # (N, n) indices

    def __len__(self) -> int:
        return len(self.k)

    def __getitem__(self, rows: Any) -> Cells:
        return Cells(self.k[rows], self.at[rows])

    def __add__(self, other: Cells) -> Cells:
        return Cells(np.concatenate([self.k, other.k]), np.concatenate([self.at, other.at]))

    def halved(self) -> Cells:
        """The 2^n halves of each."""
        corners = np.array(list(itertools.product((0, 1), repeat=self.at.shape[1])))
        at = (2 * self.at[:, None] + corners).reshape(-1, self.at.shape[1])
        return Cells(np.repeat(2 * self.k, len(corners)), at)


class Guide:
    """Periods until single trajectories enter the first set, of all of some robots: an order for the search, no proof.

    after: from states (N, n) to those a period later, of each robot. Between nodes the motion is taken as linear.
    """

    def __init__(self, grid: Grid, after: Callable[[Array], list[Array]]) -> None:
        self.grid, self.levels = grid, dict[int, Array]()
        ticks = [np.linspace(low, high, GUIDE + 1) for low, high in zip(grid.lower, grid.upper, strict=True)]
        nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), -1)
        x = nodes.reshape(-1, grid.n)
        periods = [self._periods(x, (end - x).reshape(nodes.shape)) for end in after(x)]
        self.nodes = np.max(periods, 0).reshape(nodes.shape[:-1])

    def _periods(self, x: Array, moves: Array) -> Array:
        """Periods (N,) until states enter the first set, NEVER where they leave the domain before."""
        width, x, found = self.grid.upper - self.grid.lower, x.copy(), np.full(len(x), NEVER)
        live = np.arange(len(x))
        for k in range(LONGEST):
            share = (x[live] - self.grid.lower) / width
            share = np.where(self.grid.around, share % 1.0, share)
            at = np.clip((share * self.grid.k).astype(np.int64), 0, self.grid.k - 1)
            entered = self.grid.proven[tuple(at.T)]
            found[live[entered]] = k
            on = ~entered & ((share >= 0) & (share <= 1)).all(1)
            live, places = live[on], share[on].T * GUIDE
            for i in range(self.grid.n):
                x[live, i] += map_coordinates(moves[..., i], places, order=1, mode="nearest")
        return found

    def of(self, cells: Cells) -> Array:
        """Least and largest number (2, N) in each cell."""
        found = np.zeros((2, len(cells)))
        for k in np.unique(cells.k).tolist():
            rows = cells.k == k
            found[:, rows] = self._level(k)[:, *cells.at[rows].T]
        return found

    def _level(self, k: int) -> Array:
        if k not in self.levels:
            values, wide = self.nodes, max(GUIDE // k, 1)
            while len(values) <= k:
                for axis in range(values.ndim):
                    values = np.moveaxis(values, axis, 0)
                    values = np.insert(values, range(1, len(values)), np.maximum(values[1:], values[:-1]), 0)
                    values = np.moveaxis(values, 0, axis)
            ends = [values, values]
            for axis in range(values.ndim):
                parts = [[np.take(part, np.arange(k) * wide + j, axis) for j in range(wide + 1)] for part in ends]
                ends = [np.min(parts[0], 0), np.max(parts[1], 0)]
            self.levels[k] = np.array(ends)
        return self.levels[k]


class Search:
    """Backward fixed point on cells of many sizes."""

    def __init__(
        self, step: Callable[[Linear], tuple[Linear, Mask]], grid: Grid, guide: Guide, found: list[Found]
    ) -> None:
        self.step, self.grid, self.guide, self.found = step, grid, guide, found
        for part in found:
            while grid.k < part.cells.k.max():
                grid.halve()
            grid.enter(part.cells)
        none = Cells(np.zeros(0, np.int64), np.zeros((0, grid.n), np.int64))
        self.waiting, self.late = none, none  # late: cells that need a finer grid
        self.active = Followed(none, grid.boxes(none), np.zeros(0, np.int64), grid.near(none))
        at = np.stack(np.meshgrid(*[np.arange(COARSEST)] * grid.n, indexing="ij"), -1).reshape(-1, grid.n)
        self._wait(Cells(np.full(len(at), COARSEST), at))

    def _wait(self, cells: Cells) -> None:
        """Let cells wait, or their halves where parts are proven already or the guide says that they part."""
        table, k = self.grid.table(), self.grid.k
        while len(cells):
            cells = cells[~self.grid.holds(self.grid.near(cells, 0), table)]
            least, most = self.guide.of(cells)
            cells, least, most = cells[hope := least < NEVER], least[hope], most[hope]
            apart = ((most - least > APART) | (least == 0)) & (cells.k < k)
            self.waiting = self.waiting + cells[~apart]
            cells = cells[apart].halved()

    def _split(self, cells: Cells) -> None:
        fine = cells.k >= self.grid.k
        self.late = self.late + cells[fine]
        self._wait(cells[~fine].halved())

    def round(self) -> bool:
        """Follow all cells that touch what is proven, or whose images do, by one period. False if there are none."""
        table = self.grid.table()
        near = self.grid.near(self.waiting)
        begun = self.grid.touches(near, table)
        new = self.waiting[begun]
        start = Followed(new, self.grid.boxes(new), np.zeros(len(new), np.int64), near[begun])
        self.waiting, active = self.waiting[~begun], self.active + start
        turn = (active.periods < PERIODS) & self.grid.touches(active.spans, table)
        if not turn.any():
            self.active = active
            return False
        rows, wide = np.flatnonzero(turn), WIDEST * 0.5 * (self.grid.upper - self.grid.lower)
        parts, lost = [active[~turn]], []
        for first in range(0, len(rows), BATCH):
            part = active[rows[first : first + BATCH]]
            image, known = self.step(part.image)
            known &= (image.bend < wide).all(1)
            lost.append(part.cells[~known])
            image = parallelotope(image.rows(known))
            parts.append(Followed(part.cells[known], image, part.periods[known] + 1, self.grid.spans(image)))
        self.active = functools.reduce(operator.add, parts)
        self._enter()
        tired = (self.active.periods >= COARSE_PERIODS) & (self.active.cells.k < self.grid.k)
        lost.append(self.active.cells[tired])
        self.active = self.active[~tired]
        self._split(functools.reduce(operator.add, lost))
        return True

    def _enter(self) -> None:
        """Enter the cells whose images are proven, until there are no more."""
        while True:
            inside = (self.active.periods > 0) & self.grid.holds(self.active.spans, self.grid.table())
            if not inside.any():
                return
            part = self.active[inside]
            self.found.append(Found(part.cells, part.periods))
            self.grid.enter(part.cells)
            self.active = self.active[~inside]

    def refine(self) -> None:
        """Halve the boxes of the grid, and go on with the halves of the cells that nothing is known of."""
        self.grid.halve()
        late, none = self.late + self.active.cells, self.active[:0]
        self.late, self.active = none.cells, none
        self._wait(self.waiting + late.halved())


@dataclass(frozen=True)
class Found:
    """Cells that are proven, once all that were found before are."""

    cells: Cells
    periods: Numbers  # (N,) after which they are within those

    @classmethod
    def of(cls, group: list[int], n: int) -> Found:
        """A group of a claim."""
        rows = np.array(group, np.int64).reshape(-1, n + 2)
        return cls(Cells(rows[:, 1], rows[:, 2:]), rows[:, 0])


@dataclass(frozen=True)
class Followed:
    """N cells and their images after some periods."""

    cells: Cells
    image: Linear
    periods: Numbers  # (N,)
    spans: Numbers  # (N, p, 2, n) of the boxes that hold the parts of the images

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, rows: Any) -> Followed:
        return Followed(self.cells[rows], self.image.rows(rows), self.periods[rows], self.spans[rows])

    def __add__(self, other: Followed) -> Followed:
        a, b = self.image, other.image
        image = Linear(
            np.concatenate([a.middle, b.middle]),
            np.concatenate([a.slopes, b.slopes], 1),
            np.concatenate([a.rest, b.rest]),
        )
        periods, spans = (np.concatenate(pair) for pair in ((self.periods, other.periods), (self.spans, other.spans)))
        return Followed(self.cells + other.cells, image, periods, spans)


def prove_reach(
    solution: Solution,
    loop: HeldLoop,
    shape: Array,
    spread: Array,
    input_error: float,
    seconds: float,
    before: dict[str, Any] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Reach:
    """States that are proven to enter the basin {e: e' shape e <= 1} within `seconds` of processor time.

    spread: (p,) by which parameters may differ. before: the claim of a search that goes on.

    Raises SolverError for robots of other than two states and one input.
    """
    start = time.process_time()
    around = np.array([state.continuous for state in loop.robot.metadata.states])
    if len(around) != 2:
        raise SolverError(f"{loop.robot.name} has {len(around)} states; --reach cuts two states into boxes, not more")
    if (~np.isfinite(loop.bound)).any():
        raise SolverError("a state of this robot has no limit, so that its domain has no volume")
    step = Step(solution, loop, spread, input_error)
    lower, upper = np.where(around, -np.pi, loop.target - loop.bound), np.where(around, np.pi, loop.target + loop.bound)
    first, found, earlier = GRID, [], 0.0
    if before is not None:
        first, found = before["first"], [Found.of(group, len(around)) for group in before["groups"]]
        earlier = before["seconds"]
    grid = Grid(lower, upper, around, within(lower, upper, loop.target, shape, first))
    search, rounds = Search(step, grid, Guide(grid, step.of_points), found), 0
    while (spent := time.process_time() - start) < seconds and not grid.proven.all():
        if not search.round():
            if grid.k >= FINEST:
                break
            search.refine()
        rounds += 1
        if rounds % 50 == 0:
            report(f"{spent:7.0f} s  {grid.k} boxes a state, {100 * grid.proven.mean():.2f} % proven")
    return Reach(lower, upper, grid.proven, earlier + spent, first, found)


def within(lower: Array, upper: Array, target: Array, shape: Array, k: int) -> Mask:
    """Boxes (k, .., k) of a domain that are within {e' shape e < 1}, by their corners."""
    ticks = [np.linspace(low, high, k + 1) for low, high in zip(lower, upper, strict=True)]
    e = np.stack(np.meshgrid(*ticks, indexing="ij"), -1) - target
    inside: Mask = np.einsum("...i,ij,...j->...", e, shape, e) < 1 - 1e-9
    for axis in range(len(target)):
        inside = np.logical_and(np.take(inside, range(k), axis), np.take(inside, range(1, k + 1), axis))
    return inside
