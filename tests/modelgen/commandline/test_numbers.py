"""Numbers and ranges of options."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.commandline import Range, assigned, decimal, number
from modelgen.errors import ModelError


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_that_python_prints_is_read(value: float) -> None:
    assert decimal(repr(value)) == value
    assert decimal(f"{value:+.17e}") == value


@pytest.mark.parametrize(
    "text", ["1_5", "１.5", "nan", "inf", "-Infinity", "1e999", "", ".", "e5", " 1", "0x10", "1,5"]
)
def test_other_text_is_not_a_number(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        decimal(text)
    with pytest.raises(ModelError):
        number("--at", "angle", text)


@pytest.mark.parametrize(("text", "value"), [("pi", 1.0), ("-pi/2", -0.5), ("0.5*pi", 0.5), ("2pi/3", 2 / 3)])
def test_multiples_of_pi(text: str, value: float) -> None:
    assert number("--at", "angle", text) == pytest.approx(value * math.pi)


def test_a_range_of_whole_numbers_and_one_of_all() -> None:
    whole, every = Range(1, 1000), Range(0.0, 1.0)
    assert (whole.read("1000"), every.read("1e-3")) == (1000, 0.001)
    assert (whole.shown, every.shown) == ("INT 1..1000", "FLOAT 0..1")
    for numbers, text in (
        (whole, "0"),
        (whole, "1001"),
        (whole, "5.0"),
        (whole, "1_0"),
        (every, "1.01"),
        (every, "-0.1"),
    ):
        with pytest.raises(ValueError, match=text):
            numbers.read(text)


def test_names_of_assignments_are_known_and_stand_once() -> None:
    assert assigned("--set", ["mass=1", "length=2x"], ["mass", "length"], "parameter") == {"mass": "1", "length": "2x"}
    for pairs, words in ((["mas=1"], "`mass`"), (["mass=1", "mass=2"], "twice")):
        with pytest.raises(ModelError, match=words):
            assigned("--set", pairs, ["mass", "length"], "parameter")
