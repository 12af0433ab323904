"""Preset `paper`: the authors' settings of the pendulum for robots with one joint, of the cart-pole for all others."""

from __future__ import annotations

from typing import Any

from modelgen.loader import CompiledRobot
from solver.game.adversaries import ADVERSARIES


def paper(robot: CompiledRobot) -> dict[str, Any]:
    """Settings of rFVI by the authors."""
    common = {
        "states": 51200,
        "sampling": "uniform",
        "epochs": 20,
        "authors": True,
        "step_periods": (1,),
        "reaction_periods": 0.0,
        "limit_cost": 0.0,
        "input_scale": 0.0,
        "basin": False,
        "modulation": "wiener",
        "adversaries": {kind.name: kind.usual for kind in ADVERSARIES if kind.usual > 0.0},
    }
    if robot.metadata.nq == 1:
        own = {"iterations": 150, "trace_decay": 0.85, "layers": 3, "width": 96, "minibatch": 256}
        rate = 3e-5
    else:
        own = {"iterations": 250, "trace_decay": 0.90, "layers": 4, "width": 64, "minibatch": 512}
        rate = 1e-4
    # The authors' N, 45 and 66, follows from (1 - lambda) lambda^N = 1e-4.
    own["trace_floor"] = 1e-4 / (1.0 - own["trace_decay"])
    return {**common, **own, "learning_rate": rate}


def paper_nominal(robot: CompiledRobot) -> dict[str, Any]:
    """Settings of cFVI by the authors."""
    return {**paper(robot), "adversaries": {}}
