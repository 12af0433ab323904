"""The product bound: the time that the matrix products of a value function alone would take.

It is at the rate that products of the networks' size reach on the device in the same run, on each thread of a CPU.
"""

from __future__ import annotations

import torch
from machine import median_seconds

from solver.problem import Problem
from solver.training.settings import Settings
from solver.value.network import Ensemble

PRODUCTS = 100  # in one measurement of the rate
WEIGHTS = 1.5  # times as many products take a gradient in the weights as one in the state


def product_bound_us(ensemble: Ensemble, settings: Settings, device: str = "cpu") -> float:
    """Of a value and its gradient in the state: each weight is used forwards and backwards."""
    flops = sum(4.0 * float(weight.numel()) for member in ensemble.factors for weight in member.weights)
    return 1e6 * flops / (_rate(settings, device) * (settings.threads if device == "cpu" else 1))


def evaluations(problem: Problem, settings: Settings) -> int:
    """Of the value function, in a step of a target."""
    return 1 + (len(problem.input_limits) if settings.reaction_periods else 0)


def _rate(settings: Settings, device: str) -> float:
    """FLOP/s of a product of a minibatch with a hidden layer, on one thread of a CPU."""
    a = torch.rand(settings.minibatch, settings.width, device=device)
    b = torch.rand(settings.width, settings.width, device=device)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def products() -> None:
        for _ in range(PRODUCTS):
            torch.mm(a, b)
        if device == "cuda":
            torch.cuda.synchronize()

    seconds = median_seconds(products, 5) / PRODUCTS
    torch.set_num_threads(threads)
    return 2.0 * settings.minibatch * settings.width**2 / seconds
