"""Trained policies and value functions as plain NumPy functions, for tests on a robot and for other programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from solver.errors import SolverError
from solver.fvi.renamed import warn_of_renamed
from solver.fvi.solution import load_solution
from solver.plants.rollouts import Controller
from solver.runs.kinds import load_controller
from solver.value.frozen import FrozenValue


class Policy:
    """The policy of a run as a NumPy function."""

    def __init__(self, act: Controller, state_names: tuple[str, ...]) -> None:
        self._act, self._state_names = act, state_names

    def __call__(self, x: ArrayLike) -> NDArray[np.float32]:
        """Map states (N, n) in SI units to inputs (N, m) within the input limits.

        Raises SolverError for another shape.
        """
        u: NDArray[np.float32] = self._act(_states(x, self._state_names))[0].numpy()
        return u


class Value:
    """V and dV/dx as a NumPy function."""

    def __init__(self, value: FrozenValue, state_names: tuple[str, ...]) -> None:
        self._value, self._state_names = value, state_names

    def __call__(self, x: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Map states (N, n) in SI units to V (N,) and dV/dx (N, n). Raises SolverError for another shape."""
        value, gradient = self._value(_states(x, self._state_names))
        return value.numpy(), gradient.numpy()


def _states(x: ArrayLike, names: tuple[str, ...]) -> torch.Tensor:
    array = np.array(x, dtype=np.float32, order="C")  # a copy: Torch takes no read-only array
    if array.ndim != 2 or array.shape[1] != len(names):
        raise SolverError(
            f"x has shape {array.shape}; give (N, {len(names)}), one row a sample, columns {', '.join(names)}"
        )
    return torch.from_numpy(array)


def load_policy(
    folder: str | Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
    *,
    sampled: float | None = None,
) -> Policy:
    """Load the policy of a run folder, of any kind of run: `policy(x)` maps (N, n) to (N, m).

    reaction_periods: control periods that an input acts before the next one can, by default as in training; 0 is the
    closed form. sampled: its name in version 0.1, deprecated. Errors are those of
    `solver.runs.kinds.load_controller`.
    """
    if sampled is not None:
        warn_of_renamed({"sampled": sampled})
        reaction_periods = sampled
    problem, act, _ = load_controller(folder, generated, reaction_periods)
    return Policy(act, problem.robot.state_names)


def load_value(folder: str | Path, generated: str | None = None) -> Value:
    """Load the value function of a run folder: `value(x)` gives V (N,) and dV/dx (N, n).

    Raises SolverError for a folder without a run, a damaged checkpoint, another artifact, and a kind of run without a
    value function.
    """
    solution = load_solution(folder, generated)
    return Value(solution.value, solution.problem.robot.state_names)
