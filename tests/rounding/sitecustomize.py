"""Matrix products of Torch, and with them V and its gradient, change by at most 2 units in the last place.

The change is a function of the size of the product, because BLAS takes other instructions for other sizes. Equal calls
stay equal. Python imports a module of this name first, so that the processes that a test starts round as the test does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

CHANGES = (-1.0, -0.5, 0.0, 1.0)  # of eps: at most 2 units in the last place


def disturb(torch: Any) -> None:
    """Replace the products of the module torch."""
    if hasattr(torch.mm, "__wrapped__"):
        return

    def rounded(product: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(product)
        def other(*args: Any, **kwargs: Any) -> Any:
            result = product(*args, **kwargs)
            if type(result) is torch.Tensor and result.is_floating_point():  # a tensor of a graph has no numbers
                change = CHANGES[(result.numel() * 40503 >> 8) % len(CHANGES)]
                result.data.mul_(1.0 + change * torch.finfo(result.dtype).eps)
            return result

        return other

    for owner, names in (
        (torch, ("mm", "addmm", "bmm", "matmul", "einsum")),
        (torch.nn.functional, ("linear",)),
        (torch.Tensor, ("__matmul__", "addmm_")),
    ):
        for name in names:
            setattr(owner, name, rounded(getattr(owner, name)))


class OnImport(MetaPathFinder):
    """Disturbs torch when it is imported, because most processes never do."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The usual place of torch, loaded and then disturbed."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == "torch" else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            disturb(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


assert "torch" not in sys.modules
sys.meta_path.insert(0, OnImport())
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
