"""Kernels for a level of x86-64: they run, use no instruction beyond it, and give what this processor's own give."""

from __future__ import annotations

import math
import os
import platform
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import modelgen
from modelgen.backends.llvm import CPU, LEVELS, machine, target
from modelgen.backends.llvm.elementary import HALF_PI, sine_and_cosine
from modelgen.errors import ModelError
from tests.modelgen.support.quantities import Exact

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels of x86-64")

RUN = """
import sys
import numpy as np
import modelgen
results = {}
for dtype in ("float64", "float32"):
    robot = modelgen.load("dense", dtype=dtype, directory=sys.argv[1], parallel=False)
    arrays = dict(np.load(sys.argv[2]))
    x, u, costate, theta = (arrays[name].astype(dtype) for name in ("x", "u", "costate", "theta"))
    found = [robot.dynamics(x, u, theta), *robot.hamiltonian_gradient(x, u, costate, theta)]
    found += [*robot.state_cost(x, theta), *robot.jacobians(x, theta)]
    results |= {f"{dtype} {k}": each for k, each in enumerate(found)}
np.savez(sys.argv[3], **results)
"""


def runs_here(level: str) -> bool:
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(CPU, level)
            target()
    except ModelError:
        return False
    return True


@pytest.fixture(scope="module")
def results(
    artifacts: Path, exact: Exact, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, np.ndarray]]:
    """results(level): every output of `dense`, both number formats, from a process of its own."""
    folder = tmp_path_factory.mktemp("levels")
    at = exact("dense")
    np.savez(folder / "inputs.npz", x=at.x, u=at.u, costate=at.costate, theta=at.theta)

    def of(level: str) -> dict[str, np.ndarray]:
        path = folder / f"{level}.npz"
        if not path.exists():
            words = [sys.executable, "-c", RUN, str(artifacts), str(folder / "inputs.npz"), str(path)]
            subprocess.run(words, env={**os.environ, CPU: level}, check=True)
        return dict(np.load(path))

    return of


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.slow
def test_a_level_gives_what_this_processor_gives(results: Callable[[str], dict[str, np.ndarray]], level: str) -> None:
    if not runs_here(level):
        pytest.skip(f"this processor is not of the level {level}")
    found, expected = results(level), results("native")
    for name, value in expected.items():
        limit = (1e-12 if "float64" in name else 1e-4) * np.abs(value).max()
        np.testing.assert_allclose(found[name], value, rtol=0, atol=limit, err_msg=name)


def _assembly(level: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(CPU, level)
    kernels: Any = modelgen.load("furuta")._kernels
    text: str = machine(target()).emit_assembly(llvm.parse_assembly(kernels.llvm_code("hamiltonian_gradient", True)))
    return text


@pytest.mark.parametrize(
    ("level", "widest", "fused"), [("x86-64", "xmm", False), ("x86-64-v2", "xmm", False), ("x86-64-v3", "ymm", True)]
)
def test_no_instruction_is_beyond_the_level(
    level: str, widest: str, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not runs_here(level):
        pytest.skip(f"this processor is not of the level {level}")
    text = _assembly(level, monkeypatch)
    registers = set(re.findall(r"%([xyz]mm)\d", text))
    assert max(registers) == widest
    assert ("vfmadd" in text or "vfnmadd" in text) == fused


def test_without_fused_operations_a_kernel_computes_what_plain_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: each operation of the emitted module, rounded by itself, with the kernel's own sine and cosine."""
    monkeypatch.setenv(CPU, "x86-64")
    robot = modelgen.load("furuta", parallel=False)
    (path,) = robot.folder.glob("kernels_*.py")
    emitted = runpy.run_path(str(path))
    parts = HALF_PI["double"]
    stand_in = SimpleNamespace(
        **{name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
        | {"sin": lambda a: sine_and_cosine(a, *parts)[0], "cos": lambda a: sine_and_cosine(a, *parts)[1]}
    )
    random = np.random.default_rng(0)
    x, u, costate = (random.uniform(-2, 2, (40, size)) for size in (4, 1, 4))
    found = robot.hamiltonian_gradient(x, u, costate)
    function = emitted["hamiltonian_gradient"]
    function.__globals__["math"] = stand_in
    for k in range(40):
        expected = [np.empty(size) for size in (4, 1, len(robot.parameter_names))]
        sample = [row.tolist() for row in (x[k], u[k], costate[k], robot.nominal_parameters)]
        function(*sample, *expected)
        for result, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result[k], right)


def test_an_unknown_level_gets_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "x86-64-v33")
    with pytest.raises(ModelError, match=r"MODELGEN_CPU .*'x86-64-v33'.*`x86-64-v3`.*native"):
        target()


def test_a_level_beyond_this_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "x86-64-v3")
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {"fma": False})
    with pytest.raises(ModelError, match=r"avx2.*fma"):
        target()
