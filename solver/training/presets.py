"""The presets: settings that follow from a robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.local.time_scale import crossing_time, time_scale
from solver.training.renamed import renamed_settings, warn_of_renamed
from solver.training.settings import NO_ADVERSARIES, Settings

STEPS = 8  # value steps in a time scale of the robot
CROSSING = 5  # and at least so many, in which a full input takes a state across its limit


def fast(robot: CompiledRobot) -> dict[str, Any]:
    """Settings for minutes of training on two cores, from the size of a robot and its time scale.

    - Times are physical: a value step is a share of the robot's time scale, whatever the control rate. The first steps
      are long, to carry the reward back fast, and the last ones short.
    - The fit is one of the relative error: states that are lost anyway would take the precision that balancing needs.
    - The input acts for one control period (`reaction_periods`), as it will on the robot.
    - Around the target V is the Riccati equation's, and a share of the states lies there in its metric. So do the
      errors that V is a form of.
    - Half of the states come from rollouts of the policy. Without them, training finds a good manoeuvre and loses it
      again.
    - A state at its limit costs: a policy that leans on a wall has not solved the task.
    - Training goes on to the growth of the adversaries and to the short steps as soon as its evaluations agree.
    - Where V is still rough in the end, it is polished.
    - The radii of the adversaries grow from zero after the nominal task is solved. With adversaries from the first
      iteration the robot does not learn to swing up.

    docs/results/choices.md says what was measured.
    """
    metadata = robot.metadata
    simple = len(metadata.states) <= 2
    seconds = min(time_scale(robot) / STEPS, crossing_time(robot) / CROSSING)
    hold = max(1, round(seconds * metadata.task.control_rate))
    weakest = min(entry.limit for entry in metadata.inputs)
    common = {
        "iterations": 100,
        "convergence": 0.01,
        "polish": 6,
        "trace_decay": 0.94 if simple else 0.91,
        "trace_floor": 0.3,
        "step_periods": (2 * hold, *8 * (hold,), max(1, hold // 2)),
        "reaction_periods": 1.0,
        "basin": True,
        "metric": True,
        "on_policy_share": 0.5,
        "rollouts": 32,
        "members": 2 if simple else 3,
        "loss_scale": 0.2,
        "limit_cost": 1.0,
        "minibatch": 256,
        "optimiser": "soap",
        "epochs": 8,
        "adversary_ramp": (0.7, 0.85),
        "target_share": 0.1,
        "modulation": "stationary",
        "alpha_observation": 0.001,
    }
    if simple:
        radii = {"alpha_state": 0.02, "alpha_action": round(0.12 * weakest, 9), "alpha_parameters": 0.025}
        return {**common, **radii, "states": 3072}
    radii = {"alpha_state": 0.002, "alpha_action": round(0.03 * weakest, 9), "alpha_parameters": 0.03}
    sizes = {
        "states": 6144 if len(metadata.states) <= 4 else 12288,
        "learning_rate": 2e-3,
        "rate_scale": 4.0,
    }
    return {**common, **radii, **sizes}


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
        "integrator": "euler",
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


def fast_nominal(robot: CompiledRobot) -> dict[str, Any]:
    """`fast` without adversaries: the short steps come where these would begin to grow."""
    settings = fast(robot)
    steps: tuple[int, ...] = settings["step_periods"]
    return {**settings, **NO_ADVERSARIES, "iterations": 80, "step_periods": (*steps[:7], steps[-1])}


def paper_nominal(robot: CompiledRobot) -> dict[str, Any]:
    """`paper` without adversaries."""
    return {**paper(robot), **NO_ADVERSARIES}


#: Continuous fitted value iteration, cfvi, is the robust one with all radii at zero.
Algorithm = Literal["rfvi", "cfvi"]
PRESETS: dict[str, dict[str, Callable[[CompiledRobot], dict[str, Any]]]] = {
    "fast": {"rfvi": fast, "cfvi": fast_nominal},
    "paper": {"rfvi": paper, "cfvi": paper_nominal},
}
ALGORITHMS = ("rfvi", "cfvi")


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
    settings = Settings(**{**PRESETS[preset][algorithm](robot), **changes})
    require_algorithm(settings, algorithm)
    return settings


def require_algorithm(settings: Settings, algorithm: str) -> None:
    """Raise SolverError for settings with an adversary where cFVI is asked for."""
    if algorithm == "cfvi" != settings.algorithm:
        radii = ", ".join(name for name in NO_ADVERSARIES if getattr(settings, name) > 0.0)
        raise SolverError(f"cfvi has no adversaries, but {radii} is above 0; leave it out, or train rfvi")
