"""Names of states, inputs and parameters that every emitted language takes: Python, C99 and what their kernels use."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

#: Names with a meaning of their own in emitted code, which a model's symbols therefore do not get there.
_RESERVED = (
    "x u costate theta step i row first last block real load store half_pi a B xdot da_dx dB_dx da_dtheta "
    "dB_dtheta dH_dx dH_du dH_dtheta q dq_dx w g dg_du d2g_du2 u_optimal g_optimal "
    "abs min range math np ir types signature torch njit warnings kernel "
    "sincos exp log log1p tanh sign minimum maximum points SEGMENTS len "
    # C99's words, and what its mathematics and complex headers define
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while R I complex "
    "sin cos tan asin acos atan atan2 sinh cosh sqrt pow fabs NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL "
    "math_errhandling MATH_ERRNO MATH_ERREXCEPT FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL FP_FAST_FMA "
    "FP_FAST_FMAF FP_FAST_FMAL FP_ILOGB0 FP_ILOGBNAN "
    # what compilers add to them unless they are told not to
    "asm typeof linux unix M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 "
    "M_SQRT1_2"
)
_TEMPORARY = re.compile(r"[tc]\d+[sc]?")


def unique_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """ASCII identifiers, mutually different and different from what emitted code uses itself; deterministic."""
    used = {*_RESERVED.split(), *taken}
    result = []
    for name in names:
        identifier = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not identifier or identifier[0].isdigit():
            identifier = f"_{identifier}"
        while identifier in used or keyword.iskeyword(identifier) or _TEMPORARY.fullmatch(identifier):
            identifier += "_"
        used.add(identifier)
        result.append(identifier)
    return result
