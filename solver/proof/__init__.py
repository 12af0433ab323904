"""A proof as data: a JSON file that says what is claimed, of what, and how the set was cut into cells.

    {"format": 3, "digest": sha256 of the rest, "policy": "pendulum-rfvi", "robot": "pendulum",
     "program": sha256, "checkpoint": sha256, "period": s, "hold": s, "target": [n], "cost": [n][n], "level": ..,
     "trim": [m], "middle": [m], "limit": [m], "bound": [n], "parameters": [p], "input_error": [m],
     "claims": [{"spread": [p], "shape": [n][n], "back": [n][d], "basis": [d][r], "rate": .., "core": ..,
                 "tree": [..]}]}

A claim may have "reach": {"first": k, "seconds": .., "slices": [[[k, periods, i, j, periods, i, j, ..], ..], ..]}, the
groups of boxes of each of `slices` of its robots. They name boxes of grids of k boxes a state over all angles and the
states within the limits. The images of a group's boxes, after one of their periods, lie within earlier groups, or
within boxes of the first grid that are in the set.

A claim may have "level_set": {"level": c, "half": [n], "back": [n][n], "tree": [..], "seconds": ..}. V is that of
the networks, e = back y. From each state within the limits with V >= -c and |y| <= half that is not in the claim's set,
V rises in a period, and the next state is within the limits and |y| <= half, too. HELD cells are those in which V
rises. Every other one is beyond a limit, or in the claim's set, or has a lower V.

A claim's set is {|y| <= 1} with e = back y, of which shape = back^-T back^-1 is the quadratic form. Cells are boxes of
(basis' y, parameters). The first one holds the whole set. The tree names the cells in the order of a walk that takes
lower halves first: the number of the side that is halved, HELD for a proven cell, EMPTY for one outside the set.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.files import replacing
from solver.errors import SolverError

FORMAT = 3
SLICE = 0.03  # largest share by which a parameter of a slice differs from the middle's
HELD, EMPTY = -1, -2
CURVED = {"sin", "cos", "exp", "log", "sqrt", "atan", "tanh"}  # functions that the check knows


def within(spread: Sequence[float], names: Sequence[str] = ()) -> str:
    """Words for robots whose parameters differ by up to `spread` (p,), shares of their nominal values.

    names: of the parameters (p,), where they are known.
    """
    if not any(spread):
        return "nominal"
    if names and len(set(spread)) > 1:
        return ", ".join(f"{name} +-{100 * share:g} %" for name, share in zip(names, spread, strict=True) if share)
    shares = spread if len(set(spread)) > 1 else spread[:1]
    return "+-" + ", ".join(f"{100 * share:g}" for share in shares) + " %"


def slices(spread: Sequence[float]) -> list[tuple[tuple[float, float], ...]]:
    """Slices of robots of a spread (p,): p middles and half widths of parameters, shares of their nominal values."""
    sides = []
    for share in spread:
        count = max(1, math.ceil(share / SLICE - 1e-9))
        half = share / count
        sides.append([(1.0 - share + (2 * k + 1) * half, half) for k in range(count)])
    return list(product(*sides))


class Tree:
    """Cells that a search halves, decides or has not seen yet."""

    def __init__(self) -> None:
        self.sides, self.lower = [EMPTY], [0]

    @classmethod
    def grown(cls, sides: Sequence[int]) -> tuple[Tree, NDArray[np.int64]]:
        """The tree of a walk that is complete (`leaves`), and the numbers (N,) of its EMPTY cells, in this order."""
        tree, waiting, found = cls(), [0], []
        for side in sides:
            node = waiting.pop()
            waiting += tree.decide(np.array([node]), np.array([side])).tolist()[::-1]
            if side == EMPTY:
                found.append(node)
        return tree, np.array(found, np.int64)

    def decide(self, nodes: NDArray[np.int64], sides: NDArray[np.int64]) -> NDArray[np.int64]:
        """Enter the sides (N,) of cells, HELD or EMPTY. Gives the numbers of the halves, the lower ones first."""
        halved = nodes[sides >= 0]
        first = len(self.sides) + 2 * np.arange(len(halved))
        for node, side in zip(nodes.tolist(), sides.tolist(), strict=True):
            self.sides[node] = side
        for node, child in zip(halved.tolist(), first.tolist(), strict=True):
            self.lower[node] = child
        self.sides += [EMPTY] * (2 * len(halved))
        self.lower += [0] * (2 * len(halved))
        return np.concatenate([first, first + 1])

    def walk(self) -> list[int]:
        """The sides in the order of the file."""
        found, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            found.append(self.sides[node])
            if found[-1] >= 0:
                waiting += [self.lower[node] + 1, self.lower[node]]
        return found


def leaves(
    tree: Sequence[int], low: NDArray[np.float64], high: NDArray[np.float64], r: int, d: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The cells of a tree in a box (k,): both ends (N, k), and marks (N,).

    The sides of the file are r of the first d coordinates, then the parameters.
    """
    waiting, places, found = [(low, high)], iter(tree), []
    while waiting:
        low, high = waiting.pop()
        mark = next(places, None)
        if type(mark) is not int or mark >= len(low) - d + r or mark < EMPTY:
            raise SolverError("the proof is wrong: its tree of cells is not complete")
        if mark < 0:
            found.append((low, high, mark))
        else:
            side = mark if mark < r else mark + d - r
            middle, below, above = (low[side] + high[side]) / 2, high.copy(), low.copy()
            below[side] = above[side] = middle
            waiting += [(above, high), (low, below)]
    if next(places, None) is not None:
        raise SolverError("the proof is wrong: its tree has cells that no other one contains")
    lows, highs, marks = zip(*found, strict=True)
    return np.array(lows), np.array(highs), np.array(marks)


def sha256(path: Path) -> str:
    """Hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(proof: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(proof, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: Path, proof: dict[str, Any]) -> None:
    """Write a proof. Raises SolverError where the file cannot be written."""
    text = json.dumps({"format": FORMAT, "digest": _digest(proof)} | proof, separators=(",", ":")) + "\n"
    with replacing(path, SolverError) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def read(path: Path, fields: Sequence[str]) -> dict[str, Any]:
    """The content of a proof. Raises SolverError for another file, and for one that lacks a field."""
    try:
        content = json.loads(text := path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SolverError(f"cannot read the proof {path}: {why}. Write one with `solver prove --out FILE`.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SolverError(f"{path} is no proof of `solver prove --out` in format {FORMAT}")
    same = text == json.dumps(content, separators=(",", ":")) + "\n"  # another digit may be the same number
    stated = content.pop("digest", None)
    if not same or stated != _digest({name: value for name, value in content.items() if name != "format"}):
        raise SolverError(f"the proof {path} was changed: its digest is not that of its content")
    missing = [name for name in fields if name not in content]
    if missing:
        raise SolverError(f"the proof {path} lacks {', '.join(missing)}")
    return content


class Equations:
    """Functions of a program file, whose format `modelgen.program.stored` describes."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.nodes, self.arguments, self.functions = content["nodes"], content["arguments"], content["functions"]

    def __call__(self, function: str, known: dict[str, list[Any]], constant: Callable[[float], Any]) -> list[Any]:
        """Entries of each output, at the entries of each argument."""
        values = {at: entry for name, row in known.items() for at, entry in zip(self.arguments[name], row, strict=True)}
        outputs = self.functions[function]["outputs"]
        for at in self._order(function):
            if at not in values:
                values[at] = self._value(self.nodes[at], values, constant)
        return [[values[at] for at in entries] for _, _, entries in outputs]

    @cache  # noqa: B019
    def _order(self, function: str) -> list[int]:
        waiting, needed = [at for output in self.functions[function]["outputs"] for at in output[2]], set()
        while waiting:
            at = waiting.pop()
            if at not in needed:
                needed.add(at)
                if isinstance(node := self.nodes[at], list):
                    waiting += node[1:2] if node[0] == "solution" else node[1:]
        return sorted(needed)

    def _value(self, node: Any, values: dict[int, Any], constant: Callable[[float], Any]) -> Any:
        if isinstance(node, (int, float)):
            return constant(float(node))
        if isinstance(node, str):
            raise SolverError(f"the equations need the number `{node}`, which the check does not know")
        kind, a = node[0], values[node[1]]
        if kind == "solution":
            return a
        if kind == "negative":
            return -a
        if kind in CURVED:
            return a.function(kind)
        b = values[node[2]] if len(node) > 2 else None
        if kind in {"minimum", "maximum"}:
            return a.chosen(b, kind == "maximum")
        if kind == "add":
            return a + b
        if kind == "sub":
            return a - b
        if kind == "mul":
            return a * b
        if kind == "div":
            return a / b
        raise SolverError(f"the check has no rule for the operation `{kind}` of the equations")
