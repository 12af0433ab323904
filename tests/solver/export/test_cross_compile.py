"""The exported C, compiled for chips that this machine is not: without a warning, and in float without any double."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from solver.export.c_export import emit, emit_observer
from solver.export.c_folder import kernels
from solver.training.solution import load_solution
from tests.solver.export.test_distilled import sources

pytestmark = pytest.mark.slow

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
X86 = platform.machine() in ("x86_64", "AMD64")


@dataclass(frozen=True)
class Chip:
    """A compiler, the words that name the chip and its C library, and Debian's packages with both."""

    compiler: str
    words: tuple[str, ...]
    packages: str
    double_unit: bool = False  # the chip computes in double without a library

    @property
    def missing(self) -> str:
        """Why nothing can be compiled for it here; empty where it can."""
        if self.compiler == "gcc" and not X86:
            return "this processor is no x86-64"
        found = shutil.which(self.compiler)
        if found:
            command = [found, *self.words, "-include", "math.h", "-E", "-x", "c", "/dev/null"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return ""
        return f"{self.compiler} with a C library is missing (Debian: {self.packages})"


ARM = "gcc-arm-none-eabi libnewlib-arm-none-eabi"
CHIPS = {
    "cortex-m4f": Chip(
        "arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"), ARM
    ),
    "cortex-m7": Chip(
        "arm-none-eabi-gcc", ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"), ARM, True
    ),
    "riscv": Chip(
        "riscv64-unknown-elf-gcc",
        ("-march=rv32imafc", "-mabi=ilp32f", "--specs=picolibc.specs"),
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    ),
    "avx2": Chip("gcc", ("-mavx2", "-mfma"), "gcc libc6-dev", True),
}
#: Every chip in float, and both kinds of chips in double.
CASES = [
    ("planar_arm2", "cortex-m7", "double"),
    *(("planar_arm2", chip, "float") for chip in CHIPS),
    ("planar_arm2", "riscv", "double"),
]


@pytest.fixture(scope="module")
def exported(
    request: pytest.FixtureRequest, begun: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Path]:
    """A robot's name, the folder of its policy and observer, and that of its distilled policy; the robot in both."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    whole, small = folder / "whole", folder / "small"
    whole.mkdir()
    small.mkdir()
    solution = load_solution(begun(name), reaction_periods=1.0)
    for file, text in {**emit(solution, name), **emit_observer(solution.problem)}.items():
        (whole / file).write_text(text)
    for file, content in kernels(solution.problem, observer=True).items():
        (whole / file).write_bytes(content)
    sources(solution, 16, small)
    return name, whole, small


@pytest.mark.parametrize(("exported", "chip", "real"), CASES, indirect=["exported"])
def test_the_c_policy_compiles_for_chips_without_promotion(
    chip: str, real: str, exported: tuple[str, Path, Path], tmp_path: Path
) -> None:
    """In float nothing is promoted to double, and libm is called in float."""
    target, (name, whole, small) = CHIPS[chip], exported
    if target.missing:
        pytest.skip(target.missing)
    words = [target.compiler, *STRICT, *target.words, f"-D{name.upper()}_REAL={real}"]
    words += ["-Wdouble-promotion"] if real == "float" else []
    for folder, ends in ((whole, ("", "_policy", "_observer")), (small, ("", "_policy", "_policy_replay"))):
        for end in ends:
            compiled = tmp_path / f"{folder.name}{end}.o"
            subprocess.run([*words, "-c", str(folder / f"{name}{end}.c"), "-o", str(compiled)], check=True)
    nm = [target.compiler.removesuffix("gcc") + "nm", "--undefined-only", *map(str, tmp_path.glob("*.o"))]
    called = set(subprocess.run(nm, capture_output=True, text=True, check=True).stdout.split())
    assert ("tanhf" in called) == (real == "float")
    assert ("tanh" in called) == (real == "double")
    soft = {word for word in called if word.startswith("__aeabi_d") or word.endswith(("df2", "df3", "dfsi", "sidf"))}
    assert bool(soft) == (real == "double" and not target.double_unit)
