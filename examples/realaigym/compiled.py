"""A trained policy as machine code: the C source of `solver export`, compiled by `cc`."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solver.runs.kinds import description_of

Array = NDArray[np.float64]
# A sum may be taken in another order: vectorised, a call of the policy takes half the time. NaN stays NaN.
COMPILER = ["cc", "-std=c99", "-O3", "-march=native", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"]

# The struct of the observer stays on the side of C.
SHIM = """
#include "{name}_policy.h"
#include "{name}_observer.h"
static {name}_observer observer;
void reset(void) {{
    {name}_observer_reset(&observer);
    for (int i = {states} / 2; i < {NAME}_SENSORS; i++) observer.variance[i] = {variance};
}}
{told}
static void policy(const double *x, double *u) {{
    {tell}
    {name}_policy({pass}x, u);
}}
void from_state(const double *x, double *u) {{ policy(x, u); }}
void from_sensors(const double *y, double *u) {{
    double x[{states}];
    {name}_observer_estimate(&observer, y, x);
    policy(x, u);
    {name}_observer_compensate(&observer, u);
    {name}_observer_sent(&observer, u);
}}
"""


class CompiledPolicy:
    """The policy of a run, and the observer beside it, for a robot of one input.

    name: the robot's, as in `modelgen list`. run: the run folder. longest_delay: control periods from a measurement
    until its input acts, of which the observer finds the right number. rates: the standard deviation of the measured
    rates, where the observer gets them. estimate: parameters that it estimates, or `all`. The policy of a family
    is told the estimates, and the nominal values of the others. Raises RuntimeError with the text of the command that
    failed.
    """

    def __init__(
        self,
        name: str,
        states: int,
        run: str,
        longest_delay: int = 0,
        rates: float | None = None,
        estimate: Sequence[str] = (),
    ) -> None:
        fields = {"name": name, "NAME": name.upper(), "states": states, "variance": (rates or 0.0) ** 2}
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "shim.c"), Path(folder, "policy.so")
            estimated = ["--estimate", *estimate] if estimate else []
            _call(sys.executable, "-m", "solver.cli", "export", run, "--c", folder, "--observer", *estimated)
            fields |= _telling(name, description_of(run).told_names)
            source.write_text(SHIM.format(**fields), encoding="utf-8")
            parts = [source, *(Path(folder, f"{name}{part}.c") for part in ("", "_policy", "_observer"))]
            defined = [f"-D{name.upper()}_LONGEST_DELAY={longest_delay}"]
            defined += [] if rates is None else [f"-D{name.upper()}_RATES"]
            _call(*COMPILER, "-shared", "-fPIC", *defined, *parts, "-lm", "-o", library)
            self._library = ctypes.CDLL(str(library))
        self._u = np.zeros(1)
        self.reset()

    def reset(self) -> None:
        """Forget what the observer knows: another start."""
        self._library.reset()

    def from_state(self, x: ArrayLike) -> float:
        """The input for a whole state (n,), SI units."""
        return self._called(self._library.from_state, x)

    def from_sensors(self, y: ArrayLike) -> float:
        """The input for measured positions, and rates after them where the observer gets them, SI units; called once in
        every control period."""
        return self._called(self._library.from_sensors, y)

    def _called(self, function: ctypes._CFuncPtr, values: ArrayLike) -> float:
        array = np.ascontiguousarray(values, np.float64)
        function(array.ctypes.data_as(ctypes.c_void_p), self._u.ctypes.data_as(ctypes.c_void_p))
        return float(self._u[0])


def _telling(name: str, told: Sequence[str]) -> dict[str, str]:
    """Statements that tell the policy of a family the parameters of the likeliest filter: estimated, or nominal."""
    if not told:
        return {"told": "", "tell": "", "pass": ""}
    known = "observer.filters[observer.likeliest].parameters"
    context = ", ".join(f".{entry} = {known}[{name.upper()}_PARAMETER_{entry.upper()}]" for entry in told)
    tell = f"{name}_tell(&(const {name}_context){{{context}}}, &told);"
    return {"told": f"static {name}_told told;", "tell": tell, "pass": "&told, "}


def _call(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} failed:\n{done.stderr}")
