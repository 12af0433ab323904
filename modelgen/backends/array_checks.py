"""Checks of array shapes that hold in every backend."""

from __future__ import annotations

from collections.abc import Mapping

from modelgen.errors import ModelError


def check_shape(name: str, shape: tuple[int, ...], columns: int) -> None:
    """Raises ModelError unless the shape is (N, columns), or (columns,) for theta."""
    if (len(shape) == 2 and shape[1] == columns) or (name == "theta" and shape == (columns,)):
        return
    single = f"({columns},) or " if name == "theta" else ""
    hint = ""
    if shape == (columns,):
        hint = f" For one sample pass {name}[None, :]."
    raise ModelError(f"`{name}` has shape {shape}; it must be {single}(N, {columns}), one row a sample.{hint}")


def sample_count(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """N, the rows of the first argument.

    theta of shape (p,) holds for every sample. Raises ModelError when the arrays disagree.
    """
    first = next(iter(shapes))
    samples = shapes[first][0]
    for name, shape in shapes.items():
        if len(shape) == 2 and shape[0] != samples:
            rows = ", ".join(f"{other} {found}" for other, found in shapes.items())
            raise ModelError(f"`{name}` has {shape[0]} rows, but `{first}` has {samples}; shapes are {rows}.")
    return samples
