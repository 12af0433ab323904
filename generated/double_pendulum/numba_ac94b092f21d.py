"""double_pendulum: kernels for Numba, made by modelgen; not to be edited."""

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
    c3 = real(0.3333333333333333)
    c4 = real(0.5)
    c5 = real(0.16666666666666666)
    c6 = real(3.0)
    c7 = real(2.0)
    c8 = real(4.905)
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
            upper_length = load(theta, row, 6, 1)
            lower_mass = load(theta, row, 6, 2)
            lower_length = load(theta, row, 6, 3)
            shoulder_damping = load(theta, row, 6, 4)
            elbow_damping = load(theta, row, 6, 5)
            t1 = upper_length * upper_length
            t2 = lower_length * lower_length * (lower_mass * c3)
            t3s, t3c = sincos(elbow, real, half_pi)
            t4 = upper_length * t3c
            t5 = lower_mass * lower_length
            t6 = t3s * (upper_length * t5)
            t7 = t6 * c4
            t8 = upper_length * sincos(shoulder, real, half_pi)[0]
            t9 = sincos(shoulder + elbow, real, half_pi)[0]
            t10 = (t4 * c6 + lower_length * c7) * (t5 * c5)
            t11 = (t8 * c7 + lower_length * t9) * (lower_mass * c8) + (elbow_rate * elbow_rate * t7 + c8 * (upper_mass * t8))
            t12 = t6 * (shoulder_rate * elbow_rate) + t11 - shoulder_damping * shoulder_rate
            t13 = c2 / (t4 * t5 + (c3 * (upper_mass * t1) + (t2 + lower_mass * t1)))
            t14 = t10 * t13
            t15 = c2 / (t2 - t10 * t14)
            t16 = c8 * (t5 * t9) - t7 * (shoulder_rate * shoulder_rate) - elbow_damping * elbow_rate - t12 * t14
            t17 = t15 * t16
            t18 = t14 * t15
            t19 = -t18
            store(a, i, 4, 0, shoulder_rate)
            store(a, i, 4, 1, elbow_rate)
            store(a, i, 4, 2, t12 * t13 - t14 * t17)
            store(a, i, 4, 3, t17)
            store(block, i - first, 1, 0, t13 + t14 * t18)
            store(block, i - first, 1, 64, t19)
            store(block, i - first, 1, 128, t19)
            store(block, i - first, 1, 192, t15)
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
    c2 = real(0.3333333333333333)
    c3 = real(0.5)
    c4 = real(0.16666666666666666)
    c5 = real(3.0)
    c6 = real(2.0)
    c7 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        shoulder_torque = load(u, i, 2, 0)
        elbow_torque = load(u, i, 2, 1)
        upper_mass = load(theta, row, 6, 0)
        upper_length = load(theta, row, 6, 1)
        lower_mass = load(theta, row, 6, 2)
        lower_length = load(theta, row, 6, 3)
        shoulder_damping = load(theta, row, 6, 4)
        elbow_damping = load(theta, row, 6, 5)
        t1 = upper_length * upper_length
        t2 = lower_length * lower_length * (lower_mass * c2)
        t3s, t3c = sincos(elbow, real, half_pi)
        t4 = upper_length * t3c
        t5 = lower_mass * lower_length
        t6 = t3s * (upper_length * t5)
        t7 = t6 * c3
        t8 = upper_length * sincos(shoulder, real, half_pi)[0]
        t9 = sincos(shoulder + elbow, real, half_pi)[0]
        t10 = (t4 * c5 + lower_length * c6) * (t5 * c4)
        t11 = (t8 * c6 + lower_length * t9) * (lower_mass * c7) + (elbow_rate * elbow_rate * t7 + c7 * (upper_mass * t8))
        t12 = c1 / (t4 * t5 + (c2 * (upper_mass * t1) + (t2 + lower_mass * t1)))
        t13 = t10 * t12
        t14 = shoulder_torque + (t6 * (shoulder_rate * elbow_rate) + t11 - shoulder_damping * shoulder_rate)
        t15 = elbow_torque + (c7 * (t5 * t9) - t7 * (shoulder_rate * shoulder_rate) - elbow_damping * elbow_rate) - t13 * t14
        t16 = c1 / (t2 - t10 * t13) * t15
        store(xdot, i, 4, 0, shoulder_rate)
        store(xdot, i, 4, 1, elbow_rate)
        store(xdot, i, 4, 2, t12 * t14 - t13 * t16)
        store(xdot, i, 4, 3, t16)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.3333333333333333)
    c4 = real(0.5)
    c5 = real(0.16666666666666666)
    c6 = real(3.0)
    c7 = real(2.0)
    c8 = real(4.905)
    block = np.empty(2816, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            shoulder = load(x, i, 4, 0)
            elbow = load(x, i, 4, 1)
            shoulder_rate = load(x, i, 4, 2)
            elbow_rate = load(x, i, 4, 3)
            upper_mass = load(theta, row, 6, 0)
            upper_length = load(theta, row, 6, 1)
            lower_mass = load(theta, row, 6, 2)
            lower_length = load(theta, row, 6, 3)
            shoulder_damping = load(theta, row, 6, 4)
            elbow_damping = load(theta, row, 6, 5)
            t1 = upper_length * upper_length
            t2 = lower_length * lower_length
            t3 = lower_mass * c3
            t4 = t2 * t3
            t5s, t5c = sincos(elbow, real, half_pi)
            t6 = upper_length * t5c
            t7 = lower_mass * lower_length
            t8 = upper_length * t7
            t9 = t5s * t8
            t10 = elbow_rate * elbow_rate
            t11 = t9 * c4
            t12s, t12c = sincos(shoulder, real, half_pi)
            t13 = upper_length * t12s
            t14 = shoulder + elbow
            t15s, t15c = sincos(t14, real, half_pi)
            t16 = shoulder_rate * shoulder_rate
            t17 = t6 * c6 + lower_length * c7
            t18 = t7 * c5
            t19 = t17 * t18
            t20 = lower_length * t15s
            t21 = t13 * c7 + t20
            t22 = lower_mass * c8
            t23 = shoulder_rate * elbow_rate
            t24 = t9 * t23 + (t21 * t22 + (t10 * t11 + c8 * (upper_mass * t13))) - shoulder_damping * shoulder_rate
            t25 = c2 / (t6 * t7 + (c3 * (upper_mass * t1) + (t4 + lower_mass * t1)))
            t26 = t19 * t25
            t27 = c2 / (t4 - t19 * t26)
            t28 = t27 * (c8 * (t7 * t15s) - t11 * t16 - elbow_damping * elbow_rate - t24 * t26)
            t29 = t24 * t25 - t26 * t28
            t30 = t26 * t27
            t31 = -t30
            t32 = t25 + t26 * t30
            t33 = upper_length * t12c
            t34 = lower_length * t15c
            t35 = c8 * (upper_mass * t33) + t22 * (c7 * t33 + t34)
            t36 = c8 * (t7 * t15c)
            t37 = t27 * (t36 - t26 * t35)
            t38 = upper_length * t5s
            t39 = t5c * t8
            t40 = c4 * t39
            t41 = t7 * t38
            t42 = t18 * (c6 * t38)
            t43 = t23 * t39 + (t10 * t40 + t22 * t34) + (t29 * t41 + t28 * t42)
            t44 = t27 * (t36 - t16 * t40 + t29 * t42 - t26 * t43)
            t45 = elbow_rate * t9 - shoulder_damping
            t46 = t27 * (t11 * (shoulder_rate + shoulder_rate) + t26 * t45)
            t47 = t11 * (elbow_rate + elbow_rate) + shoulder_rate * t9
            t48 = t27 * (elbow_damping + t26 * t47)
            t49 = t32 * t41 + t31 * t42
            t50 = t27 * (t32 * t42 - t26 * t49)
            t51 = t31 * t41 + t27 * t42
            t52 = t27 * (t31 * t42 - t26 * t51)
            t53 = t1 * c3
            t54 = t13 * c8 - t29 * t53
            t55 = t27 * (t26 * t54)
            t56 = upper_length + upper_length
            t57 = t7 * t5s
            t58 = c4 * t57
            t59 = t5c * t7 + (lower_mass * t56 + c3 * (upper_mass * t56))
            t60 = t18 * (t5c * c6)
            t61 = t23 * t57 + (t22 * (t12s * c7) + (t10 * t58 + c8 * (upper_mass * t12s)))
            t62 = t61 - (t29 * t59 + t28 * t60)
            t63 = t27 * (t16 * t58 + t29 * t60 + t26 * t62)
            t64 = c3 * t2
            t65 = t5s * (upper_length * lower_length)
            t66 = c4 * t65
            t67 = lower_length * t6 + (t1 + t64)
            t68 = t17 * (lower_length * c5)
            t69 = t23 * t65 + (t10 * t66 + c8 * t21) - (t29 * t67 + t28 * t68)
            t70 = c8 * t20 - t16 * t66 - (t29 * t68 + t28 * t64) - t26 * t69
            t71 = t27 * t70
            t72 = t3 * (lower_length + lower_length)
            t73 = t5s * (upper_length * lower_mass)
            t74 = c4 * t73
            t75 = t72 + lower_mass * t6
            t76 = c7 * t18 + t17 * (lower_mass * c5)
            t77 = t23 * t73 + (t10 * t74 + t15s * t22) - (t29 * t75 + t28 * t76)
            t78 = c8 * (lower_mass * t15s) - t16 * t74 - (t29 * t76 + t28 * t72) - t26 * t77
            t79 = t27 * t78
            t80 = t27 * (shoulder_rate * t26)
            t81 = elbow_rate * t27
            t82 = t32 * t53
            t83 = t27 * (t26 * t82)
            t84 = t31 * t53
            t85 = t27 * (t26 * t84)
            t86 = t32 * t59 + t31 * t60
            t87 = t27 * (t26 * t86 - t32 * t60)
            t88 = t31 * t59 + t27 * t60
            t89 = t27 * (t26 * t88 - t31 * t60)
            t90 = t32 * t67 + t31 * t68
            t91 = t27 * (t26 * t90 - (t32 * t68 + t31 * t64))
            t92 = t31 * t67 + t27 * t68
            t93 = t27 * (t26 * t92 - (t31 * t68 + t27 * t64))
            t94 = t32 * t75 + t31 * t76
            t95 = t27 * (t26 * t94 - (t32 * t76 + t31 * t72))
            t96 = t31 * t75 + t27 * t76
            t97 = t27 * (t26 * t96 - (t31 * t76 + t27 * t72))
            store(a, i, 4, 0, shoulder_rate)
            store(a, i, 4, 1, elbow_rate)
            store(a, i, 4, 2, t29)
            store(a, i, 4, 3, t28)
            store(block, i - first, 1, 0, t32)
            store(block, i - first, 1, 64, t31)
            store(block, i - first, 1, 128, t31)
            store(block, i - first, 1, 192, t27)
            store(block, i - first, 1, 256, t25 * t35 - t26 * t37)
            store(block, i - first, 1, 320, t25 * t43 - t26 * t44)
            store(block, i - first, 1, 384, t25 * t45 + t26 * t46)
            store(block, i - first, 1, 448, t25 * t47 + t26 * t48)
            store(block, i - first, 1, 512, t37)
            store(block, i - first, 1, 576, t44)
            store(block, i - first, 1, 640, -t46)
            store(block, i - first, 1, 704, -t48)
            store(block, i - first, 1, 768, t25 * t49 - t26 * t50)
            store(block, i - first, 1, 832, t25 * t51 - t26 * t52)
            store(block, i - first, 1, 896, t50)
            store(block, i - first, 1, 960, t52)
            store(block, i - first, 1, 1024, t25 * t54 + t26 * t55)
            store(block, i - first, 1, 1088, t25 * t62 + t26 * t63)
            store(block, i - first, 1, 1152, t25 * t69 - t26 * t71)
            store(block, i - first, 1, 1216, t25 * t77 - t26 * t79)
            store(block, i - first, 1, 1280, -(shoulder_rate * t25 + t26 * t80))
            store(block, i - first, 1, 1344, t26 * t81)
            store(block, i - first, 1, 1408, -t55)
            store(block, i - first, 1, 1472, -t63)
            store(block, i - first, 1, 1536, t71)
            store(block, i - first, 1, 1600, t79)
            store(block, i - first, 1, 1664, t80)
            store(block, i - first, 1, 1728, -t81)
            store(block, i - first, 1, 1792, -(t25 * t82 + t26 * t83))
            store(block, i - first, 1, 1856, -(t25 * t86 + t26 * t87))
            store(block, i - first, 1, 1920, -(t25 * t90 + t26 * t91))
            store(block, i - first, 1, 1984, -(t25 * t94 + t26 * t95))
            store(block, i - first, 1, 2048, -(t25 * t84 + t26 * t85))
            store(block, i - first, 1, 2112, -(t25 * t88 + t26 * t89))
            store(block, i - first, 1, 2176, -(t25 * t92 + t26 * t93))
            store(block, i - first, 1, 2240, -(t25 * t96 + t26 * t97))
            store(block, i - first, 1, 2304, t83)
            store(block, i - first, 1, 2368, t87)
            store(block, i - first, 1, 2432, t91)
            store(block, i - first, 1, 2496, t95)
            store(block, i - first, 1, 2560, t85)
            store(block, i - first, 1, 2624, t89)
            store(block, i - first, 1, 2688, t93)
            store(block, i - first, 1, 2752, t97)
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
            store(dB_dtheta, i, 48, 28, c1)
            store(dB_dtheta, i, 48, 29, c1)
            store(dB_dtheta, i, 48, 30, load(block, i - first, 1, 2048))
            store(dB_dtheta, i, 48, 31, load(block, i - first, 1, 2112))
            store(dB_dtheta, i, 48, 32, load(block, i - first, 1, 2176))
            store(dB_dtheta, i, 48, 33, load(block, i - first, 1, 2240))
            store(dB_dtheta, i, 48, 34, c1)
            store(dB_dtheta, i, 48, 35, c1)
            store(dB_dtheta, i, 48, 36, load(block, i - first, 1, 2304))
            store(dB_dtheta, i, 48, 37, load(block, i - first, 1, 2368))
            store(dB_dtheta, i, 48, 38, load(block, i - first, 1, 2432))
            store(dB_dtheta, i, 48, 39, load(block, i - first, 1, 2496))
            store(dB_dtheta, i, 48, 40, c1)
            store(dB_dtheta, i, 48, 41, c1)
            store(dB_dtheta, i, 48, 42, load(block, i - first, 1, 2560))
            store(dB_dtheta, i, 48, 43, load(block, i - first, 1, 2624))
            store(dB_dtheta, i, 48, 44, load(block, i - first, 1, 2688))
            store(dB_dtheta, i, 48, 45, load(block, i - first, 1, 2752))
            store(dB_dtheta, i, 48, 46, c1)
            store(dB_dtheta, i, 48, 47, c1)


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.3333333333333333)
    c3 = real(0.5)
    c4 = real(0.16666666666666666)
    c5 = real(3.0)
    c6 = real(2.0)
    c7 = real(4.905)
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
        upper_length = load(theta, row, 6, 1)
        lower_mass = load(theta, row, 6, 2)
        lower_length = load(theta, row, 6, 3)
        shoulder_damping = load(theta, row, 6, 4)
        elbow_damping = load(theta, row, 6, 5)
        t1 = upper_length * upper_length
        t2 = lower_length * lower_length
        t3 = lower_mass * c2
        t4 = t2 * t3
        t5s, t5c = sincos(elbow, real, half_pi)
        t6 = upper_length * t5c
        t7 = lower_mass * lower_length
        t8 = upper_length * t7
        t9 = t5s * t8
        t10 = elbow_rate * elbow_rate
        t11 = t9 * c3
        t12s, t12c = sincos(shoulder, real, half_pi)
        t13 = upper_length * t12s
        t14 = shoulder + elbow
        t15s, t15c = sincos(t14, real, half_pi)
        t16 = shoulder_rate * shoulder_rate
        t17 = t6 * c5 + lower_length * c6
        t18 = t7 * c4
        t19 = t17 * t18
        t20 = t13 * c6 + lower_length * t15s
        t21 = lower_mass * c7
        t22 = shoulder_rate * elbow_rate
        t23 = t9 * t22 + (t20 * t21 + (t10 * t11 + c7 * (upper_mass * t13))) - shoulder_damping * shoulder_rate
        t24 = c1 / (t6 * t7 + (c2 * (upper_mass * t1) + (t4 + lower_mass * t1)))
        t25 = t19 * t24
        t26 = c1 / (t4 - t19 * t25)
        t27 = shoulder_torque + t23
        t28 = elbow_torque + (c7 * (t7 * t15s) - t11 * t16 - elbow_damping * elbow_rate) - t25 * t27
        t29 = t26 * t28
        t30 = t24 * t27 - t25 * t29
        t31 = t26 * (costate_elbow_rate - costate_shoulder_rate * t25)
        t32 = costate_shoulder_rate * t24 - t25 * t31
        t33 = t30 * t32
        t34 = t30 * t31 + t29 * t32
        t35 = c7 * t31
        t36 = t9 * t32
        t37 = t21 * t32
        t38 = c7 * t32
        t39 = c6 * t37 + upper_mass * t38
        t40 = t18 * t34
        t41 = t33 + t29 * t31
        t42 = c5 * t40 + t7 * t33
        t43 = c2 * t33
        t44 = shoulder_rate * (t11 * t31)
        t45 = t15c * (t7 * t35 + lower_length * t37)
        t46 = t22 * t32 + c3 * (t10 * t32 - t16 * t31)
        t47 = elbow_rate * (t11 * t32)
        t48 = t5s * t46
        t49 = t15s * t35 - c4 * (t17 * t34) - t6 * t33 + upper_length * t48
        t50 = c7 * (t20 * t32) - t1 * t33 + lower_length * t49 - c2 * (t2 * t41)
        t51 = lower_length * (t3 * t41)
        t52 = upper_length * (upper_mass * t43 + lower_mass * t33)
        store(dH_dx, i, 4, 0, t45 + t12c * (upper_length * t39))
        store(dH_dx, i, 4, 1, t45 + t5c * (t8 * t46) + t5s * (upper_length * t42))
        store(dH_dx, i, 4, 2, costate_shoulder + elbow_rate * t36 - shoulder_damping * t32 - t44 - t44)
        store(dH_dx, i, 4, 3, t47 + (costate_elbow - elbow_damping * t31 + shoulder_rate * t36 + t47))
        store(dH_du, i, 2, 0, t32)
        store(dH_du, i, 2, 1, t31)
        store(dH_dtheta, i, 6, 0, t13 * t38 - t1 * t43)
        store(dH_dtheta, i, 6, 1, t12s * t39 + t7 * t48 - t5c * t42 - t52 - t52)
        store(dH_dtheta, i, 6, 2, t50)
        store(dH_dtheta, i, 6, 3, t15s * t37 - c6 * t40 + lower_mass * t49 - t51 - t51)
        store(dH_dtheta, i, 6, 4, -(shoulder_rate * t32))
        store(dH_dtheta, i, 6, 5, -(elbow_rate * t31))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.5)
    c2 = real(9.869604401089358)
    c3 = real(0.1)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 4, 0)
        elbow = load(x, i, 4, 1)
        shoulder_rate = load(x, i, 4, 2)
        elbow_rate = load(x, i, 4, 3)
        t1 = elbow * c1
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = shoulder * c1
        t4s, t4c = sincos(t3, real, half_pi)
        t5 = c2 * (t4s * t4s) + (c2 * (t2s * t2s) + (elbow_rate * elbow_rate * c3 + shoulder_rate * shoulder_rate * c3))
        t6 = c2 * t4s
        t7 = c2 * t2s
        t8 = shoulder_rate * c3
        t9 = elbow_rate * c3
        store(q, i, 1, 0, t5)
        store(dq_dx, i, 4, 0, c1 * ((t6 + t6) * t4c))
        store(dq_dx, i, 4, 1, c1 * ((t7 + t7) * t2c))
        store(dq_dx, i, 4, 2, t8 + t8)
        store(dq_dx, i, 4, 3, t9 + t9)
