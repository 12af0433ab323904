"""planar_arm2: kernels for Numba, made by modelgen; not to be edited."""

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
    c3 = real(9.81)
    c4 = real(105.01)
    c5 = real(2.0)
    c6 = real(100.0)
    c7 = real(49.050000000000004)
    block = np.empty(256, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            shoulder = load(x, i, 4, 0)
            elbow = load(x, i, 4, 1)
            shoulder_rate = load(x, i, 4, 2)
            elbow_rate = load(x, i, 4, 3)
            upper_mass = load(theta, row, 6, 0)
            lower_mass = load(theta, row, 6, 1)
            upper_inertia = load(theta, row, 6, 2)
            lower_inertia = load(theta, row, 6, 3)
            upper_centre = load(theta, row, 6, 4)
            lower_centre = load(theta, row, 6, 5)
            t1s, t1c = sincos(elbow, real, half_pi)
            t2 = lower_inertia + lower_mass * (lower_centre * lower_centre)
            t3 = sincos(shoulder, real, half_pi)[1]
            t4 = lower_centre * sincos(shoulder + elbow, real, half_pi)[1]
            t5 = lower_mass * c3
            t6 = lower_mass * (lower_centre * t1c)
            t7 = t6 + (c2 + t2)
            t8 = lower_mass * lower_centre
            t9 = t1s * t8
            t10 = elbow_rate * elbow_rate * t9 + c5 * (t1s * (elbow_rate * (shoulder_rate * t8))) - t3 * c7
            t11 = t10 - t5 * (t3 + t4) - c3 * (t3 * (upper_mass * upper_centre))
            t12 = c2 / (upper_mass * (upper_centre * upper_centre) + (c5 * t6 + (c4 + (t2 + (lower_mass + upper_inertia)))))
            t13 = t7 * t12
            t14 = c2 / (t2 + c6 - t7 * t13)
            t15 = t14 * (t4 * t5 + shoulder_rate * shoulder_rate * t9 + t11 * t13)
            t16 = t13 * t14
            t17 = -t16
            store(a, i, 4, 0, shoulder_rate)
            store(a, i, 4, 1, elbow_rate)
            store(a, i, 4, 2, t11 * t12 + t13 * t15)
            store(a, i, 4, 3, -t15)
            store(block, i - first, 1, 0, t12 + t13 * t16)
            store(block, i - first, 1, 64, t17)
            store(block, i - first, 1, 128, t17)
            store(block, i - first, 1, 192, t14)
        for i in range(first, last):
            one_by_one()
            store(B, i, 8, 0, c1)
            store(B, i, 8, 1, c1)
            store(B, i, 8, 2, c1)
            store(B, i, 8, 3, c1)
            store(B, i, 8, 4, load(block, i - first, 1, 0))
            store(B, i, 8, 5, load(block, i - first, 1, 64))
            store(B, i, 8, 6, load(block, i - first, 1, 128))
            store(B, i, 8, 7, load(block, i - first, 1, 192))


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(9.81)
    c3 = real(105.01)
    c4 = real(2.0)
    c5 = real(100.0)
    c6 = real(49.050000000000004)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        shoulder_torque = load(u, i, 2, 0)
        elbow_torque = load(u, i, 2, 1)
        upper_mass = load(theta, row, 6, 0)
        lower_mass = load(theta, row, 6, 1)
        upper_inertia = load(theta, row, 6, 2)
        lower_inertia = load(theta, row, 6, 3)
        upper_centre = load(theta, row, 6, 4)
        lower_centre = load(theta, row, 6, 5)
        t1s, t1c = sincos(elbow, real, half_pi)
        t2 = lower_inertia + lower_mass * (lower_centre * lower_centre)
        t3 = sincos(shoulder, real, half_pi)[1]
        t4 = lower_centre * sincos(shoulder + elbow, real, half_pi)[1]
        t5 = lower_mass * c2
        t6 = lower_mass * (lower_centre * t1c)
        t7 = t6 + (c1 + t2)
        t8 = lower_mass * lower_centre
        t9 = t1s * t8
        t10 = elbow_rate * elbow_rate * t9 + c4 * (t1s * (elbow_rate * (shoulder_rate * t8))) - t3 * c6
        t11 = c1 / (upper_mass * (upper_centre * upper_centre) + (c4 * t6 + (c3 + (t2 + (lower_mass + upper_inertia)))))
        t12 = t7 * t11
        t13 = shoulder_torque + (t10 - t5 * (t3 + t4) - c2 * (t3 * (upper_mass * upper_centre)))
        t14 = c1 / (t2 + c5 - t7 * t12) * (elbow_torque - (t4 * t5 + shoulder_rate * shoulder_rate * t9) - t12 * t13)
        store(xdot, i, 4, 0, shoulder_rate)
        store(xdot, i, 4, 1, elbow_rate)
        store(xdot, i, 4, 2, t11 * t13 - t12 * t14)
        store(xdot, i, 4, 3, t14)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(9.81)
    c4 = real(105.01)
    c5 = real(2.0)
    c6 = real(100.0)
    c7 = real(49.050000000000004)
    block = np.empty(3328, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            shoulder = load(x, i, 4, 0)
            elbow = load(x, i, 4, 1)
            shoulder_rate = load(x, i, 4, 2)
            elbow_rate = load(x, i, 4, 3)
            upper_mass = load(theta, row, 6, 0)
            lower_mass = load(theta, row, 6, 1)
            upper_inertia = load(theta, row, 6, 2)
            lower_inertia = load(theta, row, 6, 3)
            upper_centre = load(theta, row, 6, 4)
            lower_centre = load(theta, row, 6, 5)
            t1s, t1c = sincos(elbow, real, half_pi)
            t2 = lower_centre * t1c
            t3 = lower_centre * lower_centre
            t4 = lower_inertia + lower_mass * t3
            t5s, t5c = sincos(shoulder, real, half_pi)
            t6 = elbow_rate * elbow_rate
            t7 = shoulder + elbow
            t8s, t8c = sincos(t7, real, half_pi)
            t9 = lower_centre * t8c
            t10 = lower_mass * c3
            t11 = shoulder_rate * shoulder_rate
            t12 = lower_mass * t2
            t13 = upper_centre * upper_centre
            t14 = t12 + (c2 + t4)
            t15 = t5c + t9
            t16 = upper_mass * upper_centre
            t17 = lower_mass * lower_centre
            t18 = t1s * t17
            t19 = shoulder_rate * t17
            t20 = elbow_rate * t19
            t21 = t6 * t18 + c5 * (t1s * t20) - t5c * c7 - t10 * t15 - c3 * (t5c * t16)
            t22 = c2 / (upper_mass * t13 + (c5 * t12 + (c4 + (t4 + (lower_mass + upper_inertia)))))
            t23 = t14 * t22
            t24 = c2 / (t4 + c6 - t14 * t23)
            t25 = t24 * (t9 * t10 + t11 * t18 + t21 * t23)
            t26 = t21 * t22 + t23 * t25
            t27 = -t25
            t28 = t23 * t24
            t29 = -t28
            t30 = t22 + t23 * t28
            t31 = lower_centre * t8s
            t32 = c3 * (t16 * t5s) + (c7 * t5s + t10 * (t5s + t31))
            t33 = t10 * t31
            t34 = t24 * (t33 - t23 * t32)
            t35 = lower_centre * t1s
            t36 = lower_mass * t35
            t37 = c5 * t36
            t38 = t1c * t17
            t39 = t33 + (t6 * t38 + c5 * (t1c * t20)) + (t26 * t37 + t27 * t36)
            t40 = t24 * (t33 - t11 * t38 + t26 * t36 - t23 * t39)
            t41 = c5 * (t1s * (elbow_rate * t17))
            t42 = t24 * (t18 * (shoulder_rate + shoulder_rate) + t23 * t41)
            t43 = t18 * (elbow_rate + elbow_rate) + c5 * (t1s * t19)
            t44 = t24 * (t23 * t43)
            t45 = t30 * t37 + t29 * t36
            t46 = t24 * (t30 * t36 - t23 * t45)
            t47 = t29 * t37 + t24 * t36
            t48 = t24 * (t29 * t36 - t23 * t47)
            t49 = c3 * (upper_centre * t5c) + t13 * t26
            t50 = t24 * (t23 * t49)
            t51 = t2 * c5 + (c2 + t3)
            t52 = t2 + t3
            t53 = t6 * t35 + c5 * (t1s * (elbow_rate * (lower_centre * shoulder_rate))) - c3 * t15 - (t26 * t51 + t27 * t52)
            t54 = t9 * c3 + t11 * t35 + (t26 * t52 + t3 * t27) + t23 * t53
            t55 = t24 * t54
            t56 = t24 * (t23 * t26)
            t57 = t26 + t27
            t58 = t24 * (t23 * t57 - t57)
            t59 = upper_mass * (upper_centre + upper_centre)
            t60 = c3 * (upper_mass * t5c) + t26 * t59
            t61 = t24 * (t23 * t60)
            t62 = lower_mass * (lower_centre + lower_centre)
            t63 = lower_mass * t1c
            t64 = t62 + c5 * t63
            t65 = t62 + t63
            t66 = t8c * t10
            t67 = lower_mass * t1s
            t68 = t6 * t67 + c5 * (t1s * (elbow_rate * (lower_mass * shoulder_rate))) - t66 - (t26 * t64 + t27 * t65)
            t69 = t24 * (t66 + t11 * t67 + (t26 * t65 + t27 * t62) + t23 * t68)
            t70 = t13 * t30
            t71 = t24 * (t23 * t70)
            t72 = t13 * t29
            t73 = t24 * (t23 * t72)
            t74 = t30 * t51 + t29 * t52
            t75 = t24 * (t23 * t74 - (t30 * t52 + t3 * t29))
            t76 = t29 * t51 + t24 * t52
            t77 = t24 * (t23 * t76 - (t29 * t52 + t3 * t24))
            t78 = t24 * (t23 * t30)
            t79 = t24 * (t23 * t29)
            t80 = t30 + t29
            t81 = t24 * (t23 * t80 - t80)
            t82 = t29 + t24
            t83 = t24 * (t23 * t82 - t82)
            t84 = t30 * t59
            t85 = t24 * (t23 * t84)
            t86 = t29 * t59
            t87 = t24 * (t23 * t86)
            t88 = t30 * t64 + t29 * t65
            t89 = t24 * (t23 * t88 - (t30 * t65 + t29 * t62))
            t90 = t29 * t64 + t24 * t65
            t91 = t24 * (t23 * t90 - (t29 * t65 + t24 * t62))
            store(a, i, 4, 0, shoulder_rate)
            store(a, i, 4, 1, elbow_rate)
            store(a, i, 4, 2, t26)
            store(a, i, 4, 3, t27)
            store(block, i - first, 1, 0, t30)
            store(block, i - first, 1, 64, t29)
            store(block, i - first, 1, 128, t29)
            store(block, i - first, 1, 192, t24)
            store(block, i - first, 1, 256, t22 * t32 - t23 * t34)
            store(block, i - first, 1, 320, t22 * t39 - t23 * t40)
            store(block, i - first, 1, 384, t22 * t41 + t23 * t42)
            store(block, i - first, 1, 448, t22 * t43 + t23 * t44)
            store(block, i - first, 1, 512, t34)
            store(block, i - first, 1, 576, t40)
            store(block, i - first, 1, 640, -t42)
            store(block, i - first, 1, 704, -t44)
            store(block, i - first, 1, 768, t22 * t45 - t23 * t46)
            store(block, i - first, 1, 832, t22 * t47 - t23 * t48)
            store(block, i - first, 1, 896, t46)
            store(block, i - first, 1, 960, t48)
            store(block, i - first, 1, 1024, -(t22 * t49 + t23 * t50))
            store(block, i - first, 1, 1088, t22 * t53 + t23 * t55)
            store(block, i - first, 1, 1152, -(t22 * t26 + t23 * t56))
            store(block, i - first, 1, 1216, -(t22 * t57 + t23 * t58))
            store(block, i - first, 1, 1280, -(t22 * t60 + t23 * t61))
            store(block, i - first, 1, 1344, t22 * t68 + t23 * t69)
            store(block, i - first, 1, 1408, t50)
            store(block, i - first, 1, 1472, -t55)
            store(block, i - first, 1, 1536, t56)
            store(block, i - first, 1, 1600, t58)
            store(block, i - first, 1, 1664, t61)
            store(block, i - first, 1, 1728, -t69)
            store(block, i - first, 1, 1792, -(t22 * t70 + t23 * t71))
            store(block, i - first, 1, 1856, -(t22 * t74 + t23 * t75))
            store(block, i - first, 1, 1920, -(t22 * t30 + t23 * t78))
            store(block, i - first, 1, 1984, -(t22 * t80 + t23 * t81))
            store(block, i - first, 1, 2048, -(t22 * t84 + t23 * t85))
            store(block, i - first, 1, 2112, -(t22 * t88 + t23 * t89))
            store(block, i - first, 1, 2176, -(t22 * t72 + t23 * t73))
            store(block, i - first, 1, 2240, -(t22 * t76 + t23 * t77))
            store(block, i - first, 1, 2304, -(t22 * t29 + t23 * t79))
            store(block, i - first, 1, 2368, -(t22 * t82 + t23 * t83))
            store(block, i - first, 1, 2432, -(t22 * t86 + t23 * t87))
            store(block, i - first, 1, 2496, -(t22 * t90 + t23 * t91))
            store(block, i - first, 1, 2560, t71)
            store(block, i - first, 1, 2624, t75)
            store(block, i - first, 1, 2688, t78)
            store(block, i - first, 1, 2752, t81)
            store(block, i - first, 1, 2816, t85)
            store(block, i - first, 1, 2880, t89)
            store(block, i - first, 1, 2944, t73)
            store(block, i - first, 1, 3008, t77)
            store(block, i - first, 1, 3072, t79)
            store(block, i - first, 1, 3136, t83)
            store(block, i - first, 1, 3200, t87)
            store(block, i - first, 1, 3264, t91)
        for i in range(first, last):
            one_by_one()
            store(B, i, 8, 0, c1)
            store(B, i, 8, 1, c1)
            store(B, i, 8, 2, c1)
            store(B, i, 8, 3, c1)
            store(B, i, 8, 4, load(block, i - first, 1, 0))
            store(B, i, 8, 5, load(block, i - first, 1, 64))
            store(B, i, 8, 6, load(block, i - first, 1, 128))
            store(B, i, 8, 7, load(block, i - first, 1, 192))
            store(da_dx, i, 16, 0, c1)
            store(da_dx, i, 16, 1, c1)
            store(da_dx, i, 16, 2, c2)
            store(da_dx, i, 16, 3, c1)
            store(da_dx, i, 16, 4, c1)
            store(da_dx, i, 16, 5, c1)
            store(da_dx, i, 16, 6, c1)
            store(da_dx, i, 16, 7, c2)
            store(da_dx, i, 16, 8, load(block, i - first, 1, 256))
            store(da_dx, i, 16, 9, load(block, i - first, 1, 320))
            store(da_dx, i, 16, 10, load(block, i - first, 1, 384))
            store(da_dx, i, 16, 11, load(block, i - first, 1, 448))
            store(da_dx, i, 16, 12, load(block, i - first, 1, 512))
            store(da_dx, i, 16, 13, load(block, i - first, 1, 576))
            store(da_dx, i, 16, 14, load(block, i - first, 1, 640))
            store(da_dx, i, 16, 15, load(block, i - first, 1, 704))
            store(dB_dx, i, 32, 0, c1)
            store(dB_dx, i, 32, 1, c1)
            store(dB_dx, i, 32, 2, c1)
            store(dB_dx, i, 32, 3, c1)
            store(dB_dx, i, 32, 4, c1)
            store(dB_dx, i, 32, 5, c1)
            store(dB_dx, i, 32, 6, c1)
            store(dB_dx, i, 32, 7, c1)
            store(dB_dx, i, 32, 8, c1)
            store(dB_dx, i, 32, 9, c1)
            store(dB_dx, i, 32, 10, c1)
            store(dB_dx, i, 32, 11, c1)
            store(dB_dx, i, 32, 12, c1)
            store(dB_dx, i, 32, 13, c1)
            store(dB_dx, i, 32, 14, c1)
            store(dB_dx, i, 32, 15, c1)
            store(dB_dx, i, 32, 16, c1)
            store(dB_dx, i, 32, 17, load(block, i - first, 1, 768))
            store(dB_dx, i, 32, 18, c1)
            store(dB_dx, i, 32, 19, c1)
            store(dB_dx, i, 32, 20, c1)
            store(dB_dx, i, 32, 21, load(block, i - first, 1, 832))
            store(dB_dx, i, 32, 22, c1)
            store(dB_dx, i, 32, 23, c1)
            store(dB_dx, i, 32, 24, c1)
            store(dB_dx, i, 32, 25, load(block, i - first, 1, 896))
            store(dB_dx, i, 32, 26, c1)
            store(dB_dx, i, 32, 27, c1)
            store(dB_dx, i, 32, 28, c1)
            store(dB_dx, i, 32, 29, load(block, i - first, 1, 960))
            store(dB_dx, i, 32, 30, c1)
            store(dB_dx, i, 32, 31, c1)
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
            store(da_dtheta, i, 24, 12, load(block, i - first, 1, 1024))
            store(da_dtheta, i, 24, 13, load(block, i - first, 1, 1088))
            store(da_dtheta, i, 24, 14, load(block, i - first, 1, 1152))
            store(da_dtheta, i, 24, 15, load(block, i - first, 1, 1216))
            store(da_dtheta, i, 24, 16, load(block, i - first, 1, 1280))
            store(da_dtheta, i, 24, 17, load(block, i - first, 1, 1344))
            store(da_dtheta, i, 24, 18, load(block, i - first, 1, 1408))
            store(da_dtheta, i, 24, 19, load(block, i - first, 1, 1472))
            store(da_dtheta, i, 24, 20, load(block, i - first, 1, 1536))
            store(da_dtheta, i, 24, 21, load(block, i - first, 1, 1600))
            store(da_dtheta, i, 24, 22, load(block, i - first, 1, 1664))
            store(da_dtheta, i, 24, 23, load(block, i - first, 1, 1728))
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
            store(dB_dtheta, i, 48, 24, load(block, i - first, 1, 1792))
            store(dB_dtheta, i, 48, 25, load(block, i - first, 1, 1856))
            store(dB_dtheta, i, 48, 26, load(block, i - first, 1, 1920))
            store(dB_dtheta, i, 48, 27, load(block, i - first, 1, 1984))
            store(dB_dtheta, i, 48, 28, load(block, i - first, 1, 2048))
            store(dB_dtheta, i, 48, 29, load(block, i - first, 1, 2112))
            store(dB_dtheta, i, 48, 30, load(block, i - first, 1, 2176))
            store(dB_dtheta, i, 48, 31, load(block, i - first, 1, 2240))
            store(dB_dtheta, i, 48, 32, load(block, i - first, 1, 2304))
            store(dB_dtheta, i, 48, 33, load(block, i - first, 1, 2368))
            store(dB_dtheta, i, 48, 34, load(block, i - first, 1, 2432))
            store(dB_dtheta, i, 48, 35, load(block, i - first, 1, 2496))
            store(dB_dtheta, i, 48, 36, load(block, i - first, 1, 2560))
            store(dB_dtheta, i, 48, 37, load(block, i - first, 1, 2624))
            store(dB_dtheta, i, 48, 38, load(block, i - first, 1, 2688))
            store(dB_dtheta, i, 48, 39, load(block, i - first, 1, 2752))
            store(dB_dtheta, i, 48, 40, load(block, i - first, 1, 2816))
            store(dB_dtheta, i, 48, 41, load(block, i - first, 1, 2880))
            store(dB_dtheta, i, 48, 42, load(block, i - first, 1, 2944))
            store(dB_dtheta, i, 48, 43, load(block, i - first, 1, 3008))
            store(dB_dtheta, i, 48, 44, load(block, i - first, 1, 3072))
            store(dB_dtheta, i, 48, 45, load(block, i - first, 1, 3136))
            store(dB_dtheta, i, 48, 46, load(block, i - first, 1, 3200))
            store(dB_dtheta, i, 48, 47, load(block, i - first, 1, 3264))


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(9.81)
    c3 = real(105.01)
    c4 = real(2.0)
    c5 = real(100.0)
    c6 = real(49.050000000000004)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        shoulder_torque = load(u, i, 2, 0)
        elbow_torque = load(u, i, 2, 1)
        costate_shoulder = load(costate, i, 4, 0)
        costate_elbow = load(costate, i, 4, 1)
        costate_shoulder_rate = load(costate, i, 4, 2)
        costate_elbow_rate = load(costate, i, 4, 3)
        upper_mass = load(theta, row, 6, 0)
        lower_mass = load(theta, row, 6, 1)
        upper_inertia = load(theta, row, 6, 2)
        lower_inertia = load(theta, row, 6, 3)
        upper_centre = load(theta, row, 6, 4)
        lower_centre = load(theta, row, 6, 5)
        t1s, t1c = sincos(elbow, real, half_pi)
        t2 = lower_centre * t1c
        t3 = lower_centre * lower_centre
        t4 = lower_inertia + lower_mass * t3
        t5s, t5c = sincos(shoulder, real, half_pi)
        t6 = elbow_rate * elbow_rate
        t7 = shoulder + elbow
        t8s, t8c = sincos(t7, real, half_pi)
        t9 = lower_centre * t8c
        t10 = lower_mass * c2
        t11 = shoulder_rate * shoulder_rate
        t12 = lower_mass * t2
        t13 = upper_centre * upper_centre
        t14 = t12 + (c1 + t4)
        t15 = t5c + t9
        t16 = upper_mass * upper_centre
        t17 = lower_mass * lower_centre
        t18 = t1s * t17
        t19 = shoulder_rate * t17
        t20 = elbow_rate * t19
        t21 = t6 * t18 + c4 * (t1s * t20) - t5c * c6 - t10 * t15 - c2 * (t5c * t16)
        t22 = c1 / (upper_mass * t13 + (c4 * t12 + (c3 + (t4 + (lower_mass + upper_inertia)))))
        t23 = t14 * t22
        t24 = c1 / (t4 + c5 - t14 * t23)
        t25 = shoulder_torque + t21
        t26 = t24 * (elbow_torque - (t9 * t10 + t11 * t18) - t23 * t25)
        t27 = t22 * t25 - t23 * t26
        t28 = t24 * (costate_elbow_rate - costate_shoulder_rate * t23)
        t29 = costate_shoulder_rate * t22 - t23 * t28
        t30 = t27 * t29
        t31 = t27 * t28 + t26 * t29
        t32 = c4 * t29
        t33 = t1s * t32
        t34 = elbow_rate * t33
        t35 = t6 * t29 - t11 * t28
        t36 = shoulder_rate * t34 + t1s * t35
        t37 = c2 * t29
        t38 = t5c * t37
        t39 = t10 * t29
        t40 = t10 * t28 + t39
        t41 = t30 + (t26 * t28 + t31)
        t42 = upper_centre * (upper_mass * t30)
        t43 = t31 + c4 * t30
        t44 = lower_mass * t43
        t45 = shoulder_rate * (t18 * t28)
        t46 = lower_centre * t36 - t30 - t2 * t43 - c2 * (t9 * t28 + t15 * t29)
        t47 = t8s * (lower_centre * t40)
        t48 = elbow_rate * (t18 * t29)
        t49 = lower_centre * (lower_mass * t41)
        store(dH_dx, i, 4, 0, t47 + t5s * (t16 * t37 + t39 + c6 * t29))
        store(dH_dx, i, 4, 1, t47 + t1c * (t20 * t32 + t17 * t35) + t1s * (lower_centre * t44))
        store(dH_dx, i, 4, 2, costate_shoulder + t17 * t34 - t45 - t45)
        store(dH_dx, i, 4, 3, t48 + (costate_elbow + t19 * t33 + t48))
        store(dH_du, i, 2, 0, t29)
        store(dH_du, i, 2, 1, t28)
        store(dH_dtheta, i, 6, 0, -(upper_centre * t38 + t13 * t30))
        store(dH_dtheta, i, 6, 1, t46 - t3 * t41)
        store(dH_dtheta, i, 6, 2, -t30)
        store(dH_dtheta, i, 6, 3, -t41)
        store(dH_dtheta, i, 6, 4, -(t42 + (upper_mass * t38 + t42)))
        store(dH_dtheta, i, 6, 5, lower_mass * t36 - t8c * t40 - t49 - t49 - t1c * t44)


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(4.0)
    c2 = real(0.5)
    c3 = real(1.5707963267948966)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        t1 = shoulder - c3
        t2 = c1 * (t1 * t1) + (shoulder_rate * shoulder_rate * c2 + (c1 * (elbow * elbow) + elbow_rate * elbow_rate * c2))
        t3 = c1 * t1
        t4 = elbow * c1
        t5 = shoulder_rate * c2
        t6 = elbow_rate * c2
        store(q, i, 1, 0, t2)
        store(dq_dx, i, 4, 0, t3 + t3)
        store(dq_dx, i, 4, 1, t4 + t4)
        store(dq_dx, i, 4, 2, t5 + t5)
        store(dq_dx, i, 4, 3, t6 + t6)
