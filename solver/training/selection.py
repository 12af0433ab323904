"""Two observers at the evaluations: `Selection` keeps the best V, because the last V is not always the best; `Polish`
makes a rough V smooth.

The V with more successes is better. A successful rollout in which the simulation held a state at its limit counts as
two thirds of a success, because the limit acted as a free brake.

cFVI is compared on the nominal robot. For rFVI the order is:

1. successes on the nominal robot;
2. the price of robustness: at most 5 % of the gain of the training's best V over the idle robot;
3. quarters of the rollouts on other robots that succeed, where every rollout has its own parameters;
4. the size of the adversaries in training;
5. the mean of the nominal return and of the worst quarter of the other robots.

The other robots are tried while adversaries play. Where they are not, or fewer than three quarters of them succeed, 3
and 4 are ignored, and 5 is the nominal return: the mean from the task's starts and from states in the whole domain.

A rough V of cFVI is polished at the end, with more states and longer fits. A policy follows the slope of V. If V is
rough, the slope has small errors everywhere: no rollout fails, but the robot pays some per cent too much. Then V also
differs from the return of its policy, which shows the roughness without a known optimum. A polishing step begins with a
fresh optimiser, and its learning rate falls to its final value, because an unfinished fit puts its noise into the next
targets. The V of rFVI differs from the return on the nominal robot by what its adversaries cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

from solver.fvi.algorithm import Iteration
from solver.game.adversaries import ParameterAdversary
from solver.plants.outcome import (
    Controller,
    Ended,
    Outcome,
    controller,
    rollouts,
    sample_starts,
    summary,
    until_rest,
    without_input,
)
from solver.problem import Problem
from solver.streams import SELECTION_SEED, Purpose, stream
from solver.training.schedule import Schedule
from solver.training.settings import Settings
from solver.value.frozen import FrozenValue, ValueFunction
from solver.value.network import Ensemble

OTHERS = 64  # rollouts on other robots
NOMINAL = 8  # one of so many starts of a family is the nominal robot's, which is told unless something else is said
SPREAD = 0.15  # half width of the parameter box of other robots, as a share, if the robot is not identified
PRICE = 0.05  # largest loss of nominal return by robustness, as a share of the gain over the idle robot
HELD = 2.0 / 3.0  # weight of a success with a state at its limit
ROUGH = 0.03  # mismatch of V above which it is rough, as a share of its policy's cost
WORST = 0.25  # share of the rollouts on other robots in the worst returns


@dataclass(frozen=True)
class Score:
    """Quality of a value function."""

    successes: float  # weighted share of successes on the nominal robot
    quarters: float  # share of successes on other robots: 0, 0.75 or 1; 1 for cFVI
    adversary: float  # share of the full radii of the adversaries in training
    value: float  # mean return in the last place of the order
    nominal: float  # mean return on the nominal robot

    def rank(self, least: float) -> tuple[float, ...]:
        """Key of the order; a larger key is better. least: nominal return that the price of robustness allows."""
        adversary = self.adversary if self.quarters else 0.0
        return self.successes, float(self.nominal >= least), self.quarters, adversary, self.value


@dataclass(frozen=True)
class Best:
    """Best value function of a training so far: its iteration, score and weights."""

    iteration: int
    score: Score
    ensemble: dict[str, Tensor]


def starts(problem: Problem, episodes: int) -> Tensor:
    """Starts (episodes, n + k) of an evaluation; in a family of random robots, and among them the nominal one."""
    context = problem.context
    if context is None:
        return sample_starts(problem, episodes, SELECTION_SEED)
    c = context.draw(episodes, torch.Generator(device=problem.device).manual_seed(SELECTION_SEED + 1))
    told = [i for i in range(len(context)) if i not in context.references]
    c[::NOMINAL, told] = context.of(problem.theta)[told]
    return sample_starts(problem, episodes, SELECTION_SEED, c)


class Selection:
    """Evaluates the value function when an evaluation is due, and keeps the best."""

    def __init__(self, problem: Problem, settings: Settings, value: Ensemble, schedule: Schedule) -> None:
        self.problem, self.settings, self.value, self.schedule = problem, settings, value, schedule
        self.best: Best | None = None
        self.nominal = -math.inf  # best nominal return of a V with as many successes as the best V
        self.starts = starts(problem, settings.episodes)
        self.returns = self.starts.new_empty(0)  # (K,) of the last evaluation, from these starts
        idle = rollouts(problem, without_input(problem), self.starts)
        self.idle_return = float(torch.nan_to_num(idle.returns, nan=-torch.inf).mean())
        self.others: Tensor | None = None  # (OTHERS, n + k) starts of the other robots, with the parameters `theta`
        if settings.algorithm == "rfvi":
            generator = torch.Generator(device=settings.device).manual_seed(stream(settings.seed, 0, Purpose.SELECTION))
            self.others = problem.sample_starts(OTHERS, generator)
            share = 2.0 * torch.rand(OTHERS, len(problem.theta), generator=generator, device=settings.device) - 1.0
            if problem.identified is None:
                spread = problem.theta + SPREAD * share * problem.theta.abs()
            else:  # the adversary plays on the boundary of the ellipsoid
                spread = ParameterAdversary(1.0).admissible_set(problem, 1.0).extreme_point(share)
            self.theta = spread.clamp(problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
            self.anywhere = problem.sample_domain(OTHERS, generator)

    def observe(self, iteration: Iteration, row: dict[str, float]) -> None:
        """Evaluate V if due, add its statistics to the row, and keep V if it is the best."""
        if not self.schedule.due:
            return
        value = FrozenValue(self.value)
        policy = controller(self.problem, value, self.settings.hold)
        score, result = self.judge(policy, iteration.step.adversary_share)
        self.returns = result.returns
        self._keep(score)
        assert self.best is not None
        row |= summary(result) | {
            "value_mismatch": value_mismatch(self.problem, value, self.starts, result),
            "selection_success": score.successes,
            "selection_quarters": score.quarters,
            "selection_return": score.value,
            "selection_nominal": score.nominal,
            "kept": self.best.iteration,
        }

    def _keep(self, score: Score) -> None:
        """Keep a copy of the current weights if they are the best."""
        before = self.best
        if before is None or score.successes >= before.score.successes:
            more = before is None or score.successes > before.score.successes
            self.nominal = score.nominal if more else max(self.nominal, score.nominal)
        least = self.nominal - PRICE * max(self.nominal - self.idle_return, 0.0)
        if before is None or score.rank(least) > before.score.rank(least):
            weights = {name: values.clone() for name, values in self.value.state_dict().items()}
            self.best = Best(self.schedule.number, score, weights)

    def judge(self, policy: Controller, adversary: float) -> tuple[Score, Ended]:
        """Score of a policy, and its rollouts on the nominal robot.

        adversary: share of the full radii of the adversaries in training. All rollouts run in one batch, because the
        time of a batch hardly depends on its size.
        """
        count, cfvi, robots = len(self.starts), self.others is None, None
        more = self.starts[:0] if cfvi else self.anywhere
        if self.others is not None and adversary > 0.0:
            more, robots = self.others, torch.cat([self.problem.theta.expand(count, -1), self.theta])
        ended = self._ended(policy, torch.cat([self.starts, more]), robots)
        nominal, rest = ended.part(slice(count)), ended.part(slice(count, None))
        value = mean = float(_sorted_returns(nominal).mean())
        quarters = 1.0 if cfvi else 0.0
        if robots is not None:
            quarters = math.floor(4.0 * float(rest.success.float().mean())) / 4.0
            if quarters < 1.0 - WORST:
                quarters, rest = 0.0, self._ended(policy, self.anywhere)
        if not cfvi:
            judged = _sorted_returns(rest)
            value = (mean + float(judged[: round(WORST * len(judged)) if quarters else None].mean())) / 2.0
        successes = nominal.success * torch.where((nominal.at_limit & ~self.problem.fast).any(1), HELD, 1.0)
        return Score(float(successes.mean()), quarters, adversary, value, mean), nominal

    def _ended(self, policy: Controller, rows: Tensor, robots: Tensor | None = None) -> Ended:
        """Rollouts from the rows (N, n + k), of robots with the parameters (N, p) and the contexts of the rows."""
        context = self.problem.context
        if context is not None:
            theta = self.problem.theta if robots is None else robots
            robots = context.replaced(theta, rows[:, len(self.problem.target) :])
        return until_rest(self.problem, policy, rows, robots)

    def restore_best(self) -> None:
        """Copy the weights of the best V into the value function."""
        assert self.best is not None
        self.value.load_state_dict(self.best.ensemble)

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""
        best = vars(self.best) | {"score": list(astuple(self.best.score))} if self.best else {}
        return {"nominal": self.nominal, "best": best}

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Inverse of `state`. Raises KeyError or TypeError for entries that do not fit."""
        self.nominal, best = float(checkpoint["nominal"]), checkpoint["best"]
        if best:
            self.best = Best(**best | {"score": Score(*best["score"])})


def _sorted_returns(result: Outcome) -> Tensor:
    """Returns of rollouts in ascending order; NaN is the lowest."""
    return torch.nan_to_num(result.returns, nan=-torch.inf).sort().values


@torch.no_grad()
def value_mismatch(problem: Problem, value: ValueFunction, x: Tensor, result: Ended) -> float:
    """Mean |V - J| of rollouts on the nominal robot from x (K, n + k), as a share of their mean |J|.

    J: discounted reward of the rollout plus V at its end. V and J are costs, and zero where the robot rests.
    """
    paid = result.discounted + torch.exp(-problem.discount_rate * result.seconds) * value(result.end)[0]
    least = torch.finfo(paid.dtype).tiny
    return float((value(x)[0] - paid).abs().mean() / paid.abs().mean().clamp_min(least))


@dataclass
class Polish:
    """Adds up to `most` polishing steps to the schedule of cFVI while V is rough and the task is solved.

    The setting `convergence` switches it on and off, as it does for all that follows from evaluations.
    """

    schedule: Schedule
    selection: Selection
    most: int = 6
    solved: float = 0.98  # least share of successes of the best V
    rough: float = ROUGH
    mismatch: float = 0.0  # of V at the last evaluation

    def observe(self, iteration: Iteration, row: dict[str, float]) -> None:  # noqa: ARG002
        """Add a polishing step if cFVI ends with a rough V. The first one begins with the best V."""
        schedule, best = self.schedule, self.selection.best
        self.mismatch = row.get("value_mismatch", self.mismatch)
        solved = best is not None and best.score.successes >= self.solved
        rough = self.mismatch > self.rough and schedule.polished < self.most
        ends = schedule.position == schedule.settings.iterations and schedule.settings.algorithm == "cfvi"
        if ends and solved and rough and schedule.settings.convergence > 0.0:
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
