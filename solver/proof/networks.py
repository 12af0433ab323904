"""Networks of a checkpoint, read without Torch, and the slopes of their V over sets of states.

V is evaluated on power series of the states, whose coefficients are balls: at the middle of a set, and over the set,
where the highest ones bound the remainder of Taylor's formula.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from solver.errors import SolverError
from solver.proof.balls import ROUNDING, Array, Balls
from solver.proof.jets import Jet, Powers, Sloped, sloped

DIAGONAL = 1e-3  # smallest diagonal entry of the networks' L
ORDER = 3  # of the power series


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

    def __init__(self, checkpoint: Path, target: Array) -> None:
        with zipfile.ZipFile(checkpoint) as stored:
            content = Reader(stored).load()
        arrays = (content["best"] or content)["ensemble"]
        self.arrays = {name: np.asarray(value, np.float64) for name, value in arrays.items()}
        self.angles, self.others = (arrays[name].astype(int) for name in ("angles", "others"))
        if not np.array_equal(self.arrays["target"], target.astype(np.float32)):
            raise SolverError("the proof is refused: the target is not that of the networks")
        if "polynomial" in arrays or len(self.angles) + len(self.others) != len(target):
            raise SolverError("the check knows no networks of rotations or of told parameters")
        at = [*np.sin(target[self.angles]), *np.cos(target[self.angles]), *target[self.others] * self.arrays["scale"]]
        self.at_target, self.powers = np.array(at), Powers.up_to(len(target), ORDER)
        members = {name.split(".")[1] for name in arrays if name.startswith("members.")}
        self.members = [self._layers(f"members.{member}") for member in sorted(members)]

    def _layers(self, member: str) -> list[tuple[Array, Array]]:
        count = sum(name.startswith(f"{member}.weights.") for name in self.arrays)
        return [tuple(self.arrays[f"{member}.{kind}.{k}"] for kind in ("weights", "biases")) for k in range(count)]  # type: ignore[misc]

    def slopes(self, x: list[Sloped]) -> list[Sloped]:
        """dV/dx (n,) over sets of states, by Taylor's formula."""
        n, powers, found = len(x), self.powers, []
        terms = self._value(x)
        count = len(x[0].middle)
        centre, over = terms[:, :count], terms[:, count:]
        for i in range(n):
            place = [tuple(int(k == i) for k in range(n))]
            place += [tuple(int(k == i) + int(k == j) for k in range(n)) for j in range(n)]
            first, *second = (centre[powers.exponents.index(e)] for e in place)
            second = [term * (2.0 if i == j else 1.0) for j, term in enumerate(second)]
            bent = np.zeros(count)
            for k, exponents in enumerate(powers.exponents):
                if sum(exponents) == ORDER and exponents[i]:
                    size = exponents[i] * over[k].size
                    for j, number in enumerate(x):
                        size = size * number.bend ** (exponents[j] - (i == j))
                    bent = bent + size * (1 + ROUNDING)
            found.append(sloped(Balls(first.middle, first.radius + bent), list(zip(second, x, strict=True))))
        return found

    def _value(self, x: list[Sloped]) -> Balls:
        """Coefficients (k, 2 N) of V at the middles of sets, then over the sets."""
        powers, bend = self.powers, [number.bend for number in x]
        both = [
            Balls(np.tile(number.middle, 2), np.append(np.zeros_like(w), w)) for number, w in zip(x, bend, strict=True)
        ]
        jets = [Jet.start(powers, value, i) for i, value in enumerate(both)]
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
        h, size = z, len(self.at_target)
        for weight, bias in layers[:-1]:
            h = _plus(Jet(z.powers, h.terms.to(weight)), bias).narrowed(bend).function("tanh").narrowed(bend)
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


def _plus(jet: Jet, constant: Array) -> Jet:
    """A series plus exact numbers."""
    terms = Balls(jet.terms.middle.copy(), jet.terms.radius.copy())
    first = jet.value + constant
    terms.middle[0], terms.radius[0] = first.middle, first.radius
    return Jet(jet.powers, terms)


def _column(jet: Jet, k: int) -> Jet:
    return Jet(jet.powers, jet.terms[..., k])
