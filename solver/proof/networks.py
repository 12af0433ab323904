"""Networks of a checkpoint, read without Torch, and the slopes of their V over sets of states.

V is evaluated on power series of the states, whose coefficients are balls: at the middle of a set, and over tiles of
the domain, where the highest ones bound the remainder of Taylor's formula.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from solver.errors import SolverError
from solver.proof.balls import ROUNDING, Array, Balls, Mask
from solver.proof.jets import Jet, Powers, Sloped, Tiles, sloped

DIAGONAL = 1e-3  # smallest diagonal entry of the networks' L
ORDER = 3  # of the power series
TILES = 256  # parts of the domain, a state
TOGETHER = 256  # sets at once
EXTREMES = 0.0, *(sign * (share / 3) ** 0.5 for share in (1, 2) for sign in (-1, 1))  # of the factors of tanh's series


class Reader(pickle.Unpickler):
    """Arrays of a checkpoint, without Torch. Anything but tensors and plain data is refused."""

    def __init__(self, stored: zipfile.ZipFile) -> None:
        (name,) = (name for name in stored.namelist() if name.endswith("/data.pkl"))
        super().__init__(io.BytesIO(stored.read(name)))
        self.stored, self.folder = stored, name.removesuffix("data.pkl")
        if stored.read(self.folder + "byteorder") != b"little":
            raise SolverError("the checkpoint is of a machine with another order of bytes")

    def find_class(self, module: str, name: str) -> Any:
        kinds = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8", "BoolStorage": "?"}
        if module == "torch" and name in kinds:
            return kinds[name]
        known = {("torch._utils", "_rebuild_tensor_v2"): _tensor, ("collections", "OrderedDict"): OrderedDict}
        if (module, name) not in known:
            raise SolverError(f"the checkpoint holds {module}.{name}, which the check does not know")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        return np.frombuffer(self.stored.read(f"{self.folder}data/{pid[2]}"), pid[1])


def _tensor(values: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Any:
    each = values.itemsize
    return np.lib.stride_tricks.as_strided(values[offset:], shape, [each * stride for stride in strides]).copy()


class Networks:
    """dV/dx of the networks of a checkpoint: V = -mean |L(z)' y|^2 with the features z and the error y."""

    def __init__(self, checkpoint: Path, target: Array, lower: Array, upper: Array, around: Mask) -> None:
        with zipfile.ZipFile(checkpoint) as stored:
            content = Reader(stored).load()
        arrays = (content["best"] or content)["ensemble"]
        self.arrays = {name: np.asarray(value, np.float64) for name, value in arrays.items()}
        self.angles, self.others = (arrays[name].astype(int) for name in ("angles", "others"))
        if not np.array_equal(self.arrays["target"], target.astype(np.float32)):
            raise SolverError("the proof is refused: the target is not that of the networks")
        if "polynomial" in arrays or len(self.angles) + len(self.others) != len(target):
            raise SolverError("the check knows no networks of rotations or of told parameters")
        if not np.isin(np.flatnonzero(around), self.angles).all():
            raise SolverError("the proof is refused: its angles are not those of the networks")
        at = [*np.sin(target[self.angles]), *np.cos(target[self.angles]), *target[self.others] * self.arrays["scale"]]
        self.at_target, self.powers = np.array(at), Powers.up_to(len(target), ORDER - 1)
        self.highest = [e for e in Powers.up_to(len(target), ORDER).exponents if sum(e) == ORDER]
        self.domain = lower, upper, around
        members = {name.split(".")[1] for name in arrays if name.startswith("members.")}
        self.members = [self._layers(f"members.{member}") for member in sorted(members)]

    @cached_property
    def tiles(self) -> Tiles:
        """Bounds of the highest terms. They are made where first needed: in many states they would not fit."""
        return Tiles(self._third, len(self.highest), *self.domain, TILES)

    def _layers(self, member: str) -> list[tuple[Array, Array]]:
        count = sum(name.startswith(f"{member}.weights.") for name in self.arrays)
        return [tuple(self.arrays[f"{member}.{kind}.{k}"] for kind in ("weights", "biases")) for k in range(count)]  # type: ignore[misc]

    def slopes(self, x: list[Sloped]) -> list[Sloped]:
        """dV/dx (n,) over sets of states, by Taylor's formula."""
        n, powers, found = len(x), self.powers, []
        third, bend, count = self.tiles(x), [number.bend for number in x], len(x[0].middle)
        cuts = [slice(k, k + TOGETHER) for k in range(0, max(count, 1), TOGETHER)]
        parts = [self._value([Balls.of(number.middle[cut]) for number in x], powers, []) for cut in cuts]
        V = Balls(*(np.concatenate([getattr(p, name) for p in parts], 1) for name in ("middle", "radius")))
        for i in range(n):
            place = [tuple(int(k == i) for k in range(n))]
            place += [tuple(int(k == i) + int(k == j) for k in range(n)) for j in range(n)]
            first, *second = (V[powers.exponents.index(e)] for e in place)
            second = [term * (2.0 if i == j else 1.0) for j, term in enumerate(second)]
            bent = np.zeros(count)
            for exponents, size in zip(self.highest, third.T, strict=True):
                if exponents[i]:
                    ways = [width ** (exponents[j] - (i == j)) for j, width in enumerate(bend)]
                    bent = bent + exponents[i] * size * np.prod(ways, 0) * (1 + ROUNDING)
            found.append(sloped(Balls(first.middle, first.radius + bent), list(zip(second, x, strict=True))))
        return found

    def _third(self, x: list[Balls]) -> Array:
        """Largest absolute values (N, k) of the coefficients of third order over sets."""
        bend, powers = [number.radius for number in x], Powers.up_to(len(x), ORDER)
        both = [Balls(np.tile(ball.middle, 2), np.append(0 * ball.radius, ball.radius)) for ball in x]
        size: Array = self._value(both, powers, bend).size[-len(self.highest) :, len(bend[0]) :].T
        return size

    def _value(self, x: list[Balls], powers: Powers, bend: list[Array]) -> Balls:
        """Coefficients (k, N) of V. bend: as `Jet.narrowed`."""
        jets = [Jet.start(powers, value, i) for i, value in enumerate(x)]
        turned = [jets[i].function(kind) for kind in ("sin", "cos") for i in self.angles]
        scaled = [Jet(powers, jets[i].terms * float(s)) for i, s in zip(self.others, self.arrays["scale"], strict=True)]
        parts = [jet.terms for jet in (*turned, *scaled)]
        z = Jet(powers, Balls(*(np.stack([getattr(p, name) for p in parts], -1) for name in ("middle", "radius"))))
        straight = Jet(powers, _plus(z, -self.at_target).terms.to(self.arrays["metric"])).narrowed(bend)
        square = (straight * straight).terms.to(np.full((len(self.at_target), 1), float(self.arrays["bend"])))
        length = _plus(Jet(powers, square), np.ones(1)).narrowed(bend)
        one = Jet.start(powers, Balls.of(np.ones_like(length.value.middle)))
        y = (straight * (one / length.function("sqrt"))).narrowed(bend)
        total = [self._member(layers, z, y, bend) for layers in self.members]
        return sum(total[1:], total[0]) * (-1.0 / len(total))

    def _member(self, layers: list[tuple[Array, Array]], z: Jet, y: Jet, bend: list[Array]) -> Balls:
        """|L' y|^2 of one network."""
        h, size = _hidden(layers[:-1], z, bend), len(self.at_target)
        raw = _plus(Jet(z.powers, h.terms.to(layers[-1][0])), layers[-1][1]).narrowed(bend)
        rows, columns = np.tril_indices(size)
        total = None
        for column in range(size):
            part = None
            for k in np.flatnonzero(columns == column).tolist():
                entry = _column(raw, k)
                if rows[k] == column:  # softplus(a) = log(1 + exp a)
                    one = np.ones(entry.value.middle.shape)
                    entry = _plus(_plus(entry.function("exp"), one).function("log"), DIAGONAL * one)
                term = entry * _column(y, rows[k])
                part = term if part is None else part + term
            assert part is not None
            part = part.narrowed(bend)
            square = part * part
            total = square if total is None else total + square
        assert total is not None
        return total.terms


def _hidden(layers: list[tuple[Array, Array]], z: Jet, bend: list[Array]) -> Jet:
    """Series of the last of some layers of tanh. bend: as `Jet.narrowed`.

    Series at points have one radius for all numbers of a layer, the largest one.
    """
    count = z.terms.middle.shape[1] // (2 if bend else 1)
    middle, loose = z.terms.middle[:, :count], z.terms.radius[:, :count].max(-1, keepdims=True)
    over = z.terms[:, count:]
    wide = np.abs(over.middle - middle) + over.radius if bend else None  # how far terms over sets are from `middle`
    for weight, bias in layers:
        size = np.abs(weight)
        loose = (loose + ROUNDING * np.abs(middle).max(-1, keepdims=True)) * size.sum(0).max() * (1 + ROUNDING)
        loose[0] += ROUNDING * (1 + np.abs(bias).max())
        middle = middle @ weight
        middle[0] += bias
        if wide is not None:
            wide = _narrowed(z.powers, middle, wide @ size, loose, bend)
        middle, loose, wide = _bent(z.powers, middle, loose, wide)
    if wide is None:
        return Jet(z.powers, Balls(middle, loose + 0 * middle))
    wide = _narrowed(z.powers, middle, wide, loose, bend)
    return Jet(z.powers, Balls(np.concatenate([middle, middle], 1), np.concatenate([loose + 0 * middle, wide], 1)))


def _narrowed(powers: Powers, middle: Array, wide: Array, loose: Array, bend: list[Array]) -> Array:
    """`wide`, or less by the terms of the next higher order."""
    found, place = wide * (1 + ROUNDING) + loose, {e: k for k, e in enumerate(powers.exponents)}
    for k, exponents in reversed(list(enumerate(powers.exponents))):
        if sum(exponents) < powers.order:
            total = loose[k] + 0 * found[k]
            for i, width in enumerate(bend):
                higher = place[tuple(e + (i == j) for j, e in enumerate(exponents))]
                total += (np.abs(middle[higher]) + found[higher]) * ((exponents[i] + 1) * width[:, None])
            found[k] = np.minimum(found[k], total * (1 + ROUNDING))
    return found


def _factor(order: int, t: Array) -> Array:
    """Coefficient of tanh's power series of order 1, 2 or 3, where it is t."""
    slope: Array = 1.0 - t * t
    return (slope, -t * slope, (t * t - 1 / 3) * slope)[order]


def _bent(powers: Powers, a: Array, loose: Array, wide: Array | None) -> tuple[Array, Array, Array | None]:
    """tanh of series a (k, N, r) up to `loose` (k, N, 1), and how far its terms over sets are from those at points.

    wide: the same of a. tanh has the power series t, first, second, third, all of which and whose slopes are at most 1.
    """
    t = np.tanh(a[0])
    first, second, third = (_factor(k, t) for k in range(3))
    size = np.abs(a).max(-1, keepdims=True) + loose
    sizes = [size, np.zeros_like(size), np.zeros_like(size)]
    errors = [loose, np.zeros_like(size), np.zeros_like(size)]
    square, cube = np.zeros_like(a), np.zeros_like(a)
    for i, j, k in powers.products[1]:
        square[k] += a[i] * a[j]
        errors[1][k] += loose[i] * size[j] + size[i] * loose[j]
        sizes[1][k] += size[i] * size[j]
    cubes = powers.products[2] if powers.order > 2 else []
    for i, j, k in cubes:
        cube[k] += square[i] * a[j]
        errors[2][k] += errors[1][i] * size[j] + sizes[1][i] * loose[j]
        sizes[2][k] += sizes[1][i] * size[j]
    found = first * a + second * square + third * cube
    found[0] = t
    error = sum(errors) + (2 * loose[0] + ROUNDING) * sum(sizes)  # slopes
    error[0] = loose[0] + ROUNDING
    if wide is None:
        return found, error, None
    ends = [np.tanh(a[0] + side * wide[0]) for side in (-1, 1)]
    turn = [np.zeros_like(t)] * 3  # how far these factors are from those at the middles
    for k, place in product(range(3), (*ends, *EXTREMES)):
        x = np.clip(place, *ends)
        turn[k] = np.maximum(turn[k], np.abs(_factor(k, x) - _factor(k, t)))
    wides, every = [wide, np.zeros_like(a), np.zeros_like(a)], np.abs(a)
    for i, j, k in powers.products[1]:
        wides[1][k] += every[i] * wide[j] + wide[i] * (every[j] + wide[j])
    for i, j, k in cubes:
        wides[2][k] += np.abs(square[i]) * wide[j] + wides[1][i] * (every[j] + wide[j])
    rest = np.zeros_like(a)
    for way, apart, term, radius in zip((first, second, third), turn, (a, square, cube), wides, strict=True):
        rest += np.abs(way) * radius + (apart + ROUNDING) * (np.abs(term) + radius)
    rest[0] = np.maximum(ends[1] - t, t - ends[0])
    return found, error, rest * (1 + ROUNDING) + error


def _plus(jet: Jet, constant: Array) -> Jet:
    """A series plus exact numbers."""
    terms = Balls(jet.terms.middle.copy(), jet.terms.radius.copy())
    first = jet.value + constant
    terms.middle[0], terms.radius[0] = first.middle, first.radius
    return Jet(jet.powers, terms)


def _column(jet: Jet, k: int) -> Jet:
    return Jet(jet.powers, jet.terms[..., k])
