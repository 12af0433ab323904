"""Regression of the distilled policy's network on the argument of grad g~ in the run's policy.

States come from the domain, from around the task's starts and target, and from rollouts. The first round has rollouts
of the run's policy. Later rounds have rollouts of the network itself (DAgger, Ross et al. 2011), so that the network
learns at states to which its own errors lead. The run's policy gives the label of every state. Every round adds states
to the earlier states.

Comparison of a distilled policy with the run's policy, from the same starts on the same plants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from solver.errors import SolverError
from solver.export.distilled.network import GainPolynomial, SmallNetwork, argument_scale, controller
from solver.fvi.states import Mixture, StateSource
from solver.game import ClosedFormPolicy
from solver.plants import make_plant
from solver.plants.harsh import possible_effects
from solver.plants.outcome import Controller, rollouts, sample_starts, summary
from solver.problem import Problem
from solver.problem.parameters import left_all_bounds
from solver.streams import EVALUATION_SEED, Purpose, stream
from solver.training.solution import Solution
from solver.value.family import exponents, terms
from solver.value.fitting import Adam

LARGE_ERROR = 0.1  # error of s above which the loss is linear, because y jumps at kinks of V
GAIN_STEP = 1e-3  # difference step, as a share of a state's limit
FITTED, CHECKED, SEED = 3, 50, 0  # contexts of the fit of the gain for each coefficient, and of its check
MISFIT = 0.05  # largest error of a gain, as a share of its size
AT_LIMIT = 0.1  # weight of a state with the input at its limit, where it hardly changes with s; 1 for s = 0
MIXTURE = Mixture(starts=0.1, target=0.15, rollouts=0.5, spread=0.02)


@dataclass(frozen=True)
class Effort:
    """Length of a distillation and of its checks. The default takes one to two minutes on one core."""

    rounds: int = 6
    states: int = 16384  # new states of a round
    steps: int = 3000  # optimiser steps of a round; three times as many in the last round
    minibatch: int = 512
    learning_rate: float = 8e-3  # at the beginning of a round; it falls to almost zero
    episodes: int = 100  # rollouts of the comparison on each plant
    counted: int = 10_000  # states or control periods of a count on the emulated board


def distil(
    solution: Solution, width: int, seed: int, effort: Effort, report: Callable[[str], None] = lambda _: None
) -> SmallNetwork:
    """Trained network of the distilled policy. Equal arguments give equal networks on one machine."""
    problem, settings = solution.problem, solution.run.settings
    teacher = settings.hold.policy(problem, solution.value)

    def generator(purpose: Purpose, number: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(stream(seed, number, purpose))

    weights = generator(Purpose.WEIGHTS)
    scale = argument_scale(problem)
    network = SmallNetwork(solution.ensemble.features, scale, width, weights, target_gain(solution, teacher, scale))
    optimiser = Adam(network, effort.learning_rate, weight_decay=0.0, amsgrad=False)
    source = StateSource(problem, MIXTURE, None if solution.value.basin.empty else solution.value.frame.basin)
    x, s = source.visited, network.scale.new_empty(0, len(network.scale))
    for number in range(effort.rounds):
        act = controller(problem, network) if number else solution.controller()
        new = source.draw(act, effort.states, generator(Purpose.STATES, number))
        y = teacher.argument(new, solution.value(new)[1])
        x, s = torch.cat([x, new]), torch.cat([s, torch.asinh(y / network.scale)])
        steps = effort.steps * (3 if number == effort.rounds - 1 else 1)
        seen = network.seen_at(problem, x)
        loss = _fit(network, optimiser, seen, s, effort, steps, generator(Purpose.MINIBATCHES, number))
        report(f"round {number + 1} of {effort.rounds}: {len(x)} states, loss {loss:.4f}")
    return network


def target_gain(solution: Solution, teacher: ClosedFormPolicy, scale: Tensor) -> GainPolynomial:
    """Derivative ds/dz of the run's policy at the target: the smallest one with its ds/dx.

    ds/dx and dz/dx come from central differences. In a family a polynomial of the context is fitted, as to P(c). Raises
    SolverError if it misses the gain of some context by more than MISFIT.
    """
    problem, features, context = solution.problem, solution.ensemble.features, solution.problem.context
    degrees = torch.empty(1, 0, dtype=torch.long) if context is None else exponents(len(context), context.shift)
    fitted, generator = FITTED * len(degrees), torch.Generator().manual_seed(SEED)
    c = torch.empty(1, 0) if context is None else context.spread(fitted, CHECKED, generator).float()
    rows = problem.at_target(torch.cat([problem.target.expand(len(c), -1), c], 1))
    rows, size = torch.cat([rows, c], 1), len(c)
    n, step = len(problem.target), GAIN_STEP * problem.state_limits
    middle = problem.target if context is None else context.target

    def moved(at: Tensor, sign: float) -> Tensor:
        x = at[:, None, :n] + sign * torch.diag(step)
        return torch.cat([x, at[:, None, n:].expand(-1, n, -1)], 2).flatten(0, 1)

    sides = [moved(rows, sign) for sign in (1.0, -1.0)]
    up, down = (torch.asinh(teacher.argument(at, solution.value(at)[1]) / scale) for at in sides)
    ds_dx = (up - down).view(size, n, -1) / (2.0 * GAIN_STEP)  # (N, n, m), for x in units of its limits
    above, below = (features(moved(rows[:1], sign)[:, :n] - problem.targets(rows[:1]) + middle) for sign in (1.0, -1.0))
    dz_dx = (above - below) / (2.0 * GAIN_STEP)  # (n, n_z), the same in all contexts
    gains = (torch.linalg.pinv(dz_dx) @ ds_dx).mT.detach()  # (N, m, n_z)
    if context is None:
        return GainPolynomial(degrees, gains)
    design, exact = terms(c.double(), degrees), gains.double().flatten(1)
    coefficients = torch.linalg.lstsq(design[:fitted], exact[:fitted]).solution
    share = float(((design @ coefficients - exact).norm(dim=1) / exact.norm(dim=1)).max())
    if share > MISFIT:
        raise SolverError(
            f"the gain at the target changes too fast with {', '.join(context.names)}: a polynomial misses it by "
            f"{100 * share:.2g} %. Export one robot with --set, or train with smaller ranges"
        )
    return GainPolynomial(degrees, coefficients.float().view(-1, *gains.shape[1:]))


def _fit(
    network: SmallNetwork,
    optimiser: Adam,
    seen: Tensor,
    s: Tensor,
    effort: Effort,
    steps: int,
    generator: torch.Generator,
) -> float:
    """Fit the network to s (N, m) at its inputs (N, n_z + k) by minibatch descent. Returns the last loss.

    Errors of s have the weight 1 / cosh(s), which is about the change of the input with s. Without it, large arguments
    with the input at its limit would dominate the loss.
    """
    weight = AT_LIMIT + (1.0 - AT_LIMIT) / torch.cosh(s)
    for step in range(steps):
        optimiser.learning_rate = 0.5 * effort.learning_rate * (1.0 + math.cos(math.pi * step / steps))
        rows = torch.randint(len(s), (effort.minibatch,), generator=generator)
        loss = (weight[rows] * smooth_l1_loss(network(seen[rows]), s[rows], beta=LARGE_ERROR, reduction="none")).mean()
        optimiser.gradient.zero_()
        torch.autograd.backward(loss)
        optimiser.step()
    return float(loss.detach())


CHANGE = 0.2  # largest relative change of every parameter
HARSH = "harsh"


@dataclass(frozen=True)
class DistillationLoss:
    """Statistics of both policies on a plant, with the names of `solver.plants.outcome.summary`."""

    plant: str
    own: dict[str, float]
    distilled: dict[str, float]

    @property
    def loss(self) -> float:
        """Loss of mean return, as a share of its size; negative if the distilled policy is better."""
        own = self.own["return_mean"]
        return (own - self.distilled["return_mean"]) / max(abs(own), 1e-9)


def compare(
    problem: Problem,
    own: Controller,
    distilled: Controller,
    observed: bool = False,
    estimate: Sequence[str] = (),
    episodes: int = Effort.episodes,
) -> list[DistillationLoss]:
    """Comparisons on the nominal robot, with changed parameters, and on the harsh plant with the effects it can have.

    Changed parameters are drawn for every rollout within CHANGE of their nominal values. observed: both policies get
    the states of the observer on the harsh plant. estimate: parameters that it estimates. episodes: rollouts on
    each. Raises SolverError for rollouts that are not finite.
    """
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    draw = 2.0 * torch.rand(episodes, len(problem.theta), generator=generator) - 1.0
    starts, comparisons = sample_starts(problem, episodes, EVALUATION_SEED), []
    _, theta = problem.split(starts)
    changed = problem.theta * (1.0 + CHANGE * draw)
    if problem.context is not None:  # what is told is true on all plants
        changed = problem.context.replaced(changed, starts[:, len(problem.target) :])
    plants = {
        "nominal": make_plant("nominal", problem, theta),
        f"parameters +-{100 * CHANGE:.0f} %": make_plant("nominal", problem, changed),
        HARSH: make_plant("harsh", problem, theta, possible_effects(problem), EVALUATION_SEED),
    }
    for name, plant in plants.items():
        through = observed and name == HARSH
        options = (None, through, None, estimate if through else ())
        both = [summary(rollouts(problem, act, starts, plant, *options)) for act in (own, distilled)]
        if not all(math.isfinite(value) for statistics in both for value in statistics.values()):
            raise left_all_bounds(problem, problem.theta)
        comparisons.append(DistillationLoss(f"{name}, observer" if through else name, *both))
    return comparisons


def table(comparisons: list[DistillationLoss]) -> list[str]:
    """Lines of text: the run's policy -> the distilled policy."""
    lines = [f"{'':<18}{'return':^22}{'loss':>8}   {'worst':^22}{'success':^16}".rstrip()]
    for row in comparisons:
        mean, worst = (
            f"{row.own[name]:9.3f} -> {row.distilled[name]:9.3f}" for name in ("return_mean", "return_worst")
        )
        success = f"{100 * row.own['success_rate']:3.0f} -> {100 * row.distilled['success_rate']:3.0f} %"
        lines.append(f"{row.plant:<18}{mean} {100 * row.loss:6.2f} %   {worst}  {success}")
    return lines


def require_small_loss(comparison: DistillationLoss, most: float, budget: str) -> None:
    """Raises SolverError if the loss of return or of successes is larger than `most`."""
    fewer = comparison.own["success_rate"] - comparison.distilled["success_rate"]
    if comparison.loss <= most and fewer <= most:
        return
    raise SolverError(
        f"the distilled policy that fits --budget {budget} loses {100 * comparison.loss:.1f} % of the return and "
        f"{100 * fewer:.0f} % of the successes on the {comparison.plant} robot, and --max-loss allows {100 * most:g} "
        "%; no file is written. Give more time, allow a larger loss, or try another --seed."
    )
