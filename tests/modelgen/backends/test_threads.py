"""Chunks of a batch on threads: they cover every sample once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.backends import arrays


@given(
    samples=st.integers(0, 10**6),
    operations=st.integers(1, 10**5),
    cores=st.integers(1, 64),
    fewest=st.integers(1, 10**7),
)
def test_chunks_cover_every_sample_once(samples: int, operations: int, cores: int, fewest: int) -> None:
    covered: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "threads", lambda: cores)
        patch.setattr(arrays, "_FEWEST", fewest)
        patch.setattr(arrays, "_workers", Immediately)
        arrays.run_chunks(lambda first, last: covered.append((first, last)), samples, operations)
    covered.sort()
    assert (covered[0][0], covered[-1][1]) == (0, samples)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(covered))
    assert len(covered) == 1 or min(last - first for first, last in covered) >= 16  # lanes of the widest kernel
    assert len(covered) <= cores


class Immediately:
    """A pool that runs a job when it is handed over."""

    def submit(self, job: object, *arguments: int) -> Immediately:
        job(*arguments)  # type: ignore[operator]
        return self

    def result(self) -> None:
        """Nothing: the job has run."""
