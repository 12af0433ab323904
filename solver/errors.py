"""Errors that a user of the solver can correct."""


class SolverError(ValueError):
    """Mistake of a user. The message says what was wrong, where, and what to write instead."""


class DivergenceError(RuntimeError):
    """Divergence of a training: NaN, or a target that grows without bound. The last good checkpoint remains."""
