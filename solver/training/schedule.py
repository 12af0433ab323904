"""Schedule of a training: the steps that its settings give, and the observer that skips some or adds some.

Observers of the training may change the next position (`go_to`). A training has up to three phases: long steps, short
steps, and a last phase of fixed length, in which the adversaries play and the learning rate falls to its end. A phase
before the last ends when the task is solved and its policy improves no more. That V is right along the policy's motions
is no sign of it: V may have the cost of a policy that a better V elsewhere would improve.

Before the last phase V changes from one iteration to the next by more than its fit errs. What it needs there are
gradient steps, and not more states: half of the states, in twice the epochs, give the same V for half of the targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from solver.fvi.algorithm import Iteration
from solver.fvi.targets import Lookahead, Step
from solver.game.adversaries import make_adversaries
from solver.training.settings import Settings

if TYPE_CHECKING:
    from solver.training.selection import Selection


@dataclass
class Schedule:
    """Steps of a training. `position` belongs to the next step; `added` counts steps beyond the settings' number."""

    settings: Settings
    position: int = 0
    added: int = 0
    polished: int = 0  # how many of the added steps polish V
    left: int = -1  # position at which the training went on to its last phase; -1 before
    few: int = 2  # states of the setting for one before the last phase, in as many times the epochs
    final_learning_rate: float = 1e-5  # of the last step; smaller rates change V no more
    polish_states: int = 6  # states of a polishing step, as a multiple of the setting
    polish_epochs: int = 2  # epochs of a polishing step, as a multiple of the setting
    polish_rate: float = 1.5  # first learning rate of a polishing step, as a multiple of the setting

    def __iter__(self) -> Iterator[Step]:
        while self.position < self.settings.iterations:
            step = self.step()
            self.position += 1
            yield step

    @property
    def number(self) -> int:
        """Number of the next step, unique in the training."""
        return self.position + self.added

    def go_to(self, position: int) -> None:
        """Make the step at `position` the next one. Counts repeated positions in `added`."""
        self.added += max(0, self.position - position)
        if self.position < self.refinement <= position:
            self.left = self.position
        self.position = position

    def step(self) -> Step:
        """Step at the current position."""
        s, k = self.settings, self.position
        passes = self.few if k < self.refinement else 1
        states, rates, fresh = math.ceil(s.states / passes), passes * s.epochs * (self._learning_rate(),), s.authors
        if self.polishing:
            states, rates, fresh = self.polish_states * s.states, self._polish_rates(), True
        periods = s.step_periods[k * len(s.step_periods) // s.iterations]
        share = self.adversary_share(k)
        return Step(
            number=self.number,
            run_seed=s.seed,
            states=states,
            lookahead=Lookahead(s.trace_decay, s.trace_floor, periods, s.hold, s.modulation),
            adversaries=make_adversaries({name: share * radius for name, radius in s.adversaries.items()}),
            minibatch=s.minibatch,
            learning_rates=rates,
            fresh_optimiser=fresh,
            adversary_share=share,
        )

    def adversary_share(self, position: int) -> float:
        """Share of the full radii of the adversaries at a position, in [0, 1]; 0 without adversaries. The last step of
        the ramp has the full radii, and the last step of all, however few there are, has some."""
        s = self.settings
        begin, full = (share * s.iterations for share in s.adversary_ramp)
        begin = min(begin, s.iterations - 1)
        if s.algorithm == "cfvi" or position < begin:
            return 0.0
        return min(1.0, (position + 1.0 - begin) / max(1.0, full - begin))

    @property
    def due(self) -> bool:
        """Whether an evaluation of V is due: at regular intervals, at the end, and after every polishing step."""
        return self.position == self.settings.iterations or self.number % self.settings.evaluate_every == 0

    @property
    def polishing(self) -> bool:
        """Whether the next step polishes V."""
        return self.polished > 0

    @property
    def refinement(self) -> int:
        """Position at which the task should be solved, and the last phase begins.

        The adversaries begin to grow here or, without adversaries, the last of the step lengths begins.
        """
        s = self.settings
        if s.algorithm == "rfvi":
            return min(math.ceil(s.adversary_ramp[0] * s.iterations), s.iterations - 1)
        return s.iterations - s.iterations // len(s.step_periods)

    @property
    def next_phase(self) -> int:
        """Position of the next phase: a new step length, or the last phase; in the last phase the current position.

        A phase that has just been reached is the next one: V is judged after some of its steps, and not before.
        """
        begins = [*self._step_changes(), self.refinement]
        return min((begin for begin in begins if begin >= self.position), default=self.position)

    @property
    def changes(self) -> bool:
        """Whether the next step is the first one of another length."""
        return self.position in self._step_changes()

    def _step_changes(self) -> list[int]:
        """Positions at which the step length changes."""
        steps = self.settings.step_periods
        changes = [stage for stage in range(1, len(steps)) if steps[stage] != steps[stage - 1]]
        return [math.ceil(stage * self.settings.iterations / len(steps)) for stage in changes]

    def _learning_rate(self) -> float:
        """Learning rate of the next fit; constant with `authors`.

        A half cosine over the iterations. The last phase falls from where it was left, on a half cosine of its own.
        """
        s, last = self.settings, self.settings.iterations - 1
        if s.authors:
            return s.learning_rate
        begin = self.refinement
        left = begin if self.left < 0 else self.left
        share = _half_cosine(min(self.position, left) / max(1, last))
        if self.position > begin:
            share *= _half_cosine((self.position - begin) / max(1, last - begin))
        return self.final_learning_rate + (s.learning_rate - self.final_learning_rate) * share

    def _polish_rates(self) -> tuple[float, ...]:
        """Learning rates of the epochs of a polishing fit (half cosine)."""
        s, epochs = self.settings, self.polish_epochs * self.settings.epochs
        shares = (_half_cosine(i / epochs) for i in range(epochs))
        first, last = self.polish_rate * s.learning_rate, self.final_learning_rate
        return tuple(last + (first - last) * share for share in shares)

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        names = ("added", "polished", "left")
        return {"iteration": self.position} | {name: getattr(self, name) for name in names}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises KeyError for a checkpoint without its entries."""
        names = ("iteration", "added", "polished", "left")
        self.position, self.added, self.polished, self.left = (int(checkpoint[name]) for name in names)


def _half_cosine(share: float) -> float:
    """Half a cosine, from 1 at share 0 to 0 at share 1."""
    return 0.5 * (1.0 + math.cos(math.pi * share))


def improves(before: Tensor, now: Tensor, tolerance: float) -> bool:
    """Whether returns `now` (K,) improve on those `before` (K,) from the same starts.

    The mean gain has to exceed its own standard error over the starts, and the tolerance as a share of the mean return.
    Starts from which a rollout diverged (NaN) do not count.
    """
    both = (now - before).isfinite()
    now, before = now[both], before[both]
    gain = now - before
    noise = float(gain.std(correction=0)) / math.sqrt(max(1, len(gain)))
    return float(gain.mean()) > max(noise, tolerance * abs(float(now.mean())))


@dataclass
class Convergence:
    """Ends the phases before the last one: the task is solved, and the policy improves no more.

    A policy is compared with the best that solved the task before. One evaluation without a gain says little. A policy
    that is clearly worse than the best says nothing: V still moves, and the best was a lucky one. A tolerance of 0
    switches the observer off.
    """

    schedule: Schedule
    selection: Selection
    tolerance: float  # smallest gain that counts, as a share of the return
    solved: float = 0.98  # least success rate of an evaluation that counts
    patience: int = 2  # evaluations of a phase since the last gain, as good as the best, that end it
    wait: float = 0.5  # most added iterations, as a share of the iterations in the settings
    flat: int = 0  # such evaluations so far
    best: Tensor | None = None  # (K,) returns of the best policy that solved the task, from the starts of evaluations

    def observe(self, iteration: Iteration, row: dict[str, float]) -> None:  # noqa: ARG002
        """Let the schedule skip to its next phase, or repeat the step before it."""
        schedule = self.schedule
        if self.tolerance == 0.0 or schedule.position > schedule.refinement:
            return
        if "return_mean" in row and row["success_rate"] >= self.solved:
            self._compare()
        if self.flat >= self.patience:
            schedule.go_to(schedule.next_phase)
        elif self._waits() and schedule.added < self.wait * schedule.settings.iterations:
            schedule.go_to(schedule.position - 1)
        if schedule.changes:
            self.flat = 0

    def _waits(self) -> bool:
        """Whether the step before the next phase is repeated: the last phase waits for a phase that ended, one before
        it for the first success, because long steps carry the reward back to the starts in fewer iterations."""
        schedule, best = self.schedule, self.selection.best
        if schedule.position == schedule.refinement:
            return True
        return schedule.changes and best is not None and best.score.successes == 0.0

    def _compare(self) -> None:
        """Compare the policy of an evaluation that solves the task with the best, and keep the better one."""
        now, before = self.selection.returns, self.best
        if before is None or improves(before, now, self.tolerance):
            self.flat = 0
        elif not improves(now, before, self.tolerance):
            self.flat += 1
        if before is None or float((now - before).nanmean()) > 0.0:
            self.best = now

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        return {"solved_returns": self.best, "flat": self.flat}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises KeyError for a checkpoint without its entries."""
        self.best, self.flat = checkpoint["solved_returns"], int(checkpoint["flat"])
