"""Parallel execution: fits of several members on threads, and CUDA graphs.

A GPU replays a CUDA graph as a whole, instead of launching each of its small operations. A step of a rollout, of a
value target or of a fit has a hundred to a few thousand operations on small tensors. On a GPU, each of them takes
longer to launch than to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor

Outputs = TypeVar("Outputs", bound=tuple[Tensor, ...])
Output = TypeVar("Output")


class Replayed(Generic[Outputs]):
    """A function of tensors that a GPU records as a graph and replays. On a CPU the function is called.

    The graph is recorded in the second call for each combination of shapes: in the first call, libraries still load
    their kernels. From the second call on, all other tensors that the function reads or changes must stay in the same
    memory. The function must draw random numbers only from `generator`, and must not copy between GPU and CPU.
    """

    def __init__(self, function: Callable[..., Outputs], generator: torch.Generator | None = None) -> None:
        self.function, self.generator = function, generator
        self.recorded: dict[Any, Callable[..., Outputs] | None] = {}

    def __call__(self, *arguments: Tensor) -> Outputs:
        """Outputs of the function, in new tensors."""
        if arguments[0].device.type == "cpu":
            return self.function(*arguments)
        shapes = tuple(argument.shape for argument in arguments)
        if shapes not in self.recorded:
            self.recorded[shapes] = None
            return self.function(*arguments)
        replay = self.recorded[shapes] or record(self.function, arguments, self.generator)
        self.recorded[shapes] = replay
        return replay(*arguments)


def record(
    function: Callable[..., Outputs], arguments: tuple[Tensor, ...], generator: torch.Generator | None
) -> Callable[..., Outputs]:
    """CUDA graph of the function for tensors with the shapes of `arguments`, as a function of such tensors."""
    inputs = [argument.clone() for argument in arguments]
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        outputs = function(*inputs)

    def replay(*arguments: Tensor) -> Outputs:
        for recorded, argument in zip(inputs, arguments, strict=True):
            recorded.copy_(argument)
        graph.replay()
        return cast(Outputs, tuple(output.clone() for output in outputs))

    return replay


class SideBySide:
    """Runs functions on a GPU at the same time, each in its own stream. size: number of functions."""

    def __init__(self, size: int) -> None:
        self.streams = [torch.cuda.Stream() for _ in range(size)]  # type: ignore[no-untyped-call]

    def __call__(self, functions: Sequence[Callable[[], Output]]) -> list[Output]:
        """Results of the functions, in their order."""
        here, results = torch.cuda.current_stream(), []
        for function, stream in zip(functions, self.streams, strict=True):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                results.append(function())
        for stream in self.streams:
            here.wait_stream(stream)
        return results


class Epochs(Protocol):
    """Work in epochs."""

    left: int  # epochs to do

    def epoch(self) -> None:
        """Do one, and count `left` down."""


def run_side_by_side(fits: Sequence[Epochs], workers: Executor) -> None:
    """Run all fits to their end on threads.

    A free worker runs an epoch of the waiting fit with the most epochs to do. Two workers therefore fit three members
    in the time of one and a half.
    """
    waiting, lock = list(fits), Lock()

    def exchange(done: Epochs | None) -> Epochs | None:
        with lock:
            if done is not None and done.left:
                waiting.append(done)
            waiting.sort(key=lambda fit: fit.left)
            return waiting.pop() if waiting else None

    def work(_: Epochs) -> None:
        fit = exchange(None)
        while fit is not None:
            fit.epoch()
            fit = exchange(fit)

    list(workers.map(work, fits))
