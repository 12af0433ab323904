"""Untrained value function and optimisers of a training, from its settings."""

from __future__ import annotations

import torch

from modelgen.loader import CompiledRobot
from solver.problem.context import Context
from solver.streams import Purpose, stream
from solver.training.settings import Settings
from solver.value.network import Ensemble, Factor
from solver.value.optimiser import Adam, Optimiser, Soap

POSITION_SCALE = 2.0  # network input of a position that does not wrap: 2 q/limit
WEIGHT_DECAY = 1e-6  # L2 penalty on the weights, as in the paper


def make_ensemble(robot: CompiledRobot, settings: Settings, context: Context | None = None) -> Ensemble:
    """Untrained value function on the CPU. context: of the problem, where parameters are told."""
    states = robot.metadata.states
    scales = {"position": POSITION_SCALE, "velocity": settings.input_scale}
    scaled = settings.input_scale > 0.0
    return Ensemble(
        continuous=[state.continuous for state in states],
        target=list(robot.metadata.task.target) if context is None else context.target.tolist(),
        scale=[scales.get(state.kind, settings.input_scale) / state.limit if scaled else 1.0 for state in states],
        members=settings.members,
        layers=settings.layers,
        width=settings.width,
        generator=torch.Generator().manual_seed(stream(settings.seed, 0, Purpose.WEIGHTS)),
        told=0 if context is None else len(context),
        rotations=robot.metadata.rotations,
        shift=None if context is None or context.shift is None else context.shift.cpu(),
    )


def make_optimiser(member: Factor, settings: Settings) -> Optimiser:
    """Fresh optimiser of a member of the ensemble."""
    if settings.optimiser == "soap":
        return Soap(member, settings.learning_rate, WEIGHT_DECAY)
    return Adam(member, settings.learning_rate, WEIGHT_DECAY, amsgrad=True)
