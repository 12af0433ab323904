"""What exported policies do with what they are told: ranges, costs of a call, pages, FMUs and observers."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.cli import main
from solver.errors import SolverError
from solver.export.c_export import emit_observer
from solver.export.c_folder import kernels
from solver.export.distilled import board
from solver.export.distilled.cost import with_tell
from solver.export.distilled.network import SmallNetwork, argument_scale, controller, emit
from solver.export.distilled.regression import target_gain
from solver.export.fmu_export import _variables as fmu_variables
from solver.export.js_export import emit as emit_js
from solver.game.policies import Hold
from solver.problem import Problem
from solver.problem.context import Given
from solver.training.solution import load_solution
from solver.value.told import told_by
from tests.modelgen.support.fmus import Instance, complaints
from tests.solver.export.test_c_export import COMPILER, STRICT, needs_compiler
from tests.solver.export.test_families import CALL, script_of
from tests.solver.export.test_page_export import LOOP
from tests.solver.small_trainings import untrained_family

pytestmark = pytest.mark.slow  # a training of a family

MAIN = """
#include <stdio.h>
#include "pendulum_policy.h"
int main(void) {
    const pendulum_context nominal = PENDULUM_CONTEXT_NOMINAL;
    const pendulum_context heavy = {.mass = PENDULUM_MASS_UPPER, .length = 1}, beyond = {.mass = 9, .length = 1};
    const pendulum_context unknown = {.mass = 0.0 / 0.0 * 1, .length = 1};
    const pendulum_context *all[] = {&nominal, &heavy, &beyond, &unknown};
    for (int i = 0; i < 4; i++) {
        pendulum_told told;
        double u, x[] = {3, 0.5};
        const int inside = pendulum_tell(all[i], &told);
        pendulum_policy(&told, x, &u);
        printf("%d %d %.17g %.17g\\n", inside, PENDULUM_CONTEXT_IN_RANGE(*all[i]), told.parameters[0], u);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def pendulum(trained_family: Callable[[str], Path]) -> Path:
    return trained_family("pendulum")


@pytest.mark.skipif(bool(board.missing_tools()), reason=f"not installed: {board.missing_tools()}")
@pytest.mark.parametrize("width", [8, 32])
def test_the_stated_cost_bounds_a_call_that_is_told_a_context(pendulum: Path, tmp_path: Path, width: int) -> None:
    """And is no more than 1.5 times of it. The inputs that the board computes are Torch's."""
    solution = load_solution(pendulum, contexts=True)
    problem, scale = solution.problem, argument_scale(solution.problem)
    gain = target_gain(solution, Hold(1.0).policy(problem, solution.value), scale)
    network = SmallNetwork(solution.ensemble.features, scale, width, torch.Generator().manual_seed(3), gain)
    files = {file: text.encode() for file, text in emit(problem, network, "pendulum", ["facts"]).items()}
    for file, content in {**files, **kernels(problem)}.items():
        (tmp_path / file).write_bytes(content)
    rows = problem.sample_domain(100, torch.Generator().manual_seed(1))
    counts = board.measured(problem, tmp_path, board.shown(problem, rows).numpy(), board.told_policy(problem))
    largest, stated = counts.largest, with_tell(problem, width)
    assert stated.instructions / 1.5 < largest.instructions <= stated.instructions
    assert stated.flash / 1.5 < largest.flash <= stated.flash
    assert largest.stack <= stated.stack
    wanted = controller(problem, network)(rows)[0].numpy()
    np.testing.assert_allclose(counts.u, wanted, atol=1e-3 * float(problem.input_limits[0]))


@needs_compiler
def test_a_context_in_c_is_held_within_its_ranges(pendulum: Path, tmp_path: Path) -> None:
    """It says so, and an entry that is not a number counts as nominal."""
    assert main(["export", str(pendulum), "--c", str(tmp_path)]) == 0
    (tmp_path / "main.c").write_text(MAIN)
    sources = [str(tmp_path / file) for file in ("main.c", "pendulum.c", "pendulum_policy.c")]
    subprocess.run([str(COMPILER), *STRICT, *sources, "-lm", "-o", str(tmp_path / "main")], check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    nominal, heavy, beyond, unknown = ([float(word) for word in line.split()] for line in said.splitlines())
    assert nominal[:3] == [1, 1, 1.0]
    assert heavy[:3] == [1, 1, 1.5]
    assert beyond == [0, 0, 1.5, heavy[3]]
    assert unknown == [0, 0, 1.0, nominal[3]]


def test_a_context_in_javascript_is_held_within_its_ranges(pendulum: Path, tmp_path: Path) -> None:
    script = script_of(pendulum, tmp_path)
    script.eval(CALL)
    assert (
        script.eval("[tell(), tell({ mass: 1.5 }), tell({ mass: 9 }), tell({ mass: NaN })].join()")
        == "true,true,false,false"
    )
    first, second = (script.eval(f"call([3, 0.5], {{ mass: {mass} }})") for mass in (1.5, 9))
    assert first == second
    said = script.eval("(() => { try { tell({ mas: 1.5 }); } catch (error) { return error.message; } })()")
    assert said == "the policy cannot be told mas: it is told mass, length"


def test_a_family_without_the_nominal_robot_has_no_policy_that_is_told_nothing() -> None:
    """In JavaScript and JAX as in Torch; in C `NAME_tell` returns 0, and an FMU starts with the nearest robot."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution, script = untrained_family(Given("mass", 1.1, 1.4), Given("lean", -0.5, 0.5)), racer.MiniRacer()
    expected = solution.controller()(solution.problem.told(x := torch.tensor([[0.2, 0.1]]), torch.tensor([1.2, 0, 0])))
    with pytest.raises(SolverError, match=r"told mass = 1, .* trained for 1.1 to 1.4"):
        solution.told_that({})
    script.eval(re.sub(r"^export (\{.*)?", "", emit_js(solution, "untrained"), flags=re.MULTILINE) + CALL)
    called = (
        "(() => { try { return String(NAME(x, new Float64Array(2))); } catch (error) { return error.message; } })()"
    )
    script.eval("const x = Float64Array.from([0.2, 0.1])")
    for name in ("policy", "value"):
        assert "a nominal value is outside the range" in script.eval(called.replace("NAME", name))
    assert json.loads(script.eval("call([0.2, 0.1], { mass: 1.2 })"))[0] == pytest.approx(float(expected[0]), abs=1e-3)
    start = {one.name: one.start for one in fmu_variables(solution, 2, told_by(solution.problem, solution.ensemble))}
    assert start["mass"] == 1.1
    pytest.importorskip("jax")
    from solver.jax.solution import make

    functions = make(solution)
    with pytest.raises(SolverError, match="nominal mass is outside the range of the training; give it"):
        functions.policy(x.numpy())
    np.testing.assert_allclose(functions.policy(x.numpy(), mass=1.2), expected[0], atol=1e-3)


def test_a_page_tells_the_policy_or_not(pendulum: Path) -> None:
    """Its rollouts are those of a page whose run was trained for one robot: the one that it is told."""
    from solver.export.js_export import numbers
    from solver.export.page_export import emit, engine

    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution, ends = load_solution(pendulum, contexts=True), []
    loop = LOOP.replace("seed: 1 }", "seed: 1, knows: KNOWS }")
    for run, knows in ((solution, "true"), (load_solution(pendulum, told={"mass": 1.3}), "true"), (solution, "false")):
        script = racer.MiniRacer()
        script.eval(f"{engine(run.problem)}\nconst run = {json.dumps(numbers(run))};\n{loop.replace('KNOWS', knows)}")
        ends.append(json.loads(script.eval("roll([3, 0.5], [1.3, 1], 60, 0)"))["states"][-1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)
    assert np.abs(np.subtract(ends[0], ends[2])).max() > 1e-3
    assert '"knows"' in emit([solution])


@needs_compiler
@pytest.mark.parametrize(("version", "words"), [(2, ("--observer",)), (3, ())])
def test_in_an_fmu(pendulum: Path, version: int, words: tuple[str, ...], tmp_path: Path) -> None:
    """A tunable parameter, changed between two control periods; the observer knows it too, as Torch's does."""
    pytest.importorskip("fmpy", reason="FMPy is not installed")
    path = tmp_path / "controller.fmu"
    assert main(["export", str(pendulum), "--fmu", str(path), "--fmi", str(version), *words]) == 0
    assert complaints(path) == []
    fmu, solution = Instance(path, "CoSimulation", tmp_path / "unpacked"), load_solution(pendulum, contexts=True)
    period, problem = solution.problem.control_step, solution.problem
    for mass in (0.6, 1.4):
        observed = solver.load_controller(pendulum, told={"mass": mass}) if words else None
        for k in range(4):
            angle = 2.9 + 0.02 * k
            fmu.set(angle=angle, mass=mass, **({} if words else {"angle_rate": 0.3}))
            (u,) = fmu.get("torque")
            row = problem.told(torch.tensor([[angle, 0.3]]), torch.tensor([mass, 1.0]))
            expected = solution.controller()(row)[0].item() if observed is None else observed([angle])[0]
            if observed is None or mass == 0.6:
                assert u == pytest.approx(expected, abs=0.02)
            fmu.step((k + (4 if mass > 1 else 0)) * period, period)
    fmu.close()


@needs_compiler
def test_an_observer_in_c_estimates_what_a_family_is_told(pendulum: Path, tmp_path: Path, capsys: Any) -> None:
    """It compiles without a warning; the estimates go into the context, and only beyond its ranges shift the input."""
    words = ["export", str(pendulum), "--c", str(tmp_path), "--observer", "--estimate"]
    assert main([*words, "told"]) == 0
    for file in ("pendulum_observer.c", "pendulum_policy.c"):
        subprocess.run([str(COMPILER), *STRICT, "-c", str(tmp_path / file), "-o", str(tmp_path / "out.o")], check=True)
    assert "pendulum_observer_know" in (tmp_path / "pendulum_observer.h").read_text()
    assert "shift(" in (tmp_path / "pendulum_observer.c").read_text()
    told = Problem(solver.load(pendulum).policy.robot, given=(Given("mass", 0.5, 2.0),))
    assert "shift(" not in emit_observer(told, ["mass"])["pendulum_observer.c"]
    capsys.readouterr()
