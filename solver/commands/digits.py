"""How many decimals the returns of a task are printed with: costs may be far from 1."""

from __future__ import annotations

import math


def decimals(size: float) -> int:
    """Those that give a number of this size three digits; two at least."""
    return 2 if size == 0.0 or not math.isfinite(size) else max(2, 2 - math.floor(math.log10(abs(size))))
