"""furuta: kernels for Numba, made by modelgen; not to be edited."""

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
    c3 = real(0.25)
    c4 = real(0.5)
    c5 = real(0.08333333333333333)
    c6 = real(0.3333333333333333)
    c7 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        pendulum = load(x, i, 4, 1)
        arm_rate = load(x, i, 4, 2)
        pendulum_rate = load(x, i, 4, 3)
        arm_mass = load(theta, row, 8, 0)
        arm_length = load(theta, row, 8, 1)
        pendulum_mass = load(theta, row, 8, 2)
        pendulum_length = load(theta, row, 8, 3)
        arm_damping = load(theta, row, 8, 4)
        pendulum_damping = load(theta, row, 8, 5)
        resistance = load(theta, row, 8, 6)
        torque_constant = load(theta, row, 8, 7)
        t1 = arm_length * arm_length
        t2s, t2c = sincos(pendulum, real, half_pi)
        t3 = pendulum_mass * (pendulum_length * pendulum_length)
        t4 = t3 * c3
        t5 = pendulum_mass * pendulum_length
        t6 = arm_length * c4
        t7 = c2 / resistance
        t8 = t2s * t5
        t9 = t2s * t2c
        t10 = t6 * (t2c * t5)
        t11 = torque_constant * torque_constant * (arm_rate * t7) + (arm_damping * arm_rate + t8 * (t6 * (pendulum_rate * pendulum_rate)))
        t12 = c4 * (t9 * (t3 * (arm_rate * pendulum_rate))) + t11
        t13 = torque_constant * t7
        t14 = c2 / (pendulum_mass * t1 + (t4 * (t2s * t2s) + c5 * (arm_mass * t1)))
        t15 = t10 * t14
        t16 = c2 / (t3 * c6 - t10 * t15)
        t17 = t8 * c7 + arm_rate * arm_rate * (t4 * t9) - pendulum_damping * pendulum_rate - t12 * t15
        t18 = t16 * t17
        t19 = t16 * (t13 * t15)
        store(a, i, 4, 0, arm_rate)
        store(a, i, 4, 1, pendulum_rate)
        store(a, i, 4, 2, t15 * t18 - t12 * t14)
        store(a, i, 4, 3, t18)
        store(B, i, 4, 0, c1)
        store(B, i, 4, 1, c1)
        store(B, i, 4, 2, t13 * t14 + t15 * t19)
        store(B, i, 4, 3, t19)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.25)
    c3 = real(0.5)
    c4 = real(0.08333333333333333)
    c5 = real(0.3333333333333333)
    c6 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        pendulum = load(x, i, 4, 1)
        arm_rate = load(x, i, 4, 2)
        pendulum_rate = load(x, i, 4, 3)
        voltage = load(u, i, 1, 0)
        arm_mass = load(theta, row, 8, 0)
        arm_length = load(theta, row, 8, 1)
        pendulum_mass = load(theta, row, 8, 2)
        pendulum_length = load(theta, row, 8, 3)
        arm_damping = load(theta, row, 8, 4)
        pendulum_damping = load(theta, row, 8, 5)
        resistance = load(theta, row, 8, 6)
        torque_constant = load(theta, row, 8, 7)
        t1 = arm_length * arm_length
        t2s, t2c = sincos(pendulum, real, half_pi)
        t3 = pendulum_mass * (pendulum_length * pendulum_length)
        t4 = t3 * c2
        t5 = pendulum_mass * pendulum_length
        t6 = arm_length * c3
        t7 = c1 / resistance
        t8 = t2s * t5
        t9 = t2s * t2c
        t10 = t6 * (t2c * t5)
        t11 = torque_constant * torque_constant * (arm_rate * t7) + (arm_damping * arm_rate + t8 * (t6 * (pendulum_rate * pendulum_rate)))
        t12 = c1 / (pendulum_mass * t1 + (t4 * (t2s * t2s) + c4 * (arm_mass * t1)))
        t13 = t10 * t12
        t14 = voltage * (torque_constant * t7) - (c3 * (t9 * (t3 * (arm_rate * pendulum_rate))) + t11)
        t15 = t8 * c6 + arm_rate * arm_rate * (t4 * t9) - pendulum_damping * pendulum_rate + t13 * t14
        t16 = c1 / (t3 * c5 - t10 * t13) * t15
        store(xdot, i, 4, 0, arm_rate)
        store(xdot, i, 4, 1, pendulum_rate)
        store(xdot, i, 4, 2, t12 * t14 + t13 * t16)
        store(xdot, i, 4, 3, t16)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.25)
    c4 = real(0.5)
    c5 = real(0.08333333333333333)
    c6 = real(0.3333333333333333)
    c7 = real(4.905)
    block = np.empty(2304, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            pendulum = load(x, i, 4, 1)
            arm_rate = load(x, i, 4, 2)
            pendulum_rate = load(x, i, 4, 3)
            arm_mass = load(theta, row, 8, 0)
            arm_length = load(theta, row, 8, 1)
            pendulum_mass = load(theta, row, 8, 2)
            pendulum_length = load(theta, row, 8, 3)
            arm_damping = load(theta, row, 8, 4)
            pendulum_damping = load(theta, row, 8, 5)
            resistance = load(theta, row, 8, 6)
            torque_constant = load(theta, row, 8, 7)
            t1 = arm_length * arm_length
            t2s, t2c = sincos(pendulum, real, half_pi)
            t3 = pendulum_length * pendulum_length
            t4 = pendulum_mass * t3
            t5 = t4 * c3
            t6 = pendulum_mass * pendulum_length
            t7 = arm_length * c4
            t8 = c2 / resistance
            t9 = pendulum_rate * pendulum_rate
            t10 = t2s * t6
            t11 = t2s * t2c
            t12 = arm_rate * arm_rate
            t13 = t2s * t2s
            t14 = t2c * t6
            t15 = t7 * t14
            t16 = t7 * t9
            t17 = torque_constant * torque_constant
            t18 = arm_rate * t8
            t19 = arm_rate * pendulum_rate
            t20 = t4 * t19
            t21 = c4 * (t11 * t20) + (t17 * t18 + (arm_damping * arm_rate + t10 * t16))
            t22 = t5 * t11
            t23 = torque_constant * t8
            t24 = c2 / (pendulum_mass * t1 + (t5 * t13 + c5 * (arm_mass * t1)))
            t25 = t15 * t24
            t26 = c2 / (t4 * c6 - t15 * t25)
            t27 = t26 * (t10 * c7 + t12 * t22 - pendulum_damping * pendulum_rate - t21 * t25)
            t28 = t25 * t27 - t21 * t24
            t29 = t26 * (t23 * t25)
            t30 = t23 * t24 + t25 * t29
            t31 = t2c * t2c - t13
            t32 = t5 * (t11 + t11)
            t33 = t7 * t10
            t34 = t14 * t16 + c4 * (t20 * t31) + (t28 * t32 + t27 * t33)
            t35 = t26 * (t14 * c7 + t12 * (t5 * t31) - t28 * t33 - t25 * t34)
            t36 = c4 * (t11 * (pendulum_rate * t4)) + (arm_damping + t8 * t17)
            t37 = t26 * (t22 * (arm_rate + arm_rate) - t25 * t36)
            t38 = t10 * (t7 * (pendulum_rate + pendulum_rate)) + c4 * (t11 * (arm_rate * t4))
            t39 = t26 * (pendulum_damping + t25 * t38)
            t40 = t30 * t32 + t29 * t33
            t41 = t26 * (t30 * t33 + t25 * t40)
            t42 = t1 * c5
            t43 = t28 * t42
            t44 = t26 * (t25 * t43)
            t45 = arm_length + arm_length
            t46 = c5 * (arm_mass * t45) + pendulum_mass * t45
            t47 = c4 * t14
            t48 = t10 * (c4 * t9) + (t28 * t46 - t27 * t47)
            t49 = t26 * (t28 * t47 - t25 * t48)
            t50 = t3 * c3
            t51 = pendulum_length * t2s
            t52 = t1 + t13 * t50
            t53 = t7 * (pendulum_length * t2c)
            t54 = t3 * c6
            t55 = t16 * t51 + c4 * (t11 * (t3 * t19)) + (t28 * t52 - t27 * t53)
            t56 = c7 * t51 + t12 * (t11 * t50) - (t27 * t54 - t28 * t53) - t25 * t55
            t57 = t26 * t56
            t58 = pendulum_mass * (pendulum_length + pendulum_length)
            t59 = c3 * t58
            t60 = pendulum_mass * t2s
            t61 = t13 * t59
            t62 = t7 * (pendulum_mass * t2c)
            t63 = c6 * t58
            t64 = t16 * t60 + c4 * (t11 * (t19 * t58)) + (t28 * t61 - t27 * t62)
            t65 = c7 * t60 + t12 * (t11 * t59) - (t27 * t63 - t28 * t62) - t25 * t64
            t66 = t26 * t65
            t67 = t26 * (arm_rate * t25)
            t68 = pendulum_rate * t26
            t69 = t8 * t8
            t70 = t17 * (arm_rate * t69)
            t71 = t26 * (t25 * t70)
            t72 = t18 * (torque_constant + torque_constant)
            t73 = t26 * (t25 * t72)
            t74 = t30 * t42
            t75 = t26 * (t25 * t74)
            t76 = t29 * t47 - t30 * t46
            t77 = t26 * (t30 * t47 + t25 * t76)
            t78 = t29 * t53 - t30 * t52
            t79 = t26 * (t30 * t53 - t29 * t54 + t25 * t78)
            t80 = t29 * t62 - t30 * t61
            t81 = t26 * (t30 * t62 - t29 * t63 + t25 * t80)
            t82 = torque_constant * t69
            t83 = t26 * (t25 * t82)
            t84 = t26 * (t8 * t25)
            store(a, i, 4, 0, arm_rate)
            store(a, i, 4, 1, pendulum_rate)
            store(a, i, 4, 2, t28)
            store(a, i, 4, 3, t27)
            store(B, i, 4, 0, c1)
            store(B, i, 4, 1, c1)
            store(B, i, 4, 2, t30)
            store(B, i, 4, 3, t29)
            store(block, i - first, 1, 0, t25 * t35 - t24 * t34)
            store(block, i - first, 1, 64, t25 * t37 - t24 * t36)
            store(block, i - first, 1, 128, -(t24 * t38 + t25 * t39))
            store(block, i - first, 1, 192, t35)
            store(block, i - first, 1, 256, t37)
            store(block, i - first, 1, 320, -t39)
            store(block, i - first, 1, 384, -(t24 * t40 + t25 * t41))
            store(block, i - first, 1, 448, -t41)
            store(block, i - first, 1, 512, -(t24 * t43 + t25 * t44))
            store(block, i - first, 1, 576, t25 * t49 - t24 * t48)
            store(block, i - first, 1, 640, t25 * t57 - t24 * t55)
            store(block, i - first, 1, 704, t25 * t66 - t24 * t64)
            store(block, i - first, 1, 768, -(arm_rate * t24 + t25 * t67))
            store(block, i - first, 1, 832, -(t25 * t68))
            store(block, i - first, 1, 896, t24 * t70 + t25 * t71)
            store(block, i - first, 1, 960, -(t24 * t72 + t25 * t73))
            store(block, i - first, 1, 1024, -t44)
            store(block, i - first, 1, 1088, t49)
            store(block, i - first, 1, 1152, t57)
            store(block, i - first, 1, 1216, t66)
            store(block, i - first, 1, 1280, -t67)
            store(block, i - first, 1, 1344, -t68)
            store(block, i - first, 1, 1408, t71)
            store(block, i - first, 1, 1472, -t73)
            store(block, i - first, 1, 1536, -(t24 * t74 + t25 * t75))
            store(block, i - first, 1, 1600, t24 * t76 + t25 * t77)
            store(block, i - first, 1, 1664, t24 * t78 + t25 * t79)
            store(block, i - first, 1, 1728, t24 * t80 + t25 * t81)
            store(block, i - first, 1, 1792, -(t24 * t82 + t25 * t83))
            store(block, i - first, 1, 1856, t8 * t24 + t25 * t84)
            store(block, i - first, 1, 1920, -t75)
            store(block, i - first, 1, 1984, t77)
            store(block, i - first, 1, 2048, t79)
            store(block, i - first, 1, 2112, t81)
            store(block, i - first, 1, 2176, -t83)
            store(block, i - first, 1, 2240, t84)
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
            store(da_dx, i, 16, 8, c1)
            store(da_dx, i, 16, 9, load(block, i - first, 1, 0))
            store(da_dx, i, 16, 10, load(block, i - first, 1, 64))
            store(da_dx, i, 16, 11, load(block, i - first, 1, 128))
            store(da_dx, i, 16, 12, c1)
            store(da_dx, i, 16, 13, load(block, i - first, 1, 192))
            store(da_dx, i, 16, 14, load(block, i - first, 1, 256))
            store(da_dx, i, 16, 15, load(block, i - first, 1, 320))
            store(dB_dx, i, 16, 0, c1)
            store(dB_dx, i, 16, 1, c1)
            store(dB_dx, i, 16, 2, c1)
            store(dB_dx, i, 16, 3, c1)
            store(dB_dx, i, 16, 4, c1)
            store(dB_dx, i, 16, 5, c1)
            store(dB_dx, i, 16, 6, c1)
            store(dB_dx, i, 16, 7, c1)
            store(dB_dx, i, 16, 8, c1)
            store(dB_dx, i, 16, 9, load(block, i - first, 1, 384))
            store(dB_dx, i, 16, 10, c1)
            store(dB_dx, i, 16, 11, c1)
            store(dB_dx, i, 16, 12, c1)
            store(dB_dx, i, 16, 13, load(block, i - first, 1, 448))
            store(dB_dx, i, 16, 14, c1)
            store(dB_dx, i, 16, 15, c1)
            store(da_dtheta, i, 32, 0, c1)
            store(da_dtheta, i, 32, 1, c1)
            store(da_dtheta, i, 32, 2, c1)
            store(da_dtheta, i, 32, 3, c1)
            store(da_dtheta, i, 32, 4, c1)
            store(da_dtheta, i, 32, 5, c1)
            store(da_dtheta, i, 32, 6, c1)
            store(da_dtheta, i, 32, 7, c1)
            store(da_dtheta, i, 32, 8, c1)
            store(da_dtheta, i, 32, 9, c1)
            store(da_dtheta, i, 32, 10, c1)
            store(da_dtheta, i, 32, 11, c1)
            store(da_dtheta, i, 32, 12, c1)
            store(da_dtheta, i, 32, 13, c1)
            store(da_dtheta, i, 32, 14, c1)
            store(da_dtheta, i, 32, 15, c1)
            store(da_dtheta, i, 32, 16, load(block, i - first, 1, 512))
            store(da_dtheta, i, 32, 17, load(block, i - first, 1, 576))
            store(da_dtheta, i, 32, 18, load(block, i - first, 1, 640))
            store(da_dtheta, i, 32, 19, load(block, i - first, 1, 704))
            store(da_dtheta, i, 32, 20, load(block, i - first, 1, 768))
            store(da_dtheta, i, 32, 21, load(block, i - first, 1, 832))
            store(da_dtheta, i, 32, 22, load(block, i - first, 1, 896))
            store(da_dtheta, i, 32, 23, load(block, i - first, 1, 960))
            store(da_dtheta, i, 32, 24, load(block, i - first, 1, 1024))
            store(da_dtheta, i, 32, 25, load(block, i - first, 1, 1088))
            store(da_dtheta, i, 32, 26, load(block, i - first, 1, 1152))
            store(da_dtheta, i, 32, 27, load(block, i - first, 1, 1216))
            store(da_dtheta, i, 32, 28, load(block, i - first, 1, 1280))
            store(da_dtheta, i, 32, 29, load(block, i - first, 1, 1344))
            store(da_dtheta, i, 32, 30, load(block, i - first, 1, 1408))
            store(da_dtheta, i, 32, 31, load(block, i - first, 1, 1472))
            store(dB_dtheta, i, 32, 0, c1)
            store(dB_dtheta, i, 32, 1, c1)
            store(dB_dtheta, i, 32, 2, c1)
            store(dB_dtheta, i, 32, 3, c1)
            store(dB_dtheta, i, 32, 4, c1)
            store(dB_dtheta, i, 32, 5, c1)
            store(dB_dtheta, i, 32, 6, c1)
            store(dB_dtheta, i, 32, 7, c1)
            store(dB_dtheta, i, 32, 8, c1)
            store(dB_dtheta, i, 32, 9, c1)
            store(dB_dtheta, i, 32, 10, c1)
            store(dB_dtheta, i, 32, 11, c1)
            store(dB_dtheta, i, 32, 12, c1)
            store(dB_dtheta, i, 32, 13, c1)
            store(dB_dtheta, i, 32, 14, c1)
            store(dB_dtheta, i, 32, 15, c1)
            store(dB_dtheta, i, 32, 16, load(block, i - first, 1, 1536))
            store(dB_dtheta, i, 32, 17, load(block, i - first, 1, 1600))
            store(dB_dtheta, i, 32, 18, load(block, i - first, 1, 1664))
            store(dB_dtheta, i, 32, 19, load(block, i - first, 1, 1728))
            store(dB_dtheta, i, 32, 20, c1)
            store(dB_dtheta, i, 32, 21, c1)
            store(dB_dtheta, i, 32, 22, load(block, i - first, 1, 1792))
            store(dB_dtheta, i, 32, 23, load(block, i - first, 1, 1856))
            store(dB_dtheta, i, 32, 24, load(block, i - first, 1, 1920))
            store(dB_dtheta, i, 32, 25, load(block, i - first, 1, 1984))
            store(dB_dtheta, i, 32, 26, load(block, i - first, 1, 2048))
            store(dB_dtheta, i, 32, 27, load(block, i - first, 1, 2112))
            store(dB_dtheta, i, 32, 28, c1)
            store(dB_dtheta, i, 32, 29, c1)
            store(dB_dtheta, i, 32, 30, load(block, i - first, 1, 2176))
            store(dB_dtheta, i, 32, 31, load(block, i - first, 1, 2240))


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.25)
    c4 = real(0.5)
    c5 = real(0.08333333333333333)
    c6 = real(0.3333333333333333)
    c7 = real(4.905)
    block = np.empty(512, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            arm = load(x, i, 4, 0)
            pendulum = load(x, i, 4, 1)
            arm_rate = load(x, i, 4, 2)
            pendulum_rate = load(x, i, 4, 3)
            voltage = load(u, i, 1, 0)
            costate_arm = load(costate, i, 4, 0)
            costate_pendulum = load(costate, i, 4, 1)
            costate_arm_rate = load(costate, i, 4, 2)
            costate_pendulum_rate = load(costate, i, 4, 3)
            arm_mass = load(theta, row, 8, 0)
            arm_length = load(theta, row, 8, 1)
            pendulum_mass = load(theta, row, 8, 2)
            pendulum_length = load(theta, row, 8, 3)
            arm_damping = load(theta, row, 8, 4)
            pendulum_damping = load(theta, row, 8, 5)
            resistance = load(theta, row, 8, 6)
            torque_constant = load(theta, row, 8, 7)
            t1 = arm_length * arm_length
            t2s, t2c = sincos(pendulum, real, half_pi)
            t3 = pendulum_length * pendulum_length
            t4 = pendulum_mass * t3
            t5 = t4 * c3
            t6 = pendulum_mass * pendulum_length
            t7 = arm_length * c4
            t8 = c2 / resistance
            t9 = pendulum_rate * pendulum_rate
            t10 = t2s * t6
            t11 = t2s * t2c
            t12 = arm_rate * arm_rate
            t13 = t2s * t2s
            t14 = t2c * t6
            t15 = t7 * t14
            t16 = t7 * t9
            t17 = torque_constant * torque_constant
            t18 = arm_rate * t8
            t19 = arm_rate * pendulum_rate
            t20 = t4 * t19
            t21 = t5 * t11
            t22 = torque_constant * t8
            t23 = c2 / (pendulum_mass * t1 + (t5 * t13 + c5 * (arm_mass * t1)))
            t24 = t15 * t23
            t25 = c2 / (t4 * c6 - t15 * t24)
            t26 = voltage * t22 - (c4 * (t11 * t20) + (t17 * t18 + (arm_damping * arm_rate + t10 * t16)))
            t27 = t25 * (t10 * c7 + t12 * t21 - pendulum_damping * pendulum_rate + t24 * t26)
            t28 = t23 * t26 + t24 * t27
            t29 = t25 * (costate_pendulum_rate + costate_arm_rate * t24)
            t30 = costate_arm_rate * t23 + t24 * t29
            t31 = t28 * t30
            t32 = t28 * t29 + t27 * t30
            t33 = voltage * t30
            t34 = t12 * t29
            t35 = c4 * t30
            t36 = t5 * t34 - t20 * t35
            t37 = t11 * t35
            t38 = t4 * t37
            t39 = t17 * t30
            t40 = torque_constant * (t18 * t30)
            t41 = c7 * t29 - t16 * t30
            t42 = t10 * t30
            t43 = t7 * t32
            t44 = c5 * t31
            t45 = t2s * (t5 * t31)
            t46 = arm_rate * (t21 * t29)
            t47 = t2c * t43 + t2s * t41
            t48 = pendulum_rate * (t7 * t42)
            t49 = c3 * (t11 * t34 - t13 * t31) - (t19 * t37 + c6 * (t27 * t29))
            t50 = pendulum_length * (pendulum_mass * t49)
            t51 = t2c * (t2c * t36 - (t45 + t45) + t6 * t41) - t2s * (t6 * t43 + t2s * t36)
            t52 = arm_length * (pendulum_mass * t31 + arm_mass * t44)
            store(dH_dx, i, 4, 0, arm - arm)
            store(dH_dx, i, 4, 1, t51)
            store(dH_dx, i, 4, 2, t46 + (costate_arm - pendulum_rate * t38 - t8 * t39 - arm_damping * t30 + t46))
            store(dH_dx, i, 4, 3, costate_pendulum - pendulum_damping * t29 - arm_rate * t38 - t48 - t48)
            store(dH_du, i, 1, 0, t22 * t30)
            store(block, i - first, 1, 0, -(t1 * t44))
            store(block, i - first, 1, 64, c4 * (t14 * t32 - t9 * t42) - t52 - t52)
            store(block, i - first, 1, 128, pendulum_length * t47 - t1 * t31 + t3 * t49)
            store(block, i - first, 1, 192, t50 + (pendulum_mass * t47 + t50))
            store(block, i - first, 1, 256, -(arm_rate * t30))
            store(block, i - first, 1, 320, -(pendulum_rate * t29))
            store(block, i - first, 1, 384, -(t8 * t8 * (torque_constant * t33 - arm_rate * t39)))
            store(block, i - first, 1, 448, t8 * t33 - t40 - t40)
        for i in range(first, last):
            one_by_one()
            store(dH_dtheta, i, 8, 0, load(block, i - first, 1, 0))
            store(dH_dtheta, i, 8, 1, load(block, i - first, 1, 64))
            store(dH_dtheta, i, 8, 2, load(block, i - first, 1, 128))
            store(dH_dtheta, i, 8, 3, load(block, i - first, 1, 192))
            store(dH_dtheta, i, 8, 4, load(block, i - first, 1, 256))
            store(dH_dtheta, i, 8, 5, load(block, i - first, 1, 320))
            store(dH_dtheta, i, 8, 6, load(block, i - first, 1, 384))
            store(dH_dtheta, i, 8, 7, load(block, i - first, 1, 448))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.5)
    c2 = real(0.1)
    c3 = real(49.34802200544679)
    for i in range(x.shape[0]):
        row = step * i
        arm = load(x, i, 4, 0)
        pendulum = load(x, i, 4, 1)
        arm_rate = load(x, i, 4, 2)
        pendulum_rate = load(x, i, 4, 3)
        t1 = pendulum * c1
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = t2s * t2s * c3 + (pendulum_rate * pendulum_rate * c2 + (arm * arm + arm_rate * arm_rate * c2))
        t4 = t2s * c3
        t5 = arm_rate * c2
        t6 = pendulum_rate * c2
        store(q, i, 1, 0, t3)
        store(dq_dx, i, 4, 0, arm + arm)
        store(dq_dx, i, 4, 1, c1 * ((t4 + t4) * t2c))
        store(dq_dx, i, 4, 2, t5 + t5)
        store(dq_dx, i, 4, 3, t6 + t6)
