"""The untrained value function of a run, from its settings and its robot."""

from __future__ import annotations

import torch

from modelgen.loader import CompiledRobot
from solver.streams import Purpose, stream
from solver.training.settings import Settings
from solver.value.network import Ensemble


def make_ensemble(robot: CompiledRobot, settings: Settings) -> Ensemble:
    """The untrained value function of a run, on the CPU."""
    metadata = robot.metadata
    scale = []
    for state in metadata.states:
        share = settings.position_scale if state.kind == "position" else settings.rate_scale
        scale.append(share / state.limit if share > 0.0 else 1.0)
    return Ensemble(
        continuous=[state.continuous for state in metadata.states],
        target=list(metadata.task.target),
        scale=scale,
        members=settings.members,
        layers=settings.layers,
        width=settings.width,
        generator=torch.Generator().manual_seed(stream(settings.seed, 0, Purpose.WEIGHTS)),
    )
