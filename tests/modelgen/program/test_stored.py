"""The program's file: what is written is read again, and whatever else is read is refused or can be rendered."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import c, casadi, js, mathml, numba, torch
from modelgen.backends.drawing import Drawing
from modelgen.backends.llvm import translate
from modelgen.derivation.lowering import mechanism
from modelgen.program import stored
from modelgen.program.differentiate import forward, program, reverse
from modelgen.program.functions import Program
from tests.modelgen.support import mechanisms
from tests.modelgen.support.damage import Damage, Mistake, damaged, damages, mistaken, mistakes
from tests.modelgen.support.evaluation import evaluate

NAMES = sorted(path.parent.name for path in artifact.SHIPPED.glob(f"*/{artifact.MANIFEST}"))
METADATA = modelgen.load("pendulum", directory=artifact.SHIPPED).metadata


def file_of(name: str) -> bytes:
    (path,) = (artifact.SHIPPED / name).glob("program_*.json")
    return path.read_bytes()


PENDULUM = file_of("pendulum")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_was_read_is_written_as_the_same_bytes(name: str) -> None:
    assert stored.write(stored.read(file_of(name))) == file_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_reopened_from_its_outline_is_the_one_that_was_read(name: str) -> None:
    read = stored.read(file_of(name))
    reopened = stored.reopened(stored.outline(read), file_of(name))
    assert reopened.operations == read.operations
    assert "operations" not in vars(reopened.graph)  # no node is read yet
    assert (reopened.functions, reopened.drawing, reopened.segments) == (read.functions, read.drawing, read.segments)
    assert (reopened.arguments, reopened.digest) == (read.arguments, read.digest)
    assert reopened.graph.operations == read.graph.operations
    assert stored.write(reopened) == file_of(name)


@pytest.mark.slow
def test_a_program_that_was_read_computes_what_was_written(exact: Callable[[str], SimpleNamespace]) -> None:
    made = program(mechanism(mechanisms.dense()))
    read, at = stored.read(stored.write(made)), exact("dense")
    for before, after in zip(made.functions, read.functions, strict=True):
        inputs = {
            read.graph.operations[node].name: column
            for argument in after.arguments
            for node, column in zip(argument.entries, getattr(at, argument.name).T, strict=True)
        }
        assert [output.shape for output in before.outputs] == [output.shape for output in after.outputs]
        expected = evaluate(made.graph, before.roots, inputs, np)
        for found, wanted in zip(evaluate(read.graph, after.roots, inputs, np), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_constants_keep_all_their_digits() -> None:
    graph = stored.read(PENDULUM).graph
    for value in (0.1 + 0.2, 1e-308, math.pi, 5e300):
        graph.append(graph.operations[graph.constant(value)])
    lines = json.loads(stored.write(Program(graph, (), None)))["nodes"]
    assert lines[:2] == [0.0, 1.0]
    assert json.loads(json.dumps(0.1 + 0.2)) == 0.1 + 0.2
    assert {9.81 / 2, 1 / 3} <= {entry for entry in json.loads(PENDULUM)["nodes"] if type(entry) is float}


def test_a_program_that_was_read_can_be_differentiated() -> None:
    """Second derivatives of the dynamics, without SymPy: by one sweep beside the Jacobian's derivative."""
    read = stored.read(PENDULUM)
    graph, x = read.graph, read.arguments["x"].entries
    jacobian = read.function("jacobians").outputs[2].entries
    (rate,) = (read.function("dynamics").outputs[0].entries[1],)
    twice = forward(graph, reverse(graph, {rate: graph.one}, x), x[0])
    once = forward(graph, [jacobian[2]], x[0])
    inputs = {"angle": 0.7, "angle_rate": 0.3, "torque": 0.0, "mass": 1.2, "length": 0.9}
    (second, _), (again,) = evaluate(graph, twice, inputs, np), evaluate(graph, once, inputs, np)
    assert second == pytest.approx(again) == pytest.approx(-1.5 * 9.81 / 0.9 * math.sin(0.7))


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    data = copy.deepcopy(json.loads(PENDULUM))
    change(data)
    return json.dumps(data).encode()


LAST = len(json.loads(PENDULUM)["nodes"])
NODE, ANGLE = 12, json.loads(PENDULUM)["nodes"].index("angle")
MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a later node": (lambda d: d["nodes"].__setitem__(NODE, ["sin", LAST - 1]), rf"nodes\[{NODE}\].*earlier nodes"),
    "itself": (lambda d: d["nodes"].__setitem__(NODE, ["sin", NODE]), rf"nodes\[{NODE}\].*earlier nodes"),
    "a negative place": (lambda d: d["nodes"].__setitem__(NODE, ["sin", -1]), rf"nodes\[{NODE}\].*earlier nodes"),
    "true as a place": (lambda d: d["nodes"].__setitem__(NODE, ["sin", True]), rf"nodes\[{NODE}\].*earlier nodes"),
    "one argument too few": (
        lambda d: d["nodes"].__setitem__(NODE, ["mul", 1]),
        rf"nodes\[{NODE}\].*no such operation",
    ),
    "another operation": (
        lambda d: d["nodes"].__setitem__(NODE, ["system", 1]),
        rf"nodes\[{NODE}\].*no such operation",
    ),
    "infinity": (lambda d: d["nodes"].__setitem__(NODE, math.inf), "Infinity is not a finite number"),
    "a number too large": (lambda d: d["nodes"].__setitem__(NODE, 10**400), rf"nodes\[{NODE}\]"),
    "an exponent that is a node": (lambda d: d["nodes"].append(["pow", 2, 3]), "the exponent is not a number"),
    "the same node twice": (lambda d: d["nodes"].append(["sin", ANGLE]), "as an earlier node is"),
    "a name with code": (lambda d: d["nodes"].__setitem__(ANGLE, "x=__import__('os')"), "cannot have"),
    "a word of Python": (lambda d: d["nodes"].__setitem__(ANGLE, "lambda"), "'lambda', a name"),
    "a name of emitted code": (lambda d: d["nodes"].__setitem__(ANGLE, "math"), "'math', a name"),
    "another name for a number": (lambda d: d["nodes"].__setitem__(ANGLE, "_number3"), "'_number3', a name"),
    "an input more": (lambda d: d["nodes"].append("another"), "no entry of an argument"),
    "an entry outside": (lambda d: d["functions"]["dynamics"]["outputs"][0][2].__setitem__(0, LAST), f"of {LAST}"),
    "an entry too few": (lambda d: d["functions"]["dynamics"]["outputs"][0][2].pop(), "has 1 entries"),
    "a huge shape": (lambda d: d["functions"]["dynamics"]["outputs"][0].__setitem__(1, [10**9, 10**9]), "entries"),
    "a state as a parameter": (lambda d: d["arguments"]["theta"].append(ANGLE), "has a place already"),
    "an argument that is a number": (lambda d: d["arguments"]["theta"].append(0), "not an input"),
    "an argument with another name": (lambda d: d["arguments"].update(y=[]), "no argument 'y'"),
    "a function with another name": (lambda d: d["functions"].update(f={}), "no function 'f'"),
    "an output with another name": (lambda d: d["functions"]["dynamics"]["outputs"][0].__setitem__(0, "y"), "xdot"),
    "an input that is not taken": (
        lambda d: d["functions"]["optimal_input"]["outputs"][0][2].__setitem__(0, ANGLE),
        "optimal_input reads what it does not take",
    ),
    "segments of other points": (lambda d: d["segments"].append([0, 9]), r"segments joins \[0, 9\]"),
    "points without segments": (lambda d: d.pop("segments"), "a drawing has points and segments"),
    "an entry of the file": (lambda d: d.update(code="print(1)"), "its entries are"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained_where_it_is(mistake: str) -> None:
    change, words = MISTAKES[mistake]
    with pytest.raises(ValueError, match=words):
        stored.read(changed(change))


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{}", b"\xff", b"[" * 100_000, b'{"nodes": ' + b"9" * 5000])
def test_another_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        stored.read(content)


def rendered(made: Program) -> None:
    """The program in every language, none of which a name or a number may break."""
    for text in (numba.emit(made, METADATA)["kernels.py"].decode(), torch.source(made, METADATA)):
        compile(text, "made", "exec")
    assert js.with_drawing(made)[0]
    assert c.emit(made, METADATA) if made.functions else True
    for function in made.functions:
        assert "define void" in translate.llvm_code(made.graph, function, "double", shared=True)
        casadi.compiled(made.graph, function, METADATA.name)
        if function.name == "dynamics":
            assert mathml.equations(made, METADATA)
    with np.errstate(all="ignore"):
        assert Drawing(made, METADATA).segments(np.ones((2, 2))).shape[0] == 2


@given(mistakes)
@pytest.mark.slow
def test_a_file_of_other_types_is_refused_or_rendered(mistake: Mistake) -> None:
    try:
        made = stored.read(json.dumps(mistaken(json.loads(PENDULUM), mistake)).encode())
    except ValueError:
        return
    if made.sizes == stored.read(PENDULUM).sizes:
        rendered(made)


@given(st.lists(damages, min_size=1, max_size=4))
def test_a_damaged_file_is_refused_or_rendered(several: list[Damage]) -> None:
    content = PENDULUM
    for damage in several:
        content = damaged(content or b"\0", damage)
    try:
        made = stored.read(content)
    except ValueError:
        return
    if made.sizes == stored.read(PENDULUM).sizes:
        rendered(made)


@pytest.mark.slow
def test_a_chain_as_long_as_the_file_is_no_recursion() -> None:
    def change(data: dict[str, Any]) -> None:
        for kind in ("solution", "negative"):
            for _ in range(3000):
                last = len(data["nodes"]) - 1
                data["nodes"].append([kind, last, 0] if kind == "solution" else [kind, last])
        data["functions"]["optimal_input"]["outputs"][0][2] = [len(data["nodes"]) - 1]

    def of_w(data: dict[str, Any]) -> None:
        data["nodes"].append(["exp", data["arguments"]["w"][0]])
        change(data)

    rendered(stored.read(changed(of_w)))
