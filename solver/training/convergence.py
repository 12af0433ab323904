"""Observer that skips iterations if evaluations of a solved task agree, and adds iterations if they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solver.fvi.algorithm import Iteration
from solver.training.schedule import Schedule


@dataclass
class Convergence:
    """Follows the success rate and the mean return of the last evaluations. A tolerance of 0 switches it off.

    The evaluations agree if all of them succeed and the last two returns are equal within the tolerance.
    """

    schedule: Schedule
    tolerance: float  # largest relative difference of returns that agree
    count: int = 3  # evaluations that must succeed
    solved: float = 0.98  # least success rate of these evaluations
    wait: float = 0.5  # most added iterations, as a share of the iterations in the settings
    evaluations: list[list[float]] = field(default_factory=list)  # success rate and mean return of each

    def observe(self, iteration: Iteration, row: dict[str, float]) -> None:  # noqa: ARG002
        """Let the schedule skip to its next phase, or repeat its position."""
        schedule = self.schedule
        evaluated = "return_mean" in row
        if evaluated:
            new = [row["success_rate"], row["return_mean"]]
            self.evaluations = [*self.evaluations, new][-self.count :]
        polishing = schedule.polished > 0 and schedule.position <= schedule.nominal_end
        if polishing or self.tolerance == 0.0 or len(self.evaluations) < self.count:
            return
        solved = all(success >= self.solved for success, _ in self.evaluations)
        before, last = (mean for _, mean in self.evaluations[-2:])
        agree = solved and abs(last - before) < self.tolerance * abs(last)
        schedule.settled = solved and (agree or schedule.settled)
        if agree:
            schedule.go_to(schedule.next_phase() if evaluated else schedule.position)
        elif schedule.position == schedule.refinement and schedule.added < self.wait * schedule.settings.iterations:
            schedule.go_to(schedule.position - 1)

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        return {"evaluations": self.evaluations}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises TypeError or ValueError for entries that are not pairs of numbers."""
        self.evaluations = [[float(number) for number in pair] for pair in checkpoint["evaluations"]]
