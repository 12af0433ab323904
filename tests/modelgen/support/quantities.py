"""Types of the fixtures that compare a robot's functions with 50-digit values."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

Quantities = dict[str, NDArray[np.float64]]  # every output by name, (N, entries)
Exact = Callable[[str], SimpleNamespace]  # name of a mechanism -> its samples, and `values`: their quantities
Calls = Callable[..., Quantities]  # robot, samples, conversion of an argument, rows
Close = Callable[[Quantities, Quantities, float], None]  # found, expected, largest relative error
