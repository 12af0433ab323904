"""cart_double_pendulum: kernels for Numba, made by modelgen; not to be edited."""

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
    c3 = real(0.5)
    c4 = real(2.0)
    c5 = real(0.3333333333333333)
    c6 = real(0.16666666666666666)
    c7 = real(3.0)
    c8 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        lower = load(x, i, 6, 1)
        upper = load(x, i, 6, 2)
        cart_rate = load(x, i, 6, 3)
        lower_rate = load(x, i, 6, 4)
        upper_rate = load(x, i, 6, 5)
        cart_mass = load(theta, row, 7, 0)
        lower_mass = load(theta, row, 7, 1)
        lower_length = load(theta, row, 7, 2)
        upper_mass = load(theta, row, 7, 3)
        upper_length = load(theta, row, 7, 4)
        cart_damping = load(theta, row, 7, 5)
        hinge_damping = load(theta, row, 7, 6)
        t1s, t1c = sincos(lower, real, half_pi)
        t2 = lower_mass * c3
        t3 = lower_length * c4
        t4 = lower + upper
        t5s, t5c = sincos(t4, real, half_pi)
        t6 = upper_length * t5c
        t7 = upper_mass * c3
        t8 = lower_length * lower_length
        t9 = upper_length * upper_length * (upper_mass * c5)
        t10s, t10c = sincos(upper, real, half_pi)
        t11 = lower_length * t10c
        t12 = upper_mass * upper_length
        t13 = upper_length * t5s
        t14 = lower_rate * upper_rate
        t15 = upper_rate * upper_rate
        t16 = t7 * t13
        t17 = lower_rate * lower_rate
        t18 = lower_length * t1s
        t19 = lower_length * t10s
        t20 = t19 * (upper_length * t7)
        t21 = t7 * (t6 + t1c * t3) + t2 * (lower_length * t1c)
        t22 = t6 * t7
        t23 = t14 * (upper_mass * t13) + (t15 * t16 + t17 * (upper_mass * t18 + (t16 + t2 * t18)))
        t24 = t23 - cart_damping * cart_rate
        t25 = (t13 + t3 * t1s) * (upper_mass * c8) + (t15 * t20 + c8 * (lower_mass * t18))
        t26 = c2 / (upper_mass + (cart_mass + lower_mass))
        t27 = t21 * t26
        t28 = t11 * t12 + (upper_mass * t8 + (t9 + c5 * (lower_mass * t8))) - t21 * t27
        t29 = c2 / t28
        t30 = (t11 * c7 + upper_length * c4) * (t12 * c6) - t22 * t27
        t31 = t22 * t26
        t32 = t29 * t30
        t33 = c2 / (t9 - (t22 * t31 + t30 * t32))
        t34 = t19 * (t12 * t14) + t25 - hinge_damping * lower_rate - t24 * t27
        t35 = c8 * (t12 * t5s) - t17 * t20 - hinge_damping * upper_rate - (t24 * t31 + t32 * t34)
        t36 = t33 * t35
        t37 = t29 * t34 - t32 * t36
        t38 = t33 * (t27 * t32 - t31)
        t39 = t27 * t29 + t32 * t38
        store(a, i, 6, 0, cart_rate)
        store(a, i, 6, 1, lower_rate)
        store(a, i, 6, 2, upper_rate)
        store(a, i, 6, 3, t24 * t26 - (t27 * t37 + t31 * t36))
        store(a, i, 6, 4, t37)
        store(a, i, 6, 5, t36)
        store(B, i, 6, 0, c1)
        store(B, i, 6, 1, c1)
        store(B, i, 6, 2, c1)
        store(B, i, 6, 3, t26 - (t31 * t38 - t27 * t39))
        store(B, i, 6, 4, -t39)
        store(B, i, 6, 5, t38)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.5)
    c3 = real(2.0)
    c4 = real(0.3333333333333333)
    c5 = real(0.16666666666666666)
    c6 = real(3.0)
    c7 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        lower = load(x, i, 6, 1)
        upper = load(x, i, 6, 2)
        cart_rate = load(x, i, 6, 3)
        lower_rate = load(x, i, 6, 4)
        upper_rate = load(x, i, 6, 5)
        force = load(u, i, 1, 0)
        cart_mass = load(theta, row, 7, 0)
        lower_mass = load(theta, row, 7, 1)
        lower_length = load(theta, row, 7, 2)
        upper_mass = load(theta, row, 7, 3)
        upper_length = load(theta, row, 7, 4)
        cart_damping = load(theta, row, 7, 5)
        hinge_damping = load(theta, row, 7, 6)
        t1s, t1c = sincos(lower, real, half_pi)
        t2 = lower_mass * c2
        t3 = lower_length * c3
        t4 = lower + upper
        t5s, t5c = sincos(t4, real, half_pi)
        t6 = upper_length * t5c
        t7 = upper_mass * c2
        t8 = lower_length * lower_length
        t9 = upper_length * upper_length * (upper_mass * c4)
        t10s, t10c = sincos(upper, real, half_pi)
        t11 = lower_length * t10c
        t12 = upper_mass * upper_length
        t13 = upper_length * t5s
        t14 = lower_rate * upper_rate
        t15 = upper_rate * upper_rate
        t16 = t7 * t13
        t17 = lower_rate * lower_rate
        t18 = lower_length * t1s
        t19 = lower_length * t10s
        t20 = t19 * (upper_length * t7)
        t21 = t7 * (t6 + t1c * t3) + t2 * (lower_length * t1c)
        t22 = t6 * t7
        t23 = t14 * (upper_mass * t13) + (t15 * t16 + t17 * (upper_mass * t18 + (t16 + t2 * t18)))
        t24 = (t13 + t3 * t1s) * (upper_mass * c7) + (t15 * t20 + c7 * (lower_mass * t18))
        t25 = c1 / (upper_mass + (cart_mass + lower_mass))
        t26 = t21 * t25
        t27 = t11 * t12 + (upper_mass * t8 + (t9 + c4 * (lower_mass * t8))) - t21 * t26
        t28 = c1 / t27
        t29 = (t11 * c6 + upper_length * c3) * (t12 * c5) - t22 * t26
        t30 = t22 * t25
        t31 = t28 * t29
        t32 = force + (t23 - cart_damping * cart_rate)
        t33 = t19 * (t12 * t14) + t24 - hinge_damping * lower_rate - t26 * t32
        t34 = c7 * (t12 * t5s) - t17 * t20 - hinge_damping * upper_rate - (t30 * t32 + t31 * t33)
        t35 = c1 / (t9 - (t22 * t30 + t29 * t31)) * t34
        t36 = t28 * t33 - t31 * t35
        store(xdot, i, 6, 0, cart_rate)
        store(xdot, i, 6, 1, lower_rate)
        store(xdot, i, 6, 2, upper_rate)
        store(xdot, i, 6, 3, t25 * t32 - (t26 * t36 + t30 * t35))
        store(xdot, i, 6, 4, t36)
        store(xdot, i, 6, 5, t35)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.5)
    c4 = real(2.0)
    c5 = real(0.3333333333333333)
    c6 = real(0.16666666666666666)
    c7 = real(3.0)
    c8 = real(4.905)
    block = np.empty(3648, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            lower = load(x, i, 6, 1)
            upper = load(x, i, 6, 2)
            cart_rate = load(x, i, 6, 3)
            lower_rate = load(x, i, 6, 4)
            upper_rate = load(x, i, 6, 5)
            cart_mass = load(theta, row, 7, 0)
            lower_mass = load(theta, row, 7, 1)
            lower_length = load(theta, row, 7, 2)
            upper_mass = load(theta, row, 7, 3)
            upper_length = load(theta, row, 7, 4)
            cart_damping = load(theta, row, 7, 5)
            hinge_damping = load(theta, row, 7, 6)
            t1s, t1c = sincos(lower, real, half_pi)
            t2 = lower_mass * c3
            t3 = lower_length * c4
            t4 = lower + upper
            t5s, t5c = sincos(t4, real, half_pi)
            t6 = upper_length * t5c
            t7 = upper_mass * c3
            t8 = lower_length * lower_length
            t9 = upper_length * upper_length
            t10 = upper_mass * c5
            t11 = t9 * t10
            t12s, t12c = sincos(upper, real, half_pi)
            t13 = lower_length * t12c
            t14 = upper_mass * upper_length
            t15 = upper_length * t5s
            t16 = lower_rate * upper_rate
            t17 = upper_rate * upper_rate
            t18 = t7 * t15
            t19 = lower_rate * lower_rate
            t20 = lower_length * t1s
            t21 = lower_length * t12s
            t22 = upper_length * t7
            t23 = t21 * t22
            t24 = t6 + t1c * t3
            t25 = lower_length * t1c
            t26 = t2 * t25
            t27 = t7 * t24 + t26
            t28 = t6 * t7
            t29 = t13 * c7 + upper_length * c4
            t30 = t14 * c6
            t31 = t2 * t20
            t32 = upper_mass * t20 + (t18 + t31)
            t33 = upper_mass * t15
            t34 = t16 * t33 + (t17 * t18 + t19 * t32) - cart_damping * cart_rate
            t35 = t15 + t3 * t1s
            t36 = upper_mass * c8
            t37 = t14 * t16
            t38 = t21 * t37 + (t35 * t36 + (t17 * t23 + c8 * (lower_mass * t20))) - hinge_damping * lower_rate
            t39 = c2 / (upper_mass + (cart_mass + lower_mass))
            t40 = t27 * t39
            t41 = t13 * t14 + (upper_mass * t8 + (t11 + c5 * (lower_mass * t8))) - t27 * t40
            t42 = c2 / t41
            t43 = t29 * t30 - t28 * t40
            t44 = t28 * t39
            t45 = t42 * t43
            t46 = c2 / (t11 - (t28 * t44 + t43 * t45))
            t47 = t38 - t34 * t40
            t48 = c8 * (t14 * t5s) - t19 * t23 - hinge_damping * upper_rate - (t34 * t44 + t45 * t47)
            t49 = t46 * t48
            t50 = t42 * t47 - t45 * t49
            t51 = t34 * t39 - (t40 * t50 + t44 * t49)
            t52 = t46 * (t40 * t45 - t44)
            t53 = t40 * t42 + t45 * t52
            t54 = t39 - (t44 * t52 - t40 * t53)
            t55 = -t53
            t56 = t31 + t7 * t35
            t57 = t17 * t28
            t58 = t16 * (upper_mass * t6)
            t59 = c8 * (t5c * t14)
            t60 = t18 * t49
            t61 = t58 + (t57 + t19 * (upper_mass * t25 + (t26 + t28))) + (t50 * t56 + t60)
            t62 = t18 * t51
            t63 = c8 * (lower_mass * t25) + t24 * t36 + t51 * t56 - t40 * t61
            t64 = t46 * (t59 + t62 - (t44 * t61 + t45 * t63))
            t65 = t42 * t63 - t45 * t64
            t66 = t13 * t22
            t67 = t14 * t21
            t68 = t30 * (t21 * c7)
            t69 = t58 + (t57 + t19 * t28) + (t60 + t18 * t50)
            t70 = t13 * t37 + (t17 * t66 + t6 * t36) + (t62 + t50 * t67 + t49 * t68)
            t71 = t70 - t40 * t69
            t72 = t59 - t19 * t66 + (t62 + t50 * t68) - (t44 * t69 + t45 * t71)
            t73 = t46 * t72
            t74 = t42 * t71 - t45 * t73
            t75 = cart_damping * t40
            t76 = t46 * (cart_damping * t44 - t45 * t75)
            t77 = t42 * t75 - t45 * t76
            t78 = lower_rate + lower_rate
            t79 = t32 * t78 + upper_rate * t33
            t80 = t21 * (upper_rate * t14) - hinge_damping - t40 * t79
            t81 = t46 * (t23 * t78 + (t44 * t79 + t45 * t80))
            t82 = t42 * t80 + t45 * t81
            t83 = upper_rate + upper_rate
            t84 = t18 * t83 + lower_rate * t33
            t85 = t23 * t83 + t21 * (lower_rate * t14) - t40 * t84
            t86 = t46 * (hinge_damping + (t44 * t84 + t45 * t85))
            t87 = t42 * t85 + t45 * t86
            t88 = t18 * t52
            t89 = t55 * t56 + t88
            t90 = t18 * t54
            t91 = t54 * t56 - t40 * t89
            t92 = t46 * (t90 - (t44 * t89 + t45 * t91))
            t93 = t42 * t91 - t45 * t92
            t94 = t88 + t18 * t55
            t95 = t90 + t55 * t67 + t52 * t68 - t40 * t94
            t96 = t46 * (t90 + t55 * t68 - (t44 * t94 + t45 * t95))
            t97 = t42 * t95 - t45 * t96
            t98 = t40 * t51
            t99 = t46 * (t44 * t51 - t45 * t98)
            t100 = t42 * t98 - t45 * t99
            t101 = c3 * t25
            t102 = t8 * c5
            t103 = t19 * (c3 * t20) - (t51 + t50 * t101)
            t104 = t20 * c8 - (t51 * t101 + t50 * t102) - t40 * t103
            t105 = t46 * (t44 * t103 + t45 * t104)
            t106 = t42 * t104 + t45 * t105
            t107 = lower_length + lower_length
            t108 = t12s * t22
            t109 = t7 * (t1c * c4) + t1c * t2
            t110 = t12c * t14 + (c5 * (lower_mass * t107) + upper_mass * t107)
            t111 = t30 * (t12c * c7)
            t112 = t12s * t37 + (t36 * (c4 * t1s) + (t17 * t108 + c8 * (lower_mass * t1s)))
            t113 = t19 * (t2 * t1s + upper_mass * t1s) - t50 * t109
            t114 = t112 - (t51 * t109 + t50 * t110 + t49 * t111) - t40 * t113
            t115 = t46 * (t19 * t108 + t50 * t111 + (t44 * t113 + t45 * t114))
            t116 = t42 * t114 + t45 * t115
            t117 = c5 * t9
            t118 = c3 * t15
            t119 = t21 * (upper_length * c3)
            t120 = c3 * t24
            t121 = upper_length * t13 + (t8 + t117)
            t122 = c3 * t6
            t123 = t29 * (upper_length * c6)
            t124 = t15 * t16 + (t17 * t118 + t19 * (t20 + t118)) - (t51 + t50 * t120 + t49 * t122)
            t125 = t21 * (upper_length * t16) + (t17 * t119 + c8 * t35) - (t51 * t120 + t50 * t121 + t49 * t123)
            t126 = t15 * c8 - t19 * t119 - (t51 * t122 + t50 * t123 + t49 * t117)
            t127 = t125 - t40 * t124
            t128 = t46 * (t126 - (t44 * t124 + t45 * t127))
            t129 = t42 * t127 - t45 * t128
            t130 = t10 * (upper_length + upper_length)
            t131 = t7 * t5s
            t132 = t7 * t21
            t133 = t5c * t7
            t134 = t130 + upper_mass * t13
            t135 = c4 * t30 + t29 * (upper_mass * c6)
            t136 = upper_mass * t5s
            t137 = t16 * t136 + (t17 * t131 + t19 * t131) - (t50 * t133 + t49 * t133)
            t138 = t51 * t133
            t139 = t21 * (upper_mass * t16) + (t17 * t132 + t5s * t36) - (t138 + t50 * t134 + t49 * t135)
            t140 = t139 - t40 * t137
            t141 = c8 * t136 - t19 * t132 - (t138 + t50 * t135 + t49 * t130) - (t44 * t137 + t45 * t140)
            t142 = t46 * t141
            t143 = t42 * t140 - t45 * t142
            t144 = cart_rate * t40
            t145 = t46 * (cart_rate * t44 - t45 * t144)
            t146 = t42 * t144 - t45 * t145
            t147 = t46 * (lower_rate * t45 - upper_rate)
            t148 = lower_rate * t42 + t45 * t147
            t149 = t40 * t54
            t150 = t46 * (t44 * t54 - t45 * t149)
            t151 = t42 * t149 - t45 * t150
            t152 = t54 + t55 * t101
            t153 = t40 * t152 - (t54 * t101 + t55 * t102)
            t154 = t46 * (t44 * t152 - t45 * t153)
            t155 = t42 * t153 - t45 * t154
            t156 = t55 * t109
            t157 = t40 * t156 - (t54 * t109 + t55 * t110 + t52 * t111)
            t158 = t46 * (t55 * t111 + (t45 * t157 - t44 * t156))
            t159 = t42 * t157 + t45 * t158
            t160 = t54 + t55 * t120 + t52 * t122
            t161 = t40 * t160 - (t54 * t120 + t55 * t121 + t52 * t123)
            t162 = t54 * t122 + t55 * t123 + t52 * t117 + (t45 * t161 - t44 * t160)
            t163 = t46 * t162
            t164 = t42 * t161 + t45 * t163
            t165 = t55 * t133 + t52 * t133
            t166 = t54 * t133
            t167 = t40 * t165 - (t166 + t55 * t134 + t52 * t135)
            t168 = t46 * (t166 + t55 * t135 + t52 * t130 + (t45 * t167 - t44 * t165))
            t169 = t42 * t167 + t45 * t168
            store(a, i, 6, 0, cart_rate)
            store(a, i, 6, 1, lower_rate)
            store(a, i, 6, 2, upper_rate)
            store(a, i, 6, 3, t51)
            store(a, i, 6, 4, t50)
            store(a, i, 6, 5, t49)
            store(B, i, 6, 0, c1)
            store(B, i, 6, 1, c1)
            store(B, i, 6, 2, c1)
            store(B, i, 6, 3, t54)
            store(B, i, 6, 4, t55)
            store(B, i, 6, 5, t52)
            store(block, i - first, 1, 0, t39 * t61 - (t40 * t65 + t44 * t64))
            store(block, i - first, 1, 64, t39 * t69 - (t40 * t74 + t44 * t73))
            store(block, i - first, 1, 128, -(cart_damping * t39 + (t40 * t77 + t44 * t76)))
            store(block, i - first, 1, 192, t39 * t79 - (t40 * t82 - t44 * t81))
            store(block, i - first, 1, 256, t39 * t84 - (t40 * t87 - t44 * t86))
            store(block, i - first, 1, 320, t65)
            store(block, i - first, 1, 384, t74)
            store(block, i - first, 1, 448, t77)
            store(block, i - first, 1, 512, t82)
            store(block, i - first, 1, 576, t87)
            store(block, i - first, 1, 640, t64)
            store(block, i - first, 1, 704, t73)
            store(block, i - first, 1, 768, t76)
            store(block, i - first, 1, 832, -t81)
            store(block, i - first, 1, 896, -t86)
            store(block, i - first, 1, 960, t39 * t89 - (t40 * t93 + t44 * t92))
            store(block, i - first, 1, 1024, t39 * t94 - (t40 * t97 + t44 * t96))
            store(block, i - first, 1, 1088, t93)
            store(block, i - first, 1, 1152, t97)
            store(block, i - first, 1, 1216, t92)
            store(block, i - first, 1, 1280, t96)
            store(block, i - first, 1, 1344, -(t39 * t51 + (t40 * t100 + t44 * t99)))
            store(block, i - first, 1, 1408, t39 * t103 - (t40 * t106 - t44 * t105))
            store(block, i - first, 1, 1472, t39 * t113 - (t40 * t116 - t44 * t115))
            store(block, i - first, 1, 1536, t39 * t124 - (t40 * t129 + t44 * t128))
            store(block, i - first, 1, 1600, t39 * t137 - (t40 * t143 + t44 * t142))
            store(block, i - first, 1, 1664, -(cart_rate * t39 + (t40 * t146 + t44 * t145)))
            store(block, i - first, 1, 1728, t40 * t148 - t44 * t147)
            store(block, i - first, 1, 1792, t100)
            store(block, i - first, 1, 1856, t106)
            store(block, i - first, 1, 1920, t116)
            store(block, i - first, 1, 1984, t129)
            store(block, i - first, 1, 2048, t143)
            store(block, i - first, 1, 2112, t146)
            store(block, i - first, 1, 2176, -t148)
            store(block, i - first, 1, 2240, t99)
            store(block, i - first, 1, 2304, -t105)
            store(block, i - first, 1, 2368, -t115)
            store(block, i - first, 1, 2432, t128)
            store(block, i - first, 1, 2496, t142)
            store(block, i - first, 1, 2560, t145)
            store(block, i - first, 1, 2624, t147)
            store(block, i - first, 1, 2688, -(t39 * t54 + (t40 * t151 + t44 * t150)))
            store(block, i - first, 1, 2752, -(t39 * t152 + (t40 * t155 + t44 * t154)))
            store(block, i - first, 1, 2816, -(t39 * t156 + (t40 * t159 - t44 * t158)))
            store(block, i - first, 1, 2880, -(t39 * t160 + (t40 * t164 - t44 * t163)))
            store(block, i - first, 1, 2944, -(t39 * t165 + (t40 * t169 - t44 * t168)))
            store(block, i - first, 1, 3008, t151)
            store(block, i - first, 1, 3072, t155)
            store(block, i - first, 1, 3136, t159)
            store(block, i - first, 1, 3200, t164)
            store(block, i - first, 1, 3264, t169)
            store(block, i - first, 1, 3328, t150)
            store(block, i - first, 1, 3392, t154)
            store(block, i - first, 1, 3456, -t158)
            store(block, i - first, 1, 3520, -t163)
            store(block, i - first, 1, 3584, -t168)
        for i in range(first, last):
            one_by_one()
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
            store(da_dx, i, 36, 19, load(block, i - first, 1, 0))
            store(da_dx, i, 36, 20, load(block, i - first, 1, 64))
            store(da_dx, i, 36, 21, load(block, i - first, 1, 128))
            store(da_dx, i, 36, 22, load(block, i - first, 1, 192))
            store(da_dx, i, 36, 23, load(block, i - first, 1, 256))
            store(da_dx, i, 36, 24, c1)
            store(da_dx, i, 36, 25, load(block, i - first, 1, 320))
            store(da_dx, i, 36, 26, load(block, i - first, 1, 384))
            store(da_dx, i, 36, 27, load(block, i - first, 1, 448))
            store(da_dx, i, 36, 28, load(block, i - first, 1, 512))
            store(da_dx, i, 36, 29, load(block, i - first, 1, 576))
            store(da_dx, i, 36, 30, c1)
            store(da_dx, i, 36, 31, load(block, i - first, 1, 640))
            store(da_dx, i, 36, 32, load(block, i - first, 1, 704))
            store(da_dx, i, 36, 33, load(block, i - first, 1, 768))
            store(da_dx, i, 36, 34, load(block, i - first, 1, 832))
            store(da_dx, i, 36, 35, load(block, i - first, 1, 896))
            store(dB_dx, i, 36, 0, c1)
            store(dB_dx, i, 36, 1, c1)
            store(dB_dx, i, 36, 2, c1)
            store(dB_dx, i, 36, 3, c1)
            store(dB_dx, i, 36, 4, c1)
            store(dB_dx, i, 36, 5, c1)
            store(dB_dx, i, 36, 6, c1)
            store(dB_dx, i, 36, 7, c1)
            store(dB_dx, i, 36, 8, c1)
            store(dB_dx, i, 36, 9, c1)
            store(dB_dx, i, 36, 10, c1)
            store(dB_dx, i, 36, 11, c1)
            store(dB_dx, i, 36, 12, c1)
            store(dB_dx, i, 36, 13, c1)
            store(dB_dx, i, 36, 14, c1)
            store(dB_dx, i, 36, 15, c1)
            store(dB_dx, i, 36, 16, c1)
            store(dB_dx, i, 36, 17, c1)
            store(dB_dx, i, 36, 18, c1)
            store(dB_dx, i, 36, 19, load(block, i - first, 1, 960))
            store(dB_dx, i, 36, 20, load(block, i - first, 1, 1024))
            store(dB_dx, i, 36, 21, c1)
            store(dB_dx, i, 36, 22, c1)
            store(dB_dx, i, 36, 23, c1)
            store(dB_dx, i, 36, 24, c1)
            store(dB_dx, i, 36, 25, load(block, i - first, 1, 1088))
            store(dB_dx, i, 36, 26, load(block, i - first, 1, 1152))
            store(dB_dx, i, 36, 27, c1)
            store(dB_dx, i, 36, 28, c1)
            store(dB_dx, i, 36, 29, c1)
            store(dB_dx, i, 36, 30, c1)
            store(dB_dx, i, 36, 31, load(block, i - first, 1, 1216))
            store(dB_dx, i, 36, 32, load(block, i - first, 1, 1280))
            store(dB_dx, i, 36, 33, c1)
            store(dB_dx, i, 36, 34, c1)
            store(dB_dx, i, 36, 35, c1)
            store(da_dtheta, i, 42, 0, c1)
            store(da_dtheta, i, 42, 1, c1)
            store(da_dtheta, i, 42, 2, c1)
            store(da_dtheta, i, 42, 3, c1)
            store(da_dtheta, i, 42, 4, c1)
            store(da_dtheta, i, 42, 5, c1)
            store(da_dtheta, i, 42, 6, c1)
            store(da_dtheta, i, 42, 7, c1)
            store(da_dtheta, i, 42, 8, c1)
            store(da_dtheta, i, 42, 9, c1)
            store(da_dtheta, i, 42, 10, c1)
            store(da_dtheta, i, 42, 11, c1)
            store(da_dtheta, i, 42, 12, c1)
            store(da_dtheta, i, 42, 13, c1)
            store(da_dtheta, i, 42, 14, c1)
            store(da_dtheta, i, 42, 15, c1)
            store(da_dtheta, i, 42, 16, c1)
            store(da_dtheta, i, 42, 17, c1)
            store(da_dtheta, i, 42, 18, c1)
            store(da_dtheta, i, 42, 19, c1)
            store(da_dtheta, i, 42, 20, c1)
            store(da_dtheta, i, 42, 21, load(block, i - first, 1, 1344))
            store(da_dtheta, i, 42, 22, load(block, i - first, 1, 1408))
            store(da_dtheta, i, 42, 23, load(block, i - first, 1, 1472))
            store(da_dtheta, i, 42, 24, load(block, i - first, 1, 1536))
            store(da_dtheta, i, 42, 25, load(block, i - first, 1, 1600))
            store(da_dtheta, i, 42, 26, load(block, i - first, 1, 1664))
            store(da_dtheta, i, 42, 27, load(block, i - first, 1, 1728))
            store(da_dtheta, i, 42, 28, load(block, i - first, 1, 1792))
            store(da_dtheta, i, 42, 29, load(block, i - first, 1, 1856))
            store(da_dtheta, i, 42, 30, load(block, i - first, 1, 1920))
            store(da_dtheta, i, 42, 31, load(block, i - first, 1, 1984))
            store(da_dtheta, i, 42, 32, load(block, i - first, 1, 2048))
            store(da_dtheta, i, 42, 33, load(block, i - first, 1, 2112))
            store(da_dtheta, i, 42, 34, load(block, i - first, 1, 2176))
            store(da_dtheta, i, 42, 35, load(block, i - first, 1, 2240))
            store(da_dtheta, i, 42, 36, load(block, i - first, 1, 2304))
            store(da_dtheta, i, 42, 37, load(block, i - first, 1, 2368))
            store(da_dtheta, i, 42, 38, load(block, i - first, 1, 2432))
            store(da_dtheta, i, 42, 39, load(block, i - first, 1, 2496))
            store(da_dtheta, i, 42, 40, load(block, i - first, 1, 2560))
            store(da_dtheta, i, 42, 41, load(block, i - first, 1, 2624))
            store(dB_dtheta, i, 42, 0, c1)
            store(dB_dtheta, i, 42, 1, c1)
            store(dB_dtheta, i, 42, 2, c1)
            store(dB_dtheta, i, 42, 3, c1)
            store(dB_dtheta, i, 42, 4, c1)
            store(dB_dtheta, i, 42, 5, c1)
            store(dB_dtheta, i, 42, 6, c1)
            store(dB_dtheta, i, 42, 7, c1)
            store(dB_dtheta, i, 42, 8, c1)
            store(dB_dtheta, i, 42, 9, c1)
            store(dB_dtheta, i, 42, 10, c1)
            store(dB_dtheta, i, 42, 11, c1)
            store(dB_dtheta, i, 42, 12, c1)
            store(dB_dtheta, i, 42, 13, c1)
            store(dB_dtheta, i, 42, 14, c1)
            store(dB_dtheta, i, 42, 15, c1)
            store(dB_dtheta, i, 42, 16, c1)
            store(dB_dtheta, i, 42, 17, c1)
            store(dB_dtheta, i, 42, 18, c1)
            store(dB_dtheta, i, 42, 19, c1)
            store(dB_dtheta, i, 42, 20, c1)
            store(dB_dtheta, i, 42, 21, load(block, i - first, 1, 2688))
            store(dB_dtheta, i, 42, 22, load(block, i - first, 1, 2752))
            store(dB_dtheta, i, 42, 23, load(block, i - first, 1, 2816))
            store(dB_dtheta, i, 42, 24, load(block, i - first, 1, 2880))
            store(dB_dtheta, i, 42, 25, load(block, i - first, 1, 2944))
            store(dB_dtheta, i, 42, 26, c1)
            store(dB_dtheta, i, 42, 27, c1)
            store(dB_dtheta, i, 42, 28, load(block, i - first, 1, 3008))
            store(dB_dtheta, i, 42, 29, load(block, i - first, 1, 3072))
            store(dB_dtheta, i, 42, 30, load(block, i - first, 1, 3136))
            store(dB_dtheta, i, 42, 31, load(block, i - first, 1, 3200))
            store(dB_dtheta, i, 42, 32, load(block, i - first, 1, 3264))
            store(dB_dtheta, i, 42, 33, c1)
            store(dB_dtheta, i, 42, 34, c1)
            store(dB_dtheta, i, 42, 35, load(block, i - first, 1, 3328))
            store(dB_dtheta, i, 42, 36, load(block, i - first, 1, 3392))
            store(dB_dtheta, i, 42, 37, load(block, i - first, 1, 3456))
            store(dB_dtheta, i, 42, 38, load(block, i - first, 1, 3520))
            store(dB_dtheta, i, 42, 39, load(block, i - first, 1, 3584))
            store(dB_dtheta, i, 42, 40, c1)
            store(dB_dtheta, i, 42, 41, c1)


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.5)
    c4 = real(2.0)
    c5 = real(0.3333333333333333)
    c6 = real(0.16666666666666666)
    c7 = real(3.0)
    c8 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        cart = load(x, i, 6, 0)
        lower = load(x, i, 6, 1)
        upper = load(x, i, 6, 2)
        cart_rate = load(x, i, 6, 3)
        lower_rate = load(x, i, 6, 4)
        upper_rate = load(x, i, 6, 5)
        force = load(u, i, 1, 0)
        costate_cart = load(costate, i, 6, 0)
        costate_lower = load(costate, i, 6, 1)
        costate_upper = load(costate, i, 6, 2)
        costate_cart_rate = load(costate, i, 6, 3)
        costate_lower_rate = load(costate, i, 6, 4)
        costate_upper_rate = load(costate, i, 6, 5)
        cart_mass = load(theta, row, 7, 0)
        lower_mass = load(theta, row, 7, 1)
        lower_length = load(theta, row, 7, 2)
        upper_mass = load(theta, row, 7, 3)
        upper_length = load(theta, row, 7, 4)
        cart_damping = load(theta, row, 7, 5)
        hinge_damping = load(theta, row, 7, 6)
        t1s, t1c = sincos(lower, real, half_pi)
        t2 = lower_mass * c3
        t3 = lower_length * c4
        t4 = lower + upper
        t5s, t5c = sincos(t4, real, half_pi)
        t6 = upper_length * t5c
        t7 = upper_mass * c3
        t8 = lower_length * lower_length
        t9 = upper_length * upper_length
        t10 = upper_mass * c5
        t11 = t9 * t10
        t12s, t12c = sincos(upper, real, half_pi)
        t13 = lower_length * t12c
        t14 = upper_mass * upper_length
        t15 = upper_length * t5s
        t16 = lower_rate * upper_rate
        t17 = upper_rate * upper_rate
        t18 = t7 * t15
        t19 = lower_rate * lower_rate
        t20 = lower_length * t1s
        t21 = lower_length * t12s
        t22 = upper_length * t7
        t23 = t21 * t22
        t24 = t6 + t1c * t3
        t25 = lower_length * t1c
        t26 = t7 * t24 + t2 * t25
        t27 = t6 * t7
        t28 = t13 * c7 + upper_length * c4
        t29 = t14 * c6
        t30 = upper_mass * t20 + (t18 + t2 * t20)
        t31 = upper_mass * t15
        t32 = t15 + t3 * t1s
        t33 = upper_mass * c8
        t34 = t14 * t16
        t35 = t21 * t34 + (t32 * t33 + (t17 * t23 + c8 * (lower_mass * t20))) - hinge_damping * lower_rate
        t36 = c2 / (upper_mass + (cart_mass + lower_mass))
        t37 = t26 * t36
        t38 = t13 * t14 + (upper_mass * t8 + (t11 + c5 * (lower_mass * t8))) - t26 * t37
        t39 = c2 / t38
        t40 = t28 * t29 - t27 * t37
        t41 = t27 * t36
        t42 = t39 * t40
        t43 = c2 / (t11 - (t27 * t41 + t40 * t42))
        t44 = force + (t16 * t31 + (t17 * t18 + t19 * t30) - cart_damping * cart_rate)
        t45 = t35 - t37 * t44
        t46 = c8 * (t14 * t5s) - t19 * t23 - hinge_damping * upper_rate - (t41 * t44 + t42 * t45)
        t47 = t43 * t46
        t48 = t39 * t45 - t42 * t47
        t49 = t36 * t44 - (t37 * t48 + t41 * t47)
        t50 = costate_lower_rate - costate_cart_rate * t37
        t51 = t43 * (costate_upper_rate - (costate_cart_rate * t41 + t42 * t50))
        t52 = t39 * t50 - t42 * t51
        t53 = costate_cart_rate * t36 - (t37 * t52 + t41 * t51)
        t54 = t49 * t53
        t55 = t48 * t52
        t56 = t49 * t52 + t48 * t53
        t57 = t49 * t51 + t47 * t53
        t58 = t48 * t51 + t47 * t52
        t59 = c8 * t51
        t60 = t21 * t52
        t61 = t33 * t52
        t62 = c8 * t52
        t63 = t17 * t52 - t19 * t51
        t64 = t14 * t60 + t31 * t53
        t65 = t16 * t53
        t66 = t19 * t53
        t67 = t20 * t66
        t68 = lower_mass * t62 + upper_mass * t66 + t2 * t66
        t69 = t66 + t17 * t53
        t70 = t29 * t58
        t71 = t55 + t47 * t51
        t72 = c7 * t70 + t14 * t55
        t73 = t5s * t59 + t16 * t60 - c6 * (t28 * t58) - t13 * t55
        t74 = c5 * t55
        t75 = t2 * t56
        t76 = t7 * t56
        t77 = t7 * t57 + t76
        t78 = t34 * t52 + t22 * t63
        t79 = t21 * t63
        t80 = lower_rate * (t30 * t53 - t23 * t51)
        t81 = t61 + upper_mass * t65 + t7 * t69
        t82 = upper_rate * (t23 * t52 + t18 * t53)
        t83 = c8 * (t32 * t52) + t15 * t65 + t67 - t8 * t55 - t54 + upper_length * t73
        t84 = upper_length * (t10 * t71)
        t85 = t7 * t79 - c4 * t70 + t5s * t81 + upper_mass * t73 - t84 - t84
        t86 = lower_length * (upper_mass * t55 + lower_mass * t74)
        t87 = t12s * t78 - t1c * t75 + t1s * t68 - t12c * t72 - t86 - t86
        t88 = t83 - c5 * (t9 * t71) + c3 * (upper_length * t79 - (t6 * t57 + t24 * t56) + t15 * t69)
        t89 = t5c * (t14 * t59 + upper_length * t81) + t5s * (upper_length * t77)
        t90 = t1c * (t3 * t61 + lower_length * t68) + t89 + t1s * (lower_length * t75 + t3 * t76)
        store(dH_dx, i, 6, 0, cart - cart)
        store(dH_dx, i, 6, 1, t90)
        store(dH_dx, i, 6, 2, t12c * (lower_length * t78) + t12s * (lower_length * t72) + t89)
        store(dH_dx, i, 6, 3, costate_cart - cart_damping * t53)
        store(dH_dx, i, 6, 4, t80 + (costate_lower - hinge_damping * t52 + t80) + upper_rate * t64)
        store(dH_dx, i, 6, 5, t82 + (costate_upper - hinge_damping * t51 + t82) + lower_rate * t64)
        store(dH_du, i, 1, 0, t53)
        store(dH_dtheta, i, 7, 0, -t54)
        store(dH_dtheta, i, 7, 1, t20 * t62 - t8 * t74 - t54 + c3 * (t67 - t25 * t56))
        store(dH_dtheta, i, 7, 2, t87 + c4 * (t1s * t61 - t1c * t76))
        store(dH_dtheta, i, 7, 3, t88)
        store(dH_dtheta, i, 7, 4, t85 - t5c * t77)
        store(dH_dtheta, i, 7, 5, -(cart_rate * t53))
        store(dH_dtheta, i, 7, 6, -(upper_rate * t51 + lower_rate * t52))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.5)
    c2 = real(9.869604401089358)
    c3 = real(10.0)
    c4 = real(0.02)
    c5 = real(0.2)
    for i in range(x.shape[0]):
        row = step * i
        cart = load(x, i, 6, 0)
        lower = load(x, i, 6, 1)
        upper = load(x, i, 6, 2)
        cart_rate = load(x, i, 6, 3)
        lower_rate = load(x, i, 6, 4)
        upper_rate = load(x, i, 6, 5)
        t1 = lower * c1
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = t1 + upper * c1
        t4s, t4c = sincos(t3, real, half_pi)
        t5 = lower_rate + upper_rate
        t6 = c2 * (t2s * t2s) + (c5 * (cart_rate * cart_rate) + (c3 * (cart * cart) + lower_rate * lower_rate * c4))
        t7 = c4 * t5
        t8 = t7 + t7
        t9 = c2 * t4s
        t10 = (t9 + t9) * t4c
        t11 = c2 * t2s
        t12 = cart_rate * c5
        t13 = cart * c3
        t14 = lower_rate * c4
        store(q, i, 1, 0, c4 * (t5 * t5) + (c2 * (t4s * t4s) + t6))
        store(dq_dx, i, 6, 0, t13 + t13)
        store(dq_dx, i, 6, 1, c1 * (t10 + (t11 + t11) * t2c))
        store(dq_dx, i, 6, 2, c1 * t10)
        store(dq_dx, i, 6, 3, t12 + t12)
        store(dq_dx, i, 6, 4, t14 + (t8 + t14))
        store(dq_dx, i, 6, 5, t8)
