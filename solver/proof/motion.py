"""One control period of boxes of states anywhere: the policy's input, and the motion while it is held.

The input is u = u0 + d with u0 + d = grad g~(w - P d). The left side less the right side rises with d by at least 1: a
residual bounds the error of a linear guess of d. At the basin's edge, where the formula of dV/dx changes, a box has an
input for each formula. The end of N boxes with the input u is

    x+ = x + T F + T^2/2 F' F + T^3/6 (F' F)' F + T^4/24 R,   F = a(x, theta) + B(x, theta) u,

by Taylor models of second order (`solver.proof.quadratic`), R enclosed over all states of the period. Parameters may be
any of their slice, other ones in every period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from modelgen.arrays import Array
from modelgen.program.differentiate import forward
from modelgen.program.graph import Graph, Node
from solver.errors import SolverError
from solver.game.policies import SHORTEST
from solver.proof import sha256
from solver.proof.affine import TINY, Linear, Mask, Numbers, chosen, rounding, upward
from solver.proof.held_loop import HeldLoop, inputs_of
from solver.proof.quadratic import Quadratic, evaluate
from solver.proof.slope import SPARE, Branches, Slope
from solver.runs.folder import CHECKPOINT
from solver.runs.shipped import run_folder
from solver.training.solution import Solution, load_solution

BISECTIONS = 45  # of the input at the middle of a box
LOOSE = 0.03  # of a box, by which the rest of a patch may move it in a period
FAR = 1e6  # of w, for the largest slope of grad g~
ORDER = 3  # of Taylor's formula
INFLATIONS = 4  # of the enclosure of the motion in a period
GROWTH = 1.1  # of a guess of it, which is then shown

#: Images of some boxes (K,), by number, and whether (K,) they are known. A box has an image for each way of the policy.
Images = tuple[Numbers, Linear, Mask]


def _positive(x: Linear) -> Linear:
    """max(x, 0); the line between both answers where the sign is not known."""
    low, high = x.ends
    above, below = low >= 0, high <= 0
    extra = 0.25 * np.maximum(high, -low)
    middle = np.where(above, x.middle, np.where(below, 0.0, 0.5 * x.middle + extra))
    share = np.where(above, 1.0, np.where(below, 0.0, 0.5))
    rest = share * x.rest + np.where(above | below, 0.0, upward(extra) + rounding(np.abs(middle)))
    return Linear(middle, share * x.slopes, rest)


def _with_a_symbol(x: Linear) -> Linear:
    """The same numbers, with another symbol on which they do not depend."""
    return Linear(x.middle, np.concatenate([x.slopes, np.zeros_like(x.rest)[None]]), x.rest)


def _within(x: Linear, least: Array, most: Array) -> Linear:
    """The same numbers, which are surely between others: an interval where that is smaller."""
    low, high = x.ends
    low, high = np.maximum(low, least), np.minimum(high, most)
    half = np.maximum(0.5 * (high - low), 0.0)
    flat, middle = half < x.rest, 0.5 * (low + high)
    rest = np.where(flat, upward(half + rounding(np.abs(middle))), x.rest)
    return Linear(np.where(flat, middle, x.middle), np.where(flat, 0.0, x.slopes), rest)


def require_one_input(loop: HeldLoop) -> None:
    """Raises SolverError for robots of more inputs, whose policies are not followed outside the basin."""
    if len(loop.trim) != 1:
        name = loop.robot.name
        raise SolverError(f"{name} has {len(loop.trim)} inputs; --reach and --level-set prove robots of one input")


class HeldPolicy:
    """The input (N, 1) of the policy over boxes, for robots of one input. patched: as `Slope`.

    Raises SolverError for others.
    """

    def __init__(self, solution: Solution, loop: HeldLoop, patched: bool) -> None:
        require_one_input(loop)
        self.loop, self.slope = loop, Slope(solution, loop, patched)
        self.kernels = loop.robot.with_kernels()
        self.limit, self.trim = float(loop.limit[0]), float(loop.trim[0])
        everywhere = np.array([[-FAR]]), np.array([[FAR]])
        self.steepest = float(loop.conjugate(*everywhere)[3][0, 0])  # slope of grad g~

    def _slope(self, x: Linear, B: Linear) -> Branches:
        """w over boxes, with a rest that is a small share of the box after a period."""
        pushed = np.maximum(np.abs(B.middle) * self.steepest * self.loop.step, TINY)
        return self.slope(x, B, LOOSE * (x.bend / pushed).min(1))

    def control(self, x: Linear) -> Linear:
        """B (N, n) over boxes."""
        errors = Quadratic.of(x[self.loop.bent]).plus(-self.loop.target[self.loop.bent])
        bent = [errors[[k]] for k in range(len(self.loop.bent))]
        return self.loop.control(bent, len(x.middle), len(x.slopes)).linear

    def conjugate(self, w: Linear) -> tuple[Linear, Array]:
        """grad g~ over boxes of w (N, 1) by the mean value theorem or by its range, and its smallest slope (N, 1)."""
        found = self.loop.conjugate(*(np.concatenate([end, w.middle]) for end in w.ends))
        (low, below), (high, above), (least, _), (most, _) = (np.split(part, 2) for part in found)
        steep, bent = 0.5 * (least + most), upward(0.5 * (most - least) * w.bend)
        line = Linear(
            0.5 * (below + above), steep * w.slopes, upward(0.5 * (above - below) + bent + np.abs(steep) * w.rest)
        )
        flat = Linear(
            0.5 * (low + high), 0 * w.slopes, upward(0.5 * (high - low) + rounding(np.abs(low) + np.abs(high)))
        )
        return chosen((flat.rest <= line.rest)[:, 0], flat, line), least

    def ways(self, x: Linear) -> Iterator[tuple[Numbers, Linear]]:
        """Boxes (K,) by number and inputs (K, 1) there, for each way in which the policy may find an input.

        A way is a formula of dV/dx, a side of the trim, and a formula after the step. A box may have several. Where a
        number is not known, every way is possible: comparisons are those that no unknown number passes.
        """
        B = self.control(x)
        here = self._slope(x, B)
        for k, (along, can) in enumerate(here.each):
            if not can.any():
                continue
            at = np.flatnonzero(can)
            w = along.rows(at)
            closed = self.conjugate(w)[0].plus(-self.trim)
            low, high = (end[:, 0] for end in closed.ends)
            sides = ((1.0, ~(high < 0)), (-1.0, ~(low > 0))) if self.loop.hold else ((0.0, ~(low > high)),)
            for sign, may in sides:
                if may.any():
                    parts = (x.rows(at[may]), w.rows(may), B.rows(at[may]), closed.rows(may), here.share.rows(at[may]))
                    for rows, d in self._one_side(k, sign, *parts) if sign else [(may, closed)]:
                        lowest, highest = self.loop.middle - self.loop.limit, self.loop.middle + self.loop.limit
                        yield at[may][rows], _within(d.plus(self.trim), lowest, highest)

    def _one_side(
        self, k: int, sign: float, x: Linear, w: Linear, B: Linear, closed: Linear, share: Linear
    ) -> Iterator[tuple[Mask, Linear]]:
        """d (N, 1) where the closed form has the sign; any box of its states may have another one.

        k: formula of dV/dx at x, 0 the form, 1 the networks. For each of both after the step: boxes that may use it.
        """
        shortest, hold = SHORTEST * self.limit, self.loop.hold
        low, high = closed.ends if sign > 0 else tuple(-end for end in reversed(closed.ends))
        size_low, size_high = np.maximum(low, shortest), np.maximum(high, shortest)
        steady = closed.times(sign)
        flat = Linear(
            0.5 * (size_low + size_high), 0 * closed.slopes, upward(0.5 * (size_high - size_low) + rounding(size_high))
        )
        longer = (low > shortest)[:, 0]
        size = chosen(longer, steady, flat)
        n = B.middle.shape[1]
        step = Linear(np.repeat(size.middle, n, 1), np.repeat(size.slopes, n, 2), np.repeat(size.rest, n, 1))
        moved = x + (B * step).times(sign * hold)
        largest = np.arange(n) == moved.rest.argmax(1)[:, None]  # the largest rest becomes a symbol of its own
        own = np.concatenate([moved.slopes, np.where(largest, moved.rest, 0.0)[None]])
        there = self._slope(Linear(moved.middle, own, np.where(largest, 0.0, moved.rest)), _with_a_symbol(B))
        closer, farther = (end[:, 0] for end in (there.share - _with_a_symbol(share)).ends)
        leaves = (~(farther < -2 * SPARE), ~(closer > 2 * SPARE))[k]  # the basin, or its outside
        most = np.maximum(high, 0.0)  # of d, which has the sign of the closed form and is not larger, as w falls
        ends = (0.0 * most, most) if sign > 0 else (-most, 0.0 * most)
        for j, (w_there, may) in enumerate(there.each):
            rows = may & leaves if j != k else may
            if rows.any():
                along = w_there.rows(rows)
                w_moved = Linear(along.middle, along.slopes[:-1], along.rest + np.abs(along.slopes[-1]))
                d = self._answer(w.rows(rows), w_moved, size.rows(rows), sign)
                yield rows, _within(d, *(end[rows] for end in ends))

    def _answer(self, w: Linear, w_moved: Linear, size: Linear, sign: float) -> Linear:
        """d (N, 1) of a side, by w at the state and at the moved one, and the size of the step."""
        drop = _positive((w - w_moved).times(sign))  # P |step|
        at = size.middle
        P = drop.middle / at
        d = self._solved(w.middle, P)
        still = w.middle - P * d
        S = 0.5 * sum(self.loop.conjugate(still, still)[2:])
        P_slopes = drop.slopes / at - P / at * size.slopes
        slopes = S / (1 + S * P) * (w.slopes - d * P_slopes)
        guess = Linear(d, slopes, np.zeros_like(d))
        least = np.maximum(at - size.bend, 0.5 * SHORTEST * self.limit)
        P_of = drop * size.through(1 / at, -1 / at**2, 2 / least**3)
        P_low = np.maximum(P_of.ends[0], 0.0)
        residual = guess - self.conjugate(w - P_of * guess)[0].plus(-self.trim)
        bound = upward(np.abs(residual.middle) + residual.bend)
        # slope of the left side between the guess and the truth
        steep = self.conjugate(w - P_of * Linear(guess.middle, guess.slopes, bound))[1]
        bound = upward(bound / (1 + steep * P_low))
        # the argument is between w and w - drop, as |d| <= size
        half = drop.times(0.5 * sign)
        between = w - half
        between = Linear(between.middle, between.slopes, between.rest + np.abs(half.middle) + half.bend)
        other = self.conjugate(between)[0].plus(-self.trim)
        return chosen((bound <= other.rest)[:, 0], Linear(d, slopes, bound), other)

    def _solved(self, w: Array, P: Array) -> Array:
        low = np.full_like(w, float(self.loop.middle[0] - self.limit - self.trim))
        high = np.full_like(w, float(self.loop.middle[0] + self.limit - self.trim))
        for _ in range(BISECTIONS):
            d = 0.5 * (low + high)
            above = d > self.kernels.optimal_input(w - P * d) - self.trim
            low, high = np.where(above, low, d), np.where(above, d, high)
        return 0.5 * (low + high)


def hashes(run: str | Path, loop: HeldLoop) -> tuple[str, str]:
    """Of the run's checkpoint and of its robot's program."""
    return sha256(run_folder(run) / CHECKPOINT), loop.robot.program.digest


@lru_cache(1)
def policy_of(run: str | Path, generated: str | None, checkpoint: str, program: str, patched: bool) -> HeldPolicy:
    """The policy of a run with these hashes, which all searches of a process share with its patches.

    Raises SolverError for a run that has changed.
    """
    solution = load_solution(run, generated)
    loop = HeldLoop(solution)
    if hashes(run, loop) != (checkpoint, program):
        raise SolverError(f"{run} has changed while it was searched; repeat this command")
    return HeldPolicy(solution, loop, patched)


class Step:
    """One control period of boxes, for the robots of a slice (`solver.proof`).

    input_error: largest error (SI units) of the input that the robot's controller computes.
    """

    def __init__(self, policy: HeldPolicy, robots: Sequence[tuple[float, float]], input_error: float) -> None:
        loop = policy.loop
        loop.require_without("abs", "minimum", "maximum", found="Taylor's formula knows no kinks, as of Abs and Max")
        self.loop, self.policy, self.input_error = loop, policy, input_error
        middle, half = np.reshape(robots, (-1, 2)).T
        self.robot, self.spread = middle * loop.nominal, half * (1 + 1e-9) * np.abs(loop.nominal)
        self.n, graph = len(loop.target), Graph()
        self.graph, x, theta = graph, inputs_of(graph, self.n, "x"), inputs_of(graph, len(robots), "p")
        u, program = graph.input("u0"), loop.robot.program
        self.inputs = [*x, u, *theta]
        known = dict(zip(program.arguments["x"].entries, x, strict=True))
        known |= dict(zip(program.arguments["theta"].entries, theta, strict=True))
        outputs = {output.name: output.entries for output in program.function("affine_dynamics").outputs}
        a, B = (graph.absorb(program.graph, outputs[name], known) for name in ("a", "B"))
        self.flow = [graph.add(a[i], graph.mul(B[i], u)) for i in range(self.n)]
        powers = [x, self.flow]
        for _ in range(ORDER):
            slopes = [forward(graph, powers[-1], place) for place in x]
            terms = [[graph.mul(slopes[j][i], self.flow[j]) for j in range(self.n)] for i in range(self.n)]
            powers.append([graph.sum(row) for row in terms])
        factor, self.end = 1.0, list(x)  # x+ without its remainder
        for k in range(1, ORDER + 1):
            factor *= loop.step / k
            self.end = [graph.add(self.end[i], graph.mul(graph.constant(factor), powers[k][i])) for i in range(self.n)]
        factor *= loop.step / (ORDER + 1)
        self.remainder = [graph.mul(graph.constant(factor), value) for value in powers[ORDER + 1]]

    @np.errstate(all="ignore")  # nothing is known of a wide box, and what is not finite is not shown
    def __call__(self, x: Linear) -> list[Images]:
        """The boxes after a period, for each way of the policy."""
        images = []
        for at, u in self.policy.ways(x):
            found, inside = self.moved(x.rows(at), Linear(u.middle, u.slopes, u.rest + self.input_error))
            folded = found.rest + np.abs(found.slopes[len(x.slopes) :]).sum(0)
            images.append((at, Linear(found.middle, found.slopes[: len(x.slopes)], folded), inside))
        return images

    def moved(self, x: Linear, u: Linear) -> tuple[Linear, Mask]:
        """x after a period with u held, and whether (N,) that is known. Parameters with a spread add a symbol each."""
        d, varied = len(x.slopes), np.flatnonzero(self.spread)
        symbols, count = d + len(varied), len(x.middle)
        none = np.zeros((len(varied), count, 1))
        of_x = Quadratic.of(Linear(x.middle, np.concatenate([x.slopes, none.repeat(self.n, 2)]), x.rest))
        of_u = Quadratic.of(Linear(u.middle, np.concatenate([u.slopes, none]), u.rest))
        width = {int(k): {d + j: np.full(count, self.spread[k])} for j, k in enumerate(varied)}
        theta = [
            Quadratic.box(np.full(count, value), width.get(k, {}), rounding(np.abs(value)), symbols)
            for k, value in enumerate(self.robot)
        ]

        def over(roots: list[Node], state: Quadratic) -> Quadratic:
            known = [*(state[[k]] for k in range(self.n)), of_u, *theta]
            return evaluate(self.graph, roots, dict(zip(self.inputs, known, strict=True)), count, symbols)

        both, n = over([*self.flow, *self.end], of_x), self.n
        flow, end, way = both[:n], both[n:], np.zeros_like(x.middle)
        for _ in range(INFLATIONS):
            speed = np.abs(flow.middle) + flow.bend
            way = np.fmax(way, GROWTH * self.loop.step * speed)  # a guess of the largest motion in the period
            during = Quadratic(of_x.terms, of_x.rest + way)
            both = over([*self.flow, *self.remainder], during)
            flow, beyond = both[:n], both[n:]
            speed = upward(np.abs(flow.middle) + flow.bend, len(flow.terms))
            inside: Mask = np.all(self.loop.step * speed <= way, 1)
            if inside.all():
                break
        e = upward(np.abs(during.middle - self.loop.target) + during.bend, len(during.terms))
        found = (end + beyond).linear
        limited: Mask = np.all((e <= self.loop.bound) | self.loop.around, 1)
        return found, inside & limited & np.isfinite(found.bend).all(1)
