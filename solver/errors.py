"""Errors that a user of the solver can correct."""

from modelgen.errors import LONGEST, Worded, abridged


class SolverError(Worded, ValueError):
    """Mistake of a user. The message says what was wrong, where, and what to write instead."""

    def __init__(self, message: str = "") -> None:
        super().__init__(abridged(message, LONGEST))


class DivergenceError(Worded, RuntimeError):
    """Divergence of a training: NaN, or a target that grows without bound. The last good checkpoint remains."""
