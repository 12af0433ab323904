"""Rollouts of a policy under a specification, and the bound on a failure probability from independent rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from modelgen.arrays import Array
from solver.certification.specification import Conditions, FailureRule, read
from solver.jobs.engines import Here, PolicyReference, results
from solver.plants import make_plant
from solver.plants.outcome import Controller, Rollouts, rollouts
from solver.plants.plant import Seeds
from solver.problem import Problem
from solver.problem.parameters import left_all_bounds
from solver.streams import SEEDS, Purpose, serial_torch, stream

Announce = Callable[[str], None]


def roll_out(
    problem: Problem, act: Controller, conditions: Conditions, x: Tensor, theta: Tensor, noise: Seeds
) -> Rollouts:
    """Rollouts from x (N, n) with the parameters theta (N, p). noise: seeds (N,) of the plant's noise.

    A policy that is told parameters is told the references, the observer's estimates, and the nominal values of what it
    does not estimate.

    Raises SolverError if a state becomes infinite or NaN, and for a reference out of its range.
    """
    plant = make_plant(conditions.plant, problem, theta, conditions.effects, noise)
    observer, estimate = conditions.observer, conditions.estimate
    rows = told(problem, x, theta)
    result = rollouts(problem, act, rows, plant, conditions.horizon, observer, estimate=estimate)
    broken = torch.nonzero(~torch.isfinite(result.returns))
    if len(broken):
        raise left_all_bounds(problem, theta[int(broken[0])])
    return replace(result, x=result.x[..., : x.shape[1]])


def told(problem: Problem, x: Tensor, theta: Tensor) -> Tensor:
    """Rows (N, n + k) of the states x (N, n) of robots with theta (N, p), of which the policy is told the references.

    Raises SolverError for a reference out of its range.
    """
    if problem.context is None:
        return x
    context = problem.context
    unknown = {name for i, name in enumerate(context.names) if i not in context.references}
    for end in (theta.amin(0), theta.amax(0)):
        context.require_within(end, apart_from=unknown)
    return problem.told(x, context.with_references(problem.theta, theta))


def noises(size: int, seed: int, purpose: Purpose) -> NDArray[np.int64]:
    """Seeds (size,) of the plant's noise in rollouts for a purpose."""
    return np.random.default_rng(stream(seed, purpose, Purpose.PLANT_NOISE)).integers(SEEDS, size=size)


@dataclass(frozen=True)
class Outcomes:
    """Returns and failures of N rollouts."""

    returns: Array  # (N,)
    failed: NDArray[np.bool_]  # (N,)


def portion(
    policy: PolicyReference, conditions: Conditions, failure: FailureRule, x: Array, theta: Array, noise: Sequence[int]
) -> tuple[Array, NDArray[np.bool_]]:
    """Returns (N,) and failures (N,) of rollouts from x (N, n) with theta (N, p), both float32: the function of a
    job."""
    with serial_torch():
        problem, act, _ = policy.load()
        result = roll_out(problem, act, conditions, torch.from_numpy(x), torch.from_numpy(theta), noise)
        return result.returns.double().numpy(), failure.failed(result)


class Experiment:
    """Test of a policy under a specification.

    specification: TOML file; without it, the task's starts and the nominal parameters.
    executor: runs the rollouts, see `solver.jobs.engines.workers`; by default this process. Results do not depend on
    it. at_once: rollouts in one job.
    """

    def __init__(
        self,
        policy: PolicyReference,
        specification: Path | None = None,
        executor: Executor | None = None,
        at_once: int = 512,
    ) -> None:
        self.policy, self.executor, self.at_once = policy, executor or Here(), at_once
        self.problem, _, self.label = policy.load()
        self.specification = read(specification, self.problem, policy.run)

    def outcomes(
        self, x: Tensor, theta: Tensor, noise: NDArray[np.int64], announce: Announce = lambda _: None
    ) -> Outcomes:
        """Outcomes of rollouts from x (N, n) with theta (N, p), in portions of `at_once`.

        noise: seeds (N,) of the plant's noise. With a seed for each, a rollout does not depend on the others in its
        portion, except for its last digits.
        """
        executor = self.executor if len(x) > self.at_once else Here()
        spec, jobs = self.specification, []
        for first in range(0, len(x), self.at_once):
            part = slice(first, first + self.at_once)
            arrays = x[part].numpy(), theta[part].numpy(), noise[part].tolist()
            jobs.append(executor.submit(portion, self.policy, spec.conditions, spec.failure, *arrays))
        portions = []
        for outcome in results(jobs):
            portions.append(outcome)
            announce(f"{min(len(portions) * self.at_once, len(x))} of {len(x)} rollouts")
        returns, failed = zip(*portions, strict=True)
        return Outcomes(np.concatenate(returns), np.concatenate(failed))


def failure_bound(episodes: int, failures: int, confidence: float) -> float:
    """Exact upper confidence bound of the failure probability (Clopper and Pearson, 1934).

    With a higher failure probability, at most `failures` among `episodes` rollouts have a probability below
    1 - confidence.
    """
    test = scipy.stats.binomtest(failures, episodes, alternative="less")
    return float(test.proportion_ci(confidence, method="exact").high)


def episodes_for(probability: float, confidence: float, failures: int = 0) -> int:
    """Smallest number of rollouts whose bound is at most `probability` if `failures` of them fail.

    The bound is at most p if and only if P(K <= failures) <= 1 - confidence, with K binomially distributed with p. This
    probability decreases with the number of rollouts.
    """

    def enough(episodes: int) -> bool:
        return bool(scipy.stats.binom.cdf(failures, episodes, probability) <= 1.0 - confidence)

    few, many = failures, failures + 1
    while not enough(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
