"""Where a training is: which iteration of its schedule comes next, and when V is evaluated or polished.

The settings describe the schedule: step lengths, learning rates and adversaries by iteration. A training does not
always follow it line by line. Where its last evaluations agree on a solved task, it leaves out the iterations up to the
next phase. Where they do not, it stands still before the last one, and it stands still to polish a V that is rough.
"""

from __future__ import annotations

import math
from typing import Any

from solver.training import polish
from solver.training.settings import Settings

LOOKS, SOLVED = 3, 0.98  # evaluations that tell of convergence, and the share of successes in each
WAIT = 0.5  # of the iterations: most that the schedule stands still for a training that has not converged


class Schedule:
    """The iteration of the schedule that comes next, and what the evaluations have said."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.iteration = 0
        self.waited = 0  # further iterations, in which the schedule stood still
        self.polished = 0  # how many of these polish V
        self.mismatch = 0.0  # of the last evaluation
        self.looks: list[list[float]] = []  # success rate and mean return of the last evaluations

    @property
    def done(self) -> int:
        """The iterations so far, those that the schedule leaves out among them."""
        return self.iteration + self.waited

    @property
    def due(self) -> bool:
        """Whether the present V is to be evaluated: every so many iterations, in the end, and after each polish."""
        ends = {self.settings.iterations}
        if self.polished:
            ends.add(polish.polish_at(self.settings))
        return self.iteration in ends or self.done % self.settings.evaluate_every == 0

    @property
    def polishing(self) -> bool:
        """Whether the next iteration polishes V, see `solver.training.polish`."""
        return self.polished > 0 and self.iteration == polish.polish_at(self.settings) - 1

    @property
    def learning_rates(self) -> tuple[float, ...]:
        """Those of the passes of the next fit: one rate, on half a cosine from the first to the last iteration."""
        s = self.settings
        if self.polishing:
            return polish.learning_rates(s)
        share = self.iteration / max(1, s.iterations - 1)
        rate = s.final_learning_rate + (s.learning_rate - s.final_learning_rate) * 0.5 * (
            1.0 + math.cos(math.pi * share)
        )
        return s.epochs * (rate,)

    def look(self, success: float, returned: float, mismatch: float) -> None:
        """Take note of an evaluation: success rate, mean return, and `polish.value_mismatch`."""
        self.looks = [*self.looks, [success, returned]][-LOOKS:]
        self.mismatch = mismatch

    def pace(self, kept: float) -> bool:
        """Leave out iterations, or stand still. kept: the share of successes of the best V, 0 where there is none.

        Returns whether a polish begins, which is one of the best V.
        """
        end = polish.polish_at(self.settings)
        if self.polished == 0 or self.iteration > end:
            self._follow_looks()
        rough = self.mismatch > polish.MISMATCH and self.polished < self.settings.polish
        if self.iteration != end or kept < SOLVED or not rough:
            return False
        self._stand_still()
        self.polished += 1
        return self.polished == 1

    def _follow_looks(self) -> None:
        s = self.settings
        returns = [value for success, value in self.looks if success >= SOLVED]
        if len(self.looks) < LOOKS or s.convergence == 0.0:
            return
        if len(returns) == LOOKS and max(returns) - min(returns) < s.convergence * abs(returns[-1]):
            self.iteration = s.next_phase(self.iteration)
        elif self.iteration == s.refinement and self.waited < WAIT * s.iterations:
            self._stand_still()

    def _stand_still(self) -> None:
        self.iteration -= 1
        self.waited += 1

    def state(self) -> dict[str, Any]:
        """The entries of a checkpoint."""
        return {name: value for name, value in vars(self).items() if name != "settings"}

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """The inverse of `state`; entries that are newer than the checkpoint stay as they are.

        Raises KeyError, TypeError or ValueError for a checkpoint that does not fit.
        """
        self.iteration, self.waited = checkpoint["iteration"], int(checkpoint.get("waited", 0))
        self.polished, self.mismatch = int(checkpoint.get("polished", 0)), float(checkpoint.get("mismatch", 0.0))
        self.looks = [[float(number) for number in look] for look in checkpoint.get("looks", [])]
