"""A robot and what stands between it and its recordings, simulated with exact sensitivities.

The sensitivity S = dx/d(start, theta) obeys dS/dt = (df/dx) S + (0, df/dtheta) with f = a(x, theta) + B(x, theta) u.
The same method with the same steps on both gives the derivative of the discrete states, not of the exact ones, up to
rounding (E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I, section I.14).

Delay, offsets of encoders and gains of inputs are fitted together with the parameters of the robot. They follow them
in theta.

A state is compared with its measurement in the tangent space (`modelgen.tangent.Tangent`), with nt numbers. Those of a
rotation are its turn from the measured one. Derivatives by a start are by small errors of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array, on_sphere, robust_steps
from modelgen.errors import ModelError
from modelgen.identification.recordings import Recording
from modelgen.identification.windows import Windows, cut
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent, turn_between

STAGES = ((1 / 6, 1 / 2), (1 / 3, 1 / 2), (1 / 3, 1.0), (1 / 6, 0.0))  # weight of a slope; share of h to the next one
FINER = 2  # times as many steps as `modelgen build` finds to be enough


class Motion(NamedTuple):
    """States of N windows at K samples and their derivatives. Of a `Model`, nt numbers stand for the n states."""

    x: Array  # (K, N, n)
    dx_dstart: Array  # (K, N, n, nt)
    dx_dtheta: Array  # (K, N, n, p)
    dx_dpush: Array  # (K, N, n, l), by constants that are added to xdot along `pushes`
    dx_dgain: Array  # (K, N, n, g), by factors of the inputs `driven`, at 1


def simulate(
    robot: CompiledRobot,
    windows: Windows,
    starts: Array,
    theta: Array,
    pushes: Array | None = None,
    driven: Sequence[int] = (),
) -> Motion:
    """Classical Runge-Kutta from `starts` (N, n) at theta (p,). pushes: (n, l), directions of constant disturbances.
    driven: inputs by whose factors the motion is differentiated.

    A motion that does not stay finite is returned as it is, with infinite or NaN entries.
    """
    N, n, p = *starts.shape, len(theta)
    tangent = Tangent(robot.metadata)
    pushes = np.zeros((n, 0)) if pushes is None else np.ascontiguousarray(pushes)  # of one kind: Numba compiles each
    longest, inputs = windows.longest or safe_step(robot), np.array(driven, np.intp)
    others = p + pushes.shape[1] + len(inputs)
    z = np.concatenate([starts[..., None], tangent.basis(starts), np.zeros((N, n, others))], axis=2)
    samples = [z]
    with np.errstate(over="ignore", invalid="ignore"):
        for steps, u in zip(windows.steps, windows.inputs, strict=True):
            parts = max(1, math.ceil(steps.max() / longest - 1e-9))
            for _ in range(parts):
                z = _step(robot, z, np.ascontiguousarray(u), theta, steps / parts, pushes, inputs)
                on_sphere(z[..., 0], [rotation.quaternion for rotation in robot.metadata.rotations])
            samples.append(z)
    motion = np.stack(samples)
    return Motion(motion[..., 0], *np.split(motion[..., 1:], np.cumsum([tangent.size, p, pushes.shape[1]]), axis=3))


@lru_cache(maxsize=16)
def safe_step(robot: CompiledRobot) -> float:
    """s: a step that resolves every motion within the limits and the bounds of the parameters."""
    steps = robust_steps(robot.metadata, robot.dynamics)
    return 1.0 / (robot.metadata.task.control_rate * steps * FINER)


def _step(
    robot: CompiledRobot, begin: Array, u: Array, theta: Array, h: Array, pushes: Array, driven: NDArray[np.intp]
) -> Array:
    """One step of h (N,) seconds on states and sensitivities, in one array as in `stage`."""
    here, end = begin, begin.copy()
    for weight, ahead in STAGES:
        kernel = robot.jacobians(np.ascontiguousarray(here[..., 0]), theta)
        here = stage(*kernel, u, pushes, driven, here, begin, h, weight, ahead, end)
    return end


def _stage(
    a: Array,
    B: Array,
    da_dx: Array,
    dB_dx: Array,
    da_dtheta: Array,
    dB_dtheta: Array,
    u: Array,
    pushes: Array,
    driven: NDArray[np.intp],
    here: Array,
    begin: Array,
    h: Array,
    weight: float,
    ahead: float,
    end: Array,
) -> Array:
    """Add h * weight * slope to `end`, in place, and return begin + h * ahead * slope, (N, n, 1 + nt + p + l + g).

    The first column of such an array is the state. The others are its derivatives by the start, theta, pushes and
    gains. The slope is taken at `here`. a to dB_dtheta: (N, n), (N, n, m), (N, n, n), (N, n, m, n), (N, n, p),
    (N, n, m, p), as the robot's `jacobians` there. u: (N, m); pushes: (n, l); driven: (g,) inputs; h: (N,) s.
    """
    N, n, m = B.shape
    p, others = da_dtheta.shape[2], pushes.shape[1]
    first = here.shape[2] - p - others - len(driven)  # column of the first parameter
    slope, following = np.empty(here.shape[1:]), np.empty_like(begin)
    for w in range(N):
        for i in range(n):
            slope[i, 0] = a[w, i]
            slope[i, 1:first] = 0.0
            slope[i, first : first + p] = da_dtheta[w, i]
            slope[i, first + p : first + p + others] = pushes[i]
            for c in range(m):
                slope[i, 0] += B[w, i, c] * u[w, c]
                for b in range(p):
                    slope[i, first + b] += dB_dtheta[w, i, c, b] * u[w, c]
            for b in range(len(driven)):
                slope[i, first + p + others + b] = B[w, i, driven[b]] * u[w, driven[b]]
            for j in range(n):
                df_dx = da_dx[w, i, j]
                for c in range(m):
                    df_dx += dB_dx[w, i, c, j] * u[w, c]
                for b in range(1, here.shape[2]):
                    slope[i, b] += df_dx * here[w, j, b]
        for i in range(n):
            for b in range(here.shape[2]):
                end[w, i, b] += h[w] * weight * slope[i, b]
                following[w, i, b] = begin[w, i, b] + h[w] * ahead * slope[i, b]
    return following


def _compiled() -> Callable[..., Array]:
    """`_stage` as machine code, cached where a folder can be written: this saves two seconds of every command."""
    try:
        return numba.njit(cache=True)(_stage)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit()(_stage)


stage = _compiled()


Kind = Literal["delay", "offset", "gain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


ANGLE, SHARE = 0.3, 0.2  # largest offset: rad of a joint that wraps, and share of the limit of others
GAINS = (0.5, 1.5)
FIRST = 0.25  # of the longest delay: the first guess
#: Of a sensor's deviation: how far two steps in the place of one may move the samples, in root mean square. Ten
#: thousand samples that all err to one side move a parameter by a tenth of its standard error.
RESOLVED = 1e-3
LEAST_DELAYS = 4  # a window is at least this many times the longest delay, which its beginning loses


@dataclass(frozen=True)
class Effect:
    """A number that is fitted in addition to the robot's parameters."""

    kind: Kind
    of: str  # the coordinate or the input; empty for the delay
    unit: str
    lower: float
    upper: float
    nominal: float

    @property
    def name(self) -> str:
        """The name in messages and files."""
        return f"{self.kind} of {self.of}" if self.of else self.kind


class Model:
    """A model of the recordings: theta (p,) holds the robot's parameters, then the effects.

    The recorded positions are those of the robot `delay` seconds before, plus `offset` (of a rotation, turned by it);
    the recorded inputs act `gain` times as strongly. Only the sum of a sensor's delay and a motor's dead time shows in
    a recording. known_delay: s, of a delay that is not estimated.
    """

    def __init__(
        self, robot: CompiledRobot, estimate: Sequence[Kind] = (), longest_delay: float = 0.05, known_delay: float = 0.0
    ) -> None:
        self.robot, self.known_delay = robot, known_delay
        self.tangent = Tangent(robot.metadata)
        self.effects = tuple(
            each for kind in KINDS if kind in estimate for each in _effects(robot, kind, longest_delay)
        )
        own = [(each.lower, each.upper) for each in self.effects]
        self.bounds = np.array([*robot.parameter_bounds, *own], float).reshape(-1, 2)
        self.nominal = np.array([*robot.nominal_parameters, *(each.nominal for each in self.effects)], float)
        self.names = (*robot.parameter_names, *(each.name for each in self.effects))
        #: s at a window's beginning that are not compared.
        self.blind = longest_delay if "delay" in estimate else known_delay
        self._size = len(robot.parameter_names)
        #: Indices of set-points, which no recording shows and nobody identifies: they stay nominal.
        self.references = [robot.parameter_names.index(name) for name in robot.metadata.references]
        self._offsets = [self.tangent.names.index(each.of) for each in self.effects if each.kind == "offset"]
        self._driven = [robot.input_names.index(each.of) for each in self.effects if each.kind == "gain"]

    @property
    def least_seconds(self) -> float:
        """Shortest window in seconds: in a shorter one, delays leave too few samples."""
        return LEAST_DELAYS * self.blind

    def cut(self, recordings: Sequence[Recording], seconds: float, every: float | None = None) -> Windows:
        """Windows of `seconds`, without measurements that a delay may take from before them. every: as `windows.cut`.

        Raises ModelError as `windows.cut`, and for windows that are too short for the longest delay.
        """
        if seconds < self.least_seconds:
            raise ModelError(
                f"windows of {seconds:g} s are too short for delays of up to {self.blind:g} s; write --window "
                f"{self.least_seconds:g} or more, or a smaller --longest-delay or --delay."
            )
        windows = cut(self.robot, recordings, seconds, every)
        early = windows.time - windows.begin < self.blind - 1e-12
        return replace(windows, measured=np.where(early[..., None], np.nan, windows.measured))

    def resolved(self, windows: Windows, starts: Array, theta: Array, deviations: Array) -> Windows:
        """The windows with the longest Runge-Kutta step that resolves their motion from starts (N, n) at theta (p,).

        deviations: (n,) of the sensors. Recorded motion is mostly slower than what a training resolves.
        """
        finest, step = safe_step(self.robot), float(windows.steps.max())
        known = ~np.isnan(windows.measured)
        coarse = None
        while 2 * step > finest:  # two such steps may show that a step of twice the length is short enough
            finer = replace(windows, longest=step)
            fine = self.simulate(finer, starts, theta).x / deviations
            if coarse is not None and np.square(fine - coarse)[known].mean() <= RESOLVED**2:
                return replace(windows, longest=2 * step)
            coarse, step = fine, step / 2
        return replace(windows, longest=finest)

    def simulate(self, windows: Windows, starts: Array, theta: Array, pushes: Array | None = None) -> Motion:
        """The nt numbers of the recorded states at the samples of the windows, and their derivatives."""
        own, extra = theta[: self._size], dict(zip(self.effects, theta[self._size :], strict=True))
        gains = np.ones(windows.inputs.shape[2])
        gains[self._driven] = [value for effect, value in extra.items() if effect.kind == "gain"]
        windows = replace(windows, inputs=windows.inputs * gains)
        motion = simulate(self.robot, windows, starts, own, pushes, self._driven)
        columns = []
        if self.known_delay:
            motion, _ = _delayed(self.robot, windows, motion, own, self.known_delay)
        for effect, value in extra.items():
            if effect.kind == "delay":
                motion, by_delay = _delayed(self.robot, windows, motion, own, value)
                columns.append(by_delay)
        motion, columns = self._compared(windows, motion, columns)
        if not self.effects:
            return motion
        x, offsets = motion.x.copy(), [value for effect, value in extra.items() if effect.kind == "offset"]
        x[..., self._offsets] += offsets
        columns += [np.broadcast_to(np.eye(x.shape[2])[index], x.shape) for index in self._offsets]
        columns += list(np.moveaxis(motion.dx_dgain / gains[self._driven], -1, 0))
        dx_dtheta = np.concatenate([motion.dx_dtheta, *(column[..., None] for column in columns)], axis=3)
        return motion._replace(x=x, dx_dtheta=dx_dtheta)

    def _compared(self, windows: Windows, motion: Motion, columns: list[Array]) -> tuple[Motion, list[Array]]:
        """The motion in nt numbers, and further derivatives (K, N, n) likewise."""
        if not windows.attitudes:
            return motion, columns
        inward, x = self.tangent.projection(motion.x), np.empty((*motion.x.shape[:2], self.tangent.size))
        states, places = self.tangent.plain
        x[..., places] = motion.x[..., states]
        for (rotation, turned), (_, measured) in zip(self.tangent.rotations, windows.attitudes, strict=True):
            x[..., turned], slopes = turn_between(measured, motion.x[..., rotation.quaternion])
            inward[..., turned, :] = slopes @ inward[..., turned, :]
        return Motion(x, *(inward @ D for D in motion[1:])), [(inward @ each[..., None])[..., 0] for each in columns]


def _effects(robot: CompiledRobot, kind: Kind, longest_delay: float) -> list[Effect]:
    if kind == "delay":
        return [Effect(kind, "", "s", 0.0, longest_delay, FIRST * longest_delay)]
    if kind == "gain":
        return [Effect(kind, each.name, "", *GAINS, 1.0) for each in robot.metadata.inputs]
    effects, tangent, metadata = [], Tangent(robot.metadata), robot.metadata
    for (name, unit, limit), i in zip(tangent.entries[: metadata.pose], tangent.states, strict=False):
        largest = ANGLE if metadata.states[i].continuous or i in metadata.turning else SHARE * limit
        effects.append(Effect(kind, name, unit, -largest, largest, 0.0))
    return effects


def _delayed(
    robot: CompiledRobot, windows: Windows, motion: Motion, theta: Array, delay: float
) -> tuple[Motion, Array]:
    """The motion `delay` seconds before every sample, and its derivative by the delay (K, N, n).

    Between samples the states are a cubic with the model's own rates at both ends, and the sensitivities a line.
    """
    time, many = windows.time, np.arange(len(windows.begin))
    wanted = np.maximum(time - delay, windows.begin)
    last = np.stack([np.searchsorted(t, s, side="right") for t, s in zip(time.T, wanted.T, strict=True)], axis=1) - 1
    left = np.clip(last, 0, len(time) - 2)
    h = np.maximum(windows.steps[left, many], 1e-12)[..., None]
    s = np.clip((wanted - time[left, many])[..., None] / h, 0.0, 1.0)

    def rate(at: Array) -> Array:
        shape, u = at.shape, windows.inputs[left, many]
        rates = robot.dynamics(at.reshape(-1, shape[2]), u.reshape(-1, u.shape[2]), theta)
        return np.asarray(rates).reshape(shape)

    a, b = motion.x[left, many], motion.x[left + 1, many]
    fa, fb = h * rate(a), h * rate(b)
    x = (1 + 2 * s) * (1 - s) ** 2 * a + s * (1 - s) ** 2 * fa + s**2 * (3 - 2 * s) * b + s**2 * (s - 1) * fb
    on_sphere(x.reshape(-1, x.shape[2]), [rotation.quaternion for rotation in robot.metadata.rotations])
    slope = 6 * s * (1 - s) * (b - a) + (1 - s) * (1 - 3 * s) * fa + s * (3 * s - 2) * fb

    def line(S: Array) -> Array:
        return np.asarray((1 - s[..., None]) * S[left, many] + s[..., None] * S[left + 1, many])

    return Motion(x, *(line(S) for S in motion[1:])), -slope / h
