"""Deprecated name of `solver.gym`. It goes with version 0.3."""

from __future__ import annotations

import warnings

from solver.gym import register
from solver.gym.environment import RobotEnv, RobotVectorEnv

__all__ = ["RobotEnv", "RobotVectorEnv", "register"]

warnings.warn("solver.environment is called solver.gym now", DeprecationWarning, stacklevel=2)
register()
