"""The processor that machine code is made for: this one, or a level of x86-64 that many processors share.

The environment variable MODELGEN_CPU names it: `native` (the default), `x86-64`, `x86-64-v2`, `x86-64-v3` (AVX2 and
fused multiply-add, since 2013) or `x86-64-v4` (AVX-512). Machine code of a level runs on every processor of that level,
so that it can be shipped with an artifact.

What is equal bit for bit: a result depends neither on the sample's place in the batch, nor on the batch's size, nor on
the number of threads. `x86-64` and `x86-64-v2` have no fused multiply-add: every operation is rounded by itself, as in
plain Python. From `x86-64-v3` on, and with `native` where the processor has it, LLVM fuses products into sums, and
results differ from those of the lower levels by rounding. One level, one version of llvmlite: the same machine code,
hence the same bits on every machine, but for functions of the C library (exp, log, tanh, atan, pow and their kind; not
sine and cosine), which choose their code by the processor at run time. `native` promises nothing between machines.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import llvmlite.binding as llvm

from modelgen.errors import ModelError, suggestion

#: Names the processor to make machine code for.
CPU = "MODELGEN_CPU"
#: Levels of x86-64 with some of the features, by LLVM's names, that each adds to the one before.
LEVELS = {
    "x86-64": (),
    "x86-64-v2": ("ssse3", "sse4.1", "sse4.2", "popcnt"),
    "x86-64-v3": ("avx2", "bmi2", "f16c", "fma", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}


class Target(NamedTuple):
    """A processor, in LLVM's words."""

    triple: str
    processor: str
    features: str


def target() -> Target:
    """The processor that MODELGEN_CPU names.

    Raises ModelError for an unknown name, and for a level that this machine cannot run.
    """
    name = os.environ.get(CPU) or "native"
    triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features()
    if name == "native":
        return Target(triple, llvm.get_host_cpu_name(), features.flatten())
    if name not in LEVELS:
        known = ("native", *LEVELS)
        raise ModelError(f"{CPU} is {name!r}.{suggestion(name, known)} Write one of: {', '.join(known)}.")
    levels = list(LEVELS)
    needed = [feature for level in levels[: levels.index(name) + 1] for feature in LEVELS[level]]
    missing = [feature for feature in needed if not features.get(feature)]
    if not triple.startswith("x86_64") or missing:
        lacks = f"lacks {', '.join(missing)}" if triple.startswith("x86_64") else f"is {triple.partition('-')[0]}"
        raise ModelError(f"{CPU} is {name}, which this processor cannot run: it {lacks}. Leave {CPU} out.")
    return Target(triple, name, "")
