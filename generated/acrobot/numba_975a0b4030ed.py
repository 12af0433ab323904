"""acrobot: kernels for Numba, made by modelgen; not to be edited."""

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
    c3 = real(2.0)
    c4 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        upper_mass = load(theta, row, 7, 0)
        upper_length = load(theta, row, 7, 1)
        upper_centre = load(theta, row, 7, 2)
        upper_inertia = load(theta, row, 7, 3)
        lower_mass = load(theta, row, 7, 4)
        lower_centre = load(theta, row, 7, 5)
        lower_inertia = load(theta, row, 7, 6)
        t1 = lower_centre * (upper_length * lower_mass)
        t2s, t2c = sincos(elbow, real, half_pi)
        t3 = t1 * t2c
        t4 = lower_inertia + lower_mass * (lower_centre * lower_centre)
        t5 = t1 * t2s
        t6 = sincos(shoulder, real, half_pi)[0]
        t7 = sincos(shoulder + elbow, real, half_pi)[0]
        t8 = upper_mass * (upper_centre * upper_centre) + (lower_mass * (upper_length * upper_length) + (t3 * c3 + (upper_inertia + t4)))
        t9 = t3 + t4
        t10 = c3 * (t5 * (shoulder_rate * elbow_rate)) + (elbow_rate * elbow_rate * t5 + (upper_length * t6 + lower_centre * t7) * (lower_mass * c4))
        t11 = c4 * (t6 * (upper_mass * upper_centre)) + t10
        t12 = c2 / t8
        t13 = t9 * t12
        t14 = c2 / (t4 - t9 * t13)
        t15 = t14 * (c4 * (t7 * (lower_mass * lower_centre)) - t5 * (shoulder_rate * shoulder_rate) - t11 * t13)
        store(a, i, 4, 0, shoulder_rate)
        store(a, i, 4, 1, elbow_rate)
        store(a, i, 4, 2, t11 * t12 - t13 * t15)
        store(a, i, 4, 3, t15)
        store(B, i, 4, 0, c1)
        store(B, i, 4, 1, c1)
        store(B, i, 4, 2, -(t13 * t14))
        store(B, i, 4, 3, t14)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(2.0)
    c3 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        torque = load(u, i, 1, 0)
        upper_mass = load(theta, row, 7, 0)
        upper_length = load(theta, row, 7, 1)
        upper_centre = load(theta, row, 7, 2)
        upper_inertia = load(theta, row, 7, 3)
        lower_mass = load(theta, row, 7, 4)
        lower_centre = load(theta, row, 7, 5)
        lower_inertia = load(theta, row, 7, 6)
        t1 = lower_centre * (upper_length * lower_mass)
        t2s, t2c = sincos(elbow, real, half_pi)
        t3 = t1 * t2c
        t4 = lower_inertia + lower_mass * (lower_centre * lower_centre)
        t5 = t1 * t2s
        t6 = sincos(shoulder, real, half_pi)[0]
        t7 = sincos(shoulder + elbow, real, half_pi)[0]
        t8 = upper_mass * (upper_centre * upper_centre) + (lower_mass * (upper_length * upper_length) + (t3 * c2 + (upper_inertia + t4)))
        t9 = t3 + t4
        t10 = c2 * (t5 * (shoulder_rate * elbow_rate)) + (elbow_rate * elbow_rate * t5 + (upper_length * t6 + lower_centre * t7) * (lower_mass * c3))
        t11 = c3 * (t6 * (upper_mass * upper_centre)) + t10
        t12 = c1 / t8
        t13 = t9 * t12
        t14 = torque + (c3 * (t7 * (lower_mass * lower_centre)) - t5 * (shoulder_rate * shoulder_rate)) - t11 * t13
        t15 = c1 / (t4 - t9 * t13) * t14
        store(xdot, i, 4, 0, shoulder_rate)
        store(xdot, i, 4, 1, elbow_rate)
        store(xdot, i, 4, 2, t11 * t12 - t13 * t15)
        store(xdot, i, 4, 3, t15)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(2.0)
    c4 = real(9.81)
    block = np.empty(2432, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            shoulder = load(x, i, 4, 0)
            elbow = load(x, i, 4, 1)
            shoulder_rate = load(x, i, 4, 2)
            elbow_rate = load(x, i, 4, 3)
            upper_mass = load(theta, row, 7, 0)
            upper_length = load(theta, row, 7, 1)
            upper_centre = load(theta, row, 7, 2)
            upper_inertia = load(theta, row, 7, 3)
            lower_mass = load(theta, row, 7, 4)
            lower_centre = load(theta, row, 7, 5)
            lower_inertia = load(theta, row, 7, 6)
            t1 = upper_length * lower_mass
            t2 = lower_centre * t1
            t3s, t3c = sincos(elbow, real, half_pi)
            t4 = t2 * t3c
            t5 = lower_centre * lower_centre
            t6 = lower_inertia + lower_mass * t5
            t7 = elbow_rate * elbow_rate
            t8 = t2 * t3s
            t9s, t9c = sincos(shoulder, real, half_pi)
            t10 = shoulder + elbow
            t11s, t11c = sincos(t10, real, half_pi)
            t12 = shoulder_rate * shoulder_rate
            t13 = upper_length * upper_length
            t14 = upper_centre * upper_centre
            t15 = t4 + t6
            t16 = lower_centre * t11s
            t17 = upper_length * t9s + t16
            t18 = lower_mass * c4
            t19 = shoulder_rate * elbow_rate
            t20 = upper_mass * upper_centre
            t21 = c4 * (t9s * t20) + (c3 * (t8 * t19) + (t7 * t8 + t17 * t18))
            t22 = lower_mass * lower_centre
            t23 = c2 / (upper_mass * t14 + (lower_mass * t13 + (t4 * c3 + (upper_inertia + t6))))
            t24 = t15 * t23
            t25 = c2 / (t6 - t15 * t24)
            t26 = t25 * (c4 * (t11s * t22) - t8 * t12 - t21 * t24)
            t27 = t21 * t23 - t24 * t26
            t28 = -(t24 * t25)
            t29 = lower_centre * t11c
            t30 = t18 * (upper_length * t9c + t29) + c4 * (t20 * t9c)
            t31 = c4 * (t22 * t11c)
            t32 = t25 * (t31 - t24 * t30)
            t33 = t8 * c3
            t34 = c3 * (t4 * t19) + (t4 * t7 + t18 * t29) + (t27 * t33 + t8 * t26)
            t35 = t25 * (t31 - t4 * t12 + t8 * t27 - t24 * t34)
            t36 = c3 * (elbow_rate * t8)
            t37 = t25 * (t8 * (shoulder_rate + shoulder_rate) + t24 * t36)
            t38 = t8 * (elbow_rate + elbow_rate) + c3 * (shoulder_rate * t8)
            t39 = t25 * (t24 * t38)
            t40 = t28 * t33 + t8 * t25
            t41 = t25 * (t8 * t28 - t24 * t40)
            t42 = c4 * (upper_centre * t9s) - t14 * t27
            t43 = t25 * (t24 * t42)
            t44 = t3c * t22
            t45 = t3s * t22
            t46 = c3 * t44 + lower_mass * (upper_length + upper_length)
            t47 = c3 * (t19 * t45) + (t7 * t45 + t9s * t18) - (t27 * t46 + t26 * t44)
            t48 = t25 * (t12 * t45 + t27 * t44 + t24 * t47)
            t49 = upper_mass * (upper_centre + upper_centre)
            t50 = c4 * (upper_mass * t9s) - t27 * t49
            t51 = t25 * (t24 * t50)
            t52 = t25 * (t24 * t27)
            t53 = upper_length * lower_centre
            t54 = t3c * t53
            t55 = t3s * t53
            t56 = t13 + (t5 + c3 * t54)
            t57 = t5 + t54
            t58 = c3 * (t19 * t55) + (t7 * t55 + c4 * t17) - (t27 * t56 + t26 * t57)
            t59 = c4 * t16 - t12 * t55 - (t27 * t57 + t5 * t26) - t24 * t58
            t60 = t25 * t59
            t61 = t1 * t3c
            t62 = lower_mass * (lower_centre + lower_centre)
            t63 = t1 * t3s
            t64 = t62 + c3 * t61
            t65 = t61 + t62
            t66 = c3 * (t19 * t63) + (t7 * t63 + t11s * t18) - (t27 * t64 + t26 * t65)
            t67 = c4 * (lower_mass * t11s) - t12 * t63 - (t27 * t65 + t26 * t62) - t24 * t66
            t68 = t25 * t67
            t69 = t27 + t26
            t70 = t25 * (t24 * t69 - t69)
            t71 = t14 * t28
            t72 = t25 * (t24 * t71)
            t73 = t28 * t46 + t25 * t44
            t74 = t25 * (t24 * t73 - t28 * t44)
            t75 = t28 * t49
            t76 = t25 * (t24 * t75)
            t77 = t25 * (t24 * t28)
            t78 = t28 * t56 + t25 * t57
            t79 = t25 * (t24 * t78 - (t28 * t57 + t5 * t25))
            t80 = t28 * t64 + t25 * t65
            t81 = t25 * (t24 * t80 - (t28 * t65 + t25 * t62))
            t82 = t28 + t25
            t83 = t25 * (t24 * t82 - t82)
            store(a, i, 4, 0, shoulder_rate)
            store(a, i, 4, 1, elbow_rate)
            store(a, i, 4, 2, t27)
            store(a, i, 4, 3, t26)
            store(B, i, 4, 0, c1)
            store(B, i, 4, 1, c1)
            store(B, i, 4, 2, t28)
            store(B, i, 4, 3, t25)
            store(block, i - first, 1, 0, t23 * t30 - t24 * t32)
            store(block, i - first, 1, 64, t23 * t34 - t24 * t35)
            store(block, i - first, 1, 128, t23 * t36 + t24 * t37)
            store(block, i - first, 1, 192, t23 * t38 + t24 * t39)
            store(block, i - first, 1, 256, t32)
            store(block, i - first, 1, 320, t35)
            store(block, i - first, 1, 384, -t37)
            store(block, i - first, 1, 448, -t39)
            store(block, i - first, 1, 512, t23 * t40 - t24 * t41)
            store(block, i - first, 1, 576, t41)
            store(block, i - first, 1, 640, t23 * t42 + t24 * t43)
            store(block, i - first, 1, 704, t23 * t47 + t24 * t48)
            store(block, i - first, 1, 768, t23 * t50 + t24 * t51)
            store(block, i - first, 1, 832, -(t23 * t27 + t24 * t52))
            store(block, i - first, 1, 896, t23 * t58 - t24 * t60)
            store(block, i - first, 1, 960, t23 * t66 - t24 * t68)
            store(block, i - first, 1, 1024, -(t23 * t69 + t24 * t70))
            store(block, i - first, 1, 1088, -t43)
            store(block, i - first, 1, 1152, -t48)
            store(block, i - first, 1, 1216, -t51)
            store(block, i - first, 1, 1280, t52)
            store(block, i - first, 1, 1344, t60)
            store(block, i - first, 1, 1408, t68)
            store(block, i - first, 1, 1472, t70)
            store(block, i - first, 1, 1536, -(t23 * t71 + t24 * t72))
            store(block, i - first, 1, 1600, -(t23 * t73 + t24 * t74))
            store(block, i - first, 1, 1664, -(t23 * t75 + t24 * t76))
            store(block, i - first, 1, 1728, -(t23 * t28 + t24 * t77))
            store(block, i - first, 1, 1792, -(t23 * t78 + t24 * t79))
            store(block, i - first, 1, 1856, -(t23 * t80 + t24 * t81))
            store(block, i - first, 1, 1920, -(t23 * t82 + t24 * t83))
            store(block, i - first, 1, 1984, t72)
            store(block, i - first, 1, 2048, t74)
            store(block, i - first, 1, 2112, t76)
            store(block, i - first, 1, 2176, t77)
            store(block, i - first, 1, 2240, t79)
            store(block, i - first, 1, 2304, t81)
            store(block, i - first, 1, 2368, t83)
        for i in range(first, last):
            one_by_one()
            store(da_dx, i, 16, 0, c1)
            store(da_dx, i, 16, 1, c1)
            store(da_dx, i, 16, 2, c2)
            store(da_dx, i, 16, 3, c1)
            store(da_dx, i, 16, 4, c1)
            store(da_dx, i, 16, 5, c1)
            store(da_dx, i, 16, 6, c1)
            store(da_dx, i, 16, 7, c2)
            store(da_dx, i, 16, 8, load(block, i - first, 1, 0))
            store(da_dx, i, 16, 9, load(block, i - first, 1, 64))
            store(da_dx, i, 16, 10, load(block, i - first, 1, 128))
            store(da_dx, i, 16, 11, load(block, i - first, 1, 192))
            store(da_dx, i, 16, 12, load(block, i - first, 1, 256))
            store(da_dx, i, 16, 13, load(block, i - first, 1, 320))
            store(da_dx, i, 16, 14, load(block, i - first, 1, 384))
            store(da_dx, i, 16, 15, load(block, i - first, 1, 448))
            store(dB_dx, i, 16, 0, c1)
            store(dB_dx, i, 16, 1, c1)
            store(dB_dx, i, 16, 2, c1)
            store(dB_dx, i, 16, 3, c1)
            store(dB_dx, i, 16, 4, c1)
            store(dB_dx, i, 16, 5, c1)
            store(dB_dx, i, 16, 6, c1)
            store(dB_dx, i, 16, 7, c1)
            store(dB_dx, i, 16, 8, c1)
            store(dB_dx, i, 16, 9, load(block, i - first, 1, 512))
            store(dB_dx, i, 16, 10, c1)
            store(dB_dx, i, 16, 11, c1)
            store(dB_dx, i, 16, 12, c1)
            store(dB_dx, i, 16, 13, load(block, i - first, 1, 576))
            store(dB_dx, i, 16, 14, c1)
            store(dB_dx, i, 16, 15, c1)
            store(da_dtheta, i, 28, 0, c1)
            store(da_dtheta, i, 28, 1, c1)
            store(da_dtheta, i, 28, 2, c1)
            store(da_dtheta, i, 28, 3, c1)
            store(da_dtheta, i, 28, 4, c1)
            store(da_dtheta, i, 28, 5, c1)
            store(da_dtheta, i, 28, 6, c1)
            store(da_dtheta, i, 28, 7, c1)
            store(da_dtheta, i, 28, 8, c1)
            store(da_dtheta, i, 28, 9, c1)
            store(da_dtheta, i, 28, 10, c1)
            store(da_dtheta, i, 28, 11, c1)
            store(da_dtheta, i, 28, 12, c1)
            store(da_dtheta, i, 28, 13, c1)
            store(da_dtheta, i, 28, 14, load(block, i - first, 1, 640))
            store(da_dtheta, i, 28, 15, load(block, i - first, 1, 704))
            store(da_dtheta, i, 28, 16, load(block, i - first, 1, 768))
            store(da_dtheta, i, 28, 17, load(block, i - first, 1, 832))
            store(da_dtheta, i, 28, 18, load(block, i - first, 1, 896))
            store(da_dtheta, i, 28, 19, load(block, i - first, 1, 960))
            store(da_dtheta, i, 28, 20, load(block, i - first, 1, 1024))
            store(da_dtheta, i, 28, 21, load(block, i - first, 1, 1088))
            store(da_dtheta, i, 28, 22, load(block, i - first, 1, 1152))
            store(da_dtheta, i, 28, 23, load(block, i - first, 1, 1216))
            store(da_dtheta, i, 28, 24, load(block, i - first, 1, 1280))
            store(da_dtheta, i, 28, 25, load(block, i - first, 1, 1344))
            store(da_dtheta, i, 28, 26, load(block, i - first, 1, 1408))
            store(da_dtheta, i, 28, 27, load(block, i - first, 1, 1472))
            store(dB_dtheta, i, 28, 0, c1)
            store(dB_dtheta, i, 28, 1, c1)
            store(dB_dtheta, i, 28, 2, c1)
            store(dB_dtheta, i, 28, 3, c1)
            store(dB_dtheta, i, 28, 4, c1)
            store(dB_dtheta, i, 28, 5, c1)
            store(dB_dtheta, i, 28, 6, c1)
            store(dB_dtheta, i, 28, 7, c1)
            store(dB_dtheta, i, 28, 8, c1)
            store(dB_dtheta, i, 28, 9, c1)
            store(dB_dtheta, i, 28, 10, c1)
            store(dB_dtheta, i, 28, 11, c1)
            store(dB_dtheta, i, 28, 12, c1)
            store(dB_dtheta, i, 28, 13, c1)
            store(dB_dtheta, i, 28, 14, load(block, i - first, 1, 1536))
            store(dB_dtheta, i, 28, 15, load(block, i - first, 1, 1600))
            store(dB_dtheta, i, 28, 16, load(block, i - first, 1, 1664))
            store(dB_dtheta, i, 28, 17, load(block, i - first, 1, 1728))
            store(dB_dtheta, i, 28, 18, load(block, i - first, 1, 1792))
            store(dB_dtheta, i, 28, 19, load(block, i - first, 1, 1856))
            store(dB_dtheta, i, 28, 20, load(block, i - first, 1, 1920))
            store(dB_dtheta, i, 28, 21, load(block, i - first, 1, 1984))
            store(dB_dtheta, i, 28, 22, load(block, i - first, 1, 2048))
            store(dB_dtheta, i, 28, 23, load(block, i - first, 1, 2112))
            store(dB_dtheta, i, 28, 24, load(block, i - first, 1, 2176))
            store(dB_dtheta, i, 28, 25, load(block, i - first, 1, 2240))
            store(dB_dtheta, i, 28, 26, load(block, i - first, 1, 2304))
            store(dB_dtheta, i, 28, 27, load(block, i - first, 1, 2368))


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(2.0)
    c3 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        torque = load(u, i, 1, 0)
        costate_shoulder = load(costate, i, 4, 0)
        costate_elbow = load(costate, i, 4, 1)
        costate_shoulder_rate = load(costate, i, 4, 2)
        costate_elbow_rate = load(costate, i, 4, 3)
        upper_mass = load(theta, row, 7, 0)
        upper_length = load(theta, row, 7, 1)
        upper_centre = load(theta, row, 7, 2)
        upper_inertia = load(theta, row, 7, 3)
        lower_mass = load(theta, row, 7, 4)
        lower_centre = load(theta, row, 7, 5)
        lower_inertia = load(theta, row, 7, 6)
        t1 = upper_length * lower_mass
        t2 = lower_centre * t1
        t3s, t3c = sincos(elbow, real, half_pi)
        t4 = t2 * t3c
        t5 = lower_centre * lower_centre
        t6 = lower_inertia + lower_mass * t5
        t7 = elbow_rate * elbow_rate
        t8 = t2 * t3s
        t9s, t9c = sincos(shoulder, real, half_pi)
        t10 = shoulder + elbow
        t11s, t11c = sincos(t10, real, half_pi)
        t12 = shoulder_rate * shoulder_rate
        t13 = upper_length * upper_length
        t14 = upper_centre * upper_centre
        t15 = t4 + t6
        t16 = upper_length * t9s + lower_centre * t11s
        t17 = lower_mass * c3
        t18 = shoulder_rate * elbow_rate
        t19 = upper_mass * upper_centre
        t20 = c3 * (t9s * t19) + (c2 * (t8 * t18) + (t7 * t8 + t16 * t17))
        t21 = lower_mass * lower_centre
        t22 = c1 / (upper_mass * t14 + (lower_mass * t13 + (t4 * c2 + (upper_inertia + t6))))
        t23 = t15 * t22
        t24 = c1 / (t6 - t15 * t23)
        t25 = t24 * (torque + (c3 * (t11s * t21) - t8 * t12) - t20 * t23)
        t26 = t20 * t22 - t23 * t25
        t27 = t24 * (costate_elbow_rate - costate_shoulder_rate * t23)
        t28 = costate_shoulder_rate * t22 - t23 * t27
        t29 = t26 * t28
        t30 = t26 * t27 + t25 * t28
        t31 = c3 * t27
        t32 = t11s * t31
        t33 = c3 * t28
        t34 = t9s * t33
        t35 = c2 * t28
        t36 = t8 * t35
        t37 = t17 * t28
        t38 = t18 * t35 - t12 * t27 + t7 * t28
        t39 = t29 + (t25 * t27 + t30)
        t40 = upper_centre * (upper_mass * t29)
        t41 = upper_length * (lower_mass * t29)
        t42 = t30 + c2 * t29
        t43 = shoulder_rate * (t8 * t27)
        t44 = t11c * (t21 * t31 + lower_centre * t37)
        t45 = elbow_rate * (t8 * t28)
        t46 = lower_centre * (lower_mass * t39)
        t47 = t3s * t38 - t3c * t42
        t48 = lower_centre * t47
        t49 = lower_centre * t32 + c3 * (t16 * t28) - t13 * t29 - t5 * t39 + upper_length * t48
        store(dH_dx, i, 4, 0, t44 + t9c * (t19 * t33 + upper_length * t37))
        store(dH_dx, i, 4, 1, t44 + t3c * (t2 * t38) + t3s * (t2 * t42))
        store(dH_dx, i, 4, 2, costate_shoulder + elbow_rate * t36 - t43 - t43)
        store(dH_dx, i, 4, 3, t45 + (costate_elbow + shoulder_rate * t36 + t45))
        store(dH_du, i, 1, 0, t27)
        store(dH_dtheta, i, 7, 0, upper_centre * t34 - t14 * t29)
        store(dH_dtheta, i, 7, 1, t9s * t37 - t41 - t41 + lower_mass * t48)
        store(dH_dtheta, i, 7, 2, upper_mass * t34 - t40 - t40)
        store(dH_dtheta, i, 7, 3, -t29)
        store(dH_dtheta, i, 7, 4, t49)
        store(dH_dtheta, i, 7, 5, lower_mass * t32 + t11s * t37 - t46 - t46 + t1 * t47)
        store(dH_dtheta, i, 7, 6, -t39)


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(9.869604401089358)
    c2 = real(0.1)
    c3 = real(0.5)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        t1 = elbow * c3
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = shoulder * c3
        t4s, t4c = sincos(t3, real, half_pi)
        t5 = c1 * (t4s * t4s) + (c1 * (t2s * t2s) + (elbow_rate * elbow_rate * c2 + shoulder_rate * shoulder_rate * c2))
        t6 = c1 * t4s
        t7 = c1 * t2s
        t8 = shoulder_rate * c2
        t9 = elbow_rate * c2
        store(q, i, 1, 0, t5)
        store(dq_dx, i, 4, 0, c3 * ((t6 + t6) * t4c))
        store(dq_dx, i, 4, 1, c3 * ((t7 + t7) * t2c))
        store(dq_dx, i, 4, 2, t8 + t8)
        store(dq_dx, i, 4, 3, t9 + t9)
