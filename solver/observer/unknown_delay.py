"""Observer that estimates the delay: one filter for every possible delay, of which the most likely one is used.

It is multiple-model estimation (Magill, 1965, doi 10.1109/TAC.1965.1098191). As soon as an input changes, a filter with
a wrong delay has a larger innovation than errors of parameters and sensors explain. The likelihoods use all
measurements since the start, so the delay must be constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.observer.observability import estimated_parameters
from solver.observer.observer import Observer
from solver.observer.sensing import Sensing
from solver.problem.problem import Problem

LONGEST = 100  # control periods, largest delay that may be asked for


class UnknownDelay:
    """Observer with the methods of `Observer` for N robots with unknown, possibly different delays.

    `sensing.delay` is ignored. longest: largest possible delay in control periods. The work is longest + 1 times the
    work of an `Observer`.
    """

    unlikely: Tensor  # (longest + 1, N) 2 log (likelihood of the most likely delay / likelihood of this one)

    def __init__(self, problem: Problem, sensing: Sensing, longest: int, estimated: Sequence[int] = ()) -> None:
        self.observers = [Observer(problem, replace(sensing, delay=delay), estimated) for delay in range(longest + 1)]
        self.reset()

    def reset(self) -> None:
        """Start again, with an unknown delay."""
        for observer in self.observers:
            observer.reset()
        self.unlikely = torch.zeros(len(self.observers), 1, dtype=torch.float64)

    def know(self, theta: Tensor) -> None:
        """Take parameters theta (p,) or (N, p) for the nominal ones, as in `Observer`."""
        for observer in self.observers:
            observer.know(theta)

    def tell(self, columns: Sequence[int], values: Tensor) -> None:
        """Replace some parameters, as in `Observer`."""
        for observer in self.observers:
            observer.tell(columns, values)

    @property
    def delay(self) -> Tensor:
        """Most likely delay (N,) in control periods."""
        return self.unlikely.argmin(0)

    @property
    def normalised_innovation(self) -> Tensor:
        """Normalised innovation (N,) of the filters with the most likely delay."""
        return self._likeliest([observer.normalised_innovation for observer in self.observers])

    def estimate(self, y: Tensor) -> Tensor:
        """States (N, n) at the time when the next input acts, from the measurement y (N, k)."""
        estimates = [observer.estimate(y) for observer in self.observers]
        unlikely = self.unlikely + torch.stack([observer.surprise for observer in self.observers])
        unlikely = unlikely.nan_to_num(nan=torch.inf)
        self.unlikely = unlikely - unlikely.min(0).values
        return self._likeliest(estimates)

    @property
    def estimated(self) -> list[int]:
        """Indices of the estimated parameters."""
        return self.observers[0].estimated

    @property
    def parameters(self) -> Tensor | None:
        """Parameters (N, p) of the filters with the most likely delay; None for the nominal ones."""
        found = [observer.parameters for observer in self.observers if observer.parameters is not None]
        return self._likeliest(found) if found else None

    def compensate(self, u: Tensor) -> Tensor:
        """Input (N, m) to send so that the policy's input u (N, m) acts, as in `Observer`."""
        return self._likeliest([observer.compensate(u) for observer in self.observers])

    def sent(self, u: Tensor) -> None:
        """Record the input u (N, m) that was sent after the last estimate."""
        for observer in self.observers:
            observer.sent(u)

    def _likeliest(self, results: list[Tensor]) -> Tensor:
        """Rows (N, ...) of the filters' results (N, ...) that belong to the most likely delays."""
        delay = self.delay
        return torch.stack(results)[delay, torch.arange(len(delay))]


def make_observer(
    problem: Problem, sensing: Sensing, longest_delay: int | None = None, estimate: Sequence[str] = ()
) -> Observer | UnknownDelay:
    """Observer for a sensing. With `longest_delay`, in control periods, it estimates the delay up to this one.

    estimate: names of the parameters that it estimates too, or `all`.

    Raises SolverError if `longest_delay` exceeds LONGEST, and the errors of `estimated_parameters`.
    """
    if longest_delay is not None and longest_delay > LONGEST:
        raise SolverError(
            f"a longest delay of {longest_delay} control periods needs as many observers; give at most {LONGEST}"
        )
    estimated = estimated_parameters(problem, sensing, estimate)
    if longest_delay is None:
        return Observer(problem, sensing, estimated)
    return UnknownDelay(problem, sensing, longest_delay, estimated)
