"""CUDA graphs: a function that a GPU replays as a whole, in place of a launch for each of its small operations.

A step of a rollout or of a value target is a few thousand operations on small tensors. On a GPU each of them takes
longer to launch than to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

Outputs = TypeVar("Outputs", bound=tuple[Tensor, ...])


class Replayed(Generic[Outputs]):
    """A function of tensors that a GPU records at the first call with tensors of some shapes, and then replays.

    Whatever else the function reads must stay the same, in the same memory; it must draw no random number, read no
    value back and copy nothing from the CPU. On a CPU it is only called.
    """

    def __init__(self, function: Callable[..., Outputs]) -> None:
        self.function = function
        self.recorded: dict[Any, Callable[..., Outputs]] = {}

    def __call__(self, *arguments: Tensor) -> Outputs:
        """The function's outputs, in new tensors."""
        if arguments[0].device.type == "cpu":
            return self.function(*arguments)
        shapes = tuple(each.shape for each in arguments)
        if shapes not in self.recorded:
            self.recorded[shapes] = record(self.function, arguments)
        return self.recorded[shapes](*arguments)


def record(function: Callable[..., Outputs], arguments: tuple[Tensor, ...]) -> Callable[..., Outputs]:
    """The function for tensors of the shapes of these arguments, as one CUDA graph."""
    given = [each.clone() for each in arguments]
    beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # libraries allocate their workspaces in the first call, which no graph may do
        function(*given)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = function(*given)

    def replay(*others: Tensor) -> Outputs:
        for mine, other in zip(given, others, strict=True):
            mine.copy_(other)
        graph.replay()
        return cast(Outputs, tuple(each.clone() for each in found))

    return replay
