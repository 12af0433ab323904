"""planar_quadrotor: kernels for Numba, made by modelgen; not to be edited."""

import math  # noqa: F401  (the emitted kernels use it)
import warnings

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.compiler import Compiler
from numba.core.typing import signature
from numba.extending import intrinsic

# Fused multiply-add and the freedom to ignore the sign of zero; NaN and infinity keep their meaning.
FAST = {"contract", "nsz"}
# pi/2 in three parts, the first two short enough that their products with a count of quarter turns are exact.
HALF_PI_64 = (1.5707963267341256, 6.077100506303966e-11, 2.022266248795951e-21)
HALF_PI_32 = (1.5703125, 4.837512969970703e-4, 7.549790126404332e-08)


class DistinctArrays(Compiler):
    """Numba's compiler, told that array arguments do not overlap (the loader checks that they do not)."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.state.flags.noalias = True


def _address(context, builder, array_type, array, row, width, column):
    """Where an entry lies, as an address that LLVM knows not to overflow.

    It would otherwise check every strided store for overflow before it vectorises a loop, and it gives up
    beyond sixteen of them. Rows are `width` wide, known when the kernel is compiled.
    """
    sure = ("nsw", "nuw")
    start = builder.mul(row, row.type(width.literal_value), flags=sure)
    position = builder.add(start, row.type(column.literal_value), flags=sure)
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [position], inbounds=True)


@intrinsic(prefer_literal=True)
def load(_context, array, _row, width, column):
    """Entry `column` of a row of a contiguous array."""

    def generate(context, builder, call, values):
        return builder.load(_address(context, builder, call.args[0], values[0], values[1], width, column))

    return signature(array.dtype, array, types.intp, width, column), generate


@intrinsic(prefer_literal=True)
def store(_context, array, _row, width, column, _value):
    """Set entry `column` of a row of a contiguous array."""

    def generate(context, builder, call, values):
        builder.store(values[4], _address(context, builder, call.args[0], values[0], values[1], width, column))
        return context.get_dummy_value()

    return signature(types.none, array, types.intp, width, column, array.dtype), generate


@intrinsic
def one_by_one(_context):
    """Nothing, but LLVM does not vectorise a loop that holds it: copies then write rows, not columns."""

    def generate(context, builder, _call, _values):
        nothing = ir.FunctionType(ir.VoidType(), [])
        builder.asm(nothing, "", "", [], side_effect=True)
        return context.get_dummy_value()

    return signature(types.none), generate


def kernel(function):
    """Compile a loop over samples; its machine code is kept beside this file or in the user's cache folder."""
    options = {"nogil": True, "fastmath": FAST, "error_model": "numpy", "pipeline_class": DistinctArrays}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        warnings.warn(
            f"No folder to keep {function.__name__}'s machine code in: it is compiled again in every process. "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
            stacklevel=2,
        )
        return njit(**options)(function)


@njit(forceinline=True, fastmath=FAST, error_model="numpy")
def sincos(x, real, half_pi):
    """Sine and cosine: x less the nearest multiple of pi/2, then Chebyshev fits of both on [-pi/4, pi/4].

    Errors stay below 2.3e-16 for |x| up to 1e6 (float64) and 1.3e-7 up to 1e3 (float32); with fused multiply-add
    also up to 1e12 and 1e7. NaN, infinity and angles beyond all precision give NaN.
    """
    turns = np.floor(x * real(0.6366197723675814) + real(0.5))
    r = ((x - turns * real(half_pi[0])) - turns * real(half_pi[1])) - turns * real(half_pi[2])
    r = r if abs(r) < real(1) else real(np.nan)
    z = r * r
    p = z * real(1.591810123027412e-10) - real(2.5051131455427946e-08)
    p = z * p + real(2.755731610068303e-06)
    p = z * p - real(0.0001984126983675497)
    p = z * p + real(0.008333333333330946)
    p = z * p - real(0.16666666666666666)
    s = r + r * (z * p)
    q = real(2.0876146024689747e-09) - z * real(1.1382614868556325e-11)
    q = z * q - real(2.7557317270560326e-07)
    q = z * q + real(2.4801587298763433e-05)
    q = z * q - real(0.0013888888888887395)
    q = z * q + real(0.041666666666666664)
    c = (real(1) - real(0.5) * z) + (z * z) * q
    odd = turns - real(2) * np.floor(turns * real(0.5)) != real(0)
    quadrant = turns - real(4) * np.floor(turns * real(0.25))
    sine, cosine = (c, s) if odd else (s, c)
    sine = -sine if quadrant >= real(2) else sine
    cosine = -cosine if (quadrant == real(1)) | (quadrant == real(2)) else cosine
    return sine, cosine


@njit(forceinline=True, error_model="numpy")
def sign(x):
    """-1, 0 or 1; NaN for NaN."""
    return x if (x != x) | (x == 0) else abs(x) / x


@njit(forceinline=True)
def minimum(a, b):
    """The smaller of two; NaN when one of them is NaN."""
    return a if (a < b) | (a != a) else b


@njit(forceinline=True)
def maximum(a, b):
    """The larger of two; NaN when one of them is NaN."""
    return a if (a > b) | (a != a) else b


@kernel
def affine_dynamics(x, theta, a, B):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(4.76766)
    c4 = real(9.81)
    block = np.empty(384, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            pitch = load(x, i, 6, 2)
            across_rate = load(x, i, 6, 3)
            height_rate = load(x, i, 6, 4)
            pitch_rate = load(x, i, 6, 5)
            mass = load(theta, row, 4, 0)
            inertia = load(theta, row, 4, 1)
            arm = load(theta, row, 4, 2)
            drag = load(theta, row, 4, 3)
            t1s, t1c = sincos(pitch, real, half_pi)
            t2 = c2 / mass
            t3 = arm * (c2 / inertia)
            t4 = t1s * t2
            t5 = t1c * t2
            store(a, i, 6, 0, across_rate)
            store(a, i, 6, 1, height_rate)
            store(a, i, 6, 2, pitch_rate)
            store(a, i, 6, 3, (t1s * c3 - drag * across_rate) * t2)
            store(a, i, 6, 4, (t1c * c3 - mass * c4 - drag * height_rate) * t2)
            store(a, i, 6, 5, c1)
            store(block, i - first, 1, 0, t4)
            store(block, i - first, 1, 64, t4)
            store(block, i - first, 1, 128, t5)
            store(block, i - first, 1, 192, t5)
            store(block, i - first, 1, 256, -t3)
            store(block, i - first, 1, 320, t3)
        for i in range(first, last):
            one_by_one()
            store(B, i, 12, 0, c1)
            store(B, i, 12, 1, c1)
            store(B, i, 12, 2, c1)
            store(B, i, 12, 3, c1)
            store(B, i, 12, 4, c1)
            store(B, i, 12, 5, c1)
            store(B, i, 12, 6, load(block, i - first, 1, 0))
            store(B, i, 12, 7, load(block, i - first, 1, 64))
            store(B, i, 12, 8, load(block, i - first, 1, 128))
            store(B, i, 12, 9, load(block, i - first, 1, 192))
            store(B, i, 12, 10, load(block, i - first, 1, 256))
            store(B, i, 12, 11, load(block, i - first, 1, 320))


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(4.76766)
    c3 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        pitch = load(x, i, 6, 2)
        across_rate = load(x, i, 6, 3)
        height_rate = load(x, i, 6, 4)
        pitch_rate = load(x, i, 6, 5)
        right = load(u, i, 2, 0)
        left = load(u, i, 2, 1)
        mass = load(theta, row, 4, 0)
        inertia = load(theta, row, 4, 1)
        arm = load(theta, row, 4, 2)
        drag = load(theta, row, 4, 3)
        t1s, t1c = sincos(pitch, real, half_pi)
        t2 = c1 / mass
        t3 = t1c * c2 - mass * c3 - drag * height_rate + (right * t1c + left * t1c)
        store(xdot, i, 6, 0, across_rate)
        store(xdot, i, 6, 1, height_rate)
        store(xdot, i, 6, 2, pitch_rate)
        store(xdot, i, 6, 3, t2 * (t1s * c2 - drag * across_rate + (right * t1s + left * t1s)))
        store(xdot, i, 6, 4, t2 * t3)
        store(xdot, i, 6, 5, c1 / inertia * (arm * left - arm * right))


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(4.76766)
    c4 = real(9.81)
    block = np.empty(1664, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            pitch = load(x, i, 6, 2)
            across_rate = load(x, i, 6, 3)
            height_rate = load(x, i, 6, 4)
            pitch_rate = load(x, i, 6, 5)
            mass = load(theta, row, 4, 0)
            inertia = load(theta, row, 4, 1)
            arm = load(theta, row, 4, 2)
            drag = load(theta, row, 4, 3)
            t1s, t1c = sincos(pitch, real, half_pi)
            t2 = t1s * c3
            t3 = t1c * c3
            t4 = c2 / mass
            t5 = c2 / inertia
            t6 = (t2 - drag * across_rate) * t4
            t7 = (t3 - mass * c4 - drag * height_rate) * t4
            t8 = t1s * t4
            t9 = t1c * t4
            t10 = arm * t5
            t11 = -t10
            t12 = -(drag * t4)
            t13 = -t8
            t14 = -(t4 * t8)
            t15 = -(t4 * t9)
            store(a, i, 6, 0, across_rate)
            store(a, i, 6, 1, height_rate)
            store(a, i, 6, 2, pitch_rate)
            store(a, i, 6, 3, t6)
            store(a, i, 6, 4, t7)
            store(a, i, 6, 5, c1)
            store(block, i - first, 1, 0, t8)
            store(block, i - first, 1, 64, t8)
            store(block, i - first, 1, 128, t9)
            store(block, i - first, 1, 192, t9)
            store(block, i - first, 1, 256, t11)
            store(block, i - first, 1, 320, t10)
            store(block, i - first, 1, 384, t3 * t4)
            store(block, i - first, 1, 448, t12)
            store(block, i - first, 1, 512, -(t2 * t4))
            store(block, i - first, 1, 576, t12)
            store(block, i - first, 1, 640, t9)
            store(block, i - first, 1, 704, t9)
            store(block, i - first, 1, 768, t13)
            store(block, i - first, 1, 832, t13)
            store(block, i - first, 1, 896, -(t4 * t6))
            store(block, i - first, 1, 960, -(across_rate * t4))
            store(block, i - first, 1, 1024, -(t4 * (c4 + t7)))
            store(block, i - first, 1, 1088, -(height_rate * t4))
            store(block, i - first, 1, 1152, t14)
            store(block, i - first, 1, 1216, t14)
            store(block, i - first, 1, 1280, t15)
            store(block, i - first, 1, 1344, t15)
            store(block, i - first, 1, 1408, -(t5 * t11))
            store(block, i - first, 1, 1472, -t5)
            store(block, i - first, 1, 1536, -(t5 * t10))
            store(block, i - first, 1, 1600, t5)
        for i in range(first, last):
            one_by_one()
            store(B, i, 12, 0, c1)
            store(B, i, 12, 1, c1)
            store(B, i, 12, 2, c1)
            store(B, i, 12, 3, c1)
            store(B, i, 12, 4, c1)
            store(B, i, 12, 5, c1)
            store(B, i, 12, 6, load(block, i - first, 1, 0))
            store(B, i, 12, 7, load(block, i - first, 1, 64))
            store(B, i, 12, 8, load(block, i - first, 1, 128))
            store(B, i, 12, 9, load(block, i - first, 1, 192))
            store(B, i, 12, 10, load(block, i - first, 1, 256))
            store(B, i, 12, 11, load(block, i - first, 1, 320))
            store(da_dx, i, 36, 0, c1)
            store(da_dx, i, 36, 1, c1)
            store(da_dx, i, 36, 2, c1)
            store(da_dx, i, 36, 3, c2)
            store(da_dx, i, 36, 4, c1)
            store(da_dx, i, 36, 5, c1)
            store(da_dx, i, 36, 6, c1)
            store(da_dx, i, 36, 7, c1)
            store(da_dx, i, 36, 8, c1)
            store(da_dx, i, 36, 9, c1)
            store(da_dx, i, 36, 10, c2)
            store(da_dx, i, 36, 11, c1)
            store(da_dx, i, 36, 12, c1)
            store(da_dx, i, 36, 13, c1)
            store(da_dx, i, 36, 14, c1)
            store(da_dx, i, 36, 15, c1)
            store(da_dx, i, 36, 16, c1)
            store(da_dx, i, 36, 17, c2)
            store(da_dx, i, 36, 18, c1)
            store(da_dx, i, 36, 19, c1)
            store(da_dx, i, 36, 20, load(block, i - first, 1, 384))
            store(da_dx, i, 36, 21, load(block, i - first, 1, 448))
            store(da_dx, i, 36, 22, c1)
            store(da_dx, i, 36, 23, c1)
            store(da_dx, i, 36, 24, c1)
            store(da_dx, i, 36, 25, c1)
            store(da_dx, i, 36, 26, load(block, i - first, 1, 512))
            store(da_dx, i, 36, 27, c1)
            store(da_dx, i, 36, 28, load(block, i - first, 1, 576))
            store(da_dx, i, 36, 29, c1)
            store(da_dx, i, 36, 30, c1)
            store(da_dx, i, 36, 31, c1)
            store(da_dx, i, 36, 32, c1)
            store(da_dx, i, 36, 33, c1)
            store(da_dx, i, 36, 34, c1)
            store(da_dx, i, 36, 35, c1)
            store(dB_dx, i, 72, 0, c1)
            store(dB_dx, i, 72, 1, c1)
            store(dB_dx, i, 72, 2, c1)
            store(dB_dx, i, 72, 3, c1)
            store(dB_dx, i, 72, 4, c1)
            store(dB_dx, i, 72, 5, c1)
            store(dB_dx, i, 72, 6, c1)
            store(dB_dx, i, 72, 7, c1)
            store(dB_dx, i, 72, 8, c1)
            store(dB_dx, i, 72, 9, c1)
            store(dB_dx, i, 72, 10, c1)
            store(dB_dx, i, 72, 11, c1)
            store(dB_dx, i, 72, 12, c1)
            store(dB_dx, i, 72, 13, c1)
            store(dB_dx, i, 72, 14, c1)
            store(dB_dx, i, 72, 15, c1)
            store(dB_dx, i, 72, 16, c1)
            store(dB_dx, i, 72, 17, c1)
            store(dB_dx, i, 72, 18, c1)
            store(dB_dx, i, 72, 19, c1)
            store(dB_dx, i, 72, 20, c1)
            store(dB_dx, i, 72, 21, c1)
            store(dB_dx, i, 72, 22, c1)
            store(dB_dx, i, 72, 23, c1)
            store(dB_dx, i, 72, 24, c1)
            store(dB_dx, i, 72, 25, c1)
            store(dB_dx, i, 72, 26, c1)
            store(dB_dx, i, 72, 27, c1)
            store(dB_dx, i, 72, 28, c1)
            store(dB_dx, i, 72, 29, c1)
            store(dB_dx, i, 72, 30, c1)
            store(dB_dx, i, 72, 31, c1)
            store(dB_dx, i, 72, 32, c1)
            store(dB_dx, i, 72, 33, c1)
            store(dB_dx, i, 72, 34, c1)
            store(dB_dx, i, 72, 35, c1)
            store(dB_dx, i, 72, 36, c1)
            store(dB_dx, i, 72, 37, c1)
            store(dB_dx, i, 72, 38, load(block, i - first, 1, 640))
            store(dB_dx, i, 72, 39, c1)
            store(dB_dx, i, 72, 40, c1)
            store(dB_dx, i, 72, 41, c1)
            store(dB_dx, i, 72, 42, c1)
            store(dB_dx, i, 72, 43, c1)
            store(dB_dx, i, 72, 44, load(block, i - first, 1, 704))
            store(dB_dx, i, 72, 45, c1)
            store(dB_dx, i, 72, 46, c1)
            store(dB_dx, i, 72, 47, c1)
            store(dB_dx, i, 72, 48, c1)
            store(dB_dx, i, 72, 49, c1)
            store(dB_dx, i, 72, 50, load(block, i - first, 1, 768))
            store(dB_dx, i, 72, 51, c1)
            store(dB_dx, i, 72, 52, c1)
            store(dB_dx, i, 72, 53, c1)
            store(dB_dx, i, 72, 54, c1)
            store(dB_dx, i, 72, 55, c1)
            store(dB_dx, i, 72, 56, load(block, i - first, 1, 832))
            store(dB_dx, i, 72, 57, c1)
            store(dB_dx, i, 72, 58, c1)
            store(dB_dx, i, 72, 59, c1)
            store(dB_dx, i, 72, 60, c1)
            store(dB_dx, i, 72, 61, c1)
            store(dB_dx, i, 72, 62, c1)
            store(dB_dx, i, 72, 63, c1)
            store(dB_dx, i, 72, 64, c1)
            store(dB_dx, i, 72, 65, c1)
            store(dB_dx, i, 72, 66, c1)
            store(dB_dx, i, 72, 67, c1)
            store(dB_dx, i, 72, 68, c1)
            store(dB_dx, i, 72, 69, c1)
            store(dB_dx, i, 72, 70, c1)
            store(dB_dx, i, 72, 71, c1)
            store(da_dtheta, i, 24, 0, c1)
            store(da_dtheta, i, 24, 1, c1)
            store(da_dtheta, i, 24, 2, c1)
            store(da_dtheta, i, 24, 3, c1)
            store(da_dtheta, i, 24, 4, c1)
            store(da_dtheta, i, 24, 5, c1)
            store(da_dtheta, i, 24, 6, c1)
            store(da_dtheta, i, 24, 7, c1)
            store(da_dtheta, i, 24, 8, c1)
            store(da_dtheta, i, 24, 9, c1)
            store(da_dtheta, i, 24, 10, c1)
            store(da_dtheta, i, 24, 11, c1)
            store(da_dtheta, i, 24, 12, load(block, i - first, 1, 896))
            store(da_dtheta, i, 24, 13, c1)
            store(da_dtheta, i, 24, 14, c1)
            store(da_dtheta, i, 24, 15, load(block, i - first, 1, 960))
            store(da_dtheta, i, 24, 16, load(block, i - first, 1, 1024))
            store(da_dtheta, i, 24, 17, c1)
            store(da_dtheta, i, 24, 18, c1)
            store(da_dtheta, i, 24, 19, load(block, i - first, 1, 1088))
            store(da_dtheta, i, 24, 20, c1)
            store(da_dtheta, i, 24, 21, c1)
            store(da_dtheta, i, 24, 22, c1)
            store(da_dtheta, i, 24, 23, c1)
            store(dB_dtheta, i, 48, 0, c1)
            store(dB_dtheta, i, 48, 1, c1)
            store(dB_dtheta, i, 48, 2, c1)
            store(dB_dtheta, i, 48, 3, c1)
            store(dB_dtheta, i, 48, 4, c1)
            store(dB_dtheta, i, 48, 5, c1)
            store(dB_dtheta, i, 48, 6, c1)
            store(dB_dtheta, i, 48, 7, c1)
            store(dB_dtheta, i, 48, 8, c1)
            store(dB_dtheta, i, 48, 9, c1)
            store(dB_dtheta, i, 48, 10, c1)
            store(dB_dtheta, i, 48, 11, c1)
            store(dB_dtheta, i, 48, 12, c1)
            store(dB_dtheta, i, 48, 13, c1)
            store(dB_dtheta, i, 48, 14, c1)
            store(dB_dtheta, i, 48, 15, c1)
            store(dB_dtheta, i, 48, 16, c1)
            store(dB_dtheta, i, 48, 17, c1)
            store(dB_dtheta, i, 48, 18, c1)
            store(dB_dtheta, i, 48, 19, c1)
            store(dB_dtheta, i, 48, 20, c1)
            store(dB_dtheta, i, 48, 21, c1)
            store(dB_dtheta, i, 48, 22, c1)
            store(dB_dtheta, i, 48, 23, c1)
            store(dB_dtheta, i, 48, 24, load(block, i - first, 1, 1152))
            store(dB_dtheta, i, 48, 25, c1)
            store(dB_dtheta, i, 48, 26, c1)
            store(dB_dtheta, i, 48, 27, c1)
            store(dB_dtheta, i, 48, 28, load(block, i - first, 1, 1216))
            store(dB_dtheta, i, 48, 29, c1)
            store(dB_dtheta, i, 48, 30, c1)
            store(dB_dtheta, i, 48, 31, c1)
            store(dB_dtheta, i, 48, 32, load(block, i - first, 1, 1280))
            store(dB_dtheta, i, 48, 33, c1)
            store(dB_dtheta, i, 48, 34, c1)
            store(dB_dtheta, i, 48, 35, c1)
            store(dB_dtheta, i, 48, 36, load(block, i - first, 1, 1344))
            store(dB_dtheta, i, 48, 37, c1)
            store(dB_dtheta, i, 48, 38, c1)
            store(dB_dtheta, i, 48, 39, c1)
            store(dB_dtheta, i, 48, 40, c1)
            store(dB_dtheta, i, 48, 41, load(block, i - first, 1, 1408))
            store(dB_dtheta, i, 48, 42, load(block, i - first, 1, 1472))
            store(dB_dtheta, i, 48, 43, c1)
            store(dB_dtheta, i, 48, 44, c1)
            store(dB_dtheta, i, 48, 45, load(block, i - first, 1, 1536))
            store(dB_dtheta, i, 48, 46, load(block, i - first, 1, 1600))
            store(dB_dtheta, i, 48, 47, c1)


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(4.76766)
    c4 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        across = load(x, i, 6, 0)
        height = load(x, i, 6, 1)
        pitch = load(x, i, 6, 2)
        across_rate = load(x, i, 6, 3)
        height_rate = load(x, i, 6, 4)
        right = load(u, i, 2, 0)
        left = load(u, i, 2, 1)
        costate_across = load(costate, i, 6, 0)
        costate_height = load(costate, i, 6, 1)
        costate_pitch = load(costate, i, 6, 2)
        costate_across_rate = load(costate, i, 6, 3)
        costate_height_rate = load(costate, i, 6, 4)
        costate_pitch_rate = load(costate, i, 6, 5)
        mass = load(theta, row, 4, 0)
        inertia = load(theta, row, 4, 1)
        arm = load(theta, row, 4, 2)
        drag = load(theta, row, 4, 3)
        t1s, t1c = sincos(pitch, real, half_pi)
        t2 = c2 / mass
        t3 = c2 / inertia
        t4 = t1c * c3 - mass * c4 - drag * height_rate + (right * t1c + left * t1c)
        t5 = costate_across_rate * t2
        t6 = costate_height_rate * t2
        t7 = costate_pitch_rate * t3
        t8 = t2 * (t1s * c3 - drag * across_rate + (right * t1s + left * t1s)) * t5
        t9 = arm * t7
        t10 = t1c * t6
        t11 = t1s * t5
        t12 = t1c * (left * t5 + right * t5 + c3 * t5) - t1s * (left * t6 + right * t6 + c3 * t6)
        store(dH_dx, i, 6, 0, across - across)
        store(dH_dx, i, 6, 1, height - height)
        store(dH_dx, i, 6, 2, t12)
        store(dH_dx, i, 6, 3, costate_across - drag * t5)
        store(dH_dx, i, 6, 4, costate_height - drag * t6)
        store(dH_dx, i, 6, 5, costate_pitch)
        store(dH_du, i, 2, 0, t10 - t9 + t11)
        store(dH_du, i, 2, 1, t9 + t10 + t11)
        store(dH_dtheta, i, 4, 0, -(t8 + t2 * t4 * t6 + c4 * t6))
        store(dH_dtheta, i, 4, 1, -(t3 * (arm * left - arm * right) * t7))
        store(dH_dtheta, i, 4, 2, left * t7 - right * t7)
        store(dH_dtheta, i, 4, 3, -(height_rate * t6 + across_rate * t5))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.1)
    c2 = real(0.02)
    c3 = real(0.5)
    c4 = real(4.934802200544679)
    for i in range(x.shape[0]):
        row = step * i
        across = load(x, i, 6, 0)
        height = load(x, i, 6, 1)
        pitch = load(x, i, 6, 2)
        across_rate = load(x, i, 6, 3)
        height_rate = load(x, i, 6, 4)
        pitch_rate = load(x, i, 6, 5)
        t1 = pitch * c3
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = c1 * (height_rate * height_rate) + (c1 * (across_rate * across_rate) + (across * across + height * height))
        t4 = t2s * c4
        t5 = pitch_rate * c2
        t6 = height_rate * c1
        t7 = across_rate * c1
        store(q, i, 1, 0, t2s * t2s * c4 + (c2 * (pitch_rate * pitch_rate) + t3))
        store(dq_dx, i, 6, 0, across + across)
        store(dq_dx, i, 6, 1, height + height)
        store(dq_dx, i, 6, 2, c3 * ((t4 + t4) * t2c))
        store(dq_dx, i, 6, 3, t7 + t7)
        store(dq_dx, i, 6, 4, t6 + t6)
        store(dq_dx, i, 6, 5, t5 + t5)
