"""An observer that finds the delay: one filter for every delay that may be, and the likeliest of them speaks.

Multiple-model estimation (Magill, 1965, doi 10.1109/TAC.1965.1098191). A filter that reckons with another delay is
surprised as soon as an input changes, by far more than the errors of parameters and sensors explain. The likelihoods
are of all measurements since the start, so the delay is taken as one that does not change.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.observer.observer import Observer
from solver.observer.sensing import Sensing
from solver.problem.problem import Problem

LONGEST = 100  # control periods


class UnknownDelay:
    """As `Observer`, for N robots whose delays may differ; the delay of the sensing is not read.

    longest: control periods, the largest delay that is looked for. The work is that of longest + 1 observers.
    """

    unlikely: Tensor  # (longest + 1, N) twice the logarithm of how much likelier the likeliest delay is

    def __init__(self, problem: Problem, sensing: Sensing, longest: int) -> None:
        self.observers = [Observer(problem, replace(sensing, delay=delay)) for delay in range(longest + 1)]
        self.reset()

    def reset(self) -> None:
        """Forget everything, the delay too."""
        for each in self.observers:
            each.reset()
        self.unlikely = torch.zeros(len(self.observers), 1, dtype=torch.float64)

    @property
    def delay(self) -> Tensor:
        """The likeliest delay (N,) in control periods."""
        return self.unlikely.argmin(0)

    @property
    def normalised_innovation(self) -> Tensor:
        """(N,) of the likeliest filters."""
        return self._likeliest([each.normalised_innovation for each in self.observers])

    def estimate(self, y: Tensor) -> Tensor:
        """The states (N, n) at the time when the input acts that is computed now, from y (N, k) measured now."""
        found = [each.estimate(y) for each in self.observers]
        unlikely = self.unlikely + torch.stack([each.surprise for each in self.observers])
        unlikely = unlikely.nan_to_num(nan=torch.inf)
        self.unlikely = unlikely - unlikely.min(0).values
        return self._likeliest(found)

    def compensate(self, u: Tensor) -> Tensor:
        """What to send so that the policy's input u (N, m) acts: the disturbance taken off, within the limits."""
        return self._likeliest([each.compensate(u) for each in self.observers])

    def sent(self, u: Tensor) -> None:
        """The input (N, m) that is on its way to the drive since the last estimate."""
        for each in self.observers:
            each.sent(u)

    def _likeliest(self, found: list[Tensor]) -> Tensor:
        """Of what every filter found, (N, ...), the rows of the likeliest ones."""
        delay = self.delay
        return torch.stack(found)[delay, torch.arange(len(delay))]


def make_observer(problem: Problem, sensing: Sensing, longest_delay: int | None = None) -> Observer | UnknownDelay:
    """The observer of a sensing; with `longest_delay` one that is not told the delay, and finds it.

    Raises SolverError for a delay above LONGEST.
    """
    if longest_delay is not None and longest_delay > LONGEST:
        raise SolverError(
            f"a longest delay of {longest_delay} control periods would take as many observers side by side; give at "
            f"most {LONGEST}"
        )
    return Observer(problem, sensing) if longest_delay is None else UnknownDelay(problem, sensing, longest_delay)
