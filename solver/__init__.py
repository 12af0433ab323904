"""Robust fitted value iteration on compiled robots.

`train` a policy, `load` a run or a shipped policy, `evaluate` it. Names are imported when they are first used, so that
`import solver` stays light.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from solver.errors import DivergenceError, SolverError

if TYPE_CHECKING:
    from solver.controller import PositionController, load_controller
    from solver.evaluation import Evaluation, evaluate
    from solver.evaluation.robustness_figures import robustness
    from solver.evaluation.trajectory import Trajectory, simulate
    from solver.game import Game
    from solver.game.adversaries import ActionAdversary as Action
    from solver.game.adversaries import Adversary
    from solver.game.adversaries import ObservationAdversary as Observation
    from solver.game.adversaries import ParameterAdversary as Parameters
    from solver.game.adversaries import StateAdversary as State
    from solver.game.adversaries import ToldAdversary as Told
    from solver.interface import Run, load, page, plot, resume, train
    from solver.policy import Policy, Value, load_policy, load_value
    from solver.problem import Problem
    from solver.problem.parameters import Relative
    from solver.runs.shipped import names as policies
    from solver.training.settings import Settings, make_settings

#: Public name -> module and name in it.
_NAMES = {
    "Action": "game.adversaries.ActionAdversary",
    "Adversary": "game.adversaries.Adversary",
    "Evaluation": "evaluation.Evaluation",
    "Game": "game.Game",
    "Observation": "game.adversaries.ObservationAdversary",
    "Parameters": "game.adversaries.ParameterAdversary",
    "Policy": "policy.Policy",
    "PositionController": "controller.PositionController",
    "Problem": "problem.Problem",
    "Relative": "problem.parameters.Relative",
    "Run": "interface.Run",
    "Settings": "training.settings.Settings",
    "State": "game.adversaries.StateAdversary",
    "Told": "game.adversaries.ToldAdversary",
    "Value": "policy.Value",
    "evaluate": "evaluation.evaluate",
    "load": "interface.load",
    "load_controller": "controller.load_controller",
    "load_policy": "policy.load_policy",
    "load_value": "policy.load_value",
    "page": "interface.page",
    "plot": "interface.plot",
    "policies": "runs.shipped.names",
    "make_settings": "training.settings.make_settings",
    "resume": "interface.resume",
    "robustness": "evaluation.robustness_figures.robustness",
    "simulate": "evaluation.trajectory.simulate",
    "train": "interface.train",
    "Trajectory": "evaluation.trajectory.Trajectory",
}

__all__ = [
    "Action",
    "Adversary",
    "DivergenceError",
    "Evaluation",
    "Game",
    "Observation",
    "Parameters",
    "Policy",
    "PositionController",
    "Problem",
    "Relative",
    "Run",
    "Settings",
    "SolverError",
    "State",
    "Told",
    "Trajectory",
    "Value",
    "evaluate",
    "load",
    "load_controller",
    "load_policy",
    "load_value",
    "make_settings",
    "page",
    "plot",
    "policies",
    "resume",
    "robustness",
    "simulate",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "__version__":
        return version("robust-value-iteration")
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _NAMES[name].rpartition(".")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
