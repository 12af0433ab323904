"""Checks of array shapes that hold in every backend."""

from __future__ import annotations

from collections.abc import Mapping

from modelgen.errors import ModelError


def check_shape(name: str, shape: tuple[int, ...], columns: int) -> None:
    """Raises ModelError unless the shape is (N, columns), or (columns,) for one sample; for theta, all samples."""
    if len(shape) not in (1, 2) or shape[-1] != columns:
        few = "all samples" if name == "theta" else "one sample"
        raise ModelError(
            f"`{name}` has shape {shape}; it must be (N, {columns}), one row a sample, or ({columns},) for {few}."
        )


def sample_count(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """N, the rows of the first argument; None where it is one sample without that axis, as all others then are.

    theta of shape (p,) holds for every sample. Raises ModelError when the arrays disagree.
    """
    first = next(iter(shapes))
    samples = shapes[first][0] if len(shapes[first]) == 2 else None
    for name, shape in shapes.items():
        rows = shape[0] if len(shape) == 2 else None
        if rows == samples or (rows is None and name == "theta"):
            continue
        found = ", ".join(f"{other} {each}" for other, each in shapes.items())
        said = "is one sample" if rows is None else f"has {rows} rows"
        wanted = "is one sample" if samples is None else f"has {samples}"
        raise ModelError(f"`{name}` {said}, but `{first}` {wanted}; shapes are {found}.")
    return samples
