"""Random streams: what each is for, and the seeds that make them independent."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from solver.errors import SolverError

EVALUATION_SEED = 20210725  # the same starts for every run, so that returns compare
SEEDS = 2**32  # what every generator takes


class Purpose(IntEnum):
    """What a random stream is for."""

    WEIGHTS = 0
    STATES = 1
    ADVERSARY = 2
    MINIBATCHES = 3
    SELECTION = 4
    CERTIFICATE = 5
    WORST_CASE = 6
    LEVEL_SET = 7
    PLANT_NOISE = 8


def stream(seed: int, iteration: int, purpose: Purpose) -> int:
    """An independent seed of 62 bits, of which Torch's CPU generator keeps 32; adding small numbers to it is safe."""
    words = np.random.SeedSequence([seed, iteration, int(purpose)]).generate_state(2)
    return (int(words[0]) << 30) ^ int(words[1])


def require_seed(seed: int, name: str = "--seed") -> None:
    """SolverError for a number that no generator takes as a seed."""
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise SolverError(f"{name} is {seed}; give a whole number from 0 to {SEEDS - 1}")
