"""Messages for their readers: options in commands, arguments in Python; and arguments of another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import modelgen
import solver
from modelgen.errors import ModelError, checked, of_a_command
from solver.errors import SolverError


def test_an_option_is_an_argument_outside_of_commands() -> None:
    message = "--longest-delay 3 is set; write --set mass=2, or `solver train --resume runs/a`"
    assert (
        str(ModelError(message)) == "longest_delay 3 is set; write parameters mass=2, or `solver train --resume runs/a`"
    )
    with of_a_command():
        assert str(SolverError(message)) == message


@checked(SolverError)
def used(
    path: str | Path,
    names: Sequence[str] = (),
    *more: int,
    changes: Mapping[str, float] = {},
    rate: float | None = None,
    report: Callable[[], None] | None = None,
    form: Literal["c", "js"] = "c",
    anything: Any = None,
    **others: float,
) -> tuple[object, ...]:
    """What it gets."""
    return path, names, more, changes, rate, report, form, anything, others


def test_arguments_of_their_types_pass() -> None:
    changes = {"m": np.float64(1)}
    assert used("a", ["b"], 1, 2, changes=changes, rate=1, form="js", anything=object, free=3)[2] == (1, 2)
    assert used(path=Path("a"), names="b", report=print)[0] == Path("a")
    assert used.__name__ == "used"


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((3,), {}, "path is 3; give a text or a path"),
        (("a", [3]), {}, r"names is \[3\]; give a list"),
        (("a", [], "b"), {}, "more is 'b'; give a whole number"),
        (("a",), {"changes": [1]}, r"changes is \[1\]; give a mapping"),
        (("a",), {"changes": {"m": "heavy"}}, "changes is .*; give a mapping"),
        (("a",), {"rate": "fast"}, "rate is 'fast'; give a number or None"),
        (("a",), {"report": 3}, "report is 3; give a function or None"),
        (("a",), {"form": {}}, "form is {}; give a text"),
    ],
)
def test_others_are_refused_by_name(arguments: Any, options: Any, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        used(*arguments, **options)


def test_public_functions_refuse_them() -> None:
    run = solver.load("pendulum-rfvi")
    wrong: Any = {"a": 1}
    calls: list[tuple[str, Callable[[], object]]] = [
        ("run is", lambda: solver.load(wrong)),
        ("specification is", lambda: run.certify(wrong)),
        ("callback is", lambda: solver.train("pendulum", callback=wrong)),
        ("out is", lambda: solver.train("pendulum", out=wrong)),
        ("formats is", lambda: run.export("folder", wrong)),
        ("plant is", lambda: run.evaluate(plant=wrong)),
        ("longest_delay 2 .*observer", lambda: run.evaluate(longest_delay=2)),
    ]
    for words, call in calls:
        with pytest.raises(SolverError, match=words):
            call()
    with pytest.raises(ModelError, match="backend is"):
        modelgen.load("pendulum", backend=wrong)
