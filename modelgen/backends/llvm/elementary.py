"""Functions as arithmetic without a branch, a table or a call: vector code runs them, and so does Python.

Their numbers are Python's floats, or `vectors.Number`, which notes every operation as code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Real = Any  # float, or a Number

#: pi/2 in three parts, the first two short enough that their products with a count of quarter turns are exact.
HALF_PI = {
    "double": (1.5707963267341256, 6.077100506303966e-11, 2.022266248795951e-21),
    "float": (1.5703125, 4.837512969970703e-4, 7.549790126404332e-08),
}
#: log(2) in two parts, the first short enough that its product with an exponent is exact.
LOG_2 = {"double": (0.6931471805582987, 1.6465949582897082e-12), "float": (0.693115234375, 3.1946184945309415e-05)}


def sine_and_cosine(x: Real, first: float, second: float, third: float) -> tuple[Real, Real]:
    """Sine and cosine: Chebyshev fits on [-pi/4, pi/4] of x minus the nearest multiple of pi/2.

    Errors stay below 2.3e-16 for |x| up to 1e6 (double) and 1.3e-7 up to 1e3 (float); with fused multiply-add
    also up to 1e12 and 1e7. NaN, infinity and angles beyond all precision give NaN.
    """
    turns = math.floor(x * 0.6366197723675814 + 0.5)
    r = ((x - turns * first) - turns * second) - turns * third
    r = select(abs(r) < 1, r, math.nan)
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
    sine = select(odd, c, s)
    cosine = select(odd, s, c)
    sine = select(quadrant >= 2, -sine, sine)
    cosine = select((quadrant == 1) | (quadrant == 2), -cosine, cosine)
    return sine, cosine


def atan(x: Real) -> Real:
    """Arctangent: a Chebyshev fit up to tan(pi/8), of (|x| - 1)/(|x| + 1) beyond it, of -1/|x| beyond tan(3 pi/8).

    Errors stay below 2.3e-16 (double) and 1.5e-7 (float) for every x.
    """
    size = abs(x)
    far = size > 2.414213562373095
    middle = size > 0.41421356237309503
    above = select(far, -1.0, select(middle, size - 1.0, size))
    below = select(far, size, select(middle, size + 1.0, 1.0))
    start = select(far, 1.5707963267948966, select(middle, 0.7853981633974483, 0.0))
    s = above / below
    z = s * s
    p = 0.03923165829558719 - 0.01917688711906226 * z
    p = p * z - 0.0508544973794026
    p = p * z + 0.0585814891280221
    p = p * z - 0.06664511447381948
    p = p * z + 0.07692183190826087
    p = p * z - 0.09090904578123903
    p = p * z + 0.11111111015256361
    p = p * z - 0.14285714284666542
    p = p * z + 0.1999999999999552
    p = p * z - 0.3333333333333333
    result = start + (s + s * (z * p))
    return select(x < 0, -result, result)


def log1p(x: Real, first: float, second: float) -> Real:
    """log(1 + x): log(2) times the exponent of 1 + x, plus 2 atanh(f/(2 + f)) of the mantissa by a Chebyshev fit.

    first and second are the parts of log(2). Relative errors stay below 4e-16 (double) and 2e-7 (float).
    """
    whole = 1 + x
    mantissa, exponent = split(whole)
    large = mantissa > 1.4142135623730951
    mantissa = select(large, 0.5 * mantissa, mantissa)
    exponent = select(large, exponent + 1, exponent)
    near = exponent == 0
    f = select(near, x, mantissa - 1)
    lost = select(near, 0.0, (x - (whole - 1)) / whole)
    s = f / (2 + f)
    z = s * s
    p = 0.07308224842521703 * z + 0.07665860800278021
    p = p * z + 0.09091444562630861
    p = p * z + 0.1111110556739754
    p = p * z + 0.14285714312987743
    p = p * z + 0.19999999999949752
    p = p * z + 0.3333333333333335
    result = exponent * first + (2 * s + (2 * s * (z * p) + (exponent * second + lost)))
    result = select(whole > 0, result, select(whole == 0, -math.inf, math.nan))
    return select(x - x != 0, x, result)


#: Largest size of an argument of `exp`, and the degree of its polynomial.
EXP = {"double": (708.0, 13), "float": (87.0, 7)}


def exp(x: Real, largest: float, degree: int, first: float, second: float) -> Real:
    """Exponential of x, held within +-`largest`: two to the nearest exponent, times Taylor's polynomial of the rest.

    first and second are the parts of log(2). Relative errors stay below 4e-16 (double) and 2e-7 (float).
    """
    held = maximum(minimum(x, largest), -largest)
    exponent = math.floor(held * 1.4426950408889634 + 0.5)
    rest = (held - exponent * first) - exponent * second
    series = rest * (1.0 / math.factorial(degree)) + 1.0 / math.factorial(degree - 1)
    for k in reversed(range(degree - 1)):
        series = series * rest + 1.0 / math.factorial(k)
    return series * power_of_two(exponent)


def sign(x: Real) -> Real:
    """Sign: -1, 0 or 1; NaN for NaN."""
    return select((x != x) | (x == 0), x, abs(x) / x)


def minimum(a: Real, b: Real) -> Real:
    """The smaller of two; NaN when one of them is NaN."""
    return select((a < b) | (a != a), a, b)


def maximum(a: Real, b: Real) -> Real:
    """The larger of two; NaN when one of them is NaN."""
    return select((a > b) | (a != a), a, b)


def split(x: Real) -> tuple[Real, Real]:
    """Mantissa m and exponent e of a positive x = m 2^e with 1 <= m < 2; vector code reads them from the bits of x."""
    if not isinstance(x, float):
        mantissa, exponent = x.split()
        return mantissa, exponent
    mantissa, exponent = math.frexp(x)
    return 2 * mantissa, exponent - 1.0


def power_of_two(exponent: Real) -> Real:
    """2 to a whole number; vector code shifts it to its place in the bits of a number."""
    return 2.0**exponent if isinstance(exponent, int) else exponent.power_of_two()


def select(condition: Any, yes: Real, no: Real) -> Real:
    """`yes` where the condition holds, else `no`. Both are computed."""
    return condition.select(yes, no) if hasattr(condition, "select") else (yes if condition else no)


#: Functions without constants of a precision: they need their arguments only.
INLINED: dict[str, Callable[..., Real]] = {"atan": atan, "sign": sign, "minimum": minimum, "maximum": maximum}
