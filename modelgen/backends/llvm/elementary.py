"""Sine and cosine as statements for vector code: no branch, no table, no call."""

from __future__ import annotations

import math

#: pi/2 in three parts, the first two short enough that their products with a count of quarter turns are exact.
HALF_PI = {
    "double": (1.5707963267341256, 6.077100506303966e-11, 2.022266248795951e-21),
    "float": (1.5703125, 4.837512969970703e-4, 7.549790126404332e-08),
}


def sine_and_cosine(x: float, first: float, second: float, third: float) -> tuple[float, float]:
    """x less the nearest multiple of pi/2, then Chebyshev fits of both on [-pi/4, pi/4].

    Errors stay below 2.3e-16 for |x| up to 1e6 (double) and 1.3e-7 up to 1e3 (float); with fused multiply-add
    also up to 1e12 and 1e7. NaN, infinity and angles beyond all precision give NaN.
    """
    turns = math.floor(x * 0.6366197723675814 + 0.5)
    r = ((x - turns * first) - turns * second) - turns * third
    r = r if abs(r) < 1 else math.nan
    z = r * r
    p = z * 1.591810123027412e-10 - 2.5051131455427946e-08
    p = z * p + 2.755731610068303e-06
    p = z * p - 0.0001984126983675497
    p = z * p + 0.008333333333330946
    p = z * p - 0.16666666666666666
    s = r + r * (z * p)
    q = 2.0876146024689747e-09 - z * 1.1382614868556325e-11
    q = z * q - 2.7557317270560326e-07
    q = z * q + 2.4801587298763433e-05
    q = z * q - 0.0013888888888887395
    q = z * q + 0.041666666666666664
    c = (1 - 0.5 * z) + (z * z) * q
    odd = turns - 2 * math.floor(turns * 0.5) != 0
    quadrant = turns - 4 * math.floor(turns * 0.25)
    sine = c if odd else s
    cosine = s if odd else c
    sine = -sine if quadrant >= 2 else sine
    cosine = -cosine if (quadrant == 1) | (quadrant == 2) else cosine
    return sine, cosine
