"""Type of the NumPy arrays in signatures, for `modelgen` and `solver`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
