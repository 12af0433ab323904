"""Proof that the basin, or the largest part of it that can be proven, is invariant and contracts in every period.

The proven set is a ball |y| <= radius of the errors e = back y. `held_loop` writes one period as y -> (1 + C) y. The
matrix C depends on few quantities: the states by which the robot is not linear, the sizes of w, and the parameters.
The set of these is cut into cells. In each, with N = 1 + C,

    N' N + f (g g' - c^2) <= (1 - rate)^2

as matrices, for a weight f >= 0 and a direction g with |g' y| >= c |y| for all y of the cell (S-procedure). So |y|
shrinks by the rate from everywhere, but for a disturbance: the moved target of a wrong robot, and the error of the
input. Its norm by the rate is the radius of the core that is reached in the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_discrete_lyapunov
from scipy.optimize import minimize
from scipy.special import logsumexp

from modelgen.arrays import Array
from modelgen.files import page
from solver.errors import SolverError
from solver.proof import EMPTY, HELD, Tree, read, sha256, write
from solver.proof.affine import TINY, Affine
from solver.proof.held_loop import Cells, Frame, HeldLoop
from solver.proof.reach import Reach, prove_reach
from solver.runs.folder import CHECKPOINT
from solver.runs.shipped import run_folder
from solver.training.solution import load_solution

Mask = NDArray[np.bool_]

CELLS = 512  # tested at once
SHARES = 0.0, 0.1, 0.3, 1.0, 3.0, 10.0  # of the second form in the metrics that are tried
TRIALS = 10  # radii, each SHRINKING times the last one, from the largest one that samples allow
SHRINKING = 0.85
REFINEMENTS = 2  # bisections between the largest proven radius and the next larger one
RATE = 0.1  # proven rate, as a share of the linearised loop's
CORNERS = 64  # of the parameters' box, that show the linearised loops and the disturbance
SHARPNESS = 300.0  # of the largest growth among them, as a smooth function of the metric
SAMPLES = 128  # states that show whether a ball is worth a proof
NEAR = 0.01  # factor of the radius of a quarter of them: there the loop is linear
SCREENINGS = 8  # of radii by samples
SMALL = 1e-4  # half width of their cells, as a share of the ball
HUGE = 1e6  # growth of a cell of which nothing is known
UNKNOWN = 1e3  # excess of a cell of which nothing is known
PUSHED = 1.3  # proven rate by the disturbance at the target, at least
FLAT = 1e-14  # smallest eigenvalue of P as a share of the largest
LEAST = 1e-9  # rate of the slowest motion that counts as none
HOPEFUL = 0.25  # share of the time after which half of the promised progress must be seen
NARROWEST = 2.0**-12  # a narrower cell is not halved
WIDTH = 0.1  # weight of a side's width by the parts of the bound, in the choice of the side to halve
PORTIONS = 0.25, 0.5, 0.75  # of a cell's margin, as the weight of its narrow cone
FACTORS = [0.003 * 2.0**k for k in range(10)]  # weights of a cell's cone in its matrix inequality


@dataclass(frozen=True)
class Ball:
    """Proven set of a closed loop: {e: e' S e <= 1} is invariant, and every trajectory from it enters its core."""

    shape: Array  # (n, n) S; zero rows for states on which nothing depends
    rate: float  # share by which the distance from the target shrinks in one control period, beyond the core
    core: float  # radius of the ball that is reached in the end, as a share of the proven one
    share: float  # volume of the proven ball by that of the basin's
    cells: int  # in the proof
    seconds: float  # processor time
    back: Array  # (n, d): e = back y, and the set is |y| <= 1
    basis: Array  # (d, r) of the cells
    tree: list[int]  # of the cells, as in `solver.proof`

    def to_json(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("rate", "core", "share", "cells", "seconds")}
        return {"shape": self.shape.tolist()} | kept | {"half_widths": self.half_widths.tolist()}

    def claim(self, spread: float) -> dict[str, Any]:
        """The ball as a claim of a file, for parameters within the spread."""
        arrays = {name: getattr(self, name).tolist() for name in ("shape", "back", "basis")}
        return {"spread": spread} | arrays | {"rate": self.rate, "core": self.core, "tree": self.tree}

    @classmethod
    def of_claim(cls, claim: dict[str, Any], loop: HeldLoop) -> Ball:
        """The ball of a claim, which took no time."""
        shape, back, basis = (np.array(claim[name]) for name in ("shape", "back", "basis"))
        P, S = (form[np.ix_(loop.seen, loop.seen)] for form in (loop.cost / loop.level, shape))
        share, cells = float(np.sqrt(np.linalg.det(P) / np.linalg.det(S))), claim["tree"].count(HELD)
        return cls(shape, claim["rate"], claim["core"], share, cells, 0.0, back, basis, claim["tree"])

    @property
    def half_widths(self) -> Array:
        """Largest errors (n,) in the set, in SI units; infinite for states on which nothing depends."""
        seen = np.diag(self.shape) > 0
        widths = np.full(len(seen), np.inf)
        widths[seen] = np.sqrt(np.diag(np.linalg.inv(self.shape[np.ix_(seen, seen)])))
        return widths


@dataclass(frozen=True)
class BasinProof:
    """Results of `solver prove`."""

    label: str
    robot: str
    state_names: tuple[str, ...]
    period: float  # s
    input_error: tuple[float, ...]  # (m,) in SI units, assumed
    nominal: Ball | None
    spread: float  # share by which every parameter may differ from its nominal value
    wrong: Ball | None  # for the parameters of the spread
    about: dict[str, Any]  # the loop, as in `solver.proof`
    reason: str | None = None  # why there is no set for the spread, where it is known
    reached: tuple[Reach | None, Reach | None] = (None, None)  # what is proven to enter `nominal`, and `wrong`

    @property
    def holds(self) -> bool:
        """Whether a set was proven for the nominal robot and for the spread."""
        return self.nominal is not None and self.wrong is not None

    def to_json(self) -> dict[str, Any]:
        """Content of `solver prove --json`."""
        balls = {
            name: None if (ball := getattr(self, name)) is None else ball.to_json() for name in ("nominal", "wrong")
        }
        reached = [None if reach is None else reach.to_json() for reach in self.reached]
        kept = {name: value for name, value in vars(self).items() if name != "about"}
        return kept | balls | {"reached": reached, "holds": self.holds}

    def write(self, path: Path) -> None:
        """Write the proof as data. Raises SolverError where nothing is proven or the file cannot be written."""
        sets = zip((0.0, self.spread), (self.nominal, self.wrong), self.reached, strict=True)
        claims = [
            ball.claim(spread) | ({} if reach is None else {"reach": reach.claim()})
            for k, (spread, ball, reach) in enumerate(sets)
            if ball is not None and (k == 0 or spread > 0)
        ]
        if not claims:
            raise SolverError(f"nothing is proven of {self.label}, so that {path} is not written")
        write(path, self.about | {"claims": claims})


def prove_basin(
    run: str | Path,
    spread: float = 0.05,
    seconds: float = 60.0,
    input_error: float = 1e-5,
    generated: str | None = None,
    reach: float = 0.0,
    resume: Path | None = None,
) -> BasinProof:
    """Proof about the basin of a run, or of a shipped policy by its name.

    spread: share by which every parameter may differ from its nominal value. seconds: processor time for one ball, of
    which up to about twelve are tried. input_error: bound of the error of the computed input, as a share of the input's
    range; it stands for the rounding of the exported policy. reach: processor time for the states from which every
    trajectory enters a ball (`solver.proof.reach`), none if 0. resume: file of an earlier proof, whose balls are kept
    and whose boxes are added to.

    Raises SolverError for a run without a value function or without a basin, where the linearised loop does not
    contract, and for a file of another run, spread or error of the input.
    """
    if resume is not None and not reach:
        raise SolverError("only a search outside the basin goes on: give --reach with --resume")
    solution = load_solution(run, generated)
    turning = solution.problem.geometry.rotations
    if turning:
        raise SolverError(
            f"the joint {turning[0].name} of {solution.problem.robot.name} is a rotation; only robots of angles and "
            f"lengths can be proven. `solver certify {run}` bounds how often the policy fails, by rollouts"
        )
    loop = HeldLoop(solution)
    robot, errors = solution.problem.robot, input_error * loop.limit
    about, shares = _about(run, loop, errors), (0.0, spread)
    known = solution.label, robot.name, robot.state_names, loop.step, tuple(errors.tolist())
    balls, before, reason = (
        _balls(loop, errors, spread, seconds) if resume is None else _stored(resume, about, loop, spread)
    )
    reached: list[Reach | None] = [None, None]
    for k in range(2 if reach else 0):
        if (ball := balls[k]) is not None and (k == 0 or spread > 0):
            box = shares[k] * np.abs(loop.nominal)
            reached[k] = prove_reach(solution, loop, ball.shape, box, float(errors[0]), reach, before[k])
    return BasinProof(*known, balls[0], spread, balls[1], about, reason, (reached[0], reached[1]))


def _balls(
    loop: HeldLoop, errors: Array, spread: float, seconds: float
) -> tuple[list[Ball | None], list[dict[str, Any] | None], str | None]:
    """Balls of the nominal robot and of the spread, no claims of a search before, and why there is no second ball."""
    search = BasinSearch(loop, errors)
    nominal = search.largest(np.zeros_like(loop.nominal), seconds)
    try:
        wrong = search.largest(spread * np.abs(loop.nominal), seconds) if nominal is not None else None
    except SolverError as error:
        return [nominal, None], [None, None], str(error)
    return [nominal, wrong], [None, None], None


def _stored(
    path: Path, about: dict[str, Any], loop: HeldLoop, spread: float
) -> tuple[list[Ball | None], list[dict[str, Any] | None], str | None]:
    """The same of a file. Raises SolverError for one of another run, spread or error of the input."""
    content = read(path, [*about, "claims"])
    other = [name for name in about if content[name] != about[name]]
    claims = {claim["spread"]: claim for claim in content["claims"]}
    if other or spread not in claims or not set(claims) <= {0.0, spread}:
        what = ", ".join(other) if other else f"spread, which is {max(claims):g}"
        raise SolverError(f"{path} is a proof of another {what}; give what it was made with to go on with it")
    both = [claims.get(share) for share in (0.0, spread)]
    try:
        balls = [None if claim is None else Ball.of_claim(claim, loop) for claim in both]
    except (LookupError, TypeError, ValueError) as error:
        raise SolverError(f"the proof {path} is wrong: a claim is not one that `solver prove --out` writes") from error
    return balls, [None if claim is None else claim.get("reach") for claim in both], None


def _about(run: str | Path, loop: HeldLoop, input_error: Array) -> dict[str, Any]:
    """What a file says of the loop."""
    arrays = {
        "target": loop.target,
        "cost": loop.cost,
        "trim": loop.trim,
        "middle": loop.middle,
        "limit": loop.limit,
        "bound": loop.bound,
        "parameters": loop.nominal,
        "input_error": input_error,
    }
    return {
        "policy": str(run),
        "robot": loop.robot.name,
        "program": loop.robot.program.digest,
        "checkpoint": sha256(run_folder(run) / CHECKPOINT),
        "period": loop.step,
        "hold": loop.hold,
        "level": loop.level,
    } | {name: array.tolist() for name, array in arrays.items()}


class BasinSearch:
    """Search for the largest provable ball of one loop, for parameters within `spread` (p,) of the nominal ones.

    input_error: largest error (m,) of the input that the robot's controller computes.
    """

    def __init__(self, loop: HeldLoop, input_error: Array) -> None:
        self.loop, self.input_error = loop, input_error
        n, seen = len(loop.target), loop.seen
        if loop.level == 0.0:
            raise SolverError(f"V of this run has no basin ({page('concepts/basin.md')}); only a basin can be proven")
        P = loop.cost[np.ix_(seen, seen)]
        if not np.linalg.eigvalsh(P).min() > FLAT * np.linalg.norm(P):
            raise SolverError("the state cost does not see every motion, so that V has no strict maximum at the target")
        if not loop.closed:
            raise SolverError("the motion depends on a state that V does not see, so that no ball of it shrinks")
        one = np.zeros((n, len(seen)))
        one[seen, np.arange(len(seen))] = 1.0
        small = 1e-9 * float(np.sqrt(loop.level / np.linalg.norm(P)))
        frame = loop.frame(one)
        at_target = loop.period(self.box(np.zeros(len(loop.nominal)), small, frame), frame, small, 0 * input_error)
        if not at_target.known.all():
            raise SolverError(
                "the basin of this run is so small that its policy looks up V outside it, even at the target; train it "
                "with --reaction-periods 0, or with a task whose inputs are stronger"
            )
        linear = np.eye(len(seen)) + at_target.change.middle[0]
        eigenvalue = float(np.abs(np.linalg.eigvals(linear)).max())
        if not eigenvalue < 1.0 - LEAST:
            raise SolverError(
                f"the linearised closed loop has an eigenvalue of size {eigenvalue:.6g} at the target, so that errors "
                "do not shrink there; a longer training, or another state cost, may change that"
            )
        self.linear, self.P, self.one = linear, P, one
        self.aim(np.zeros(len(loop.nominal)))

    def corners(self, spread: Array) -> Array:
        """Parameters (CORNERS, p): the nominal ones, and random corners of their box."""
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (CORNERS, len(spread)))
        signs[0] = 0.0
        return np.asarray(self.loop.nominal + spread * signs)

    def aim(self, spread: Array) -> None:
        """Choose the second form (d, d) of the metrics for parameters within `spread` (p,) of the nominal ones.

        It is a form that the linearised loops of all corners shrink, as P need not do: its discount lets e' P e shrink
        slowly, and it knows the nominal robot only. Raises SolverError if one of these loops is unstable.
        """
        self.loops, d = self.linear[None], len(self.P)
        if spread.any():
            frame, theta = self.loop.frame(self.one), self.corners(spread)
            cells, still = np.hstack([np.zeros((CORNERS, frame.basis.shape[1])), theta]), 0.0 * self.input_error
            small = 1e-9 * float(np.sqrt(self.loop.level / np.linalg.norm(self.P)))
            self.loops = np.eye(d) + self.loop.period(Cells(cells, cells), frame, small, still).change.middle
        largest = float(np.abs(np.linalg.eigvals(self.loops)).max())
        if not largest < 1.0 - LEAST:
            raise SolverError(
                f"the linearised closed loop of a robot within the spread has an eigenvalue of size {largest:.6g}: it "
                "is unstable, so that nothing can be proven. Give a smaller --spread"
            )
        self.second = _lyapunov(self.linear, self.P)
        if spread.any():
            self.second = _common(self.loops, self.second)
        self.second *= np.trace(np.linalg.solve(self.second, self.P)) / d
        self.shape(0.0)

    def growth(self, S: Array) -> float:
        """Largest norm of the linearised periods in the metric S (d, d)."""
        root = cholesky(S, lower=True).T
        return float(np.linalg.norm(root @ self.loops @ np.linalg.inv(root), 2, (1, 2)).max())

    def shape(self, share: float) -> None:
        """Let balls be those of the metric P + share second: y' y = e' S e with e = back y."""
        S = self.P + share * self.second
        self.back = self.one @ np.linalg.inv(cholesky(S, lower=True)).T
        self.frame = self.loop.frame(self.back)
        seen = self.back[self.loop.seen]
        self.rate = RATE * (1.0 - self.growth(S))
        self.widest = float(np.sqrt(self.loop.level / np.linalg.eigvalsh(seen.T @ self.P @ seen).max()))
        # volume of the ball of radius 1 by that of the basin
        self.volume = float(np.linalg.slogdet(seen)[1] + 0.5 * np.linalg.slogdet(self.P)[1])
        self.volume -= 0.5 * len(seen) * float(np.log(self.loop.level))

    def box(self, spread: Array, radius: float, frame: Frame) -> Cells:
        """One cell that holds the whole ball."""
        reach = np.full(frame.basis.shape[1], radius * (1 + 1e-12))
        nominal = self.loop.nominal
        ends = np.concatenate([-reach, nominal - spread]), np.concatenate([reach, nominal + spread])
        return Cells(ends[0][None], ends[1][None])

    def largest(self, spread: Array, seconds: float) -> Ball | None:
        """The largest ball that is proven within `seconds` of processor time for a radius; None if there is none.

        spread: (p,) by which parameters may differ. The metric is the one whose samples promise the largest volume.
        """
        promised = []
        self.aim(spread)
        for share in SHARES:
            self.shape(share)
            if self.rate > 0 and (radius := self.sampled(spread)):
                promised.append((self.volume + len(self.P) * np.log(radius), share, radius))
        if not promised:
            return None
        _, share, most = max(promised)
        self.shape(share)
        radius = high = most
        for _ in range(TRIALS):
            if good := self.prove(radius, spread, seconds):
                break
            high, radius = radius, SHRINKING * radius
        if good is None or radius == high:
            return good
        for _ in range(REFINEMENTS):
            middle = 0.5 * (radius + high)
            if proof := self.prove(middle, spread, seconds):
                good, radius = proof, middle
            else:
                high = middle
        return good

    def prove(self, radius: float, spread: Array, seconds: float) -> Ball | None:
        """Proof of one ball within `seconds` of processor time, or None."""
        start, count, pushed, done = time.process_time(), 0, 0.0, 0.0
        rate = self.needed(radius, spread)
        waiting, ids, tree = self.box(spread, radius, self.frame), np.zeros(1, np.int64), Tree()
        whole = waiting.upper - waiting.lower
        while len(waiting):
            spent = (time.process_time() - start) / seconds
            if spent > 1.0 or (spent > HOPEFUL and done < 0.5 * spent):
                return None
            now, rest = waiting[-CELLS:], waiting[:-CELLS]
            at, ids = ids[-CELLS:], ids[:-CELLS]
            judged = self.judge(now, radius, rate)
            pushed = max(pushed, float(judged.disturbance[judged.holds].max(initial=0.0)))
            count += int(judged.holds.sum())
            left = ~(judged.holds | judged.empty)
            done += float(
                np.where(whole > 0, (now.upper - now.lower)[~left] / np.where(whole > 0, whole, 1.0), 1.0).prod(1).sum()
            )
            width = (now.upper - now.lower)[left] / np.where(whole > 0, whole, 1.0)
            if (width.max(1, initial=0.0) < NARROWEST).any() or pushed > rate * radius:
                return None
            waiting = _joined(rest, _halved(now[left], judged.side[left]))
            decided = np.where(judged.empty, EMPTY, HELD)
            ids = np.concatenate([ids, tree.decide(at, np.where(left, judged.side, decided))])
        core = pushed / rate / radius
        return self._proof(radius, rate, core, count, time.process_time() - start, tree.walk())

    def needed(self, radius: float, spread: Array) -> float:
        """The rate to prove: RATE of the linearised loop's, or what keeps the disturbances from leaving the ball.

        Those are of random corners of the parameters' box.
        """
        middle = np.hstack([np.zeros((CORNERS, self.frame.basis.shape[1])), self.corners(spread)])
        period = self.loop.period(Cells(middle, middle), self.frame, radius, self.input_error)
        return max(self.rate, PUSHED * float(period.disturbance.max()) / radius)

    def judge(self, cells: Cells, radius: float, rate: float) -> Judgement:
        """What is known of N cells."""
        d = self.back.shape[1]
        cone = self._cone(cells, radius)
        period = self.loop.period(cells, self.frame, radius, self.input_error)
        unit = Affine.exact(np.broadcast_to(np.eye(d), period.change.middle.shape), period.change.symbols)
        after = unit + period.change
        square = after.mT @ after  # |y|^2 becomes y' square y
        small = period.known & (square.largest.max((1, 2)) < HUGE)
        square = Affine(
            *(
                np.where(small.reshape(-1, *[1] * (part.ndim - 1)), part, 0.0)
                for part in (square.middle, square.slopes, square.rest)
            )
        )
        rest = square.rest
        allowed = max(1.0 - rate, 0.0) ** 2 - 1e-12
        middle = 0.5 * (square.middle + np.swapaxes(square.middle, 1, 2)) - allowed * np.eye(d)
        turned = 0.5 * (square.slopes + np.swapaxes(square.slopes, 2, 3))
        size = np.linalg.norm(rest, 2, (1, 2)) if d == 1 else np.linalg.eigvalsh(rest)[:, -1]
        upper = middle + _magnitude(turned).sum(1) + size[:, None, None] * np.eye(d)
        excess = _largest(upper)
        for factor in FACTORS:
            excess = np.minimum(excess, _largest(upper + factor * cone.ball))
        parts = np.linalg.norm(turned, axis=(2, 3))
        at = np.flatnonzero((excess > 0) & (cone.least > 0))
        if len(at):
            g = cone.along[at]
            square_g = g[:, :, None] * g[:, None]
            parts[at], loose = cone.spread(turned, rest, at)
            far = (parts[at].sum(1) + loose) * (1 + 1e-9)
            straight = middle[at] + far[:, None, None] * square_g
            margin = -np.einsum("ni,nij,nj->n", g, straight, g)
            beside = square_g - cone.form[at]
            for share in PORTIONS:
                bound = straight + (share * np.maximum(margin, 0.0))[:, None, None] * beside
                excess[at] = np.minimum(excess[at], _largest(bound))
                if cone.form is not cone.bounded:
                    for factor in FACTORS[2::2]:
                        excess[at] = np.minimum(excess[at], _largest(bound + factor * cone.ball[at]))
        side = self._side(cells, parts, middle, cone, small)
        return Judgement(small & (excess <= 0), cone.empty, period.disturbance, np.where(small, excess, UNKNOWN), side)

    def _side(self, cells: Cells, parts: Array, middle: Array, cone: Cone, known: Mask) -> NDArray[np.int64]:
        """The side (N,) of each cell that widens its bound most: parts (N, s) of the symbols, and those of its cone."""
        frame, (r, p) = self.frame, (self.frame.basis.shape[1], len(self.loop.nominal))
        half = 0.5 * (cells.upper - cells.lower)
        score = parts[:, : r + p].copy()
        share = np.abs(frame.argument)[None] * half[:, None, :r]  # (N, m, r) of the chords' symbols
        share /= np.maximum(share.sum(2, keepdims=True), TINY)
        score[:, :r] += (share * parts[:, r + p :, None]).sum(1)
        narrow = cone.least > 0
        beside = (middle @ cone.along[..., None])[..., 0]
        beside -= (beside * cone.along).sum(1, keepdims=True) * cone.along
        turn = 2 * np.abs(beside @ frame.basis) * half[:, :r] / np.maximum(cone.least, TINY)[:, None]
        score[:, :r] += np.where(narrow[:, None], turn, 0.0)
        wide = half[:, :r] / np.maximum(half[:, :r].max(1, keepdims=True), TINY)
        score[:, :r] = np.where(known[:, None], score[:, :r] + WIDTH * wide * score.max(1, keepdims=True), wide)
        chosen: NDArray[np.int64] = np.where(half > 0, score, -1.0).argmax(1)
        return chosen

    def sampled(self, spread: Array) -> float:
        """The largest radius at which small cells about random states and parameters hold: more cannot be proven."""
        generator, d = np.random.default_rng(0), self.back.shape[1]
        r = self.frame.basis.shape[1]
        y = generator.normal(size=(SAMPLES, d))
        y *= generator.uniform(0.3, 1.0, (SAMPLES, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
        y[: SAMPLES // 4] *= NEAR
        theta = self.loop.nominal + spread * generator.choice([-1.0, 1.0], (SAMPLES, len(spread)))
        low, high, radius = 0.0, self.widest, self.widest * (1 - 1e-4)
        for _ in range(SCREENINGS):
            width = SMALL * self._reach(radius)
            width[r:] = 0.0
            middle = np.hstack([radius * y @ self.frame.basis, theta])
            cells = Cells(middle - width, middle + width)
            if self.judge(cells, radius, self.needed(radius, spread)).holds.all():
                low = radius
                if high == self.widest:
                    break
            else:
                high = radius
            radius = 0.5 * (low + high)
        return low

    def _reach(self, radius: float) -> Array:
        reach = np.concatenate([np.full(self.frame.basis.shape[1], radius), np.abs(self.loop.nominal)])
        return np.where(reach > 0, reach, 1.0)

    def _cone(self, cells: Cells, radius: float) -> Cone:
        """Where the states y of each cell are: their share z in the frame's basis, and what it leaves open."""
        basis = self.frame.basis
        d, r = basis.shape
        low, high = cells.lower[:, :r], cells.upper[:, :r]
        nearest = np.clip(0.0, low, high)
        size = np.linalg.norm(nearest, axis=1) * (1 - 1e-12)
        cosine = size / radius * (1 - 1e-12)
        direction = (nearest / np.maximum(size, TINY)[:, None]) @ basis.T
        ball = direction[:, :, None] * direction[:, None] - (cosine**2)[:, None, None] * np.eye(d)
        # the narrow cone about the cell's middle
        middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-14)
        along = middle / np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), TINY)
        least = (along * middle).sum(1) - (np.abs(along) * half).sum(1) - 1e-12 * radius
        turned = np.abs(np.eye(r) - along[:, :, None] * along[:, None])
        beside = (turned @ half[..., None])[..., 0] + 1e-12 * radius
        across = (basis.T - (along[:, :, None] * along[:, None]) @ basis.T) / beside[..., None]
        form = bounded = (across.mT @ across) * (np.maximum(least, TINY)[:, None, None] ** 2 / r)
        if r < d:
            far = np.maximum(radius / np.maximum(least, 1e-6 * radius), 1.0 + 1e-6) ** 2 - 1.0
            free = np.eye(d) - basis @ basis.T
            bounded = 0.5 * (form + free / far[:, None, None])
        return Cone(cosine > 1.0, ball, along @ basis.T, least, form, bounded)

    def _proof(self, radius: float, rate: float, core: float, cells: int, seconds: float, tree: list[int]) -> Ball:
        n, seen = len(self.loop.target), self.loop.seen
        forth = np.linalg.inv(self.back[seen]) / radius
        shape = np.zeros((n, n))
        shape[np.ix_(seen, seen)] = forth.T @ forth
        volume = float(np.exp(self.volume + len(seen) * np.log(radius)))
        return Ball(shape, rate, core, volume, cells, seconds, radius * self.back, self.frame.basis, tree)


@dataclass(frozen=True)
class Judgement:
    """What is known of N cells."""

    holds: Mask
    empty: Mask  # no state of the ball is in the cell
    disturbance: Array  # (N,) norm
    excess: Array  # (N,) of the bound; at most zero where the cell holds
    side: NDArray[np.int64]  # (N,) to halve where it does not


@dataclass(frozen=True)
class Cone:
    """Where the states y of N cells are."""

    empty: Mask  # no state of the ball is in the cell
    ball: Array  # (N, d, d): y' ball y >= 0
    along: Array  # (N, d) unit vectors g
    least: Array  # (N,) of g'y; the following needs a positive one
    form: Array  # (N, d, d) E: with y = (g + z) g'y and g'z = 0, z' E z <= 1
    bounded: Array  # (N, d, d): another such form that bounds every z

    def spread(self, turned: Array, rest: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Bounds (N, s) of y' turned_k y, and (N,) of y' rest y, by (g'y)^2 for some of the cells."""
        g, turned, rest = self.along[rows], turned[rows], rest[rows]
        inverse = np.linalg.inv(self.bounded[rows] + g[:, :, None] * g[:, None])
        at = np.einsum("nsij,nj->nsi", turned, g)
        straight = np.einsum("nsi,ni->ns", at, g)
        at -= straight[..., None] * g[:, None]
        slanted = np.sqrt(np.maximum(np.einsum("nsi,nij,nsj->ns", at, inverse, at), 0.0))
        wide = inverse - g[:, :, None] * g[:, None]
        bent = wide[:, None] @ turned
        curved = np.sqrt(np.maximum(np.einsum("nsij,nsji->ns", bent, bent), 0.0))
        size = np.abs(g) + np.sqrt(np.maximum(np.diagonal(wide, axis1=1, axis2=2), 0.0))
        loose = np.einsum("ni,nij,nj->n", size, rest, size)
        return np.abs(straight) + 2 * slanted + curved, loose


def _largest(forms: Array) -> Array:
    """Upper bounds (N,) of the largest eigenvalues of symmetric matrices (N, d, d)."""
    bound: Array = np.linalg.eigvalsh(forms)[:, -1] + 1e-14 * np.linalg.norm(forms, axis=(1, 2))
    return bound


def _magnitude(matrices: Array) -> Array:
    """The absolute values (..., d, d) of symmetric matrices: the same eigenvectors, no negative eigenvalue."""
    values, vectors = np.linalg.eigh(0.5 * (matrices + np.swapaxes(matrices, -1, -2)))
    size: Array = (vectors * np.abs(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return size


def _lyapunov(linear: Array, P: Array) -> Array:
    """The quadratic form that the linearised loop shrinks by e' P e in every period."""
    S = solve_discrete_lyapunov(linear.T, P)
    return np.asarray(0.5 * (S + S.T))


def _common(loops: Array, start: Array) -> Array:
    """A form (d, d) that all of the linear maps (N, d, d) shrink as fast as possible; `start` has their size."""
    root, d = cholesky(start, lower=True).T, len(start)
    maps, places = root @ loops @ np.linalg.inv(root), np.tril_indices(d)

    def growth(entries: Array) -> float:
        factor = np.zeros((d, d))
        factor[places] = entries
        scale = np.exp(np.diag(factor))
        np.fill_diagonal(factor, scale)
        norms = np.linalg.norm(factor @ maps @ np.linalg.inv(factor), 2, (1, 2)) ** 2
        return float(logsumexp(SHARPNESS * norms)) / SHARPNESS

    found = minimize(growth, np.zeros(len(places[0])), method="BFGS", options={"maxiter": 100}).x
    factor = np.zeros((d, d))
    factor[places] = found
    np.fill_diagonal(factor, np.exp(np.diag(factor)))
    form: Array = root.T @ factor.T @ factor @ root
    return form


def _halved(cells: Cells, side: NDArray[np.int64]) -> Cells:
    rows = np.arange(len(side))
    middle = (cells.lower[rows, side] + cells.upper[rows, side]) / 2
    below, above = cells.upper.copy(), cells.lower.copy()
    below[rows, side] = middle
    above[rows, side] = middle
    return _joined(Cells(cells.lower, below), Cells(above, cells.upper))


def _joined(a: Cells, b: Cells) -> Cells:
    return Cells(np.concatenate([a.lower, b.lower]), np.concatenate([a.upper, b.upper]))
