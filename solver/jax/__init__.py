"""Policies, value functions and environments as pure functions of JAX."""

from __future__ import annotations

from solver.errors import SolverError

try:
    import jax  # noqa: F401
except ImportError as error:
    raise SolverError(
        "solver.jax needs JAX, which is not installed: pip install 'robust-value-iteration[jax]'"
    ) from error
