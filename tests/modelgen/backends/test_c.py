"""C99 sources: compiled without a warning, and beside the LLVM kernels and 50-digit values."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import casadi
import numpy as np
import pytest

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import c
from modelgen.builder import export
from modelgen.cli import main
from modelgen.derivation import lowering
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.program.differentiate import program
from tests.modelgen.support import mechanisms

COMPILER = shutil.which("gcc") or shutil.which("cc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O3"]
OUTPUTS = {
    "affine_dynamics": ("a", "B"),
    "dynamics": ("xdot",),
    "jacobians": ("a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"),
    "hamiltonian_gradient": ("dH_dx", "dH_du", "dH_dtheta"),
    "state_cost": ("q", "dq_dx"),
    "action_cost": ("g", "dg_du", "d2g_du2"),
    "optimal_input": ("u_optimal",),
    "optimal_input_cost": ("g_optimal",),
}
ARGUMENTS = {
    "dynamics": ("x", "u", "theta"),
    "hamiltonian_gradient": ("x", "u", "costate", "theta"),
    "action_cost": ("u",),
    "optimal_input": ("w",),
    "optimal_input_cost": ("w",),
}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compiled(files: Mapping[str, bytes], name: str, folder: Path, real: str = "double") -> Path:
    """The driver's path."""
    for file, content in files.items():
        (folder / file).write_bytes(content)
    driver = folder / f"driver_{real}"
    sources = [str(folder / f"{name}.c"), str(folder / f"{name}_driver.c")]
    subprocess.run(
        [str(COMPILER), *STRICT, f"-D{name.upper()}_REAL={real}", *sources, "-lm", "-o", str(driver)], check=True
    )
    return driver


def evaluated(driver: Path, function: str, at: Mapping[str, np.ndarray]) -> np.ndarray:
    """All outputs of a function side by side, (N, entries)."""
    rows = np.hstack([at[name] for name in ARGUMENTS.get(function, ("x", "theta"))])
    text = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
    result = subprocess.run([driver, function], input=text, capture_output=True, text=True, check=True)
    return np.array([line.split() for line in result.stdout.splitlines()], float)


def beside(found: np.ndarray, expected: Sequence[np.ndarray], limit: float) -> None:
    """Every output beside its largest entry."""
    columns = [value.reshape(len(found), -1) for value in expected]
    parts = np.split(found, np.cumsum([value.shape[1] for value in columns])[:-1], axis=1)
    for part, value in zip(parts, columns, strict=True):
        assert part.shape == value.shape
        assert np.abs(part - value).max() <= limit * (np.abs(value).max() or 1.0)


@pytest.mark.parametrize(("real", "limit"), [("double", 1e-11), ("float", 2e-5)])
@pytest.mark.slow
def test_every_operation_beside_exact_values(
    real: str, limit: float, exact: Callable[[str], SimpleNamespace], tmp_path: Path
) -> None:
    equations = mechanisms.dense()  # every function a model may use, and symbols named like C's own
    files = c.emit(program(lowering.mechanism(equations)), mechanisms.metadata("dense", equations))
    driver = compiled(files, "dense", tmp_path, real)
    at = exact("dense")
    for function, outputs in OUTPUTS.items():
        beside(evaluated(driver, function, vars(at)), [at.values[name] for name in outputs], limit)


@pytest.mark.parametrize("name", ["pendulum", "cartpole_quanser", "double_pendulum"])
@pytest.mark.slow
def test_shipped_robots_beside_llvm(name: str, tmp_path: Path) -> None:
    driver = compiled(export(load(str(SHIPPED / f"{name}.py")), "c"), name, tmp_path)
    robot = modelgen.load(name, directory=artifact.SHIPPED)
    random = np.random.default_rng(5)
    lower, upper = np.asarray(robot.parameter_bounds).T
    at = {
        "x": random.uniform(-1, 1, (20, len(robot.state_limits))) * robot.state_limits,
        "u": random.uniform(-1, 1, (20, len(robot.input_limits))) * robot.input_limits,
        "theta": random.uniform(lower, upper, (20, len(robot.parameter_names))),
    }
    at["costate"], at["w"] = random.normal(size=at["x"].shape), random.normal(size=at["u"].shape)
    for function in OUTPUTS:
        results = getattr(robot, function)(**{key: at[key] for key in ARGUMENTS.get(function, ("x", "theta"))})
        results = results if isinstance(results, tuple) else (results,)
        beside(evaluated(driver, function, at), results, 1e-11)


@pytest.mark.slow
def test_header_serves_cpp_and_holds_the_nominal_parameters(tmp_path: Path) -> None:
    files = export(load(str(SHIPPED / "pendulum.py")), "c")
    compiled(files, "pendulum", tmp_path)
    program = '#include "pendulum.h"\n#include <cstdio>\nint main() { double x[2] = {0.5, 0}, u[1] = {1}, d[2];\n'
    program += 'pendulum_dynamics(x, u, pendulum_nominal, d); std::printf("%.17g", d[1]); }\n'
    (tmp_path / "main.cpp").write_text(program)
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    subprocess.run([str(COMPILER), "-c", "pendulum.c"], cwd=tmp_path, check=True)
    subprocess.run(["g++", "main.cpp", "pendulum.o", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert float(found) == pytest.approx(1.5 * 9.81 * np.sin(0.5) + 3, rel=1e-14)


@pytest.mark.slow
def test_names_of_c_stay_free(tmp_path: Path) -> None:
    """A model may call its parameters what C calls something else."""
    names = ("int", "double", "I", "cos", "sin", "register", "R", "NULL", "in", "real", "HUGE_VALF", "FP_NAN", "M_PI")
    lines = ["from sympy import sin", "from modelgen import LogCos, Robot", 'robot = Robot("words")']
    lines += ['angle = robot.revolute("angle", continuous=True, rate_limit=5)', 'u = robot.input("main", 5, "N m")']
    lines += [
        f'p{i} = robot.parameter("{name}", 1.0, "1", tolerance=0.5)' for i, name in enumerate(names) if name != "in"
    ]
    inertia = " + ".join(f"p{i}" for i, name in enumerate(names) if name != "in")
    lines += [f"robot.kinetic_energy(({inertia}) * angle.rate**2 / 2)", "robot.apply(angle, u)"]
    lines += ["robot.task(state_cost=sin(angle / 2) ** 2, action_cost=LogCos(1.0), start={}, horizon=5,"]
    lines += ["           weight_at_horizon=0.7, control_rate=125)"]
    (tmp_path / "words.py").write_text("\n".join(lines))
    driver = compiled(export(load(str(tmp_path / "words.py")), "c"), "words", tmp_path)
    row = {"x": np.array([[0.3, 2]]), "u": np.array([[4.5]]), "theta": np.full((1, 12), 0.75)}
    np.testing.assert_allclose(evaluated(driver, "dynamics", row), [[2, 0.5]])
    assert subprocess.run(["gcc", "-c", "words.c"], cwd=tmp_path, check=False).returncode == 0  # with GNU's words


def test_driver_says_what_it_wants(tmp_path: Path) -> None:
    driver = compiled(export(load(str(SHIPPED / "pendulum.py")), "c"), "pendulum", tmp_path)
    wrong = subprocess.run([driver, "dynamic"], input="", capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "dynamics: x u theta" in wrong.stderr
    short = subprocess.run([driver, "dynamics"], input="1 2 3", capture_output=True, text=True, check=False)
    assert short.returncode == 1
    assert "a row of dynamics has 5 numbers" in short.stderr


class TestExport:
    def test_writes_what_was_asked_for(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["export", "pendulum", "--c", str(tmp_path / "c"), "--casadi", str(tmp_path / "casadi")]) == 0
        assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
            "pendulum.c",
            "pendulum.h",
            "pendulum_driver.c",
        ]
        assert len(list((tmp_path / "casadi").glob("pendulum_*.casadi"))) == 8
        assert "pendulum.c  " in capsys.readouterr().out

    @pytest.mark.slow
    def test_twice_gives_the_same_bytes(self) -> None:
        robot = load(str(SHIPPED / "furuta.py"))
        assert export(robot, "c") == export(robot, "c")

    @pytest.mark.slow
    def test_robots_whose_names_begin_functions_names_share_a_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        text = (SHIPPED / "pendulum.py").read_text()
        for name in ("d", "dyn", "my__robot_"):
            (tmp_path / f"{name}.py").write_text(text.replace('Robot("pendulum"', f'Robot("{name}"'))
            assert main(["export", f"{name}.py", "--casadi", "both", "--c", "both"]) == 0
        for name in ("d", "dyn", "my__robot_"):
            function = casadi.Function.load(str(tmp_path / "both" / f"{name}_dynamics.casadi"))
            assert function.name() == {"my__robot_": "my_robot_dynamics"}.get(name, f"{name}_dynamics")
            assert (tmp_path / "both" / f"{name}.h").is_file()
        assert main(["build", "my__robot_.py"]) == 0

    def test_a_header_of_c_is_not_hidden(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text = (SHIPPED / "pendulum.py").read_text()
        (tmp_path / "math.py").write_text(text.replace('Robot("pendulum"', 'Robot("math"'))
        assert main(["export", str(tmp_path / "math.py"), "--c", str(tmp_path / "c")]) == 2
        assert "math.h" in capsys.readouterr().err
        assert not (tmp_path / "c").exists()

    def test_export_without_a_usable_folder_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["export", "pendulum"]) == 2
        assert "--c DIR or --casadi DIR" in capsys.readouterr().err
        (tmp_path / "file").write_text("")
        assert main(["export", "pendulum", "--c", str(tmp_path / "file")]) == 2
        assert "a part of its path is a file. Name another folder" in capsys.readouterr().err
