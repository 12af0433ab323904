"""The replay of a distilled policy in C: on this machine, and on an emulated board without an operating system."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from solver.export.c_folder import TEMPLATES
from solver.export.distilled import board
from solver.training.solution import load_solution
from tests.solver.export.test_c_export import COMPILER, STRICT, needs_compiler
from tests.solver.export.test_distilled import needs_emulator, sources

pytestmark = pytest.mark.slow

WRONG = "real sum = 0.1f + "  # in place of `real sum = `, of every neuron
#: Ends the emulator with the exit code that the replay returns.
MAIN = """
#include <stdint.h>
#include "{name}_policy.h"
extern char stack_top[];
void reset(void);
__attribute__((section(".vectors"), used)) static void *const vectors[] = {{stack_top, (void *)reset}};
void reset(void) {{
    *(volatile uint32_t *)0xE000ED88 |= 0xf << 20; /* the floating-point unit on */
    __asm__ volatile("dsb\\nisb");
    const uint32_t words[] = {{0x20026, (uint32_t){name}_policy_replay()}};
    register int r0 __asm__("r0") = 0x20;
    register const void *r1 __asm__("r1") = words;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;) {{}}
}}
"""


def spoil(folder: Path) -> None:
    path = folder / "pendulum_policy.c"
    path.write_text(path.read_text().replace("real sum = ", WRONG))


@needs_compiler
@pytest.mark.parametrize("real", ["float", "double"])
def test_the_replay_notices_another_weight(real: str, gallery_run: Path, tmp_path: Path) -> None:
    _, folder = sources(load_solution(gallery_run), 8, tmp_path)
    files = [str(folder / f"pendulum{end}.c") for end in ("", "_policy", "_policy_replay")]
    command = [str(COMPILER), *STRICT, f"-DPENDULUM_REAL={real}", *files, "-lm", "-o", str(folder / "replay")]
    subprocess.run(command, check=True)
    subprocess.run([folder / "replay"], check=True)
    spoil(folder)
    subprocess.run(command, check=True)
    assert subprocess.run([folder / "replay"], check=False).returncode > 0


@needs_emulator
def test_an_emulated_board_replays_the_policy(gallery_run: Path, tmp_path: Path) -> None:
    """An emulated Cortex-M4F, in the precision that a chip has by default, and with a wrong weight."""
    _, folder = sources(load_solution(gallery_run), 16, tmp_path)
    (folder / "board_main.c").write_text(MAIN.format(name="pendulum"))
    files = [str(folder / f"{file}.c") for file in ("pendulum", "pendulum_policy", "pendulum_policy_replay")]
    words = [*board.WORDS, "-DPENDULUM_NO_MAIN", "-T", str(TEMPLATES / "board.ld"), "-nostartfiles"]
    words += ["-Wl,--gc-sections", "--specs=nosys.specs", *files, str(folder / "board_main.c"), "-lm"]
    program = str(folder / "program.elf")

    def replay() -> int:
        subprocess.run([board.COMPILER, *words, "-o", program], check=True)
        return subprocess.run([*board.EMULATOR, program], capture_output=True, check=False, timeout=60).returncode

    assert replay() == 0
    called = subprocess.run(["arm-none-eabi-nm", program], capture_output=True, text=True, check=True).stdout.split()
    assert "tanhf" in called
    assert "tanh" not in called
    spoil(folder)
    assert replay() == 1
