"""Changed parameters of a plant, written as `mass=1.3x`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modelgen
from modelgen.loader import CompiledRobot
from solver.commands.changes import read_changes, read_given
from solver.errors import SolverError
from solver.problem import Problem
from solver.problem.parameters import Relative, changed_parameters, in_words

Load = Callable[[str], CompiledRobot]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], [1.0, 1.0]),
        (["mass=1.3x"], [1.3, 1.0]),
        (["mass=+0.05", "length=+-0.25"], [1.05, 0.75]),
        (["mass=2"], [2.0, 1.0]),
        ([" length = 0.5 "], [1.0, 0.5]),
    ],
)
def test_changes_multiply_add_to_or_replace_the_nominal_value(
    load: Load, changes: list[str], expected: list[float]
) -> None:
    problem = Problem(load("pendulum"))
    np.testing.assert_allclose(changed_parameters(problem, read_changes(changes)), expected, rtol=1e-6)
    np.testing.assert_allclose(problem.theta, 1.0)


def test_a_minus_is_the_sign_of_a_value_that_may_be_negative() -> None:
    assert read_changes(["bias=-0.4"]) == {"bias": -0.4}
    assert read_given(["bias=-0.6:-0.4"]) == {"bias": (-0.6, -0.4)}
    less = read_changes(["bias=+-0.1"])
    assert less == {"bias": Relative(added=-0.1)} == read_changes([in_words(less)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("mas=1", "`mass`"),
        ("colour=1", "mass, length"),
        ("mass", "'mass'"),
        ("mass=", "'mass='"),
        ("mass=x", "'mass=x'"),
        ("mass=heavy", "'mass=heavy'"),
        ("mass=nan", "'mass=nan'"),
        ("mass=1e39", r"1e\+39"),
        ("mass=1_5", "'mass=1_5'"),
        ("mass=１.5", "'mass=１.5'"),
    ],
)
def test_change_that_cannot_be_read_is_an_error(load: Load, change: str, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        changed_parameters(Problem(load("pendulum")), read_changes([change]))


def test_change_from_python_that_is_no_number_is_an_error(load: Load) -> None:
    with pytest.raises(SolverError, match=r"solver\.Relative"):
        changed_parameters(Problem(load("pendulum")), {"mass": "1.3x"})  # type: ignore[dict-item]
    with pytest.raises(SolverError, match=r"factor .*'1\.3'"):
        Relative("1.3")  # type: ignore[arg-type]


NUMBERS = st.floats().map(str) | st.text(max_size=8)
CHANGES = st.builds("{}{}{}{}".format, st.sampled_from(["mass", "length", "m"]), st.sampled_from(["=", "", "=+"]),
                    NUMBERS, st.sampled_from(["", "x"]))  # fmt: skip


@given(st.lists(CHANGES | st.text(max_size=12), max_size=3))
@pytest.mark.slow
def test_any_text_gives_finite_parameters_or_a_solver_error(changes: list[str]) -> None:
    problem = Problem(modelgen.load("pendulum", dtype="float32", parallel=False))
    try:
        theta = changed_parameters(problem, read_changes(changes))
    except SolverError:
        return
    assert theta.shape == (2,)
    assert bool(torch.isfinite(theta).all())
