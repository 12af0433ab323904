"""Independent check that boxes enter a proven basin, by the formula of V itself and balls of many numbers at once.

V is evaluated on power series of the states, whose coefficients are balls: at the middle of a set, and over the set,
where the highest ones bound the remainder of Taylor's formula. The input u = u0 + d with d + u0 = grad g~(w - P d)
is bounded by bisection, as the left side less the right side rises with d, and by the mean value theorem. A period of
motion is a power series in time with the slopes of the flow, and with a remainder over an enclosure of the motion.
A box whose image is not within earlier boxes is halved along every state and followed again.
"""

from __future__ import annotations

import io
import pickle
import time
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.proof.balls import Equations
from solver.proof.jets import ROUNDING, Array, Balls, Jet, Mask, Powers, Sloped, combined, hull, sloped, stacked

DIAGONAL = 1e-3  # smallest diagonal entry of the networks' L
SHORTEST = 0.02  # of the input limit: the shortest step at which the policy looks up V
ORDER = 3  # of Taylor's formula in time, and of V's power series
INFLATIONS = 6  # of the enclosure of the motion
BISECTIONS = 50
PIECES = 4  # of the range of each parameter
BATCH = 400  # sets at once
DEEPEST = 8  # halvings of a box: 1 of 14 000 boxes needs five
TURN = Balls(np.array(2 * np.pi), np.array(1e-15))
LATE = 1 << 30  # place in the order of a box that is not proven
FINEST = 1 << 13  # boxes a state
WIDEST = 0.25  # share of the domain beyond which an image is not followed


@dataclass(frozen=True)
class Entering:
    """Result for the boxes of a claim."""

    boxes: int
    checked: int
    holds: bool  # whether all checked ones enter the set
    share: float  # of the domain, that all boxes and the set cover
    seconds: float


@np.errstate(all="ignore")  # nothing is known of a wide set, and what is not finite is not shown
def entering(
    proof: dict[str, Any], equations: Equations, checkpoint: Path, claim: dict[str, Any], one_of: int, seed: int
) -> Entering:
    """Check of a random one of `one_of` boxes of a claim, or of all with 1.

    Raises SolverError where a box is outside the domain, and for robots or networks that the check does not know.
    """
    start = time.process_time()
    boxes = ClaimedBoxes(SampledLoop(proof, equations, checkpoint, float(claim["spread"])), claim)
    chosen = np.random.default_rng(seed).random(len(boxes.rows)) < 1 / one_of
    rows = boxes.rows[chosen] if chosen.any() else boxes.rows[:1]
    holds = boxes.verify(rows)
    return Entering(len(boxes.rows), len(rows), holds, boxes.share, time.process_time() - start)


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


class SampledLoop:
    """One control period of the policy everywhere, for parameters in a box (p,)."""

    def __init__(self, proof: dict[str, Any], equations: Equations, checkpoint: Path, spread: float) -> None:
        self.equations, self.step, self.hold = equations, float(proof["period"]), float(proof["hold"])
        self.target, self.bound, self.nominal = (np.array(proof[k]) for k in ("target", "bound", "parameters"))
        self.P, self.level = np.array(proof["cost"]), float(proof["level"])
        if len(proof["trim"]) != 1 or not self.hold or not self.level:
            raise SolverError("the check of boxes knows robots of one input that is held, with a basin")
        self.trim, self.middle, self.limit, self.error = (
            float(proof[k][0]) for k in ("trim", "middle", "limit", "input_error")
        )
        self.networks, n, p = Networks(checkpoint, self.target), len(self.target), len(self.nominal)
        ticks = (2 * np.arange(PIECES) + 1) / PIECES - 1 if spread else np.zeros(1)
        half = spread / PIECES * (1 + 1e-9)
        ends = [[(value * (1 + spread * t), half * abs(value)) for t in ticks] for value in self.nominal]
        self.pieces = list(product(*ends))
        self.around = np.abs(self.bound - np.pi) < 1e-12
        widest = np.sqrt(self.level * np.diag(np.linalg.inv(self.P)))
        self.turned = 0.4 * (
            np.pi - float(np.max(widest[self.around], initial=0.0))
        )  # a wider set of angles might lie on both sides of the basin
        self.plain, self.flow = Powers.in_time(n + 1 + p, 0), Powers.in_time(n + 1 + p, ORDER)
        self.value_only, self.first = Powers.up_to(1, 0), Powers.up_to(1, 1)
        self.of_state = Powers.up_to(n, 1)

    # -- the policy --------------------------------------------------------------------------------------------------

    def inputs(self, x: list[Sloped]) -> Sloped:
        """The input over N sets of states."""
        B, cases, count = self._control(x), [], len(x[0].middle)
        for mask, slope in self._slopes(x):
            rows = np.flatnonzero(mask)
            w = self._along(B, slope, rows)
            steep = self._conjugate(w.range, self.first)[1]
            closed = sloped(self._conjugate(Balls.of(w.middle), self.value_only)[0] - self.trim, [(steep, w)])
            for sign in (1.0, -1.0):
                at = np.flatnonzero(~(sign * closed.middle + closed.bend < 0))
                some = rows[at]
                size, b = self._length(closed.rows(at), sign), [number.rows(some) for number in B]
                ways = [(x_i.rows(some), b_i * size) for x_i, b_i in zip(x, b, strict=True)]
                moved = [combined([(1.0, x_i), (sign * self.hold, way)]) for x_i, way in ways]
                for looks, beyond in self._slopes(moved) if len(at) else ():
                    here = np.flatnonzero(looks)
                    there = self._along(b, beyond, here)
                    u = self._answer(w.rows(at[here]), there, size.rows(here), sign)
                    cases.append(_spread(u, some[here], count))
        return hull(cases)

    def _along(self, B: list[Sloped], slope: list[Sloped], rows: NDArray[np.int64]) -> Sloped:
        """w = B' dV/dx of some of the sets."""
        return combined([(1.0, b.rows(rows) * s.rows(rows)) for b, s in zip(B, slope, strict=True)])

    def _control(self, x: list[Sloped]) -> list[Sloped]:
        """B (n,) at the nominal parameters."""
        at, over = (self._nominal(values) for values in ([Balls.of(s.middle) for s in x], [s.range for s in x]))
        return [
            sloped(middle.value, [(wide.terms[1 + j], number) for j, number in enumerate(x)])
            for middle, wide in zip(at, over, strict=True)
        ]

    def _nominal(self, x: list[Balls]) -> list[Jet]:
        powers, shape = self.of_state, x[0].middle
        known = {
            "x": [Jet.start(powers, value, i) for i, value in enumerate(x)],
            "theta": [Jet.start(powers, Balls.of(np.full_like(shape, value))) for value in self.nominal],
        }
        found: list[Jet] = self.equations(
            "affine_dynamics", known, lambda v: Jet.start(powers, Balls.of(np.full_like(shape, v)))
        )[1]
        return found

    def _slopes(self, x: list[Sloped]) -> list[tuple[Mask, list[Sloped]]]:
        """dV/dx of the form and of the networks, each with the sets (N,) in which it may be V."""
        e, narrow, q = [], np.ones(len(x[0].middle), bool), Balls.of(np.zeros_like(x[0].middle))
        for i, number in enumerate(x):
            turns = np.round((number.middle - self.target[i]) / (2 * np.pi)) * self.around[i]
            e.append(combined([(1.0, number)], Balls.of(turns) * TURN - float(self.target[i])))
            narrow &= ~self.around[i] | (number.bend < self.turned)
        pe = [combined([(float(entry), number) for entry, number in zip(row, e, strict=True)]) for row in self.P]
        for number, slope in zip(e, pe, strict=True):
            q = q + (number * slope).range
        spare = 1e-5 * self.level
        form, net = ~(q.low > self.level + spare) | ~narrow, ~(q.high < self.level - spare) | ~narrow
        near = [combined([(-2.0, s)]) for s in pe]
        near = [Sloped(s.middle, s.slopes, np.where(narrow, s.rest, np.inf)) for s in near]
        rows = np.flatnonzero(net)
        few = self.networks.slopes([number.rows(rows) for number in x])
        return [(form, near), (net, [_spread(s, rows, len(net))[1] for s in few])]

    def _conjugate(self, w: Balls, powers: Powers) -> Balls:
        """grad g~ and its slope at w, as far as the powers go."""
        row = [Jet.start(powers, w, 0)]
        ((u,),) = self.equations(
            "optimal_input", {"w": row}, lambda v: Jet.start(powers, Balls.of(np.full_like(w.middle, v)))
        )
        if len(powers.exponents) == 1:
            return Balls(u.terms.middle, u.terms.radius)
        steep = Balls.between(np.maximum(u.terms[1].low, 0.0), np.maximum(u.terms[1].high, 0.0))
        return stacked([u.value, steep])

    def _length(self, closed: Sloped, sign: float) -> Sloped:
        """Length of the step: |closed|, but at least a share of the limit."""
        least, along = SHORTEST * self.limit, combined([(sign, closed)])
        return sloped(Balls.of(np.maximum(along.middle, least)), [(_share(along.range, least), along)])

    def _answer(self, w: Sloped, there: Sloped, size: Sloped, sign: float) -> Sloped:
        """u where the closed form has the sign, from w at the state and at the end of a step."""
        drop = combined([(sign, w), (-sign, there)])
        tilt = size.range.within(0.99 * SHORTEST * self.limit, np.inf).inverse()
        P = sloped(Balls.of(drop.middle) / Balls.of(size.middle), [(tilt, drop), (-(drop.range * tilt * tilt), size)])
        P = sloped(Balls.of(np.maximum(P.middle, 0.0)), [(_share(P.range, 0.0), P)])
        ends = np.maximum(P.range.low, 0.0), np.maximum(P.range.high, 0.0)
        corners = [(side, p) for side in (w.range.low, w.range.high) for p in ends]
        sides, steeps = (np.stack(part) for part in zip(*corners, (w.middle, P.middle), strict=True))
        solved = self._solved(sides, steeps)
        edges, arguments = solved[:4], (Balls.of(sides) - solved * steeps)[:4]
        d = Balls.between(edges.low.min(0), edges.high.max(0))
        argument = Balls.between(arguments.low.min(0), arguments.high.max(0))
        S = self._conjugate(argument, self.first)[1]
        least = Balls.of(np.maximum(S.low, 0.0))
        least, most = least / (least * ends[1] + 1.0), Balls.of(S.high) / (Balls.of(S.high) * ends[0] + 1.0)
        turn = Balls.between(np.maximum(least.low, 0.0), most.high)
        found = sloped(solved[4], [(turn, w), (-(turn * d), P)])
        found = Sloped(found.middle + self.trim, found.slopes, found.rest + self.error)
        u = d + self.trim
        lower, upper = u.low - self.error, u.high + self.error
        lower, upper = (np.clip(end, self.middle - self.limit, self.middle + self.limit) for end in (lower, upper))
        box = Balls.between(lower, upper)
        loose = ~(found.bend <= box.radius)
        return Sloped(
            np.where(loose, box.middle, found.middle),
            np.where(loose, 0.0, found.slopes),
            np.where(loose, box.radius, found.rest * (1 + ROUNDING) + ROUNDING * self.limit),
        )

    def _solved(self, w: Array, P: Array) -> Balls:
        """d with d + u0 = grad g~(w - P d), for exact w and P >= 0."""
        side = np.array([1.0, -1.0]).reshape(2, *(1,) * w.ndim)  # from which d is bounded
        both, steep = Balls.of(np.stack([w, w])), Balls.of(np.stack([P, P]))
        sure, other = (
            self.middle - sign * side * self.limit - self.trim + np.zeros((2, *w.shape)) for sign in (1.0, -1.0)
        )
        for _ in range(BISECTIONS):
            d = 0.5 * (sure + other)
            rest = Balls.of(d) + self.trim - self._conjugate(both - steep * d, self.value_only)[0]
            good = np.where(side > 0, rest.high <= 0, rest.low >= 0)
            sure, other = np.where(good, d, sure), np.where(good, other, d)
        return Balls.between(*sure)

    # -- the motion --------------------------------------------------------------------------------------------------

    def after(self, x: list[Sloped]) -> tuple[list[Sloped], Mask]:
        """The sets after a period, and whether (N,) the motion stays within the limits."""
        u, inside, cases = self.inputs(x), np.ones(len(x[0].middle), bool), []
        for theta in self.pieces:
            numbers = [*x, u, *(Sloped(x[0].rest * 0 + v, u.slopes * 0, x[0].rest * 0 + s) for v, s in theta)]
            centre, _ = self._moved([Balls.of(number.middle) for number in numbers])
            over, within = self._moved([number.range for number in numbers])
            pairs = zip(centre, over, strict=True)
            cases.append(
                [sloped(c.value, [(o.terms[1 + j], number) for j, number in enumerate(numbers)]) for c, o in pairs]
            )
            inside &= within
        ends = [hull([(inside, end) for end in same]) for same in zip(*cases, strict=True)]
        return ends, inside & np.isfinite([end.rest for end in ends]).all(0)

    def _rates(self, x: list[Jet], fixed: list[Jet]) -> list[Jet]:
        powers, shape = x[0].powers, x[0].value.middle
        known = {"x": x, "theta": fixed[1:]}
        a, B = self.equations("affine_dynamics", known, lambda v: Jet.start(powers, Balls.of(np.full_like(shape, v))))
        return [a[i] + B[i] * fixed[0] for i in range(len(x))]

    def _moved(self, values: list[Balls]) -> tuple[list[Jet], Mask]:
        """States after a period with their slopes by all numbers, and whether (N,) they stay within the limits."""
        n, T = len(self.target), self.step
        start = [Jet.start(self.plain, value, i) for i, value in enumerate(values)]
        x, fixed = start[:n], start[n:]
        during, inside = x, np.zeros(len(values[0].middle), bool)
        for k in range(INFLATIONS):
            moved = [
                first + Jet(self.plain, rate.terms * Balls(np.array(T / 2), np.array(T / 2)))
                for first, rate in zip(x, self._rates(during, fixed), strict=True)
            ]
            kept = [
                (m.terms.low >= d.terms.low).all(0) & (m.terms.high <= d.terms.high).all(0)
                for m, d in zip(moved, during, strict=True)
            ]
            inside = np.all(kept, 0) & (k > 0)
            if inside.all() or k == INFLATIONS - 1:
                break
            wider = [Balls(m.terms.middle, m.terms.radius * 1.05 + 1e-9 * (1 + m.terms.size)) for m in moved]
            during = [
                Jet(
                    self.plain,
                    Balls(np.where(inside, d.terms.middle, w.middle), np.where(inside, d.terms.radius, w.radius)),
                )
                for d, w in zip(during, wider, strict=True)
            ]
        for i in np.flatnonzero(~self.around):
            e = during[i].value - float(self.target[i])
            inside &= e.size <= self.bound[i]
        first, over = self._series(x, fixed, ORDER - 1), self._series(during, fixed, ORDER)
        width = len(self.plain.exponents)
        ends = []
        for a, b in zip(first, over, strict=True):
            total = b.terms[ORDER * width : (ORDER + 1) * width] * T**ORDER
            for k in range(ORDER):
                total = total + a.terms[k * width : (k + 1) * width] * T**k
            ends.append(Jet(self.plain, total))
        return ends, inside

    def _series(self, x: list[Jet], fixed: list[Jet], order: int) -> list[Jet]:
        """Power series in time of the motion from x."""
        width = len(self.plain.exponents)

        def lifted(jet: Jet) -> Jet:
            zero = np.zeros((ORDER * width, *jet.value.middle.shape))
            return Jet(
                self.flow, Balls(*(np.concatenate([part, zero]) for part in (jet.terms.middle, jet.terms.radius)))
            )

        found, still = [lifted(jet) for jet in x], [lifted(jet) for jet in fixed]
        for k in range(order):
            rates = self._rates(found, still)
            for jet, rate in zip(found, rates, strict=True):
                now = rate.terms[k * width : (k + 1) * width] * (1 / (k + 1))
                jet.terms.middle[(k + 1) * width : (k + 2) * width] = now.middle
                jet.terms.radius[(k + 1) * width : (k + 2) * width] = now.radius
        return found


class ClaimedBoxes:
    """The boxes of a claim, in the order in which they are said to enter the set. Raises SolverError for none."""

    def __init__(self, loop: SampledLoop, claim: dict[str, Any]) -> None:
        n, reach, shape = len(loop.target), claim["reach"], np.array(claim["shape"])
        self.around, self.loop = loop.around, loop
        self.lower = np.where(loop.around, -np.pi, loop.target - loop.bound)
        self.upper = np.where(loop.around, np.pi, loop.target + loop.bound)
        groups = [(group[0], np.array(group[1:], np.int64).reshape(-1, n + 1)) for group in reach["groups"]]
        finest = max([reach["first"], *(k for k, _ in groups)])
        for k, rows in [(reach["first"], np.zeros((0, n + 1), np.int64)), *groups]:
            periods, at = rows[:, 0], rows[:, 1:]
            if not 0 < k <= FINEST or finest % k or (at < 0).any() or (at >= k).any() or (periods < 1).any():
                raise SolverError("the proof is wrong: a box is outside the domain, or after no period")
        self.order = np.full((finest,) * n, LATE)
        ticks = [np.linspace(a, b, reach["first"] + 1) for a, b in zip(self.lower, self.upper, strict=True)]
        e = np.stack(np.meshgrid(*ticks, indexing="ij"), -1) - loop.target
        inside = np.einsum("...i,ij,...j->...", e, shape, e) < 1 - 1e-9
        for axis in range(n):  # all corners of a box are in the ellipsoid
            inside = np.take(inside, range(reach["first"]), axis) & np.take(inside, range(1, len(ticks[0])), axis)
        self._enter(reach["first"], np.argwhere(inside), 0)
        for number, (k, rows) in enumerate(groups):
            self._enter(k, rows[:, 1:], number + 1)
        place = np.repeat(np.arange(len(groups)) + 1, [len(rows) for _, rows in groups])
        sizes = np.repeat([k for k, _ in groups], [len(rows) for _, rows in groups])
        every = np.concatenate([np.zeros((0, n + 1), np.int64), *(rows for _, rows in groups)])
        self.rows = np.column_stack([place, sizes, every])  # group, boxes a state, periods, indices

    def _enter(self, k: int, at: NDArray[np.int64], place: int) -> None:
        wide = len(self.order) // k
        for shift in product(range(wide), repeat=at.shape[1]):
            cells = tuple((at * wide + shift).T)
            self.order[cells] = np.minimum(self.order[cells], place)

    @property
    def share(self) -> float:
        """Share of the domain."""
        return float((self.order < LATE).mean())

    def verify(self, rows: NDArray[np.int64]) -> bool:
        """Whether the images of some boxes lie within earlier ones."""
        rows = rows[np.argsort(rows[:, 2], kind="stable")]
        width = (self.upper - self.lower) / rows[:, 1:2]
        low = self.lower + rows[:, 3:] * width
        waiting = [
            (low[k : k + BATCH], width[k : k + BATCH], rows[k : k + BATCH], 0) for k in range(0, len(rows), BATCH)
        ]
        while waiting:
            low, width, part, depth = waiting.pop()
            left = np.flatnonzero(~self._entered(low, width, part))
            if len(left) and depth == DEEPEST:
                return False
            halves = [low[left] + 0.5 * width[left] * shift for shift in product((0, 1), repeat=low.shape[1])]
            if len(left):
                whole, parts = np.concatenate(halves), np.concatenate([part[left]] * len(halves))
                widths = np.concatenate([0.5 * width[left]] * len(halves))
                cuts = range(0, len(whole), BATCH)
                waiting += [
                    (whole[k : k + BATCH], widths[k : k + BATCH], parts[k : k + BATCH], depth + 1) for k in cuts
                ]
        return True

    def _entered(self, low: Array, width: Array, rows: NDArray[np.int64]) -> Mask:
        """Which boxes (N, n) are within earlier ones after one of their periods."""
        n, count = low.shape[1], len(low)
        half, done, at = 0.5 * width * (1 + 1e-9), np.zeros(count, bool), np.arange(count)
        x = [Sloped(low[:, i] + 0.5 * width[:, i], np.zeros((0, count)), half[:, i]) for i in range(n)]
        for k in range(int(rows[:, 2].max())):
            x, inside = self.loop.after([number.opened(i, n) for i, number in enumerate(x)])
            ends = np.array([[number.range.low, number.range.high] for number in x])  # (n, 2, N)
            spans = (ends - self.lower[:, None, None]) / ((self.upper - self.lower) / len(self.order))[:, None, None]
            spans = np.floor(spans + np.array([-1e-9, 1e-9])[:, None])
            inside &= np.isfinite(spans).all((0, 1)) & (spans[:, 1] - spans[:, 0] < WIDEST * len(self.order)).all(0)
            for j in np.flatnonzero(inside):
                done[at[j]] = self._is_earlier(spans[:, :, j].astype(np.int64), rows[at[j], 0])
            going = np.flatnonzero(inside & ~done[at] & (rows[at, 2] > k + 1))
            if not len(going):
                break
            at, x = at[going], [number.rows(going) for number in x]
        return done

    def _is_earlier(self, span: NDArray[np.int64], place: int) -> bool:
        size = len(self.order)
        ranges = [np.arange(first, last + 1) for first, last in span]
        if any((r[0] < 0 or r[-1] >= size) and not wraps for r, wraps in zip(ranges, self.around, strict=True)):
            return False
        return bool((self.order[np.ix_(*(r % size for r in ranges))] < place).all())


def _share(number: Balls, least: float) -> Balls:
    """Slope of the larger of a number and `least`."""
    low, high = np.where(number.low > least, 1.0, 0.0), np.where(number.high < least, 0.0, 1.0)
    return Balls.between(low, high)


def _spread(number: Sloped, rows: NDArray[np.int64], count: int) -> tuple[Mask, Sloped]:
    """The numbers of some of `count` sets, and which they are."""
    mask, middle, rest = np.zeros(count, bool), np.zeros(count), np.full(count, np.inf)
    slopes = np.zeros((len(number.slopes), count))
    mask[rows], middle[rows], rest[rows], slopes[:, rows] = True, number.middle, number.rest, number.slopes
    return mask, Sloped(middle, slopes, rest)
