"""The search for the worst case: the best of a random batch, then CMA-ES (Hansen, 2016) from several of them.

All restarts advance together, so that one batch of rollouts is one generation of all. The plant's noise belongs to a
point: each random one draws its own, and a restart keeps that of the point from which it begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cma
import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.certification.counterexample import Counterexample, play
from solver.certification.experiment import Announce, Experiment, noises
from solver.plants.outcome import decimals
from solver.streams import Purpose, stream

Noises = NDArray[np.int64]
Returns = Callable[[Array, Noises], Array]  # points (N, k) of the unit cube, seeds of the noise (N,) -> returns (N,)
RESTARTS, POPULATION, GENERATIONS = 3, 24, 10  # many at a time: a rollout takes its time however few there are
BATCH = 256  # random rollouts before the search
FIRST_STEP = 0.15  # of the unit cube


@dataclass(frozen=True)
class Worst:
    """The worst rollout found, and the worst of equally many random ones; both were played alone."""

    found: Counterexample
    random: Counterexample
    rollouts: int  # of the search, and of the random sampling beside it


def worst_case(run: str | Path, experiment: Experiment, seed: int, announce: Announce = lambda _: None) -> Worst:
    """Search the starts and parameters of the specification for the lowest return.

    The rollouts are the search's own; no bound is computed from them.
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
    found = min([random, *map(alone, ends, noise[first])], key=lambda each: each.total)
    return Worst(found, random, total)


def _descend(
    returns: Returns, first: Array, noise: Noises, bounds: Array, seed: int, announce: Announce
) -> list[Array]:
    """The best points of one CMA-ES for each of the points `first` (R, k) and its noise (R,), within bounds (k, 2)."""
    count = bounds.shape[0]
    padded = np.concatenate([bounds, [[0.0, 1.0]] * (2 - count)]) if count < 2 else bounds  # CMA-ES needs two
    rng = np.random.default_rng(stream(seed, 1, Purpose.WORST_CASE))
    options = {
        "bounds": [padded[:, 0].tolist(), padded[:, 1].tolist()],
        "popsize": POPULATION,
        "randn": lambda *shape: rng.standard_normal(shape),
        "seed": np.nan,  # the numbers come from rng
        "verbose": -9,
    }
    searches = []
    for point in first:
        begin = np.concatenate([point, np.full(len(padded) - count, 0.5)]).clip(padded[:, 0], padded[:, 1])
        searches.append(cma.CMAEvolutionStrategy(begin, FIRST_STEP, options))
    best = [(np.inf, point) for point in first]
    kept = np.repeat(noise, POPULATION)
    for generation in range(GENERATIONS):
        asked = [search.ask() for search in searches]
        points = np.array(asked).reshape(-1, len(padded))[:, :count]
        values = returns(points, kept).reshape(len(searches), POPULATION)
        for index, (search, tried, each) in enumerate(zip(searches, asked, values, strict=True)):
            search.tell(tried, each.tolist())
            lowest = int(np.argmin(each))
            best[index] = min(best[index], (float(each[lowest]), np.array(tried[lowest])[:count]), key=lambda b: b[0])
        lowest_return = min(value for value, _ in best)
        announce(
            f"generation {generation + 1} of {GENERATIONS}, lowest return {lowest_return:.{decimals(lowest_return)}f}"
        )
    return [point for _, point in best]
