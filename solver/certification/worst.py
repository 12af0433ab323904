"""Worst cases of a policy by search and against its adversaries, and the largest level set without failures.

The search draws random points and continues from the worst of them by CMA-ES (Hansen, 2016). All restarts advance
together, so that one batch of rollouts has one generation of each. Every random point has its own noise of the plant. A
restart keeps the noise of its first point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.certification.counterexample import Counterexample, play
from solver.certification.experiment import Announce, Experiment, failure_bound, noises, told
from solver.certification.sets import Distribution, domain
from solver.game import Game
from solver.game.adversaries import Modulation, make_adversaries
from solver.plants.outcome import Rollouts, decimals, succeeded
from solver.streams import Purpose, stream
from solver.training.solution import Solution
from solver.value.frozen import ValueFunction

POINTS = 31  # of the map in each state
SAMPLES = 2000  # starts for the level set


@dataclass(frozen=True)
class LevelSet:
    """Level set {V >= c}. The first half of the samples gives c, the second half the bound."""

    level: float  # c
    episodes: int  # samples of the second half in the set
    failures: int  # of these samples
    failure_bound: float
    share: float  # of the second half in the set, an estimate of its share of the domain


@dataclass(frozen=True)
class Map:
    """Outcomes of rollouts from a grid over two states. Other states start at the target; parameters are nominal."""

    states: tuple[int, int]  # their indices
    axes: tuple[Array, Array]  # (POINTS,) each
    arrived: NDArray[np.bool_]  # (POINTS, POINTS); rows belong to the second state
    value: Array | None  # (POINTS, POINTS), V at these points


def arrival_map(experiment: Experiment, value: ValueFunction | None, seed: int) -> Map:
    """Map of rollouts over the two states of the specification. value: adds V to it."""
    problem, (i, j) = experiment.problem, experiment.specification.map_states
    limits = problem.state_limits.double().numpy()
    axes = (np.linspace(-limits[i], limits[i], POINTS), np.linspace(-limits[j], limits[j], POINTS))
    horizontal, vertical = np.meshgrid(*axes)
    x = problem.target.repeat(POINTS * POINTS, 1)
    x[:, i] = torch.from_numpy(horizontal.ravel()).float()
    x[:, j] = torch.from_numpy(vertical.ravel()).float()
    theta = problem.theta.repeat(len(x), 1)
    failed = experiment.outcomes(x, theta, noises(len(x), seed, Purpose.LEVEL_SET)).failed
    heights = None if value is None else value(told(problem, x, theta))[0].double().numpy().reshape(POINTS, POINTS)
    return Map((i, j), axes, ~failed.reshape(POINTS, POINTS), heights)


def level_set(
    experiment: Experiment, value: ValueFunction, confidence: float, seed: int, announce: Announce = lambda _: None
) -> LevelSet | None:
    """Largest level set without a failure among the first half of starts from the whole domain, and its bound.

    The parameters have the distribution of the specification. The result is None if a failure has the highest V of the
    first half, or if no start of the second half is in the set.
    """
    problem = experiment.problem
    anywhere = Distribution(domain(problem), experiment.specification.distribution.parameters)
    x, theta = anywhere(problem, anywhere.sample(SAMPLES, stream(seed, 0, Purpose.LEVEL_SET)))
    failed = experiment.outcomes(x, theta, noises(SAMPLES, seed, Purpose.LEVEL_SET), announce).failed
    height = value(told(problem, x, theta))[0].double().numpy()
    level = _level(height[: SAMPLES // 2], failed[: SAMPLES // 2])
    if level is None:
        return None
    inside = height[SAMPLES // 2 :] >= level
    episodes, failures = int(inside.sum()), int(failed[SAMPLES // 2 :][inside].sum())
    if episodes == 0:
        return None
    bound = failure_bound(episodes, failures, confidence)
    return LevelSet(level, episodes, failures, bound, float(inside.mean()))


def _level(height: Array, failed: NDArray[np.bool_]) -> float | None:
    """Lowest V (N,) of the starts that are above all failures, or None if there is none."""
    above = height[height > height[failed].max()] if failed.any() else height
    return float(above.min()) if len(above) else None


Noises = NDArray[np.int64]
Returns = Callable[[Array, Noises], Array]  # from points (N, k) of the unit cube and seeds (N,) to returns (N,)
RESTARTS, POPULATION, GENERATIONS = 3, 24, 10  # a large batch takes hardly more time than a small one
BATCH = 256  # random rollouts before the search
FIRST_STEP = 0.15  # first standard deviation of CMA-ES in the unit cube
EPISODES = 200  # rollouts against the run's adversaries


@dataclass(frozen=True)
class WorstCase:
    """Worst rollout of the search, and worst of equally many random rollouts. Both were repeated without a batch."""

    worst: Counterexample
    random: Counterexample
    rollouts: int  # of the search, and of the random sampling


def worst_case(run: str | Path, experiment: Experiment, seed: int, announce: Announce = lambda _: None) -> WorstCase:
    """Lowest return over the starts and parameters of the specification, by a search.

    The bound does not use these rollouts.
    """
    problem, distribution = experiment.problem, experiment.specification.distribution
    total = BATCH + RESTARTS * POPULATION * GENERATIONS
    noise = noises(total, seed, Purpose.WORST_CASE)
    drawn = distribution.sample(total, stream(seed, 0, Purpose.WORST_CASE))

    def returns(z: Array, noise: Noises) -> Array:
        x, theta = distribution(problem, z)
        return experiment.outcomes(x, theta, noise).returns

    def alone(z: Array, noise: np.int64) -> Counterexample:
        x, theta = distribution(problem, z[None])
        return play(run, experiment, x[0], theta[0], int(noise))

    sampled = returns(drawn, noise)
    lowest = int(np.argmin(sampled))
    random = alone(drawn[lowest], noise[lowest])
    ends: list[Array] = []
    first = np.argsort(sampled[:BATCH])[:RESTARTS]
    if len(distribution.search):
        ends = _descend(returns, drawn[first], noise[first], distribution.search, seed, announce)
    worst = min([random, *map(alone, ends, noise[first])], key=lambda rollout: rollout.total)
    return WorstCase(worst, random, total)


def _descend(
    returns: Returns, first: Array, noise: Noises, bounds: Array, seed: int, announce: Announce
) -> list[Array]:
    """Points (k,) of the lowest returns, one for each run of CMA-ES from the points `first` (R, k) with noise (R,).

    bounds: (k, 2).
    """
    import cma  # which imports half of SciPy: not in every process that plays rollouts

    count = bounds.shape[0]
    padded = (
        np.concatenate([bounds, [[0.0, 1.0]] * (2 - count)]) if count < 2 else bounds
    )  # CMA-ES needs two dimensions
    rng = np.random.default_rng(stream(seed, 1, Purpose.WORST_CASE))
    options = {
        "bounds": [padded[:, 0].tolist(), padded[:, 1].tolist()],
        "popsize": POPULATION,
        "randn": lambda *shape: rng.standard_normal(shape),
        "seed": np.nan,  # the random numbers come from rng
        "verbose": -9,
    }
    searches = []
    for point in first:
        begin = np.concatenate([point, np.full(len(padded) - count, 0.5)]).clip(padded[:, 0], padded[:, 1])
        searches.append(cma.CMAEvolutionStrategy(begin, FIRST_STEP, options))
    best = [(np.inf, point) for point in first]
    kept = np.repeat(noise, POPULATION)
    for generation in range(GENERATIONS):
        populations = [search.ask() for search in searches]
        points = np.array(populations).reshape(-1, len(padded))[:, :count]
        values = returns(points, kept).reshape(len(searches), POPULATION)
        for index, (search, population, row) in enumerate(zip(searches, populations, values, strict=True)):
            search.tell(population, row.tolist())
            lowest = int(np.argmin(row))
            candidate = float(row[lowest]), np.array(population[lowest])[:count]
            best[index] = min(best[index], candidate, key=lambda pair: pair[0])
        lowest_return = min(value for value, _ in best)
        announce(
            f"generation {generation + 1} of {GENERATIONS}, lowest return {lowest_return:.{decimals(lowest_return)}f}"
        )
    return [point for _, point in best]


@dataclass(frozen=True)
class Opposed:
    """Outcome of rollouts against the run's adversaries with their full radii."""

    adversaries: tuple[str, ...]
    episodes: int
    failures: int
    return_worst: float


@torch.no_grad()
def play_adversaries(experiment: Experiment, solution: Solution, seed: int) -> Opposed | None:
    """Rollouts from the specification's starts against the closed-form adversaries of a run (paper, Theorems 1-4).

    Both players move once in every control period, on the nominal robot. The result is None for a run without
    adversaries.
    """
    problem, spec, settings = experiment.problem, experiment.specification, solution.run.settings
    adversaries = make_adversaries(settings.adversaries)
    if not adversaries:
        return None
    value, game = solution.value, Game(problem, adversaries)
    policy = settings.hold.policy(problem, value)
    number = stream(seed, 0, Purpose.ADVERSARY)
    x = told(problem, *spec.distribution(problem, spec.distribution.sample(EPISODES, number)))
    modulation = Modulation("stationary", problem.control_step, torch.Generator().manual_seed(number))
    states, inputs, reward = [x], [], torch.zeros(EPISODES)
    for _ in range(round(spec.conditions.horizon / problem.control_step)):
        move = game.move(x, value(x)[1], policy, modulation)
        x, cost = game.advance(x, move, 1)
        reward -= cost
        states.append(x)
        inputs.append(move.u)
    path = torch.stack(states)
    at_limit = problem.at_limit(path[1:, :, : len(problem.target)]).any(0)
    success = succeeded(problem, path, move.disturbed.theta)  # what they play at the end
    result = Rollouts(reward, torch.zeros_like(reward), success, at_limit, path, torch.stack(inputs))
    failures = int(spec.failure.failed(result).sum())
    return Opposed(tuple(adversary.name for adversary in adversaries), EPISODES, failures, float(reward.min()))
