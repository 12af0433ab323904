"""Another processor's rounding, for `pytest -p tests.rounding`.

Matrix products of Torch, and with them V and its gradient, change by at most 2 units in the last place. The change is a
function of the size of the product, because BLAS takes other instructions for other sizes. Equal calls stay equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

PRODUCTS = (
    (torch, ("mm", "addmm", "bmm", "matmul", "einsum")),
    (torch.nn.functional, ("linear",)),
    (Tensor, ("__matmul__", "addmm_")),
)
CHANGES = (-1.0, -0.5, 0.0, 1.0)  # of eps: at most 2 units in the last place


def _rounded(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(product)
    def other(*args: Any, **kwargs: Any) -> Tensor:
        result = product(*args, **kwargs)
        if result.is_floating_point():
            change = CHANGES[(result.numel() * 40503 >> 8) % len(CHANGES)]
            result.data.mul_(1.0 + change * torch.finfo(result.dtype).eps)
        return result

    return other


for owner, names in PRODUCTS:
    for name in names:
        setattr(owner, name, _rounded(getattr(owner, name)))
