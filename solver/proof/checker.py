"""Independent check of a proof of `solver prove --out`, by Taylor models on the model's own equations.

It shares no code with the search but the file's format: no LLVM, no Torch, no derivative that the project computed. The
equations are the nodes of the artifact's program file. Their derivatives come from dual numbers, the motion in one
control period from Taylor's formula with a remainder over an enclosure of the motion. In a cell, with y after the
period written y+(y, theta), the claim |y+| <= (1 - rate) |y| + rate core is shown by one of two forms:

    |y+|^2 - ((1 - rate) |y|)^2 <= 2 (1 - rate) rate core |y|, a polynomial of second order and a rest
    |dy+/dy| <= 1 - rate over the hull of the cell and the target,  |y+(0, theta)| <= rate core

A cell that neither form shows is halved. Coordinates v are those of y in the claim's basis and its complement.
"""

from __future__ import annotations

import json
import math
import struct
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.proof import EMPTY, HELD, Equations, leaves, read, sha256
from solver.proof.balls import SMALLEST, Array, Mask
from solver.proof.closed_loop import ClosedLoop, numbers_of
from solver.proof.entering import Calls, Entering, entering
from solver.proof.level_check import LevelChecked, level_check
from solver.proof.taylor import Model, bent_by, influences, most, summed

CHECKPOINT = "checkpoint.pt"
SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
GENERATED = SHIPPED.parents[1] / "generated"
BATCH = 256  # boxes at once
DEEPEST = 24  # halvings of a cell of the file
ONE_IN = 10  # one of so many cells and boxes is checked by default
FIELDS = (
    *("policy", "robot", "program", "checkpoint", "period", "hold", "target", "cost", "level", "trim", "middle"),
    *("limit", "bound", "parameters", "input_error", "claims"),
)


def verify(loop: ClosedLoop, low: Array, high: Array, depth: int = DEEPEST) -> bool:
    """Whether the claim holds in boxes (N, d + p). A box that is not shown is halved `depth` times at most."""
    waiting = [(low, high, np.full(len(low), depth))]
    while waiting:
        low, high, left = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
        waiting = [(low[:-BATCH], high[:-BATCH], left[:-BATCH])] if len(low) > BATCH else []
        low, high, left = low[-BATCH:], high[-BATCH:], left[-BATCH:]
        here = ~_outside(low[:, : loop.d], high[:, : loop.d])
        if not here.any():
            continue
        low, high = _in_ball(low[here], high[here], loop.d)
        left, (shown, side) = left[here], _shown(loop, low, high)
        if (left[~shown] == 0).any():
            return False
        low, high, left, side = low[~shown], high[~shown], left[~shown], side[~shown]
        rows, middle = np.arange(len(side)), 0.5 * (low + high)
        below, above = high.copy(), low.copy()
        below[rows, side] = above[rows, side] = middle[rows, side]
        if len(low):
            waiting += [(low, below, left - 1), (above, high, left - 1)]
    return True


@np.errstate(all="ignore")  # nothing is known of a wide box, and what is not finite is not shown
def _shown(loop: ClosedLoop, low: Array, high: Array) -> tuple[Mask, NDArray[np.int64]]:
    """Whether the claim holds in boxes (N, d + p), and the side to halve where it does not."""
    d, width = loop.d, high - low
    wide, shrinks = np.flatnonzero((width > 0).any(0)), 1.0 - loop.rate
    end, _, known = loop.after(low, high, False)
    growth = _squares(end) - _squares(numbers_of(low, high, loop.m)[:d]).times(shrinks**2)
    distance = np.sqrt((_nearest(low, high, d) ** 2).sum(1)) * (1 - 1e-12)
    shown = known & (most(growth) <= 2 * shrinks * loop.rate * loop.core * distance)
    relative = width / np.where(np.arange(width.shape[1]) < d, 1.0, np.abs(0.25 * np.append(np.ones(d), loop.nominal)))
    side = np.where(known, wide[influences(growth)[: len(wide)].argmax(0)], relative.argmax(1))
    near = np.flatnonzero(~shown & (distance <= 2 * width[:, :d].max(1)))
    if len(near):
        shown[near], inside, other = _contracts(loop, low[near], high[near])
        closer = inside & (distance[near] <= 0.5 * width[near, :d].max(1))  # else the box is a small part of the hull
        side[near[closer]] = other[closer]
    return shown, side


def _contracts(loop: ClosedLoop, low: Array, high: Array) -> tuple[Mask, Mask, NDArray[np.int64]]:
    """Whether |dv+/dv| <= 1 - rate between boxes and the target, and v+ of the target is in the core.

    Also whether the slopes are known, and the side to halve.
    """
    d = loop.d
    to_target = np.arange(low.shape[1]) < d
    hull = np.where(to_target, np.minimum(low, 0.0), low), np.where(to_target, np.maximum(high, 0.0), high)
    at_target = np.where(to_target, 0.0, low), np.where(to_target, 0.0, high)
    _, slopes, inside = loop.after(*hull, True)
    still, _, known = loop.after(*at_target, False)
    pushed = np.sqrt(sum(entry.range.size**2 for entry in still)) * (1 + 1e-12)
    square = [[summed([row[i] * row[j] for row in slopes]) for j in range(d)] for i in range(d)]
    middle = np.moveaxis(_stacked(square, lambda number: number.terms[:1])[:, :, 0], 2, 0)
    linear, bent = _stacked(square, lambda number: number.slopes), _stacked(square, bent_by)
    rest = _stacked(square, lambda number: (number.sizes[1] + number.rest)[None])
    finite = np.asarray(np.isfinite(middle).all((1, 2)) & np.isfinite(rest).all((0, 1, 2)))
    sizes = np.linalg.norm(np.nan_to_num(np.moveaxis(linear, (2, 3), (0, 1))), 2, (2, 3))  # (k, N) of the symbols
    largest = np.linalg.eigvalsh(np.where(finite[:, None, None], middle, 0.0))[:, -1]
    beyond = np.linalg.norm(rest[:, :, 0], axis=(0, 1))
    bound = (largest + sizes.sum(0) + beyond) * (1 + 1e-12) + 1e-12
    shown = finite & inside & known & (bound <= (1.0 - loop.rate) ** 2) & (pushed <= loop.rate * loop.core)
    places, curved = np.flatnonzero((hull[1] > hull[0]).any(0)), np.linalg.norm(np.nan_to_num(bent), axis=(0, 1))
    scores = sizes + curved * np.nan_to_num(1 + beyond / np.maximum(curved.sum(0), SMALLEST))
    score = np.zeros((low.shape[1], len(low)))
    score[places] = scores[: len(places)]
    score *= ((high - low) / np.maximum(hull[1] - hull[0], SMALLEST)).T  # a narrow box in a wide hull stays in it
    return shown, finite & inside, score.argmax(0)


def _stacked(square: list[list[Model]], part: Callable[[Model], Array]) -> Array:
    return np.array([[part(entry) for entry in row] for row in square])


def _squares(numbers: list[Model]) -> Model:
    return summed([number * number for number in numbers])


def _nearest(low: Array, high: Array, d: int) -> Array:
    """The points (N, d) of boxes that are nearest to the target."""
    return np.asarray(np.clip(0.0, low[:, :d], high[:, :d]))


def _in_ball(low: Array, high: Array, d: int) -> tuple[Array, Array]:
    """Boxes (N, d + p) that hold the same vectors of at most length 1."""
    nearest = _nearest(low, high, d) ** 2
    reach = np.sqrt(np.maximum(1.0 - nearest.sum(1, keepdims=True) + nearest, 0.0))
    reach += 2e-6  # more than the tolerance of `_outside`
    low, high = low.copy(), high.copy()
    low[:, :d], high[:, :d] = np.maximum(low[:, :d], -reach), np.minimum(high[:, :d], reach)
    return low, high


def _outside(low: Array, high: Array) -> Mask:
    """Whether (N,) every vector of a box (N, k) is longer than 1."""
    nearest = np.clip(0.0, low, high)
    return np.asarray((nearest**2).sum(1) > 1 + 1e-12)


@dataclass(frozen=True)
class Checked:
    """Result for one claim."""

    spread: list[float]  # (p,) shares of the nominal parameters
    cells: int  # of the claim
    checked: int
    wrong: int  # cells that could not be shown
    seconds: float
    entering: Entering | None = None  # what is known of boxes that enter the set, if the claim has some
    level_set: LevelChecked | None = None  # the same of its level set

    @property
    def holds(self) -> bool:
        """Whether all checked cells and boxes hold."""
        parts = self.entering is None or self.entering.holds, self.level_set is None or self.level_set.wrong == 0
        return self.wrong == 0 and all(parts)


def check(
    path: Path,
    one_in: int = ONE_IN,
    seed: int = 0,
    generated: str | None = None,
    calls: Calls = starmap,
) -> list[Checked]:
    """Results for the claims of a proof, of which a random one in so many cells and boxes is checked; all for 1.

    calls: calls the check of each slice of boxes, for example in other processes; by default one after another.

    Raises SolverError for a file that is no proof, and for one that is not of this policy, model or parameters.
    """
    proof = read(path, FIELDS)
    equations = _require_same(proof, generated)
    try:
        claims = [(ClosedLoop(proof, equations, claim), claim) for claim in proof["claims"]]
        parts = [_checked(loop, claim, one_in, seed, calls) for loop, claim in claims]
        return [replace(part, entering=boxes and boxes()) for part, boxes in parts]
    except (LookupError, TypeError, ValueError, ZeroDivisionError) as error:
        raise SolverError(f"the proof {path} is wrong: a claim is not one that `solver prove --out` writes") from error


def _checked(
    loop: ClosedLoop, claim: dict[str, Any], one_in: int, seed: int, calls: Calls
) -> tuple[Checked, Callable[[], Entering] | None]:
    """Result for the cells of a claim, and for its boxes once these are checked."""
    start, ends = time.process_time(), np.full(loop.d, 1.0 + 1e-9)
    wide = np.array(claim["spread"]) * np.abs(loop.nominal)
    root = np.concatenate([-ends, loop.nominal - wide]), np.concatenate([ends, loop.nominal + wide])
    low, high, marks = leaves(claim["tree"], *root, loop.r, loop.d)
    chosen = np.random.default_rng(seed).integers(one_in, size=len(marks)) == 0
    chosen[0] |= not chosen.any()
    empty, held = chosen & (marks == EMPTY), chosen & (marks == HELD)
    wrong = int((~_outside(low[empty, : loop.r], high[empty, : loop.r])).sum())
    for rows in np.array_split(np.flatnonzero(held), max(1, held.sum() // BATCH)):
        wrong += not verify(loop, low[rows], high[rows])
        if wrong:
            break
    spent = time.process_time() - start
    boxes, level_set, same = None, None, (loop.proof, loop.equations, _folder(loop.proof) / CHECKPOINT, claim)
    if "reach" in claim and not wrong:
        boxes = entering(*same, one_in, seed, calls)
    if "level_set" in claim and not wrong:
        level_set = level_check(*same, one_in, seed)
    return Checked(claim["spread"], len(marks), int(chosen.sum()), wrong, spent, level_set=level_set), boxes


def _folder(proof: dict[str, Any]) -> Path:
    """Run folder of a proof. Raises SolverError if the folder does not exist."""
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
