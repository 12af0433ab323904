"""What makes results repeatable: streams of random numbers, and Torch on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch

from solver.errors import SolverError

EVALUATION_SEED = 20210725  # all runs have the same starts, so that their returns can be compared
SELECTION_SEED = EVALUATION_SEED + 1  # of the evaluations within a training, which choose among its value functions
SEEDS = 2**32  # seeds are below it, because every generator accepts those


class Purpose(IntEnum):
    """Purpose of a random stream."""

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
    """Independent seed of 62 bits for an iteration and a purpose. Small numbers may be added to it.

    Torch's CPU generator uses 32 of the bits.
    """
    words = np.random.SeedSequence([seed, iteration, int(purpose)]).generate_state(2)
    return (int(words[0]) << 30) ^ int(words[1])


def require_seed(seed: int, name: str = "--seed") -> None:
    """Raises SolverError unless the seed is an integer from 0 to SEEDS - 1. name: of the option in the message."""
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise SolverError(f"{name} is {seed!r}; give an integer from 0 to {SEEDS - 1}")


@contextmanager
def serial_torch() -> Iterator[None]:
    """Context in which Torch's operations use one thread, so that results do not depend on the number of cores.

    It is also faster. Torch's threads wait for each other in a busy loop: if another job uses a core, small operations
    take several times as long on two threads as on one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
