"""JavaScript modules, by V8, compared with 50-digit values and with the LLVM kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import js
from modelgen.cli import main
from modelgen.derivation import lowering
from modelgen.program.differentiate import program
from modelgen.program.functions import Argument, Function, Output, Program
from modelgen.program.graph import Graph
from tests.modelgen.backends.test_c import ARGUMENTS, OUTPUTS, beside
from tests.modelgen.support import mechanisms

racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")

CALL = """
(name, rows, sizes) => rows.map((row) => {
  const out = sizes.map((size) => new Float64Array(size));
  robot[name](...row, ...out);
  return out.flatMap((each) => [...each]);
})
"""


def evaluated(source: str, names: list[str], function: str, at: dict[str, np.ndarray], sizes: list[int]) -> np.ndarray:
    """All outputs of a function side by side, (N, entries)."""
    engine = racer.MiniRacer()
    engine.eval(f"const robot = (() => {{ {source}; return {{ {', '.join(names)} }}; }})();")
    arguments = [at[name] for name in ARGUMENTS.get(function, ("x", "theta"))]
    rows = [[each[i].tolist() for each in arguments] for i in range(len(arguments[0]))]
    text = engine.eval(f"JSON.stringify(({CALL})({json.dumps(function)}, {json.dumps(rows)}, {sizes}))")
    return np.array(json.loads(text))


def test_every_operation_beside_exact_values(exact: Callable[[str], SimpleNamespace]) -> None:
    equations = mechanisms.dense()  # every function a model may use, and symbols named like another language's words
    files = js.emit(program(lowering.mechanism(equations)), mechanisms.metadata("dense", equations))
    module = files["dense.mjs"].decode()
    source, _, names = module.replace("export const", "const").rpartition("export {")
    at = exact("dense")
    for function, outputs in OUTPUTS.items():
        expected = [at.values[name] for name in outputs]
        sizes = [int(np.prod(value.shape[1:])) for value in expected]
        found = evaluated(source, names.rstrip(" };\n").split(", "), function, vars(at), sizes)
        beside(found, expected, 1e-11)


def test_an_artifacts_functions_and_drawing_beside_llvm_and_numpy() -> None:
    robot = modelgen.load("double_pendulum", directory=artifact.SHIPPED)
    random = np.random.default_rng(5)
    lower, upper = np.asarray(robot.parameter_bounds).T
    at = {
        "x": random.uniform(-1, 1, (5, len(robot.state_limits))) * robot.state_limits,
        "u": random.uniform(-1, 1, (5, len(robot.input_limits))) * robot.input_limits,
        "theta": random.uniform(lower, upper, (5, len(robot.parameter_names))),
    }
    source, names = robot.javascript()
    beside(evaluated(source, names, "dynamics", at, [4]), [robot.dynamics(**at)], 1e-11)
    points = evaluated(source, names, "points", at, [6]).reshape(5, 3, 2)
    np.testing.assert_allclose(points[:, [[0, 1], [1, 2]]], robot.drawing.segments(at["x"], at["theta"]), atol=1e-14)


def test_words_of_javascript_are_names_too() -> None:
    graph = Graph()
    x = Argument("x", (graph.input("var"), graph.input("Math")))
    q = Output("q", (), (graph.mul(graph.call("sin", x.entries[0]), x.entries[1]),))
    source = js.functions(Program(graph, (Function("state_cost", (x,), (q,)),)))
    engine = racer.MiniRacer()
    value = engine.eval(f"{source}; const a = [0]; state_cost([0.5, 2], a); a[0]")
    assert value == pytest.approx(2 * np.sin(0.5), rel=1e-15)


def test_the_command_writes_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "pendulum", "--js", str(tmp_path)]) == 0
    assert "pendulum.mjs" in capsys.readouterr().out
    assert "export { affine_dynamics, dynamics," in (tmp_path / "pendulum.mjs").read_text()
