"""Closed loops in numbers: the rows that a group of loops needs, and Newton's method along lines of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from sympy import Matrix, Symbol

from modelgen.arrays import Array
from modelgen.derivation.numeric import compiled_evaluator
from modelgen.errors import ModelError, Place
from modelgen.statement.declared import DeclaredParameter
from modelgen.statement.joints import Coordinate, Joint
from modelgen.statement.robot import Robot

CLOSED = 1e-9  # m or rad: a larger gap is open
STAGES = 48  # from the starting posture to a sample
FARTHEST = 0.8  # rad or m: a dependent coordinate that moves more within a stage is on another branch
SINGULAR = 1e-6  # smallest singular value of dgap/dz, relative to the largest


@dataclass(frozen=True)
class LoopSystem:
    """A group of loops: the rows of their gaps, the dependent coordinates z and the variables w, with numbers."""

    robot: Robot
    z: tuple[Coordinate, ...]  # (d,)
    joints: tuple[Joint, ...]
    parameters: tuple[DeclaredParameter, ...]
    rows: Matrix  # (rows, 1), of which some may be zero or follow from others
    metres: tuple[bool, ...]  # whether a row is a length
    facing: Matrix  # (loops, 1) 1 + 2 cos of the angle between two frames
    start_z: Array  # (d,)
    start_w: Array  # at the starting posture and nominal parameters
    place: Place

    @property
    def w(self) -> list[Symbol]:
        """Coordinates, then parameters."""
        return [*(joint.symbol for joint in self.joints), *(parameter.symbol for parameter in self.parameters)]

    def posture(self, w: Array) -> str:
        """Variables with their values, as text."""
        return ", ".join(f"{symbol} = {value:.4g}" for symbol, value in zip(self.w, w, strict=True)) or "all postures"

    def gap(self, values: Array) -> str:
        """The size of a gap as text."""
        long = np.array(self.metres)
        sizes = [(np.linalg.norm(values[long]), "m"), (np.linalg.norm(values[~long]), "rad")]
        return " and ".join(f"{size:.3g} {unit}" for size, unit in sizes if size > CLOSED or unit == "m")


def independent_rows(of: LoopSystem) -> list[int]:
    """The rows of the gap that do not follow from earlier ones, as many as there are dependent coordinates.

    Raises ModelError, with the degrees of freedom, for another number of dependent coordinates, and for one on which
    the gap does not depend.
    """
    symbols = [*of.z, *of.w]
    moved = [*of.z, *(joint.symbol for joint in of.joints)]
    for symbol in of.z:
        if symbol not in of.rows.free_symbols:
            raise ModelError(f"the dependent coordinate `{symbol}` does not move the ends of the loop.", of.place)
    slopes = compiled_evaluator(symbols, of.rows.jacobian(moved))
    start = np.concatenate([of.start_z, of.start_w])
    near = start + 0.1 * np.random.default_rng(0).uniform(-1, 1, (8, len(start))) * (np.arange(len(start)) < len(moved))
    matrices = slopes(near)
    kept: list[int] = []
    for row in range(of.rows.rows):
        values = np.linalg.svd(matrices[:, [*kept, row]], compute_uv=False)
        if (values[:, -1] > SINGULAR * values[:, 0]).any() and (values[:, -1] > 0).any():
            kept.append(row)
    if len(kept) == len(of.z):
        return kept
    names = ", ".join(f"`{symbol}`" for symbol in moved)
    left = len(moved) - len(kept)
    raise ModelError(
        f"the loop joins the coordinates {names} and takes {len(kept)} of their {len(moved)} degrees of freedom, which "
        f"leaves {left}; dependent={{...}} names {len(of.z)}. Name {len(kept)} of them.",
        of.place,
    )


class LoopSolver:
    """Newton's method for many postures at once."""

    def __init__(self, of: LoopSystem, kept: Sequence[int]) -> None:
        gap, symbols = Matrix([of.rows[k] for k in kept]), [*of.z, *of.w]
        self.of, self.size = of, len(kept)
        self.matrix = gap.row_join(gap.jacobian(of.z))
        self._both = compiled_evaluator(symbols, self.matrix)
        self._rows = compiled_evaluator(symbols, of.rows)
        self._curved = compiled_evaluator(symbols, Matrix.hstack(*(self.matrix[:, 1:].diff(symbol) for symbol in of.z)))

    def rows(self, z: Array, w: Array) -> Array:
        """All rows (N, rows) of the gap."""
        return self._rows(np.hstack([z, w]))[:, :, 0]

    def values(self, z: Array, w: Array) -> tuple[Array, Array]:
        """The gap (N, d) and dgap/dz (N, d, d)."""
        both = self._both(np.hstack([z, w]))
        return both[:, :, 0], both[:, :, 1:]

    def bends(self, z: Array, w: Array) -> Array:
        """Bounds (N,) of |J^-1 d2gap/dz2|: a step of Newton's method from an error e leaves at most bends e^2."""
        curved = np.linalg.solve(self.values(z, w)[1], self._curved(np.hstack([z, w])))
        return np.asarray(np.abs(curved).sum(axis=2).max(axis=1))

    def step(self, z: Array, w: Array) -> Array:
        """One step (N, d) of Newton's method; NaN where dgap/dz is singular."""
        gap, J = self.values(z, w)
        sound = np.asarray(np.isfinite(J).all(axis=(1, 2)) & np.isfinite(gap).all(axis=1))
        J = np.where(sound[:, None, None], J, np.eye(self.size))
        sound &= np.linalg.svd(J, compute_uv=False)[:, -1] > 1e-14
        J = np.where(sound[:, None, None], J, np.eye(self.size))
        return np.asarray(-np.linalg.solve(J, np.where(sound[:, None], gap, np.nan)[:, :, None])[:, :, 0], np.float64)

    def started(self) -> Array:
        """z (1, d) at the starting posture. Raises ModelError if the loop does not close there, or is singular."""
        of, w = self.of, self.of.start_w[None]
        exactly = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
        found = scipy.optimize.least_squares(lambda z: self.values(z[None], w)[0][0], of.start_z, **exactly)
        z = np.asarray(found.x)[None]
        for _ in range(3):
            move = self.step(z, w)
            z = z + np.where(np.isfinite(move) & (np.abs(move) < CLOSED), move, 0.0)
        left = self.rows(z, w)[0]
        if np.abs(left).max() > CLOSED:
            raise ModelError(
                f"the loop cannot close at the starting posture, {of.posture(of.start_w)}: a gap of {of.gap(left)} "
                "remains. Check the lengths, or write other values in dependent={...} or at={...}.",
                of.place,
            )
        if (compiled_evaluator([*of.z, *of.w], of.facing)(np.hstack([z, w])) < 0).any():
            posture = ", ".join(f"{symbol} = {value:.4g}" for symbol, value in zip(of.z, z[0], strict=True))
            raise ModelError(
                f"the frames of the loop lie half a turn apart at {posture}, and not on each other. Write values in "
                "dependent={...} from which they come to coincide.",
                of.place,
            )
        if _worst(self.values(z, w)[1])[0] < SINGULAR:
            names = ", ".join(f"`{symbol}`" for symbol in of.z)
            raise ModelError(
                f"the loop is singular at the starting posture, {of.posture(of.start_w)}: {names} do not follow from "
                "the other coordinates there. Choose other dependent coordinates, or another posture by at={...}.",
                of.place,
            )
        return z

    def followed(self, start: Array, first: Array, ends: Array) -> tuple[Array, ModelError | None]:
        """z (N, d) on straight lines from `start` (1, d) at `first` (w,) to `ends` (N, w), and the first failure."""
        z = np.repeat(start, len(ends), axis=0)
        side = np.sign(np.linalg.det(self.values(start, first[None])[1]))
        for stage in range(1, STAGES + 1):
            w = first + stage / STAGES * (ends - first)
            moved = z
            for _ in range(6):
                moved = moved + np.nan_to_num(np.clip(self.step(moved, w), -FARTHEST, FARTHEST))
            gap, J = self.values(moved, w)
            worst = _worst(J)
            lost = ~(np.abs(gap).max(axis=1) <= CLOSED) | ~(np.abs(moved - z).max(axis=1) <= FARTHEST)
            lost |= ~(np.sign(np.linalg.det(np.nan_to_num(J))) == side) | ~(worst > SINGULAR)
            if lost.any():
                number = int(np.flatnonzero(lost)[0])
                return z, self._failure(z[number], w[number])
            z = moved
        return z, None

    def _failure(self, z: Array, w: Array) -> ModelError:
        found = scipy.optimize.least_squares(lambda at: self.values(at[None], w[None])[0][0], z)
        left = self.rows(np.asarray(found.x)[None], w[None])[0]
        advice = "Narrow the limits of the coordinates"
        advice += " or the bounds of the parameters" if self.of.parameters else ""
        if np.abs(left).max() > 1e3 * CLOSED:
            return ModelError(
                f"the loop cannot close at {self.of.posture(w)}: a gap of {self.of.gap(left)} remains. {advice}, so "
                "that it closes on the whole domain.",
                self.of.place,
            )
        names = ", ".join(f"`{symbol}`" for symbol in self.of.z)
        return ModelError(
            f"the loop is singular near {self.of.posture(w)}: {names} do not follow from the other coordinates there. "
            f"{advice}, or choose other dependent coordinates.",
            self.of.place,
        )


def _worst(J: Array) -> Array:
    """The smallest singular value of matrices (N, d, d), relative to the largest."""
    values = np.linalg.svd(np.nan_to_num(J), compute_uv=False)
    return np.asarray(values[:, -1] / np.maximum(values[:, 0], 1e-300))
