"""Names that every emitted language takes."""

from __future__ import annotations

from modelgen.program.functions import unique_names


def test_names_are_identifiers_and_different() -> None:
    made = unique_names(["x", "lambda", "t1", "c12", "ä b", "a_b", "a b", "1st", "", "for_", "for"])
    assert len(set(made)) == len(made)
    assert all(name.isidentifier() and name.isascii() for name in made)
    assert not {"x", "lambda", "t1", "c12"} & set(made)


def test_functions_of_c_keep_their_names_in_float() -> None:
    taken = ["exp", "expf", "sinf", "atan2f", "log1pf", "isnan"]
    assert not {*taken} & {*unique_names(taken)}
