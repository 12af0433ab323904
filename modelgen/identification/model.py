"""A robot and what stands between it and its recordings: a delay, offsets of encoders, gains of inputs.

They are fitted together with the parameters of the robot, and follow them in theta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.recordings import Recording
from modelgen.identification.simulation import Motion, safe_step, simulate
from modelgen.identification.windows import Windows, cut
from modelgen.loader import CompiledRobot

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

    The recorded positions are those of the robot `delay` seconds before, plus `offset`; the recorded inputs act `gain`
    times as strongly. Only the sum of a sensor's delay and a motor's dead time shows in a recording. known_delay: s,
    of a delay that is not estimated.
    """

    def __init__(
        self,
        robot: CompiledRobot,
        estimate: Sequence[Kind] = (),
        longest_delay: float = 0.05,
        known_delay: float = 0.0,
    ) -> None:
        self.robot, self.known_delay = robot, known_delay
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
        self._offsets = [robot.state_names.index(each.of) for each in self.effects if each.kind == "offset"]
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
        """The recorded states at the samples of the windows and their derivatives, as `simulation.simulate`."""
        if not self.effects:
            motion = simulate(self.robot, windows, starts, theta, pushes)
            return _delayed(self.robot, windows, motion, theta, self.known_delay)[0] if self.known_delay else motion
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
        x, offsets = motion.x.copy(), [value for effect, value in extra.items() if effect.kind == "offset"]
        x[..., self._offsets] += offsets
        columns += [np.broadcast_to(np.eye(x.shape[2])[index], x.shape) for index in self._offsets]
        columns += list(np.moveaxis(motion.dx_dgain / gains[self._driven], -1, 0))
        dx_dtheta = np.concatenate([motion.dx_dtheta, *(column[..., None] for column in columns)], axis=3)
        return motion._replace(x=x, dx_dtheta=dx_dtheta)


def _effects(robot: CompiledRobot, kind: Kind, longest_delay: float) -> list[Effect]:
    if kind == "delay":
        return [Effect(kind, "", "s", 0.0, longest_delay, FIRST * longest_delay)]
    if kind == "gain":
        return [Effect(kind, each.name, "", *GAINS, 1.0) for each in robot.metadata.inputs]
    effects = []
    for state in robot.metadata.states[: robot.metadata.nq]:
        largest = ANGLE if state.continuous else SHARE * state.limit
        effects.append(Effect(kind, state.name, state.unit, -largest, largest, 0.0))
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
    slope = 6 * s * (1 - s) * (b - a) + (1 - s) * (1 - 3 * s) * fa + s * (3 * s - 2) * fb

    def line(S: Array) -> Array:
        return np.asarray((1 - s[..., None]) * S[left, many] + s[..., None] * S[left + 1, many])

    return Motion(x, *(line(S) for S in motion[1:])), -slope / h
