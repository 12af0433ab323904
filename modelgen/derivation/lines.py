"""Which line of a model file an error of its equations names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import Place


@dataclass(frozen=True)
class Lines:
    """The robot's line, and the lines of expressions, which take some search; None where no line is known."""

    robot: Place | None = None
    not_finite: Callable[[NDArray[np.float64]], Place | None] = lambda _: None  # at a state (n,)
    too_fast: Callable[[int], Place | None] = lambda _: None  # what moves the state of this number


NO_LINES = Lines()
