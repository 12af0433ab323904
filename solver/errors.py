"""Errors that a user of the solver can correct."""

from modelgen.errors import LONGEST, abridged, worded


class SolverError(ValueError):
    """Mistake of a user. The message says what was wrong, where, and what to write instead."""

    def __init__(self, message: str = "") -> None:
        super().__init__(abridged(worded(message), LONGEST))


class DivergenceError(RuntimeError):
    """Divergence of a training: NaN, or a target that grows without bound. The last good checkpoint remains."""

    def __init__(self, message: str = "") -> None:
        super().__init__(worded(message))
