"""A GPU that is not there: tensors that say they are on `cuda` and compute on the CPU.

An operation on tensors of both devices raises, as it does on a GPU, except where the one on the CPU has no axes. So
does `numpy`. A test within `pretended_gpu()` finds what stays behind on the CPU; it tells nothing of a GPU's rounding
or speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

CUDA = torch.device("cuda:0")
TO, LOAD = torch.Tensor.to, torch.load
DATA: Any = torch.Tensor.data
WAITING = ("aten::nonzero", "aten::_linalg_check_errors", "aten::_local_scalar_dense", "aten::masked_select")
RECORDING: list[bool] = []  # not empty while a CUDA graph is recorded


class OnGpu(torch.Tensor):
    """A tensor whose values are those of `held`, on the CPU."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> OnGpu:
        layout: Any = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        with torch.inference_mode(mode=False):
            made: OnGpu = torch.Tensor._make_wrapper_subclass(cls, held.shape, **layout, device=torch.device("meta"))
        made.held = held
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA

    @property
    def data(self) -> Any:
        return DATA.__get__(self)

    @data.setter
    def data(self, other: Any) -> None:
        DATA.__set__(self, other)
        self.held = other.held

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return computed(operation, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.held.__reduce_ex__(protocol)

    def item(self) -> Any:
        return self.read().item()

    def tolist(self) -> Any:
        return self.read().tolist()

    def __float__(self) -> float:
        return float(self.read())

    def __int__(self) -> int:
        return int(self.read())

    def __bool__(self) -> bool:
        return bool(self.read())

    def read(self) -> torch.Tensor:
        """The values, back on the CPU."""
        if RECORDING:
            raise RuntimeError("a value was read back in a CUDA graph")
        return self.held

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a tensor on the GPU has no numpy()")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a tensor on the GPU is no array")


class PretendedGenerator(torch.Generator):
    """A generator that says it is on the device that was asked for."""

    where: torch.device

    def __new__(cls, device: Any = "cpu") -> PretendedGenerator:
        made = super().__new__(cls)
        made.where = torch.device(device)
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.where


class _Created(TorchDispatchMode):
    """Catches the operations that have no tensor on the GPU among their arguments: those that put one there."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and Torch's compiler takes three seconds to import."""
        return False

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        return computed(operation, arguments, named or {})


def computed(operation: Any, arguments: Any, named: dict[str, Any]) -> Any:
    """The result of an operation, on the device where it would be."""
    there: list[OnGpu] = []
    elsewhere: list[torch.Tensor] = []

    def held(each: Any) -> Any:
        if isinstance(each, OnGpu):
            there.append(each)
            return each.held
        if isinstance(each, torch.Tensor) and each.ndim:
            elsewhere.append(each)
        return each

    asked = named.get("device")
    inside, named = _mapped(held, arguments), {key: _mapped(held, each) for key, each in named.items()}
    name = operation.name()
    moves = name.startswith(("aten::_to_copy", "aten::copy_", "aten::index."))
    if RECORDING and ((there and elsewhere) or name.startswith(WAITING) or (moves and _moved_over(asked, elsewhere))):
        raise RuntimeError(f"{name} makes the CPU wait for the GPU, in a CUDA graph")
    if there and not moves and elsewhere:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, but found cuda:0 and cpu")
    if asked is not None:
        named["device"] = torch.device("cpu")
    result = operation(*inside, **named)
    if operation._schema.is_mutable:
        kept = {id(each.held): each for each in there}
        return _mapped(lambda each: kept.get(id(each), each), result)
    on_gpu = torch.device(asked).type != "cpu" if asked is not None else bool(there)
    return _mapped(_put, result) if on_gpu else result


def _mapped(function: Callable[[Any], Any], given: Any) -> Any:
    """The function of a value, or of each one in a sequence of them, as operations take and return."""
    if isinstance(given, tuple | list):
        return type(given)([_mapped(function, each) for each in given])
    return function(given)


def _moved_over(asked: Any, elsewhere: list[torch.Tensor]) -> bool:
    """Whether an operation copies from one device to the other."""
    return bool(elsewhere) or torch.device(asked or CUDA).type == "cpu"


def _record(function: Callable[..., Any], arguments: tuple[torch.Tensor, ...], _: object) -> Callable[..., Any]:
    """`solver.parallel.record` that computes the outputs in every call, only for tensors of the same shapes."""
    shapes = [argument.shape for argument in arguments]

    def replay(*others: torch.Tensor) -> Any:
        assert [each.shape for each in others] == shapes, "a CUDA graph is of tensors of one shape"
        RECORDING.append(True)
        try:
            return function(*(each.clone() for each in others))
        finally:
            RECORDING.pop()

    return replay


def _put(each: Any) -> Any:
    return OnGpu(each) if isinstance(each, torch.Tensor) else each


def _moved(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function that makes a tensor on the CPU, and moves it where it should be."""

    def moved(*arguments: Any, device: Any = None, **named: Any) -> torch.Tensor:
        made = make(*arguments, **named)
        return made if device is None else made.to(device)

    return moved


def _to(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
    """`Tensor.to`, for which Torch would look up the number of a GPU that has none."""

    def numbered(each: Any) -> Any:
        return CUDA if isinstance(each, str | torch.device) and str(each) == "cuda" else each

    return TO(tensor, *map(numbered, arguments), **{name: numbered(each) for name, each in named.items()})


def _load(path: Any, map_location: Any = None, weights_only: bool = True) -> Any:
    """`torch.load`."""
    loaded = LOAD(path, "cpu", weights_only=weights_only)
    return loaded if map_location in (None, "cpu") else tree_map(_put, loaded)


def _enter() -> None:
    """Every thread has its own modes."""
    _Created().__enter__()


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Within the block Torch sees a GPU."""
    with (
        mock.patch("torch.cuda.is_available", return_value=True),
        mock.patch("torch.cuda._lazy_init"),
        mock.patch("torch.Generator", PretendedGenerator),
        mock.patch.object(torch.Tensor, "to", _to),
        mock.patch("torch.load", _load),
        mock.patch("solver.parallel.record", _record),
        mock.patch("torch.cuda.Stream"),
        mock.patch("torch.cuda.current_stream"),
        mock.patch("torch.cuda.stream", nullcontext),
        mock.patch("torch.tensor", _moved(torch.tensor)),
        mock.patch("torch.as_tensor", _moved(torch.as_tensor)),
        mock.patch("solver.training.session.ThreadPoolExecutor", partial(ThreadPoolExecutor, initializer=_enter)),
        _Created(),
    ):
        yield
