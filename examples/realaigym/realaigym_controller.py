"""A trained policy as a controller of the AI Olympics with RealAIGym.

Their program imports `make_controller`. It reads four environment variables: RUN, the run folder; RATES, `measured`
(the default), `positions` or `raw`; MODEL, the robot that it was trained on, by default the gallery's; ESTIMATE, the
parameters that the observer estimates, names or `all`, by default none.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # their program imports this file by its path
from compiled import CompiledPolicy  # noqa: E402

Array = NDArray[np.float64]
STEP = 0.002  # s, of their simulation; they ask for an input in every step
PERIOD = 0.004  # s, of the policies, whose models have a control rate of 250 Hz
# rad/s, of the measured rates: nobody tells their noise. On the robustness board its deviation is 0 to 0.5, all alike
# likely, and this is the root of the mean square.
RATE_NOISE = 0.5 / math.sqrt(3.0)
LONGEST_DELAY = 10  # periods, of those among which the observer looks for the right one: 40 ms
DRIVEN = {"pendubot": 0, "acrobot": 1}  # the joint with the motor


def our_state(x: Sequence[float] | Array) -> Array:
    """Our state (4,) of theirs (q1, q2, rates): q1 counts from hanging there and from upright here; q2 is between the
    links in both."""
    state = np.asarray(x, float).copy()
    state[:2] = np.remainder(state[:2] + np.array([0.0, math.pi]), 2.0 * math.pi) - math.pi
    return state


class Feedback:
    """The torques (2,) of both motors for their state, the one of the other joint 0.

    act: our state (4,) -> the torque (1,). hold: calls for which an input is held. reset: called at every start, and
    where the controller was not asked for a while.
    """

    def __init__(
        self, robot: str, act: Callable[[Array], float], hold: int, reset: Callable[[], None] = lambda: None
    ) -> None:
        self._joint, self._act, self._hold, self._reset = DRIVEN[robot], act, hold, reset
        self._calls, self._torque, self._time = 0, 0.0, math.inf

    def __call__(self, x: Sequence[float] | Array, t: float) -> Array:
        # A new simulation, for their boards use one controller for many; or others drove the robot meanwhile.
        if not self._time < t < self._time + 1.5 * STEP:
            self._reset()
            self._calls = 0
        self._time = t
        if self._calls % self._hold == 0:
            self._torque = self._act(our_state(x))
        self._calls += 1
        torques = np.zeros(2)
        torques[self._joint] = self._torque
        return torques


def load(robot: str, run: str, rates: str = "measured", model: str = "", estimate: Sequence[str] = ()) -> Feedback:
    """The policy of a run behind the observer, in every control period. model: the robot that it was trained on, by
    default the gallery's.

    rates: `measured` or, not given to the observer, `positions`; `raw` is the policy without observer, in every step of
    the simulation. estimate: parameters that the observer estimates, names or `all`. Raises ValueError for another
    word, and for an estimate without observer.
    """
    if rates not in ("measured", "positions", "raw"):
        raise ValueError(f"RATES is {rates!r}; write measured, positions or raw")
    if estimate and rates == "raw":
        raise ValueError("ESTIMATE needs the observer; write RATES=measured or positions")
    noise = RATE_NOISE if rates == "measured" else None
    policy = CompiledPolicy(model or f"realaigym_{robot}", 4, run, LONGEST_DELAY, noise, estimate)
    if rates == "raw":
        return Feedback(robot, policy.from_state, hold=1)
    measured = 2 if rates == "positions" else 4
    return Feedback(robot, lambda x: policy.from_sensors(x[:measured]), round(PERIOD / STEP), policy.reset)


def make_controller(robot: str) -> Any:
    """A controller of theirs, `acrobot` or `pendubot`, with a memory of its own."""
    from double_pendulum.controller.abstract_controller import AbstractController

    class Controller(AbstractController):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.feedback = load(
                robot,
                os.environ["RUN"],
                os.environ.get("RATES", "measured"),
                os.environ.get("MODEL", ""),
                os.environ.get("ESTIMATE", "").split(),
            )

        def get_control_output_(self, x: Array, t: float = 0.0) -> Array:
            """Torques (2,)."""
            return self.feedback(x, t)

    return Controller()
