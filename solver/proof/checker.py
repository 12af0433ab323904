"""Independent check of a proof of `solver prove --out`, by ball arithmetic (Arb) on the model's own equations.

It shares no code with the search but the file's format: no LLVM, no Torch, no derivative that the project computed. The
equations are the nodes of the artifact's program file. Their derivatives come from dual numbers, the motion in one
control period from Taylor's formula with a remainder over an enclosure of the motion. In a cell, with y after the
period written y+(y, theta), the claim |y+| <= (1 - rate) |y| + rate core is shown by one of two forms:

    g(middle) + sum_j max |dg/dv_j| half_j <= 0,  g = |y+|^2 - ((1 - rate) |y|)^2 - 2 (1 - rate) rate core |y|
    |dy+/dy| <= 1 - rate over the hull of the cell and the target,  |y+(0, theta)| <= rate core

A cell that neither form shows is halved. Coordinates v are those of y in the claim's basis and its complement.
"""

from __future__ import annotations

import json
import math
import random
import struct
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solver.errors import SolverError
from solver.proof import EMPTY, HELD, read, sha256
from solver.proof.balls import Equations, Number, arb, arb_mat, ball, ctx, definite, largest_norm
from solver.proof.closed_loop import ClosedLoop
from solver.proof.entering import Entering, entering

CHECKPOINT = "checkpoint.pt"
SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
GENERATED = SHIPPED.parents[1] / "generated"
BITS = 80  # of the ball arithmetic
DEEPEST = 24  # halvings of a cell of the file
SHARE = 10  # one of so many cells is checked by default
FIELDS = (
    *("policy", "robot", "program", "checkpoint", "period", "hold", "target", "cost", "level", "trim", "middle"),
    *("limit", "bound", "parameters", "input_error", "claims"),
)


@dataclass(frozen=True)
class Box:
    """A box of v (d,) and of parameters (p,)."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def halved(self, side: int) -> tuple[Box, Box]:
        middle = (self.lower[side] + self.upper[side]) / 2
        below, above = list(self.upper), list(self.lower)
        below[side] = above[side] = middle
        return Box(self.lower, tuple(below)), Box(tuple(above), self.upper)

    def widths(self) -> list[float]:
        return [high - low for low, high in zip(self.lower, self.upper, strict=True)]


def around_target(loop: ClosedLoop, half: float = 0.05) -> Box:
    """A small box about the target at the nominal parameters."""
    theta = tuple(loop.proof["parameters"])
    return Box((-half,) * loop.d + theta, (half,) * loop.d + theta)


def verify(loop: ClosedLoop, box: Box, depth: int = DEEPEST) -> bool:
    """Whether the claim holds in a box."""
    waiting = [(box, depth)]
    while waiting:
        box, depth = waiting.pop()
        v = [ball(a, b) for a, b in zip(box.lower[: loop.d], box.upper[: loop.d], strict=True)]
        if _outside(v):
            continue
        side = _side_left(loop, box, v)
        if side < 0:
            continue
        if depth == 0:
            return False
        waiting += [(half, depth - 1) for half in box.halved(side)]
    return True


def _side_left(loop: ClosedLoop, box: Box, v: list[Number]) -> int:
    """-1 where the claim holds in the box, else the side to halve."""
    d, size = loop.d, loop.d + loop.p
    theta = [ball(a, b) for a, b in zip(box.lower[d:], box.upper[d:], strict=True)]
    widths = box.widths()
    try:
        end, slopes, inside = loop.after(v, theta)
    except (ZeroDivisionError, ValueError):  # balls so wide that a matrix may be singular, or that do not meet
        end, slopes, inside = [], [], False
    widest = max(range(d), key=lambda j: widths[j])
    if not inside:
        return widest
    shrinks = 1 - arb(loop.rate)
    middle = [(low + high) / 2 for low, high in zip(box.lower, box.upper, strict=True)]
    at, _, _ = loop.after([arb(value) for value in middle[:d]], [arb(value) for value in middle[d:]])
    half = [arb(width) / 2 * (1 + arb(1e-12)) for width in widths]
    now = [
        end[i].intersection(at[i] + ball(-1, 1) * sum((abs(slopes[i][j]) * half[j] for j in range(size)), arb(0)))
        for i in range(d)
    ]
    distance = sum((value.abs_lower() ** 2 for value in v), arb(0)).sqrt().lower()
    base = sum((a * a for a in at), arb(0)) - shrinks**2 * sum((arb(value) ** 2 for value in middle[:d]), arb(0))
    steep = [
        2 * sum((slopes[i][j] * now[i] for i in range(d)), arb(0)) - (2 * shrinks**2 * v[j] if j < d else 0)
        for j in range(size)
    ]
    bound = base + sum((abs(steep[j]) * half[j] for j in range(size)), arb(0))
    if bound - 2 * shrinks * loop.rate * loop.core * distance <= 0:
        return -1
    if distance <= 2 * max(widths[:d]) and _contracts(loop, box, theta):
        return -1
    if distance <= 2 * max(widths[:d]):
        return _side_at_target(loop, slopes, v, widths)
    score = [float((steep[j].rad() * half[j]).upper()) for j in range(size)]
    best = max(range(size), key=lambda j: score[j])
    return best if widths[best] > 0 else widest


def _side_at_target(loop: ClosedLoop, slopes: list[list[Number]], v: list[Number], widths: list[float]) -> int:
    """The side to halve of a box near the target: the one that widens the slopes dv+/dv most.

    There dv+/dtheta is proportional to v, and tells how the slopes change with theta.
    """
    d, size = loop.d, float(largest_norm(v))
    theta = [sum(float(row[d + j].abs_upper()) for row in slopes) * widths[d + j] / (2 * size) for j in range(loop.p)]
    spread = sum(float(row[j].rad()) for row in slopes for j in range(d)) - sum(theta)
    largest = max(range(loop.p), key=lambda j: theta[j]) if loop.p else 0
    if not loop.p or theta[largest] <= spread:
        return max(range(d), key=lambda j: widths[j])
    return d + largest


def _contracts(loop: ClosedLoop, box: Box, theta: list[Number]) -> bool:
    """Whether |dv+/dv| <= 1 - rate between the box and the target, and v+ of the target is in the core."""
    d = loop.d
    hull = [ball(min(a, 0.0), max(b, 0.0)) for a, b in zip(box.lower[:d], box.upper[:d], strict=True)]
    _, slopes, inside = loop.after(hull, theta)
    still, _, known = loop.after([arb(0)] * d, theta)
    if not (inside and known):
        return False
    jacobian = arb_mat([row[:d] for row in slopes])
    square = jacobian.transpose() * jacobian
    free = arb_mat([[(1 - arb(loop.rate)) ** 2 * (i == j) - square[i, j] for j in range(d)] for i in range(d)])
    return bool(largest_norm(still) <= loop.rate * loop.core) and definite(free)


def _outside(v: Sequence[Number]) -> bool:
    """Whether every vector of balls is longer than 1."""
    return bool(sum((value.abs_lower() ** 2 for value in v), arb(0)) > 1)


def leaves(tree: Sequence[int], root: Box, free: int, claim_sides: int) -> Iterator[tuple[Box, int]]:
    """The cells of a tree with their marks. The sides of the file skip `free` coordinates after the first ones."""
    waiting, places = [root], iter(tree)
    while waiting:
        box = waiting.pop()
        mark = next(places, None)
        if mark is None or mark >= len(root.lower) - free or mark < EMPTY:
            raise SolverError("the proof is wrong: its tree of cells is not complete")
        if mark < 0:
            yield box, mark
        else:
            below, above = box.halved(mark if mark < claim_sides else mark + free)
            waiting += [above, below]
    if next(places, None) is not None:
        raise SolverError("the proof is wrong: its tree has cells that no other one contains")


@dataclass(frozen=True)
class Checked:
    """Result for one claim."""

    spread: list[float]  # (p,) shares of the nominal parameters
    cells: int  # of the claim
    checked: int
    wrong: int  # cells that could not be shown
    seconds: float
    entering: Entering | None = None  # what is known of boxes that enter the set, if the claim has some

    @property
    def holds(self) -> bool:
        """Whether all checked cells and boxes hold."""
        return self.wrong == 0 and (self.entering is None or self.entering.holds)


def check(path: Path, every: bool = False, seed: int = 0, generated: str | None = None) -> list[Checked]:
    """Results for the claims of a proof. Checks all cells, or a random one of SHARE.

    Raises SolverError for a file that is no proof, and for one that is not of this policy, model or parameters.
    """
    ctx.prec = BITS
    proof = read(path, FIELDS)
    equations = _require_same(proof, generated)
    try:
        return [_checked(ClosedLoop(proof, equations, claim), claim, every, seed) for claim in proof["claims"]]
    except (LookupError, TypeError, ValueError, ZeroDivisionError) as error:
        raise SolverError(f"the proof {path} is wrong: a claim is not one that `solver prove --out` writes") from error


def _checked(loop: ClosedLoop, claim: dict[str, Any], every: bool, seed: int) -> Checked:
    start, chooser, free = time.process_time(), random.Random(seed), loop.d - loop.r
    ends = [1.0 + 1e-9] * loop.d
    wide = [share * abs(value) for share, value in zip(claim["spread"], loop.proof["parameters"], strict=True)]
    theta = [(value - r, value + r) for value, r in zip(loop.proof["parameters"], wide, strict=True)]
    root = Box(tuple([-end for end in ends] + [low for low, _ in theta]), tuple(ends + [high for _, high in theta]))
    cells = list(leaves(claim["tree"], root, free, loop.r))
    chosen = [cell for cell in cells if every or chooser.randrange(SHARE) == 0] or cells[:1]
    wrong = 0
    for box, mark in chosen:
        if mark == EMPTY:
            v = [ball(a, b) for a, b in zip(box.lower[: loop.r], box.upper[: loop.r], strict=True)]
            wrong += not _outside(v)
        elif mark == HELD:
            wrong += not verify(loop, box)
        if wrong:
            break
    spent = time.process_time() - start
    boxes = None
    if "reach" in claim and not wrong:
        boxes = entering(
            loop.proof, loop.equations, _folder(loop.proof) / CHECKPOINT, claim, 1 if every else SHARE, seed
        )
    return Checked(claim["spread"], len(cells), len(chosen), wrong, spent, boxes)


def _folder(proof: dict[str, Any]) -> Path:
    """Run folder of a proof. Raises SolverError where there is none."""
    folder = Path(proof["policy"])
    folder = folder if folder.exists() else SHIPPED / folder
    if not (folder / "run.json").is_file():
        raise SolverError(f"the proof is of {proof['policy']}, and there is no such run folder or shipped policy")
    return folder


def _require_same(proof: dict[str, Any], generated: str | None) -> Equations:
    """Equations of the proof's robot. Raises SolverError unless the proof is of this run and this artifact."""

    def single(value: float) -> float:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])

    def require(same: bool, what: str) -> None:
        if not same:
            raise SolverError(f"the proof is refused: {what} is not that of {proof['policy']}")

    folder = _folder(proof)
    run, checkpoint = json.loads((folder / "run.json").read_text()), folder / CHECKPOINT
    require(sha256(checkpoint) == proof["checkpoint"], "the checkpoint")
    places = [Path(generated)] if generated else [folder / "artifact", *map(Path, filter(None, [run["generated"]]))]
    places += [] if generated else [Path("generated"), GENERATED]
    place = next((place / run["robot"] for place in places if (place / run["robot"] / "manifest.json").is_file()), None)
    if place is None:
        raise SolverError(f"there is no artifact of {run['robot']}; run `modelgen build {run['robot']}` first")
    manifest = json.loads((place / "manifest.json").read_text())
    program = next(iter(place.glob(f"program_{proof['program'][:12]}.json")), None)
    require(run["robot"] == proof["robot"], "the robot")
    require(program is not None and sha256(program) == proof["program"] == manifest["program"], "the model")
    assert program is not None
    data = manifest["metadata"]
    require([p["value"] for p in data["parameters"]] == proof["parameters"], "a parameter")
    require([single(value) for value in data["task"]["target"]] == proof["target"], "the target")  # that of V
    for name, default in (("limit", None), ("trim", 0.0), ("middle", 0.0)):
        require([entry.get(name, default) for entry in data["inputs"]] == proof[name], f"the {name} of an input")
    limits = [
        math.pi if state["continuous"] else state["limit"] - abs(target)
        for state, target in zip(data["states"], proof["target"], strict=True)
    ]
    require(limits == proof["bound"], "a limit of the states")
    require(abs(1 / data["task"]["control_rate"] - proof["period"]) < 1e-12, "the control period")
    periods = run["settings"].get("reaction_periods", 1.0)
    require(abs(periods * proof["period"] - proof["hold"]) < 1e-12, "the hold of the policy")
    require(not run["settings"].get("drift", False), "the formula of the policy")
    with zipfile.ZipFile(checkpoint) as stored:
        parts = [stored.read(name) for name in stored.namelist() if stored.getinfo(name).file_size < 1 << 16]
    flat = [value for row in proof["cost"] for value in row]
    require(struct.pack(f"<{len(flat)}f", *flat) in parts, "the quadratic form P")
    level = struct.pack("<f", proof["level"]), struct.pack(">d", proof["level"]), struct.pack("<d", proof["level"])
    require(any(part in parts or any(part in whole for whole in parts) for part in level), "the basin's level")
    return Equations(json.loads(program.read_text()))
