"""The presets: settings that follow from a robot."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from modelgen.metadata import State
from solver.errors import SolverError
from solver.fvi.renamed import renamed_settings, warn_of_renamed
from solver.fvi.settings import NO_ADVERSARIES, Settings
from solver.problem.robots import largest_rates

#: Held for one value step at the target, a full input should change no rate by a larger share of its limit. The closed
#: form is the policy of continuous time: held for longer, it drives the robot across the target and back.
PUSH = 0.2


def push(robot: CompiledRobot) -> NDArray[np.float64]:
    """(n,) how much a full input changes every state in one control period at the target, as a share of its limit.

    `robot` has kernels on the CPU.
    """
    task = robot.metadata.task
    _, gain = robot.affine_dynamics(torch.tensor([task.target], dtype=getattr(torch, robot.dtype)))
    gain, inputs, states = (np.asarray(entry, np.float64) for entry in (gain, robot.input_limits, robot.state_limits))
    change: NDArray[np.float64] = np.abs(gain[0]) @ inputs / (task.control_rate * states)
    return change


def fast(robot: CompiledRobot) -> dict[str, Any]:
    """Settings for minutes of training on two cores, from the size of a robot, its time scale and its inputs.

    - The time scale is the time that a joint takes across its range at its largest rate (a turn, for a joint that
      wraps). A value step takes a twentieth of it, but no more than PUSH allows. The look-ahead is a share of it.
    - With more than one joint a value step takes at most 2 control periods and the look-ahead at most 8 value steps.
      With longer ones the robots chatter or find worse manoeuvres.
    - With more than one joint a share of the states comes from rollouts of the policy. Without it, training finds a
      good manoeuvre and loses it again.
    - Where every joint is driven, some states lie around the target: such a robot can rest anywhere, and only a precise
      V makes it go on to the target. limit_cost keeps it from braking a joint at the limit of its rate for nothing.
    - The radii of the adversaries grow from zero after the nominal task is solved. With adversaries from the first
      iteration the robot does not learn to swing up.

    docs/results/choices.md compares these choices.
    """
    metadata = robot.metadata
    simple = len(metadata.states) <= 2
    period, crossing = 1.0 / metadata.task.control_rate, _crossing(robot)
    longest_hold, share, holds_ahead = (4, 0.68, math.inf) if simple else (2, 0.4, 8)
    pace, hardest = min(longest_hold, round(0.05 * crossing / period)), float(push(robot).max())
    hold = max((periods for periods in range(1, pace + 1) if periods * hardest <= PUSH), default=1)
    look_ahead = min(holds_ahead * hold * period, max(2.0 * period, share * crossing))
    weakest = min(entry.limit for entry in metadata.inputs)
    common = {
        "iterations": 48 if simple else 80,
        "trace_decay": 1.0 - period / look_ahead,
        "trace_floor": 0.05 if simple else 0.01,
        "step_periods": (hold, hold, hold, max(1, hold // 2)),
        "modulation": "stationary",
        "alpha_observation": 0.001,
    }
    if simple:
        radii = {"alpha_state": 0.04, "alpha_action": round(0.185 * weakest, 9), "alpha_parameters": 0.025}
        return {**common, **radii, "adversary_ramp": (0.3, 0.6), "states": 10240}
    radii = {"alpha_state": 0.002, "alpha_action": round(0.03 * weakest, 9), "alpha_parameters": 0.03}
    shares = {"on_policy_share": 0.3}
    if 2 * len(metadata.inputs) >= len(metadata.states):
        shares |= {"target_share": 0.05, "limit_cost": 3.0}
    sizes = {"states": 15360, "learning_rate": 2e-3, "rate_scale": 4.0}
    return {**common, **radii, **shares, **sizes, "adversary_ramp": (0.4, 0.7)}


def _crossing(robot: CompiledRobot) -> float:
    """Seconds that the slowest of the joints that wrap takes for one turn; without such a joint, that the fastest joint
    takes across its range.

    The fastest joint that wraps may be a wheel, whose angle has no cost.
    """
    joints: list[tuple[State, float]] = list(zip(robot.metadata.states, largest_rates(robot).tolist(), strict=False))
    seconds = [(2.0 * position.limit / rate, position.continuous) for position, rate in joints]
    wrapping = [crossing for crossing, wraps in seconds if wraps]
    return max(wrapping) if wrapping else min(crossing for crossing, _ in seconds)


def paper(robot: CompiledRobot) -> dict[str, Any]:
    """The authors' settings: those of their pendulum for robots of one joint, of their cart-pole for all others."""
    common = {
        "states": 51200,
        "start_share": 0.0,
        "epochs": 20,
        "weight_decay": 1e-6,
        "amsgrad": True,
        "keep_optimiser": False,
        "step_periods": (1,),
        "position_scale": 0.0,
        "rate_scale": 0.0,
    }
    if len(robot.metadata.coordinates) == 1:
        own = {"iterations": 150, "trace_decay": 0.85, "layers": 3, "width": 96, "minibatch": 256}
        rate = 3e-5
    else:
        own = {"iterations": 250, "trace_decay": 0.90, "layers": 4, "width": 64, "minibatch": 512}
        rate = 1e-4
    # The authors' N, 45 and 66, follows from (1 - lambda) lambda^N = 1e-4.
    own["trace_floor"] = 1e-4 / (1.0 - own["trace_decay"])
    return {**common, **own, "learning_rate": rate, "final_learning_rate": rate}


PRESETS = {"fast": fast, "paper": paper}
#: A short form on top of a preset: continuous fitted value iteration is the robust one with all radii at zero.
Algorithm = Literal["rfvi", "cfvi"]
ALGORITHMS: dict[str, dict[str, Any]] = {"rfvi": {}, "cfvi": NO_ADVERSARIES}


def make_settings(preset: str, robot: CompiledRobot, algorithm: str = "rfvi", **changes: Any) -> Settings:
    """A preset for a robot, which has kernels on the CPU, with some settings changed.

    algorithm: rfvi as the preset has it, or cfvi without adversaries. Raises SolverError for an unknown preset,
    algorithm or setting, and for a radius beside cfvi.
    """
    if preset not in PRESETS:
        raise SolverError(f"unknown preset '{preset}'.{suggestion(preset, PRESETS)} Presets: {', '.join(PRESETS)}")
    warn_of_renamed(changes)
    changes = renamed_settings(changes)
    known = {f.name for f in dataclasses.fields(Settings)}
    for name in changes:
        if name not in known:
            hint = suggestion(name, known)
            raise SolverError(f"unknown setting '{name}'.{hint} Settings: {', '.join(sorted(known))}")
    if algorithm not in ALGORITHMS:
        choices = ", ".join(ALGORITHMS)
        raise SolverError(f"unknown algorithm '{algorithm}'.{suggestion(algorithm, ALGORITHMS)} Choices are {choices}")
    settings = Settings(**{**PRESETS[preset](robot), **ALGORITHMS[algorithm], **changes})
    require_algorithm(settings, algorithm)
    return settings


def require_algorithm(settings: Settings, algorithm: str) -> None:
    """Raise SolverError for settings with an adversary where cFVI is asked for."""
    if algorithm == "cfvi" != settings.algorithm:
        radii = ", ".join(name for name in NO_ADVERSARIES if getattr(settings, name) > 0.0)
        raise SolverError(f"cfvi has no adversaries, but {radii} is above 0; leave it out, or train rfvi")
