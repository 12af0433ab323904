"""The folder of `solver export --c`: complete by itself, without a warning, and with a replay that notices changes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import solver
from solver.cli import main
from solver.training.solution import load_solution
from tests.test_docs import ROOT, blocks_of

pytestmark = pytest.mark.slow

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
STRICT = ["-std=c99", "-pedantic", "-Werror", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Wfloat-equal"]

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed")


@pytest.fixture(scope="module", params=["planar_arm2", "satellite"])
def folder(
    request: pytest.FixtureRequest, begun: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A robot with two inputs and its observer, and one with a rotation."""
    name, place = request.param, tmp_path_factory.mktemp(request.param)
    observer = name != "satellite"
    run = f"{name}-rfvi" if observer else str(begun(name))
    assert main(["export", run, "--c", str(place / name), *(["--observer"] if observer else [])]) == 0
    return Path(place / name)


def replay(folder: Path) -> int:
    """Exit code of the replay in double, compiled from what is in the folder only."""
    name = folder.name
    sources = [f"{name}{end}.c" for end in ("", "_policy", "_policy_replay")]
    subprocess.run(["cc", "-std=c99", *sources, "-lm", "-o", "replay"], cwd=folder, check=True)
    return subprocess.run([folder / "replay"], check=False).returncode


@needs_compiler
def test_nothing_is_warned_of_and_the_replay_agrees(folder: Path, tmp_path: Path) -> None:
    capital, sources = folder.name.upper(), sorted(folder.glob("*.c"))
    replayed = [f"{folder.name}{end}.o" for end in ("", "_policy", "_policy_replay")]
    for compiler, real in zip(COMPILERS, ("float", "double"), strict=False):
        words = [f"-D{capital}_REAL={real}", f"-D{capital}_RATES", f"-D{capital}_LONGEST_DELAY=2", "-O2", "-c"]
        subprocess.run([compiler, *STRICT, *words, *sources], cwd=tmp_path, check=True)
        subprocess.run([compiler, *replayed, "-lm", "-o", "replay"], cwd=tmp_path, check=True)
        subprocess.run([tmp_path / "replay"], check=True)


@needs_compiler
def test_the_replay_notices_another_number(tmp_path: Path) -> None:
    """Of the robot's kernels, of the network and of the watchdog."""
    folder = tmp_path / "pendulum"
    assert main(["export", "pendulum-rfvi", "--c", str(folder)]) == 0
    changes = {
        "pendulum.c": ("u_optimal[0] = ", "u_optimal[0] = R(0.9) * "),
        "pendulum_policy.c": ("REAL(tanh)(out[l][j])", "REAL(tanh)((real)1.1 * out[l][j])"),
        "pendulum_policy_replay.c": ("row < 28", "row < 29"),
    }
    for file, (old, new) in changes.items():
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        assert replay(folder) > 0
        (folder / file).write_text(text)
    assert replay(folder) == 0


MACROS = """
#include <stdio.h>
#include "planar_arm2_policy.h"
#define P PLANAR_ARM2_
int main(void) {
    printf("%d %d %d %.17g %.17g ", PLANAR_ARM2_STATES, PLANAR_ARM2_INPUTS, PLANAR_ARM2_PARAMETERS,
           (double)PLANAR_ARM2_CONTROL_RATE, (double)PLANAR_ARM2_CONTROL_PERIOD);
    printf("%d %d %.17g %.17g ", PLANAR_ARM2_STATE_ELBOW_RATE, PLANAR_ARM2_INPUT_ELBOW_TORQUE,
           (double)PLANAR_ARM2_LIMIT_ELBOW_RATE, (double)PLANAR_ARM2_UPPER_ELBOW_TORQUE);
    printf("%s %s %d\\n", PLANAR_ARM2_UNIT_ELBOW_RATE, PLANAR_ARM2_POLICY_MODEL, PLANAR_ARM2_IN_DOMAIN);
    return 0;
}
"""


@needs_compiler
def test_macros_hold_the_metadata(tmp_path: Path) -> None:
    assert main(["export", "planar_arm2-rfvi", "--c", str(tmp_path)]) == 0
    robot = load_solution("planar_arm2-rfvi").problem.robot
    data = robot.metadata
    (tmp_path / "macros.c").write_text(MACROS)
    subprocess.run(["cc", "-std=c99", "macros.c", "-o", "macros"], cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "macros"], check=True, capture_output=True, text=True).stdout.split()
    rate, torque = robot.state_names.index("elbow_rate"), robot.input_names.index("elbow_torque")
    counts = [len(data.states), len(data.inputs), len(data.parameters)]
    numbers = [*counts, data.task.control_rate, 1 / data.task.control_rate]
    numbers += [rate, torque, data.states[rate].limit, data.inputs[torque].upper]
    np.testing.assert_array_equal([float(word) for word in found[:9]], numbers)
    assert found[9:] == ["rad/s", robot.model_hash, "1"]


@needs_compiler
@needs_cmake
def test_cmake_builds_and_replays(folder: Path, tmp_path: Path) -> None:
    chosen = ["-DSATELLITE_REAL=double"] if folder.name == "satellite" else []
    subprocess.run(["cmake", "-S", folder, "-B", tmp_path, f"-DCMAKE_C_FLAGS={' '.join(STRICT)}", *chosen], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    subprocess.run(["ctest", "--output-on-failure"], cwd=tmp_path, check=True)


@needs_compiler
@needs_cmake
def test_cmake_takes_the_folder_into_a_project_of_the_user(tmp_path: Path) -> None:
    assert main(["export", "pendulum-rfvi", "--c", str(tmp_path / "pendulum")]) == 0
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.15)\nproject(robot C)\nadd_subdirectory(pendulum)\n"
        "add_executable(robot main.c)\ntarget_link_libraries(robot pendulum_policy)\n"
    )
    (tmp_path / "main.c").write_text(
        '#include "pendulum_policy.h"\nint main(void) {'
        "pendulum_real x[PENDULUM_STATES] = {0, 9}, u[PENDULUM_INPUTS];\n"
        "return pendulum_policy(x, u) == PENDULUM_OUT_OF_DOMAIN ? 7 : 0; }\n"
    )
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build"], check=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True)
    assert subprocess.run([tmp_path / "build" / "robot"], check=False).returncode == 7


def test_a_source_of_the_user_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pendulum.c").write_text("int main(void) { return 0; }\n")
    assert main(["export", "pendulum-rfvi", "--c", str(tmp_path)]) == 2
    assert f"{tmp_path / 'pendulum.c'} is not a file of `solver export`" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pendulum.c"]


def test_files_of_the_user_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("# My robot\n")
    for _ in range(2):
        assert main(["export", "pendulum-rfvi", "--c", str(tmp_path)]) == 0
        said = capsys.readouterr()
        assert f"{tmp_path / 'README.md'} is not a file of `solver export` and stays as it is" in said.err
        assert "CMakeLists.txt" not in said.err
        assert str(tmp_path / "README.md") not in said.out.split()
    assert (tmp_path / "README.md").read_text() == "# My robot\n"
    assert "pendulum_policy.c" in (tmp_path / "CMakeLists.txt").read_text()


@needs_compiler
def test_the_ctypes_of_the_page_calls_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (text for text in blocks_of("how-to/export-to-c.md", "python") if "ctypes" in text)
    monkeypatch.chdir(tmp_path)
    assert main(["export", "furuta-rfvi", "--c", "firmware"]) == 0
    names: dict[str, object] = {}
    exec(code, names)
    expected = solver.load("furuta-rfvi").policy([0, 3.1, 0.1, 2])
    np.testing.assert_allclose(np.asarray(names["u"]), expected, atol=1e-3)
    assert names["inside"] == 1


@needs_compiler
def test_the_c_of_the_page_compiles(tmp_path: Path) -> None:
    """The loop of a timer, with the drive and the sensors as functions of the user."""
    (code,) = (text for text in blocks_of("how-to/export-to-c.md", "c") if "clock_nanosleep" in text)
    assert main(["export", "furuta-rfvi", "--c", str(tmp_path)]) == 0
    around = "void read_state(furuta_real *x);\nvoid send(const furuta_real *u);\n"
    (tmp_path / "loop.c").write_text(code.replace("\nint main", f"\n{around}\nint main", 1))
    words = [word for word in STRICT if word != "-std=c99"]
    subprocess.run([COMPILERS[0], "-std=gnu99", *words, "-c", "loop.c"], cwd=tmp_path, check=True)
    assert (ROOT / "docs/how-to/export-to-c.md").read_text().count("rclcpp::Node") == 1
