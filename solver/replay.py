"""CUDA graphs: a function that a GPU replays as a whole, in place of a launch for each of its small operations.

A step of a rollout, of a value target or of a fit is a hundred to a few thousand operations on small tensors. On a GPU
each of them takes longer to launch than to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

Outputs = TypeVar("Outputs", bound=tuple[Tensor, ...])
Output = TypeVar("Output")


class Replayed(Generic[Outputs]):
    """A function of tensors that a GPU records at the second call with tensors of some shapes, and then replays.

    Whatever else the function reads or changes must stay in the same memory from the second call on; it must draw
    random numbers only from the given generator, read no value back and copy nothing from the CPU. In the
    first call libraries load their kernels, so that it is no graph. On a CPU the function is only called.
    """

    def __init__(self, function: Callable[..., Outputs], generator: torch.Generator | None = None) -> None:
        self.function, self.generator = function, generator
        self.recorded: dict[Any, Callable[..., Outputs] | None] = {}

    def __call__(self, *arguments: Tensor) -> Outputs:
        """The function's outputs, in new tensors."""
        if arguments[0].device.type == "cpu":
            return self.function(*arguments)
        shapes = tuple(each.shape for each in arguments)
        if shapes not in self.recorded:
            self.recorded[shapes] = None
            return self.function(*arguments)
        replay = self.recorded[shapes] or record(self.function, arguments, self.generator)
        self.recorded[shapes] = replay
        return replay(*arguments)


def record(
    function: Callable[..., Outputs], arguments: tuple[Tensor, ...], generator: torch.Generator | None
) -> Callable[..., Outputs]:
    """The function for tensors of the shapes of these arguments, as one CUDA graph."""
    given = [each.clone() for each in arguments]
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        found = function(*given)

    def replay(*others: Tensor) -> Outputs:
        for mine, other in zip(given, others, strict=True):
            mine.copy_(other)
        graph.replay()
        return cast(Outputs, tuple(each.clone() for each in found))

    return replay


class SideBySide:
    """Runs functions of operations on a GPU at the same time, each in a stream of its own."""

    def __init__(self, size: int) -> None:
        self.streams = [torch.cuda.Stream() for _ in range(size)]  # type: ignore[no-untyped-call]

    def __call__(self, functions: Sequence[Callable[[], Output]]) -> list[Output]:
        """What the functions return."""
        here, found = torch.cuda.current_stream(), []
        for function, stream in zip(functions, self.streams, strict=True):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                found.append(function())
        for stream in self.streams:
            here.wait_stream(stream)
        return found
