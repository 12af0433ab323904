"""Messages for their readers: options in commands, arguments in Python; and arguments of another type."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

import modelgen
import solver
from modelgen.artifact.folder import SHIPPED
from modelgen.errors import ModelError, StaleArtifactWarning, checked, of_a_command
from solver.errors import SolverError


def test_an_option_is_an_argument_outside_of_commands() -> None:
    message = "--longest-delay 3 is set; write --set mass=2, or `solver train --resume runs/a`"
    assert (
        str(ModelError(message)) == "longest_delay 3 is set; write parameters mass=2, or `solver train --resume runs/a`"
    )
    with of_a_command():
        assert str(SolverError(message)) == message


def test_a_path_keeps_its_hyphens() -> None:
    message = str(ModelError("a--b and /tmp/--c stay, --out-folder does not"))
    assert message == "a--b and /tmp/--c stay, out_folder does not"


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
    x: ArrayLike | None = None,
    generated: str | None = None,
    whether: bool = False,
    **others: float,
) -> tuple[object, ...]:
    """What it gets."""
    return path, names, more, changes, rate, report, form, anything, x, generated, whether, others


def test_arguments_of_their_types_pass() -> None:
    changes = {"m": np.float64(1)}
    assert used("a", ["b"], 1, 2, changes=changes, rate=1, form="js", anything=object, free=3)[2] == (1, 2)
    assert used(path=Path("a"), names="b", report=print)[0] == Path("a")
    assert used.__name__ == "used"


@pytest.mark.parametrize("x", [[0.1, 2], (0.1, 2.0), [[0.1], [0.2]], 0.3, range(3), np.zeros(2), torch.zeros(2), "up"])
def test_what_numpy_makes_an_array_of_passes(x: Any) -> None:
    """And what it makes none of: the function says why."""
    assert used("a", x=x)[8] is x


@pytest.mark.parametrize("number", [np.float32(0.5), np.array(0.5), torch.tensor(0.5), 1, np.int64(1), np.True_])
def test_a_number_of_an_array_is_a_number(number: Any) -> None:
    result: Any = used("a", [], rate=number, changes={"m": number}, length=number)
    for rate in (result[4], result[3]["m"]):
        assert rate == number
        assert type(rate) in (float, int, bool)  # such as a JSON file takes
    wrong: Any = np.array("fast")
    with pytest.raises(SolverError, match="rate is"):
        used("a", rate=wrong)


def test_whole_numbers_and_answers_may_be_of_numpy() -> None:
    numbers: Any = (np.int32(2), np.array(3))
    wrong: Any = 2.0
    whether: Any = np.bool_(True)
    assert used("a", [], *numbers, whether=whether)[2] == (2, 3)
    with pytest.raises(SolverError, match=r"more is 2\.0; give a whole number"):
        used("a", [], wrong)
    whether = "no"
    with pytest.raises(SolverError, match="whether is 'no'; give True or False"):
        used("a", whether=whether)


def test_a_path_in_place_of_a_text_is_its_text() -> None:
    folder: Any = Path("b") / "c"
    assert used(Path("a"), generated=folder)[9] == str(folder)
    assert used(Path("a"))[0] == Path("a")


def test_a_wrong_call_names_the_function_and_its_arguments() -> None:
    call: Any = used
    with pytest.raises(TypeError, match=r"used: missing a required argument: 'path'; its arguments are path, names"):
        call()
    call = solver.Run
    with pytest.raises(TypeError, match=r"Run: missing a required argument: 'folder'; its arguments are folder, gen"):
        call()


def test_a_warning_is_given_at_the_line_of_the_user(tmp_path: Path) -> None:
    """Not at that of a decorator, however deep the function is that gives it."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "pendulum.py").write_text("# another content\n")
    shutil.copytree(SHIPPED / "pendulum", tmp_path / "generated" / "pendulum")
    with pytest.warns(StaleArtifactWarning) as caught:
        modelgen.load("pendulum", directory=tmp_path / "generated")
    assert [entry.filename for entry in caught] == [__file__]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((3,), {}, "path is 3; give a text or a path"),
        (("a", [3]), {}, r"names\[0\] is 3; give a text"),
        (("a", {"b": 2}), {}, r"names is {'b': 2}; give a list"),
        (("a", [], "b"), {}, "more is 'b'; give a whole number"),
        (("a",), {"changes": {1: 0.5}}, "a key of changes is 1; give a text"),
        (("a",), {"changes": [1]}, r"changes is \[1\]; give a mapping"),
        (("a",), {"changes": {"m": "heavy"}}, r"changes\['m'\] is 'heavy'; give a number"),
        (("a",), {"rate": "fast"}, "rate is 'fast'; give a number or None"),
        (("a",), {"report": 3}, "report is 3; give a function or None"),
        (("a",), {"form": {}}, "form is {}; give 'c' or 'js'"),
        (("a",), {"form": "cc"}, "form is 'cc'; give 'c' or 'js'"),
    ],
)
def test_others_are_refused_by_name(arguments: Any, options: Any, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        used(*arguments, **options)


def test_public_functions_refuse_them() -> None:
    run = solver.load("pendulum-rfvi")
    wrong: Any = {"a": 1}
    text: Any = {"mass": "1.3x"}
    calls: list[tuple[str, Callable[[], object]]] = [
        ("run is", lambda: solver.load(wrong)),
        ("specification is", lambda: run.certify(wrong)),
        ("callback is", lambda: solver.train("pendulum", callback=wrong)),
        ("out is", lambda: solver.train("pendulum", out=wrong)),
        ("formats is", lambda: run.export("folder", wrong)),
        ("unknown plant", lambda: run.evaluate(plant=wrong)),
        (
            r"parameters\['mass'\] is '1.3x'; give a number or a Relative",
            lambda: run.evaluate(parameters=text),
        ),
        ("longest_delay 2 .*observer", lambda: run.evaluate(longest_delay=2)),
    ]
    for words, call in calls:
        with pytest.raises(SolverError, match=words):
            call()
    with pytest.raises(ModelError, match="backend is"):
        modelgen.load("pendulum", backend=wrong)
    with pytest.raises(ModelError, match="directory is"):
        modelgen.verify("pendulum", wrong)
