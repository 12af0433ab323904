"""Observer that polishes a rough V at the end of nominal training, with more states and longer fits.

A policy follows the slope of V. If V is rough, the slope has small errors everywhere: no rollout fails, but the robot
pays some per cent too much. Then V also differs from the return of its policy, which shows the roughness without a
known optimum. A polishing step begins with a fresh optimiser, and its learning rate falls to its final value, because
an unfinished fit puts its noise into the next targets. cFVI is polished at the end of its schedule, rFVI before its
adversaries grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solver.fvi.algorithm import Iteration
from solver.training.schedule import Schedule
from solver.training.selection import Selection


@dataclass
class Polish:
    """Adds up to `most` polishing steps to the schedule while V is rough and the task is solved."""

    schedule: Schedule
    selection: Selection
    most: int
    solved: float = 0.98  # least share of successes of the best V
    rough: float = 0.03  # mismatch of V above which it is rough
    mismatch: float = 0.0  # of V at the last evaluation

    def observe(self, iteration: Iteration, row: dict[str, float]) -> None:  # noqa: ARG002
        """Add a polishing step if the nominal training ends with a rough V. The first one begins with the best V."""
        schedule, best = self.schedule, self.selection.best
        self.mismatch = row.get("value_mismatch", self.mismatch)
        solved = best is not None and best.score.successes >= self.solved
        rough = self.mismatch > self.rough and schedule.polished < self.most
        if schedule.position == schedule.nominal_end and solved and rough:
            schedule.go_to(schedule.position - 1)
            schedule.polished += 1
            if schedule.polished == 1:
                self.selection.restore_best()

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        return {"mismatch": self.mismatch}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises TypeError or ValueError for an entry that is not a number."""
        self.mismatch = float(checkpoint["mismatch"])
