"""Errors that a user of the solver can mend."""


class SolverError(ValueError):
    """A user's mistake: the message says what was wrong, where, and what to do instead."""


class DivergenceError(RuntimeError):
    """Training produced NaN or an exploding target; the last good checkpoint is kept."""
