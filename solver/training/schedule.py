"""Schedule of a training: the steps that its settings give, and the observer that skips some or adds some.

Observers of the training may change the next position (`go_to`). A training skips iterations if its evaluations of a
solved task agree, and adds iterations if they do not. A settled training takes every second position at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from solver.fvi.algorithm import Iteration
from solver.fvi.step import Lookahead, Step
from solver.game.adversaries import make_adversaries
from solver.training.settings import Settings

ROUGH = 0.03  # mismatch of V above which it is rough, as a share of its policy's cost
SETTLED_STRIDE = 2  # positions of a step in a settled training, once the task should be solved


@dataclass
class Schedule:
    """Steps of a training. `position` belongs to the next step; `added` counts steps beyond the settings' number."""

    settings: Settings
    position: int = 0
    added: int = 0
    polished: int = 0  # how many of the added steps polish V
    settled: bool = False  # whether the evaluations of the solved task agreed
    last_phase: float = 0.85  # share of the iterations after which none is skipped, because the learning rate falls
    final_learning_rate: float = 1e-5  # of the last step; smaller rates change V no more
    polish_states: int = 6  # states of a polishing step, as a multiple of the setting
    polish_epochs: int = 2  # epochs of a polishing step, as a multiple of the setting
    polish_rate: float = 1.5  # first learning rate of a polishing step, as a multiple of the setting

    def __iter__(self) -> Iterator[Step]:
        while self.position < self.settings.iterations:
            step = self.step()
            self.position = min(self.position + self._stride, self.settings.iterations)
            yield step

    @property
    def _stride(self) -> int:
        """Positions from this step to the next: a settled training follows the ramp and the falling learning rate in
        half as many steps."""
        return SETTLED_STRIDE if self.settled and self.position >= self.refinement else 1

    @property
    def number(self) -> int:
        """Number of the next step, unique in the training."""
        return self.position + self.added

    def go_to(self, position: int) -> None:
        """Make the step at `position` the next one. Counts repeated positions in `added`."""
        self.added += max(0, self.position - position)
        self.position = position

    def step(self) -> Step:
        """Step at the current position."""
        s, k = self.settings, self.position
        states, rates, fresh = s.states, s.epochs * (self._learning_rate(),), s.authors
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
        """Share of the full radii of the adversaries at a position, in [0, 1]; 0 without adversaries."""
        s = self.settings
        begin, full = (share * s.iterations for share in s.adversary_ramp)
        if s.algorithm == "cfvi" or position < begin:
            return 0.0
        return 1.0 if position >= full else (position - begin) / (full - begin)

    @property
    def due(self) -> bool:
        """Whether an evaluation of V is due: at regular intervals, at the end, and after every polishing step."""
        ends = {self.settings.iterations}
        if self.polished:
            ends.add(self.nominal_end)
        return self.position in ends or self.number % self.settings.evaluate_every < self._stride

    @property
    def nominal_end(self) -> int:
        """Position of the first step with adversaries. A rough V is polished before it."""
        return self.settings.iterations if self.settings.algorithm == "cfvi" else self.refinement

    @property
    def polishing(self) -> bool:
        """Whether the next step polishes V."""
        return self.polished > 0 and self.position == self.nominal_end - 1

    @property
    def refinement(self) -> int:
        """Position at which the task should be solved.

        The adversaries begin to grow here or, without adversaries, the step length changes for the last time.
        """
        if self.settings.algorithm == "rfvi":
            return math.ceil(self.settings.adversary_ramp[0] * self.settings.iterations)
        return max(self._step_changes(), default=0)

    @property
    def begins(self) -> bool:
        """Whether a right V may begin the next phase of rFVI before its adversaries grow: V under the present steps."""
        nominal = self.settings.algorithm == "rfvi" and self.position <= self.refinement
        return nominal and self.position not in self._step_changes()

    def next_phase(self, met: float) -> int:
        """Position of the next phase: a new step length, the growth of the adversaries, the last phase, or the end.

        It is the current position while the adversaries grow. A training of rFVI does not end before V has met all of
        them. met: their share of the full radii in the last iteration.
        """
        s, robust = self.settings, self.settings.algorithm == "rfvi"
        if robust and self.position >= self.refinement and self.adversary_share(self.position) < 1.0:
            return self.position
        begins = self._step_changes()
        if robust and s.adversary_ramp[1] > 0.0:
            begins.append(self.refinement)
        begins += [math.ceil(self.last_phase * s.iterations), *[s.iterations] * (met == 1.0 or not robust)]
        return min((begin for begin in begins if begin > self.position), default=self.position)

    def _step_changes(self) -> list[int]:
        """Positions at which the step length changes."""
        steps = self.settings.step_periods
        changes = [stage for stage in range(1, len(steps)) if steps[stage] != steps[stage - 1]]
        return [math.ceil(stage * self.settings.iterations / len(steps)) for stage in changes]

    def _learning_rate(self) -> float:
        """Learning rate of the next fit: a half cosine over the iterations, or constant with `authors`."""
        s = self.settings
        if s.authors:
            return s.learning_rate
        share = 0.5 * (1.0 + math.cos(math.pi * self.position / max(1, s.iterations - 1)))
        return self.final_learning_rate + (s.learning_rate - self.final_learning_rate) * share

    def _polish_rates(self) -> tuple[float, ...]:
        """Learning rates of the epochs of a polishing fit (half cosine)."""
        s, epochs = self.settings, self.polish_epochs * self.settings.epochs
        shares = (0.5 * (1.0 + math.cos(math.pi * i / epochs)) for i in range(epochs))
        first, last = self.polish_rate * s.learning_rate, self.final_learning_rate
        return tuple(last + (first - last) * share for share in shares)

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        names = ("added", "polished", "settled")
        return {"iteration": self.position} | {name: getattr(self, name) for name in names}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises KeyError for a checkpoint without its entries."""
        self.position, self.added, self.polished = (checkpoint[name] for name in ("iteration", "added", "polished"))
        self.settled = bool(checkpoint["settled"])


@dataclass
class Convergence:
    """Follows the success rate, the mean return and the mismatch of V of the last evaluations.

    Evaluations agree if all of them succeed and their returns are equal within the tolerance. Before the adversaries of
    rFVI grow, one is enough if V is worth what its policy is paid: V gains the rest against them too. A tolerance of 0
    switches the observer off.
    """

    schedule: Schedule
    tolerance: float  # largest relative difference of returns that agree
    count: int = 3  # evaluations that must agree
    solved: float = 0.98  # least success rate of these evaluations
    wait: float = 0.5  # most added iterations, as a share of the iterations in the settings
    evaluations: list[list[float]] = field(default_factory=list)  # success rate, mean return and mismatch of each

    def observe(self, iteration: Iteration, row: dict[str, float]) -> None:
        """Let the schedule skip to its next phase, or repeat its position. A settled training ends with the first V
        against the full adversaries that is not better than the best."""
        schedule, share = self.schedule, iteration.step.adversary_share
        evaluated = "return_mean" in row
        if evaluated:
            new = [row[name] for name in ("success_rate", "return_mean", "value_mismatch")]
            self.evaluations = [*self.evaluations, new][-self.count :]
        polishing = schedule.polished > 0 and schedule.position <= schedule.nominal_end
        if polishing or self.tolerance == 0.0 or not self.evaluations:
            return
        successes, returns, mismatches = zip(*self.evaluations, strict=True)
        enough, solved = len(returns) == self.count, successes[-1] >= self.solved
        same = enough and max(returns) - min(returns) < self.tolerance * abs(returns[-1])
        right = mismatches[-1] <= ROUGH and schedule.begins
        agree = solved and (right or (same and min(successes) >= self.solved))
        schedule.settled = solved and (agree or schedule.settled)
        waits = enough and schedule.position == schedule.refinement
        if schedule.settled and share == 1.0 and row.get("kept", math.inf) < schedule.number:
            schedule.go_to(schedule.settings.iterations)
        elif agree:
            schedule.go_to(schedule.next_phase(share) if evaluated else schedule.position)
        elif waits and schedule.added < self.wait * schedule.settings.iterations:
            schedule.go_to(schedule.position - 1)

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        return {"evaluations": self.evaluations}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises TypeError or ValueError for entries that are not triples of numbers."""
        self.evaluations = [[float(number) for number in triple] for triple in checkpoint["evaluations"]]
