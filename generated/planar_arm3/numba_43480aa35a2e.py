"""planar_arm3: kernels for Numba, made by modelgen; not to be edited."""

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
    c4 = real(3.0)
    c5 = real(2.0)
    c6 = real(0.16666666666666666)
    c7 = real(0.5)
    c8 = real(9.81)
    c9 = real(4.905)
    block = np.empty(576, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            shoulder = load(x, i, 6, 0)
            elbow = load(x, i, 6, 1)
            wrist = load(x, i, 6, 2)
            shoulder_rate = load(x, i, 6, 3)
            elbow_rate = load(x, i, 6, 4)
            wrist_rate = load(x, i, 6, 5)
            upper_mass = load(theta, row, 7, 0)
            fore_mass = load(theta, row, 7, 1)
            hand_mass = load(theta, row, 7, 2)
            upper_length = load(theta, row, 7, 3)
            fore_length = load(theta, row, 7, 4)
            hand_length = load(theta, row, 7, 5)
            damping = load(theta, row, 7, 6)
            t1 = upper_length * upper_length
            t2s, t2c = sincos(elbow, real, half_pi)
            t3 = t2c * (upper_length * fore_length)
            t4 = fore_mass * t3
            t5 = elbow + wrist
            t6s, t6c = sincos(t5, real, half_pi)
            t7 = upper_length * t6c
            t8 = hand_mass * hand_length
            t9 = t7 * t8
            t10 = hand_mass * t3
            t11 = fore_length * fore_length
            t12 = hand_length * hand_length * (hand_mass * c3)
            t13s, t13c = sincos(wrist, real, half_pi)
            t14 = fore_length * t13c
            t15 = hand_mass * t11 + (c3 * (fore_mass * t11) + (t12 + t8 * t14))
            t16 = t14 * c4 + hand_length * c5
            t17 = t8 * c6
            t18 = fore_length * t13s
            t19 = t8 * (t18 + upper_length * t6s)
            t20 = wrist_rate * t19
            t21 = wrist_rate * wrist_rate
            t22 = t19 * c7
            t23 = fore_length * t2s
            t24 = fore_mass * t23
            t25 = hand_mass * t23
            t26 = t8 * t6s
            t27 = shoulder_rate * elbow_rate
            t28 = elbow_rate * elbow_rate
            t29 = upper_length * (c7 * t26 + (t25 + c7 * t24))
            t30 = upper_length * sincos(shoulder, real, half_pi)[0]
            t31 = c5 * t30
            t32 = fore_length * sincos(shoulder + elbow, real, half_pi)[0]
            t33 = fore_mass * c8
            t34 = sincos(shoulder + t5, real, half_pi)[0]
            t35 = c5 * t32 + hand_length * t34
            t36 = hand_mass * c8
            t37 = t8 * t18
            t38 = wrist_rate * t37
            t39 = c7 * t37
            t40 = shoulder_rate * shoulder_rate
            t41 = c3 * (upper_mass * t1) + (hand_mass * t1 + (fore_mass * t1 + (t10 * c5 + (t15 + (t4 + t9)))))
            t42 = t9 * c7 + (t4 * c7 + (t10 + t15))
            t43 = t17 * (t16 + t7 * c4)
            t44 = c9 * (upper_mass * t30) + (t28 * t29 + (t21 * t22 + (elbow_rate * t20 + shoulder_rate * t20)))
            t45 = (c5 * t25 + (t24 + t26)) * (upper_length * t27) + ((t31 + t35) * (c7 * t36) + ((t31 + t32) * (c7 * t33) + t44))
            t46 = t45 - damping * shoulder_rate
            t47 = elbow_rate * t38 + (t36 * (c7 * t35) + (t21 * t39 + t33 * (c7 * t32)))
            t48 = c9 * (t8 * t34) - t22 * t40 - t27 * t37 - t28 * t39 - damping * wrist_rate
            t49 = c2 / t41
            t50 = t42 * t49
            t51 = c2 / (t15 - t42 * t50)
            t52 = t16 * t17 - t43 * t50
            t53 = t43 * t49
            t54 = t51 * t52
            t55 = c2 / (t12 - (t43 * t53 + t52 * t54))
            t56 = shoulder_rate * t38 + t47 - t29 * t40 - damping * elbow_rate - t46 * t50
            t57 = t55 * (t48 - (t46 * t53 + t54 * t56))
            t58 = t51 * t56 - t54 * t57
            t59 = t55 * (t50 * t54 - t53)
            t60 = t50 * t51 + t54 * t59
            t61 = t54 * t55
            t62 = -t61
            t63 = t51 + t54 * t61
            store(a, i, 6, 0, shoulder_rate)
            store(a, i, 6, 1, elbow_rate)
            store(a, i, 6, 2, wrist_rate)
            store(a, i, 6, 3, t46 * t49 - (t50 * t58 + t53 * t57))
            store(a, i, 6, 4, t58)
            store(a, i, 6, 5, t57)
            store(block, i - first, 1, 0, t49 - (t53 * t59 - t50 * t60))
            store(block, i - first, 1, 64, t53 * t61 - t50 * t63)
            store(block, i - first, 1, 128, t50 * t61 - t53 * t55)
            store(block, i - first, 1, 192, -t60)
            store(block, i - first, 1, 256, t63)
            store(block, i - first, 1, 320, t62)
            store(block, i - first, 1, 384, t59)
            store(block, i - first, 1, 448, t62)
            store(block, i - first, 1, 512, t55)
        for i in range(first, last):
            one_by_one()
            store(B, i, 18, 0, c1)
            store(B, i, 18, 1, c1)
            store(B, i, 18, 2, c1)
            store(B, i, 18, 3, c1)
            store(B, i, 18, 4, c1)
            store(B, i, 18, 5, c1)
            store(B, i, 18, 6, c1)
            store(B, i, 18, 7, c1)
            store(B, i, 18, 8, c1)
            store(B, i, 18, 9, load(block, i - first, 1, 0))
            store(B, i, 18, 10, load(block, i - first, 1, 64))
            store(B, i, 18, 11, load(block, i - first, 1, 128))
            store(B, i, 18, 12, load(block, i - first, 1, 192))
            store(B, i, 18, 13, load(block, i - first, 1, 256))
            store(B, i, 18, 14, load(block, i - first, 1, 320))
            store(B, i, 18, 15, load(block, i - first, 1, 384))
            store(B, i, 18, 16, load(block, i - first, 1, 448))
            store(B, i, 18, 17, load(block, i - first, 1, 512))


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.3333333333333333)
    c3 = real(3.0)
    c4 = real(2.0)
    c5 = real(0.16666666666666666)
    c6 = real(0.5)
    c7 = real(9.81)
    c8 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 6, 0)
        elbow = load(x, i, 6, 1)
        wrist = load(x, i, 6, 2)
        shoulder_rate = load(x, i, 6, 3)
        elbow_rate = load(x, i, 6, 4)
        wrist_rate = load(x, i, 6, 5)
        shoulder_torque = load(u, i, 3, 0)
        elbow_torque = load(u, i, 3, 1)
        wrist_torque = load(u, i, 3, 2)
        upper_mass = load(theta, row, 7, 0)
        fore_mass = load(theta, row, 7, 1)
        hand_mass = load(theta, row, 7, 2)
        upper_length = load(theta, row, 7, 3)
        fore_length = load(theta, row, 7, 4)
        hand_length = load(theta, row, 7, 5)
        damping = load(theta, row, 7, 6)
        t1 = upper_length * upper_length
        t2s, t2c = sincos(elbow, real, half_pi)
        t3 = t2c * (upper_length * fore_length)
        t4 = fore_mass * t3
        t5 = elbow + wrist
        t6s, t6c = sincos(t5, real, half_pi)
        t7 = upper_length * t6c
        t8 = hand_mass * hand_length
        t9 = t7 * t8
        t10 = hand_mass * t3
        t11 = fore_length * fore_length
        t12 = hand_length * hand_length * (hand_mass * c2)
        t13s, t13c = sincos(wrist, real, half_pi)
        t14 = fore_length * t13c
        t15 = hand_mass * t11 + (c2 * (fore_mass * t11) + (t12 + t8 * t14))
        t16 = t14 * c3 + hand_length * c4
        t17 = t8 * c5
        t18 = fore_length * t13s
        t19 = t8 * (t18 + upper_length * t6s)
        t20 = wrist_rate * t19
        t21 = wrist_rate * wrist_rate
        t22 = t19 * c6
        t23 = fore_length * t2s
        t24 = fore_mass * t23
        t25 = hand_mass * t23
        t26 = t8 * t6s
        t27 = shoulder_rate * elbow_rate
        t28 = elbow_rate * elbow_rate
        t29 = upper_length * (c6 * t26 + (t25 + c6 * t24))
        t30 = upper_length * sincos(shoulder, real, half_pi)[0]
        t31 = c4 * t30
        t32 = fore_length * sincos(shoulder + elbow, real, half_pi)[0]
        t33 = fore_mass * c7
        t34 = sincos(shoulder + t5, real, half_pi)[0]
        t35 = c4 * t32 + hand_length * t34
        t36 = hand_mass * c7
        t37 = t8 * t18
        t38 = wrist_rate * t37
        t39 = c6 * t37
        t40 = shoulder_rate * shoulder_rate
        t41 = c2 * (upper_mass * t1) + (hand_mass * t1 + (fore_mass * t1 + (t10 * c4 + (t15 + (t4 + t9)))))
        t42 = t9 * c6 + (t4 * c6 + (t10 + t15))
        t43 = t17 * (t16 + t7 * c3)
        t44 = c8 * (upper_mass * t30) + (t28 * t29 + (t21 * t22 + (elbow_rate * t20 + shoulder_rate * t20)))
        t45 = (c4 * t25 + (t24 + t26)) * (upper_length * t27) + ((t31 + t35) * (c6 * t36) + ((t31 + t32) * (c6 * t33) + t44))
        t46 = elbow_rate * t38 + (t36 * (c6 * t35) + (t21 * t39 + t33 * (c6 * t32)))
        t47 = c8 * (t8 * t34) - t22 * t40 - t27 * t37 - t28 * t39 - damping * wrist_rate
        t48 = c1 / t41
        t49 = t42 * t48
        t50 = c1 / (t15 - t42 * t49)
        t51 = t16 * t17 - t43 * t49
        t52 = t43 * t48
        t53 = t50 * t51
        t54 = shoulder_torque + (t45 - damping * shoulder_rate)
        t55 = elbow_torque + (shoulder_rate * t38 + t46 - t29 * t40 - damping * elbow_rate) - t49 * t54
        t56 = c1 / (t12 - (t43 * t52 + t51 * t53)) * (wrist_torque + t47 - (t52 * t54 + t53 * t55))
        t57 = t50 * t55 - t53 * t56
        store(xdot, i, 6, 0, shoulder_rate)
        store(xdot, i, 6, 1, elbow_rate)
        store(xdot, i, 6, 2, wrist_rate)
        store(xdot, i, 6, 3, t48 * t54 - (t49 * t57 + t52 * t56))
        store(xdot, i, 6, 4, t57)
        store(xdot, i, 6, 5, t56)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.3333333333333333)
    c4 = real(3.0)
    c5 = real(2.0)
    c6 = real(0.16666666666666666)
    c7 = real(0.5)
    c8 = real(9.81)
    c9 = real(4.905)
    block = np.empty(7680, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            shoulder = load(x, i, 6, 0)
            elbow = load(x, i, 6, 1)
            wrist = load(x, i, 6, 2)
            shoulder_rate = load(x, i, 6, 3)
            elbow_rate = load(x, i, 6, 4)
            wrist_rate = load(x, i, 6, 5)
            upper_mass = load(theta, row, 7, 0)
            fore_mass = load(theta, row, 7, 1)
            hand_mass = load(theta, row, 7, 2)
            upper_length = load(theta, row, 7, 3)
            fore_length = load(theta, row, 7, 4)
            hand_length = load(theta, row, 7, 5)
            damping = load(theta, row, 7, 6)
            t1 = upper_length * upper_length
            t2s, t2c = sincos(elbow, real, half_pi)
            t3 = upper_length * fore_length
            t4 = t2c * t3
            t5 = fore_mass * t4
            t6 = elbow + wrist
            t7s, t7c = sincos(t6, real, half_pi)
            t8 = upper_length * t7c
            t9 = hand_mass * hand_length
            t10 = t8 * t9
            t11 = hand_mass * t4
            t12 = fore_length * fore_length
            t13 = hand_length * hand_length
            t14 = hand_mass * c3
            t15 = t13 * t14
            t16s, t16c = sincos(wrist, real, half_pi)
            t17 = fore_length * t16c
            t18 = t9 * t17
            t19 = hand_mass * t12 + (c3 * (fore_mass * t12) + (t15 + t18))
            t20 = t17 * c4 + hand_length * c5
            t21 = t9 * c6
            t22 = fore_length * t16s
            t23 = upper_length * t7s
            t24 = t22 + t23
            t25 = t9 * t24
            t26 = wrist_rate * t25
            t27 = wrist_rate * wrist_rate
            t28 = t25 * c7
            t29 = fore_length * t2s
            t30 = fore_mass * t29
            t31 = hand_mass * t29
            t32 = t9 * t7s
            t33 = shoulder_rate * elbow_rate
            t34 = elbow_rate * elbow_rate
            t35 = c7 * t32
            t36 = t35 + (t31 + c7 * t30)
            t37 = upper_length * t36
            t38s, t38c = sincos(shoulder, real, half_pi)
            t39 = upper_length * t38s
            t40 = c5 * t39
            t41 = shoulder + elbow
            t42s, t42c = sincos(t41, real, half_pi)
            t43 = fore_length * t42s
            t44 = fore_mass * c8
            t45 = shoulder + t6
            t46s, t46c = sincos(t45, real, half_pi)
            t47 = hand_length * t46s
            t48 = c5 * t43 + t47
            t49 = hand_mass * c8
            t50 = t9 * t22
            t51 = wrist_rate * t50
            t52 = c7 * t50
            t53 = shoulder_rate * shoulder_rate
            t54 = c3 * (upper_mass * t1) + (hand_mass * t1 + (fore_mass * t1 + (t11 * c5 + (t19 + (t5 + t10)))))
            t55 = t10 * c7
            t56 = t55 + (t5 * c7 + (t11 + t19))
            t57 = t20 + t8 * c4
            t58 = t21 * t57
            t59 = t40 + t43
            t60 = c7 * t44
            t61 = t40 + t48
            t62 = c7 * t49
            t63 = c5 * t31 + (t30 + t32)
            t64 = upper_length * t33
            t65 = c9 * (upper_mass * t39) + (t34 * t37 + (t27 * t28 + (elbow_rate * t26 + shoulder_rate * t26)))
            t66 = t63 * t64 + (t61 * t62 + (t59 * t60 + t65)) - damping * shoulder_rate
            t67 = c7 * t43
            t68 = c7 * t48
            t69 = shoulder_rate * t51 + (elbow_rate * t51 + (t49 * t68 + (t27 * t52 + t44 * t67)))
            t70 = c9 * (t9 * t46s) - t28 * t53 - t33 * t50 - t34 * t52 - damping * wrist_rate
            t71 = c2 / t54
            t72 = t56 * t71
            t73 = c2 / (t19 - t56 * t72)
            t74 = t20 * t21 - t58 * t72
            t75 = t58 * t71
            t76 = t73 * t74
            t77 = c2 / (t15 - (t58 * t75 + t74 * t76))
            t78 = t69 - t37 * t53 - damping * elbow_rate - t66 * t72
            t79 = t77 * (t70 - (t66 * t75 + t76 * t78))
            t80 = t73 * t78 - t76 * t79
            t81 = t66 * t71 - (t72 * t80 + t75 * t79)
            t82 = t77 * (t72 * t76 - t75)
            t83 = t72 * t73 + t76 * t82
            t84 = t71 - (t75 * t82 - t72 * t83)
            t85 = -t83
            t86 = t76 * t77
            t87 = -t86
            t88 = t73 + t76 * t86
            t89 = t75 * t86 - t72 * t88
            t90 = t72 * t86 - t75 * t77
            t91 = upper_length * t38c
            t92 = c5 * t91
            t93 = fore_length * t42c
            t94 = hand_length * t46c
            t95 = c5 * t93 + t94
            t96 = t62 * (t92 + t95) + (c9 * (upper_mass * t91) + t60 * (t92 + t93))
            t97 = t44 * (c7 * t93) + t49 * (c7 * t95)
            t98 = c9 * (t9 * t46c)
            t99 = t97 - t72 * t96
            t100 = t77 * (t98 - (t75 * t96 + t76 * t99))
            t101 = t73 * t99 - t76 * t100
            t102 = t3 * t2s
            t103 = fore_mass * t102
            t104 = t9 * t23
            t105 = hand_mass * t102
            t106 = wrist_rate * t10
            t107 = fore_length * t2c
            t108 = fore_mass * t107
            t109 = hand_mass * t107
            t110 = t7c * t9
            t111 = c7 * t110
            t112 = t111 + (t109 + c7 * t108)
            t113 = upper_length * t112
            t114 = c5 * t105 + (t103 + t104)
            t115 = c7 * t104
            t116 = t115 + (t105 + c7 * t103)
            t117 = c4 * t23
            t118 = t21 * t117
            t119 = c5 * t109 + (t108 + t110)
            t120 = t60 * t93 + (t34 * t113 + (t27 * t55 + (elbow_rate * t106 + shoulder_rate * t106)))
            t121 = t64 * t119 + (t62 * t95 + t120) + (t81 * t114 + t80 * t116 + t79 * t118)
            t122 = t97 - t53 * t113 + t81 * t116 - t72 * t121
            t123 = t77 * (t98 - t53 * t55 + t81 * t118 - (t75 * t121 + t76 * t122))
            t124 = t73 * t122 - t76 * t123
            t125 = c4 * t22
            t126 = t9 * (t8 + t17)
            t127 = wrist_rate * t126
            t128 = c7 * t126
            t129 = upper_length * t111
            t130 = wrist_rate * t18
            t131 = t18 * c7
            t132 = t50 + t104
            t133 = t50 + t115
            t134 = t21 * (t117 + t125)
            t135 = t21 * t125
            t136 = t62 * t94 + (t34 * t129 + (t27 * t128 + (elbow_rate * t127 + shoulder_rate * t127)))
            t137 = shoulder_rate * t130 + (elbow_rate * t130 + (t27 * t131 + t49 * (c7 * t94))) - t53 * t129
            t138 = t64 * t110 + t136 + (t81 * t132 + t80 * t133 + t79 * t134)
            t139 = t98 - t53 * t128 - t18 * t33 - t34 * t131 + (t81 * t134 + t80 * t135)
            t140 = t137 + (t81 * t133 + t50 * t80 + t79 * t135) - t72 * t138
            t141 = t77 * (t139 - (t75 * t138 + t76 * t140))
            t142 = t73 * t140 - t76 * t141
            t143 = shoulder_rate + shoulder_rate
            t144 = t26 + t63 * (upper_length * elbow_rate) - damping
            t145 = elbow_rate * t50
            t146 = t51 - t37 * t143 - t72 * t144
            t147 = t77 * (t28 * t143 + t145 + (t75 * t144 + t76 * t146))
            t148 = t73 * t146 + t76 * t147
            t149 = elbow_rate + elbow_rate
            t150 = t63 * (upper_length * shoulder_rate) + (t26 + t37 * t149)
            t151 = shoulder_rate * t50
            t152 = t51 - damping - t72 * t150
            t153 = t77 * (t151 + t52 * t149 + (t75 * t150 + t76 * t152))
            t154 = t73 * t152 + t76 * t153
            t155 = wrist_rate + wrist_rate
            t156 = t28 * t155 + (elbow_rate * t25 + shoulder_rate * t25)
            t157 = t151 + (t145 + t52 * t155) - t72 * t156
            t158 = t77 * (damping + (t75 * t156 + t76 * t157))
            t159 = t73 * t157 + t76 * t158
            t160 = t84 * t114 + t85 * t116 + t82 * t118
            t161 = t84 * t116 - t72 * t160
            t162 = t77 * (t84 * t118 - (t75 * t160 + t76 * t161))
            t163 = t73 * t161 - t76 * t162
            t164 = t89 * t114 + t88 * t116 + t87 * t118
            t165 = t89 * t116 - t72 * t164
            t166 = t77 * (t89 * t118 - (t75 * t164 + t76 * t165))
            t167 = t73 * t165 - t76 * t166
            t168 = t90 * t114 + t87 * t116 + t77 * t118
            t169 = t90 * t116 - t72 * t168
            t170 = t77 * (t90 * t118 - (t75 * t168 + t76 * t169))
            t171 = t73 * t169 - t76 * t170
            t172 = t84 * t132 + t85 * t133 + t82 * t134
            t173 = t84 * t133 + t50 * t85 + t82 * t135 - t72 * t172
            t174 = t77 * (t84 * t134 + t85 * t135 - (t75 * t172 + t76 * t173))
            t175 = t73 * t173 - t76 * t174
            t176 = t89 * t132 + t88 * t133 + t87 * t134
            t177 = t89 * t133 + t50 * t88 + t87 * t135 - t72 * t176
            t178 = t77 * (t89 * t134 + t88 * t135 - (t75 * t176 + t76 * t177))
            t179 = t73 * t177 - t76 * t178
            t180 = t90 * t132 + t87 * t133 + t77 * t134
            t181 = t90 * t133 + t50 * t87 + t77 * t135 - t72 * t180
            t182 = t77 * (t90 * t134 + t87 * t135 - (t75 * t180 + t76 * t181))
            t183 = t73 * t181 - t76 * t182
            t184 = t1 * c3
            t185 = t39 * c9 - t81 * t184
            t186 = t72 * t185
            t187 = t77 * (t76 * t186 - t75 * t185)
            t188 = t73 * t186 + t76 * t187
            t189 = t12 * c3
            t190 = upper_length * (c7 * t29)
            t191 = t1 + (t4 + t189)
            t192 = t189 + t4 * c7
            t193 = t29 * t64 + (t34 * t190 + c9 * t59) - (t81 * t191 + t80 * t192)
            t194 = c8 * t67 - t53 * t190 - (t81 * t192 + t80 * t189) - t72 * t193
            t195 = t77 * (t75 * t193 + t76 * t194)
            t196 = t73 * t194 + t76 * t195
            t197 = hand_length * t8
            t198 = c3 * t13
            t199 = t12 + (t198 + hand_length * t17)
            t200 = hand_length * c6
            t201 = hand_length * t24
            t202 = wrist_rate * t201
            t203 = c7 * t201
            t204 = hand_length * t7s
            t205 = upper_length * (t29 + c7 * t204)
            t206 = hand_length * t22
            t207 = wrist_rate * t206
            t208 = c7 * t206
            t209 = t1 + (t4 * c5 + (t197 + t199))
            t210 = c7 * t197 + (t4 + t199)
            t211 = t57 * t200
            t212 = t20 * t200
            t213 = c9 * t61 + (t34 * t205 + (t27 * t203 + (elbow_rate * t202 + shoulder_rate * t202)))
            t214 = shoulder_rate * t207 + (elbow_rate * t207 + (t27 * t208 + c8 * t68)) - t53 * t205
            t215 = t64 * (t204 + c5 * t29) + t213 - (t81 * t209 + t80 * t210 + t79 * t211)
            t216 = t47 * c9 - t53 * t203 - t33 * t206 - t34 * t208 - (t81 * t211 + t80 * t212 + t79 * t198)
            t217 = t214 - (t81 * t210 + t80 * t199 + t79 * t212) - t72 * t215
            t218 = t77 * (t216 - (t75 * t215 + t76 * t217))
            t219 = t73 * t217 - t76 * t218
            t220 = upper_length + upper_length
            t221 = wrist_rate * t32
            t222 = c5 * t38s
            t223 = c3 * (upper_mass * t220) + (hand_mass * t220 + (t119 + fore_mass * t220))
            t224 = t21 * (t7c * c4)
            t225 = c9 * (upper_mass * t38s) + (t34 * t36 + (t27 * t35 + (elbow_rate * t221 + shoulder_rate * t221)))
            t226 = t33 * t63 + (t62 * t222 + (t60 * t222 + t225)) - (t81 * t223 + t80 * t112 + t79 * t224)
            t227 = t36 * t53 + t81 * t112 + t72 * t226
            t228 = t77 * (t35 * t53 + t81 * t224 + (t75 * t226 - t76 * t227))
            t229 = t76 * t228 - t73 * t227
            t230 = upper_length * t2c
            t231 = fore_mass * t230
            t232 = hand_mass * t230
            t233 = fore_length + fore_length
            t234 = hand_mass * t233 + (t9 * t16c + c3 * (fore_mass * t233))
            t235 = t9 * t16s
            t236 = wrist_rate * t235
            t237 = c7 * t235
            t238 = fore_mass * t2s
            t239 = hand_mass * t2s
            t240 = upper_length * (t239 + c7 * t238)
            t241 = c5 * t42s
            t242 = c5 * t232 + (t231 + t234)
            t243 = c7 * t231 + (t232 + t234)
            t244 = t21 * (t16c * c4)
            t245 = elbow_rate * t236
            t246 = shoulder_rate * t236
            t247 = t27 * t237
            t248 = t64 * (t238 + c5 * t239) + (t62 * t241 + (t42s * t60 + (t34 * t240 + (t247 + (t245 + t246)))))
            t249 = t246 + (t245 + (t49 * (c7 * t241) + (t247 + t44 * (c7 * t42s)))) - t53 * t240
            t250 = t79 * t244
            t251 = t248 - (t81 * t242 + t80 * t243 + t250)
            t252 = t34 * t237 + (t53 * t237 + t33 * t235) + (t81 * t244 + t80 * t244)
            t253 = t249 - (t250 + (t81 * t243 + t80 * t234)) - t72 * t251
            t254 = t77 * (t252 + (t75 * t251 + t76 * t253))
            t255 = t73 * t253 + t76 * t254
            t256 = hand_mass * t8
            t257 = t14 * (hand_length + hand_length)
            t258 = t257 + hand_mass * t17
            t259 = hand_mass * c6
            t260 = hand_mass * t24
            t261 = wrist_rate * t260
            t262 = c7 * t260
            t263 = hand_mass * t7s
            t264 = upper_length * (c7 * t263)
            t265 = hand_mass * t22
            t266 = wrist_rate * t265
            t267 = c7 * t265
            t268 = t256 + t258
            t269 = t258 + c7 * t256
            t270 = c5 * t21
            t271 = t57 * t259 + t270
            t272 = t270 + t20 * t259
            t273 = t46s * t62 + (t34 * t264 + (t27 * t262 + (elbow_rate * t261 + shoulder_rate * t261)))
            t274 = shoulder_rate * t266 + (elbow_rate * t266 + (t27 * t267 + t49 * (c7 * t46s))) - t53 * t264
            t275 = t64 * t263 + t273 - (t81 * t268 + t80 * t269 + t79 * t271)
            t276 = c9 * (hand_mass * t46s) - t53 * t262 - t33 * t265 - t34 * t267 - (t81 * t271 + t80 * t272 + t79 * t257)
            t277 = t274 - (t81 * t269 + t80 * t258 + t79 * t272) - t72 * t275
            t278 = t77 * (t276 - (t75 * t275 + t76 * t277))
            t279 = t73 * t277 - t76 * t278
            t280 = shoulder_rate * t72 - elbow_rate
            t281 = t77 * (wrist_rate + (t76 * t280 - shoulder_rate * t75))
            t282 = t73 * t280 + t76 * t281
            t283 = t84 * t184
            t284 = t72 * t283
            t285 = t77 * (t75 * t283 - t76 * t284)
            t286 = t73 * t284 - t76 * t285
            t287 = t89 * t184
            t288 = t72 * t287
            t289 = t77 * (t75 * t287 - t76 * t288)
            t290 = t73 * t288 - t76 * t289
            t291 = t90 * t184
            t292 = t72 * t291
            t293 = t77 * (t75 * t291 - t76 * t292)
            t294 = t73 * t292 - t76 * t293
            t295 = t84 * t191 + t85 * t192
            t296 = t72 * t295 - (t84 * t192 + t85 * t189)
            t297 = t77 * (t75 * t295 - t76 * t296)
            t298 = t73 * t296 - t76 * t297
            t299 = t89 * t191 + t88 * t192
            t300 = t72 * t299 - (t89 * t192 + t88 * t189)
            t301 = t77 * (t75 * t299 - t76 * t300)
            t302 = t73 * t300 - t76 * t301
            t303 = t90 * t191 + t87 * t192
            t304 = t72 * t303 - (t90 * t192 + t87 * t189)
            t305 = t77 * (t75 * t303 - t76 * t304)
            t306 = t73 * t304 - t76 * t305
            t307 = t84 * t209 + t85 * t210 + t82 * t211
            t308 = t72 * t307 - (t84 * t210 + t85 * t199 + t82 * t212)
            t309 = t84 * t211 + t85 * t212 + t82 * t198 + (t76 * t308 - t75 * t307)
            t310 = t77 * t309
            t311 = t73 * t308 + t76 * t310
            t312 = t89 * t209 + t88 * t210 + t87 * t211
            t313 = t72 * t312 - (t89 * t210 + t88 * t199 + t87 * t212)
            t314 = t89 * t211 + t88 * t212 + t87 * t198 + (t76 * t313 - t75 * t312)
            t315 = t77 * t314
            t316 = t73 * t313 + t76 * t315
            t317 = t90 * t209 + t87 * t210 + t77 * t211
            t318 = t72 * t317 - (t90 * t210 + t87 * t199 + t77 * t212)
            t319 = t90 * t211 + t87 * t212 + t77 * t198 + (t76 * t318 - t75 * t317)
            t320 = t77 * t319
            t321 = t73 * t318 + t76 * t320
            t322 = t84 * t223 + t85 * t112 + t82 * t224
            t323 = t72 * t322 - t84 * t112
            t324 = t77 * (t84 * t224 + (t76 * t323 - t75 * t322))
            t325 = t73 * t323 + t76 * t324
            t326 = t89 * t223 + t88 * t112 + t87 * t224
            t327 = t72 * t326 - t89 * t112
            t328 = t77 * (t89 * t224 + (t76 * t327 - t75 * t326))
            t329 = t73 * t327 + t76 * t328
            t330 = t90 * t223 + t87 * t112 + t77 * t224
            t331 = t72 * t330 - t90 * t112
            t332 = t77 * (t90 * t224 + (t76 * t331 - t75 * t330))
            t333 = t73 * t331 + t76 * t332
            t334 = t82 * t244
            t335 = t84 * t242 + t85 * t243 + t334
            t336 = t72 * t335 - (t334 + (t84 * t243 + t85 * t234))
            t337 = t77 * (t84 * t244 + t85 * t244 + (t76 * t336 - t75 * t335))
            t338 = t73 * t336 + t76 * t337
            t339 = t87 * t244
            t340 = t89 * t242 + t88 * t243 + t339
            t341 = t72 * t340 - (t339 + (t89 * t243 + t88 * t234))
            t342 = t77 * (t89 * t244 + t88 * t244 + (t76 * t341 - t75 * t340))
            t343 = t73 * t341 + t76 * t342
            t344 = t77 * t244
            t345 = t90 * t242 + t87 * t243 + t344
            t346 = t72 * t345 - (t344 + (t90 * t243 + t87 * t234))
            t347 = t77 * (t90 * t244 + t87 * t244 + (t76 * t346 - t75 * t345))
            t348 = t73 * t346 + t76 * t347
            t349 = t84 * t268 + t85 * t269 + t82 * t271
            t350 = t72 * t349 - (t84 * t269 + t85 * t258 + t82 * t272)
            t351 = t84 * t271 + t85 * t272 + t82 * t257 + (t76 * t350 - t75 * t349)
            t352 = t77 * t351
            t353 = t73 * t350 + t76 * t352
            t354 = t89 * t268 + t88 * t269 + t87 * t271
            t355 = t72 * t354 - (t89 * t269 + t88 * t258 + t87 * t272)
            t356 = t89 * t271 + t88 * t272 + t87 * t257 + (t76 * t355 - t75 * t354)
            t357 = t77 * t356
            t358 = t73 * t355 + t76 * t357
            t359 = t90 * t268 + t87 * t269 + t77 * t271
            t360 = t72 * t359 - (t90 * t269 + t87 * t258 + t77 * t272)
            t361 = t90 * t271 + t87 * t272 + t77 * t257 + (t76 * t360 - t75 * t359)
            t362 = t77 * t361
            t363 = t73 * t360 + t76 * t362
            store(a, i, 6, 0, shoulder_rate)
            store(a, i, 6, 1, elbow_rate)
            store(a, i, 6, 2, wrist_rate)
            store(a, i, 6, 3, t81)
            store(a, i, 6, 4, t80)
            store(a, i, 6, 5, t79)
            store(block, i - first, 1, 0, t84)
            store(block, i - first, 1, 64, t89)
            store(block, i - first, 1, 128, t90)
            store(block, i - first, 1, 192, t85)
            store(block, i - first, 1, 256, t88)
            store(block, i - first, 1, 320, t87)
            store(block, i - first, 1, 384, t82)
            store(block, i - first, 1, 448, t87)
            store(block, i - first, 1, 512, t77)
            store(block, i - first, 1, 576, t71 * t96 - (t72 * t101 + t75 * t100))
            store(block, i - first, 1, 640, t71 * t121 - (t72 * t124 + t75 * t123))
            store(block, i - first, 1, 704, t71 * t138 - (t72 * t142 + t75 * t141))
            store(block, i - first, 1, 768, t71 * t144 - (t72 * t148 - t75 * t147))
            store(block, i - first, 1, 832, t71 * t150 - (t72 * t154 - t75 * t153))
            store(block, i - first, 1, 896, t71 * t156 - (t72 * t159 - t75 * t158))
            store(block, i - first, 1, 960, t101)
            store(block, i - first, 1, 1024, t124)
            store(block, i - first, 1, 1088, t142)
            store(block, i - first, 1, 1152, t148)
            store(block, i - first, 1, 1216, t154)
            store(block, i - first, 1, 1280, t159)
            store(block, i - first, 1, 1344, t100)
            store(block, i - first, 1, 1408, t123)
            store(block, i - first, 1, 1472, t141)
            store(block, i - first, 1, 1536, -t147)
            store(block, i - first, 1, 1600, -t153)
            store(block, i - first, 1, 1664, -t158)
            store(block, i - first, 1, 1728, t71 * t160 - (t72 * t163 + t75 * t162))
            store(block, i - first, 1, 1792, t71 * t172 - (t72 * t175 + t75 * t174))
            store(block, i - first, 1, 1856, t71 * t164 - (t72 * t167 + t75 * t166))
            store(block, i - first, 1, 1920, t71 * t176 - (t72 * t179 + t75 * t178))
            store(block, i - first, 1, 1984, t71 * t168 - (t72 * t171 + t75 * t170))
            store(block, i - first, 1, 2048, t71 * t180 - (t72 * t183 + t75 * t182))
            store(block, i - first, 1, 2112, t163)
            store(block, i - first, 1, 2176, t175)
            store(block, i - first, 1, 2240, t167)
            store(block, i - first, 1, 2304, t179)
            store(block, i - first, 1, 2368, t171)
            store(block, i - first, 1, 2432, t183)
            store(block, i - first, 1, 2496, t162)
            store(block, i - first, 1, 2560, t174)
            store(block, i - first, 1, 2624, t166)
            store(block, i - first, 1, 2688, t178)
            store(block, i - first, 1, 2752, t170)
            store(block, i - first, 1, 2816, t182)
            store(block, i - first, 1, 2880, t71 * t185 - (t75 * t187 - t72 * t188))
            store(block, i - first, 1, 2944, t71 * t193 - (t72 * t196 - t75 * t195))
            store(block, i - first, 1, 3008, t71 * t215 - (t72 * t219 + t75 * t218))
            store(block, i - first, 1, 3072, t71 * t226 - (t72 * t229 - t75 * t228))
            store(block, i - first, 1, 3136, t71 * t251 - (t72 * t255 - t75 * t254))
            store(block, i - first, 1, 3200, t71 * t275 - (t72 * t279 + t75 * t278))
            store(block, i - first, 1, 3264, -(shoulder_rate * t71 + (t72 * t282 - t75 * t281)))
            store(block, i - first, 1, 3328, -t188)
            store(block, i - first, 1, 3392, t196)
            store(block, i - first, 1, 3456, t219)
            store(block, i - first, 1, 3520, t229)
            store(block, i - first, 1, 3584, t255)
            store(block, i - first, 1, 3648, t279)
            store(block, i - first, 1, 3712, t282)
            store(block, i - first, 1, 3776, t187)
            store(block, i - first, 1, 3840, -t195)
            store(block, i - first, 1, 3904, t218)
            store(block, i - first, 1, 3968, -t228)
            store(block, i - first, 1, 4032, -t254)
            store(block, i - first, 1, 4096, t278)
            store(block, i - first, 1, 4160, -t281)
            store(block, i - first, 1, 4224, -(t71 * t283 + (t72 * t286 + t75 * t285)))
            store(block, i - first, 1, 4288, -(t71 * t295 + (t72 * t298 + t75 * t297)))
            store(block, i - first, 1, 4352, -(t71 * t307 + (t72 * t311 - t75 * t310)))
            store(block, i - first, 1, 4416, -(t71 * t322 + (t72 * t325 - t75 * t324)))
            store(block, i - first, 1, 4480, -(t71 * t335 + (t72 * t338 - t75 * t337)))
            store(block, i - first, 1, 4544, -(t71 * t349 + (t72 * t353 - t75 * t352)))
            store(block, i - first, 1, 4608, -(t71 * t287 + (t72 * t290 + t75 * t289)))
            store(block, i - first, 1, 4672, -(t71 * t299 + (t72 * t302 + t75 * t301)))
            store(block, i - first, 1, 4736, -(t71 * t312 + (t72 * t316 - t75 * t315)))
            store(block, i - first, 1, 4800, -(t71 * t326 + (t72 * t329 - t75 * t328)))
            store(block, i - first, 1, 4864, -(t71 * t340 + (t72 * t343 - t75 * t342)))
            store(block, i - first, 1, 4928, -(t71 * t354 + (t72 * t358 - t75 * t357)))
            store(block, i - first, 1, 4992, -(t71 * t291 + (t72 * t294 + t75 * t293)))
            store(block, i - first, 1, 5056, -(t71 * t303 + (t72 * t306 + t75 * t305)))
            store(block, i - first, 1, 5120, -(t71 * t317 + (t72 * t321 - t75 * t320)))
            store(block, i - first, 1, 5184, -(t71 * t330 + (t72 * t333 - t75 * t332)))
            store(block, i - first, 1, 5248, -(t71 * t345 + (t72 * t348 - t75 * t347)))
            store(block, i - first, 1, 5312, -(t71 * t359 + (t72 * t363 - t75 * t362)))
            store(block, i - first, 1, 5376, t286)
            store(block, i - first, 1, 5440, t298)
            store(block, i - first, 1, 5504, t311)
            store(block, i - first, 1, 5568, t325)
            store(block, i - first, 1, 5632, t338)
            store(block, i - first, 1, 5696, t353)
            store(block, i - first, 1, 5760, t290)
            store(block, i - first, 1, 5824, t302)
            store(block, i - first, 1, 5888, t316)
            store(block, i - first, 1, 5952, t329)
            store(block, i - first, 1, 6016, t343)
            store(block, i - first, 1, 6080, t358)
            store(block, i - first, 1, 6144, t294)
            store(block, i - first, 1, 6208, t306)
            store(block, i - first, 1, 6272, t321)
            store(block, i - first, 1, 6336, t333)
            store(block, i - first, 1, 6400, t348)
            store(block, i - first, 1, 6464, t363)
            store(block, i - first, 1, 6528, t285)
            store(block, i - first, 1, 6592, t297)
            store(block, i - first, 1, 6656, -t310)
            store(block, i - first, 1, 6720, -t324)
            store(block, i - first, 1, 6784, -t337)
            store(block, i - first, 1, 6848, -t352)
            store(block, i - first, 1, 6912, t289)
            store(block, i - first, 1, 6976, t301)
            store(block, i - first, 1, 7040, -t315)
            store(block, i - first, 1, 7104, -t328)
            store(block, i - first, 1, 7168, -t342)
            store(block, i - first, 1, 7232, -t357)
            store(block, i - first, 1, 7296, t293)
            store(block, i - first, 1, 7360, t305)
            store(block, i - first, 1, 7424, -t320)
            store(block, i - first, 1, 7488, -t332)
            store(block, i - first, 1, 7552, -t347)
            store(block, i - first, 1, 7616, -t362)
        for i in range(first, last):
            one_by_one()
            store(B, i, 18, 0, c1)
            store(B, i, 18, 1, c1)
            store(B, i, 18, 2, c1)
            store(B, i, 18, 3, c1)
            store(B, i, 18, 4, c1)
            store(B, i, 18, 5, c1)
            store(B, i, 18, 6, c1)
            store(B, i, 18, 7, c1)
            store(B, i, 18, 8, c1)
            store(B, i, 18, 9, load(block, i - first, 1, 0))
            store(B, i, 18, 10, load(block, i - first, 1, 64))
            store(B, i, 18, 11, load(block, i - first, 1, 128))
            store(B, i, 18, 12, load(block, i - first, 1, 192))
            store(B, i, 18, 13, load(block, i - first, 1, 256))
            store(B, i, 18, 14, load(block, i - first, 1, 320))
            store(B, i, 18, 15, load(block, i - first, 1, 384))
            store(B, i, 18, 16, load(block, i - first, 1, 448))
            store(B, i, 18, 17, load(block, i - first, 1, 512))
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
            store(da_dx, i, 36, 18, load(block, i - first, 1, 576))
            store(da_dx, i, 36, 19, load(block, i - first, 1, 640))
            store(da_dx, i, 36, 20, load(block, i - first, 1, 704))
            store(da_dx, i, 36, 21, load(block, i - first, 1, 768))
            store(da_dx, i, 36, 22, load(block, i - first, 1, 832))
            store(da_dx, i, 36, 23, load(block, i - first, 1, 896))
            store(da_dx, i, 36, 24, load(block, i - first, 1, 960))
            store(da_dx, i, 36, 25, load(block, i - first, 1, 1024))
            store(da_dx, i, 36, 26, load(block, i - first, 1, 1088))
            store(da_dx, i, 36, 27, load(block, i - first, 1, 1152))
            store(da_dx, i, 36, 28, load(block, i - first, 1, 1216))
            store(da_dx, i, 36, 29, load(block, i - first, 1, 1280))
            store(da_dx, i, 36, 30, load(block, i - first, 1, 1344))
            store(da_dx, i, 36, 31, load(block, i - first, 1, 1408))
            store(da_dx, i, 36, 32, load(block, i - first, 1, 1472))
            store(da_dx, i, 36, 33, load(block, i - first, 1, 1536))
            store(da_dx, i, 36, 34, load(block, i - first, 1, 1600))
            store(da_dx, i, 36, 35, load(block, i - first, 1, 1664))
            store(dB_dx, i, 108, 0, c1)
            store(dB_dx, i, 108, 1, c1)
            store(dB_dx, i, 108, 2, c1)
            store(dB_dx, i, 108, 3, c1)
            store(dB_dx, i, 108, 4, c1)
            store(dB_dx, i, 108, 5, c1)
            store(dB_dx, i, 108, 6, c1)
            store(dB_dx, i, 108, 7, c1)
            store(dB_dx, i, 108, 8, c1)
            store(dB_dx, i, 108, 9, c1)
            store(dB_dx, i, 108, 10, c1)
            store(dB_dx, i, 108, 11, c1)
            store(dB_dx, i, 108, 12, c1)
            store(dB_dx, i, 108, 13, c1)
            store(dB_dx, i, 108, 14, c1)
            store(dB_dx, i, 108, 15, c1)
            store(dB_dx, i, 108, 16, c1)
            store(dB_dx, i, 108, 17, c1)
            store(dB_dx, i, 108, 18, c1)
            store(dB_dx, i, 108, 19, c1)
            store(dB_dx, i, 108, 20, c1)
            store(dB_dx, i, 108, 21, c1)
            store(dB_dx, i, 108, 22, c1)
            store(dB_dx, i, 108, 23, c1)
            store(dB_dx, i, 108, 24, c1)
            store(dB_dx, i, 108, 25, c1)
            store(dB_dx, i, 108, 26, c1)
            store(dB_dx, i, 108, 27, c1)
            store(dB_dx, i, 108, 28, c1)
            store(dB_dx, i, 108, 29, c1)
            store(dB_dx, i, 108, 30, c1)
            store(dB_dx, i, 108, 31, c1)
            store(dB_dx, i, 108, 32, c1)
            store(dB_dx, i, 108, 33, c1)
            store(dB_dx, i, 108, 34, c1)
            store(dB_dx, i, 108, 35, c1)
            store(dB_dx, i, 108, 36, c1)
            store(dB_dx, i, 108, 37, c1)
            store(dB_dx, i, 108, 38, c1)
            store(dB_dx, i, 108, 39, c1)
            store(dB_dx, i, 108, 40, c1)
            store(dB_dx, i, 108, 41, c1)
            store(dB_dx, i, 108, 42, c1)
            store(dB_dx, i, 108, 43, c1)
            store(dB_dx, i, 108, 44, c1)
            store(dB_dx, i, 108, 45, c1)
            store(dB_dx, i, 108, 46, c1)
            store(dB_dx, i, 108, 47, c1)
            store(dB_dx, i, 108, 48, c1)
            store(dB_dx, i, 108, 49, c1)
            store(dB_dx, i, 108, 50, c1)
            store(dB_dx, i, 108, 51, c1)
            store(dB_dx, i, 108, 52, c1)
            store(dB_dx, i, 108, 53, c1)
            store(dB_dx, i, 108, 54, c1)
            store(dB_dx, i, 108, 55, load(block, i - first, 1, 1728))
            store(dB_dx, i, 108, 56, load(block, i - first, 1, 1792))
            store(dB_dx, i, 108, 57, c1)
            store(dB_dx, i, 108, 58, c1)
            store(dB_dx, i, 108, 59, c1)
            store(dB_dx, i, 108, 60, c1)
            store(dB_dx, i, 108, 61, load(block, i - first, 1, 1856))
            store(dB_dx, i, 108, 62, load(block, i - first, 1, 1920))
            store(dB_dx, i, 108, 63, c1)
            store(dB_dx, i, 108, 64, c1)
            store(dB_dx, i, 108, 65, c1)
            store(dB_dx, i, 108, 66, c1)
            store(dB_dx, i, 108, 67, load(block, i - first, 1, 1984))
            store(dB_dx, i, 108, 68, load(block, i - first, 1, 2048))
            store(dB_dx, i, 108, 69, c1)
            store(dB_dx, i, 108, 70, c1)
            store(dB_dx, i, 108, 71, c1)
            store(dB_dx, i, 108, 72, c1)
            store(dB_dx, i, 108, 73, load(block, i - first, 1, 2112))
            store(dB_dx, i, 108, 74, load(block, i - first, 1, 2176))
            store(dB_dx, i, 108, 75, c1)
            store(dB_dx, i, 108, 76, c1)
            store(dB_dx, i, 108, 77, c1)
            store(dB_dx, i, 108, 78, c1)
            store(dB_dx, i, 108, 79, load(block, i - first, 1, 2240))
            store(dB_dx, i, 108, 80, load(block, i - first, 1, 2304))
            store(dB_dx, i, 108, 81, c1)
            store(dB_dx, i, 108, 82, c1)
            store(dB_dx, i, 108, 83, c1)
            store(dB_dx, i, 108, 84, c1)
            store(dB_dx, i, 108, 85, load(block, i - first, 1, 2368))
            store(dB_dx, i, 108, 86, load(block, i - first, 1, 2432))
            store(dB_dx, i, 108, 87, c1)
            store(dB_dx, i, 108, 88, c1)
            store(dB_dx, i, 108, 89, c1)
            store(dB_dx, i, 108, 90, c1)
            store(dB_dx, i, 108, 91, load(block, i - first, 1, 2496))
            store(dB_dx, i, 108, 92, load(block, i - first, 1, 2560))
            store(dB_dx, i, 108, 93, c1)
            store(dB_dx, i, 108, 94, c1)
            store(dB_dx, i, 108, 95, c1)
            store(dB_dx, i, 108, 96, c1)
            store(dB_dx, i, 108, 97, load(block, i - first, 1, 2624))
            store(dB_dx, i, 108, 98, load(block, i - first, 1, 2688))
            store(dB_dx, i, 108, 99, c1)
            store(dB_dx, i, 108, 100, c1)
            store(dB_dx, i, 108, 101, c1)
            store(dB_dx, i, 108, 102, c1)
            store(dB_dx, i, 108, 103, load(block, i - first, 1, 2752))
            store(dB_dx, i, 108, 104, load(block, i - first, 1, 2816))
            store(dB_dx, i, 108, 105, c1)
            store(dB_dx, i, 108, 106, c1)
            store(dB_dx, i, 108, 107, c1)
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
            store(da_dtheta, i, 42, 21, load(block, i - first, 1, 2880))
            store(da_dtheta, i, 42, 22, load(block, i - first, 1, 2944))
            store(da_dtheta, i, 42, 23, load(block, i - first, 1, 3008))
            store(da_dtheta, i, 42, 24, load(block, i - first, 1, 3072))
            store(da_dtheta, i, 42, 25, load(block, i - first, 1, 3136))
            store(da_dtheta, i, 42, 26, load(block, i - first, 1, 3200))
            store(da_dtheta, i, 42, 27, load(block, i - first, 1, 3264))
            store(da_dtheta, i, 42, 28, load(block, i - first, 1, 3328))
            store(da_dtheta, i, 42, 29, load(block, i - first, 1, 3392))
            store(da_dtheta, i, 42, 30, load(block, i - first, 1, 3456))
            store(da_dtheta, i, 42, 31, load(block, i - first, 1, 3520))
            store(da_dtheta, i, 42, 32, load(block, i - first, 1, 3584))
            store(da_dtheta, i, 42, 33, load(block, i - first, 1, 3648))
            store(da_dtheta, i, 42, 34, load(block, i - first, 1, 3712))
            store(da_dtheta, i, 42, 35, load(block, i - first, 1, 3776))
            store(da_dtheta, i, 42, 36, load(block, i - first, 1, 3840))
            store(da_dtheta, i, 42, 37, load(block, i - first, 1, 3904))
            store(da_dtheta, i, 42, 38, load(block, i - first, 1, 3968))
            store(da_dtheta, i, 42, 39, load(block, i - first, 1, 4032))
            store(da_dtheta, i, 42, 40, load(block, i - first, 1, 4096))
            store(da_dtheta, i, 42, 41, load(block, i - first, 1, 4160))
            store(dB_dtheta, i, 126, 0, c1)
            store(dB_dtheta, i, 126, 1, c1)
            store(dB_dtheta, i, 126, 2, c1)
            store(dB_dtheta, i, 126, 3, c1)
            store(dB_dtheta, i, 126, 4, c1)
            store(dB_dtheta, i, 126, 5, c1)
            store(dB_dtheta, i, 126, 6, c1)
            store(dB_dtheta, i, 126, 7, c1)
            store(dB_dtheta, i, 126, 8, c1)
            store(dB_dtheta, i, 126, 9, c1)
            store(dB_dtheta, i, 126, 10, c1)
            store(dB_dtheta, i, 126, 11, c1)
            store(dB_dtheta, i, 126, 12, c1)
            store(dB_dtheta, i, 126, 13, c1)
            store(dB_dtheta, i, 126, 14, c1)
            store(dB_dtheta, i, 126, 15, c1)
            store(dB_dtheta, i, 126, 16, c1)
            store(dB_dtheta, i, 126, 17, c1)
            store(dB_dtheta, i, 126, 18, c1)
            store(dB_dtheta, i, 126, 19, c1)
            store(dB_dtheta, i, 126, 20, c1)
            store(dB_dtheta, i, 126, 21, c1)
            store(dB_dtheta, i, 126, 22, c1)
            store(dB_dtheta, i, 126, 23, c1)
            store(dB_dtheta, i, 126, 24, c1)
            store(dB_dtheta, i, 126, 25, c1)
            store(dB_dtheta, i, 126, 26, c1)
            store(dB_dtheta, i, 126, 27, c1)
            store(dB_dtheta, i, 126, 28, c1)
            store(dB_dtheta, i, 126, 29, c1)
            store(dB_dtheta, i, 126, 30, c1)
            store(dB_dtheta, i, 126, 31, c1)
            store(dB_dtheta, i, 126, 32, c1)
            store(dB_dtheta, i, 126, 33, c1)
            store(dB_dtheta, i, 126, 34, c1)
            store(dB_dtheta, i, 126, 35, c1)
            store(dB_dtheta, i, 126, 36, c1)
            store(dB_dtheta, i, 126, 37, c1)
            store(dB_dtheta, i, 126, 38, c1)
            store(dB_dtheta, i, 126, 39, c1)
            store(dB_dtheta, i, 126, 40, c1)
            store(dB_dtheta, i, 126, 41, c1)
            store(dB_dtheta, i, 126, 42, c1)
            store(dB_dtheta, i, 126, 43, c1)
            store(dB_dtheta, i, 126, 44, c1)
            store(dB_dtheta, i, 126, 45, c1)
            store(dB_dtheta, i, 126, 46, c1)
            store(dB_dtheta, i, 126, 47, c1)
            store(dB_dtheta, i, 126, 48, c1)
            store(dB_dtheta, i, 126, 49, c1)
            store(dB_dtheta, i, 126, 50, c1)
            store(dB_dtheta, i, 126, 51, c1)
            store(dB_dtheta, i, 126, 52, c1)
            store(dB_dtheta, i, 126, 53, c1)
            store(dB_dtheta, i, 126, 54, c1)
            store(dB_dtheta, i, 126, 55, c1)
            store(dB_dtheta, i, 126, 56, c1)
            store(dB_dtheta, i, 126, 57, c1)
            store(dB_dtheta, i, 126, 58, c1)
            store(dB_dtheta, i, 126, 59, c1)
            store(dB_dtheta, i, 126, 60, c1)
            store(dB_dtheta, i, 126, 61, c1)
            store(dB_dtheta, i, 126, 62, c1)
            store(dB_dtheta, i, 126, 63, load(block, i - first, 1, 4224))
            store(dB_dtheta, i, 126, 64, load(block, i - first, 1, 4288))
            store(dB_dtheta, i, 126, 65, load(block, i - first, 1, 4352))
            store(dB_dtheta, i, 126, 66, load(block, i - first, 1, 4416))
            store(dB_dtheta, i, 126, 67, load(block, i - first, 1, 4480))
            store(dB_dtheta, i, 126, 68, load(block, i - first, 1, 4544))
            store(dB_dtheta, i, 126, 69, c1)
            store(dB_dtheta, i, 126, 70, load(block, i - first, 1, 4608))
            store(dB_dtheta, i, 126, 71, load(block, i - first, 1, 4672))
            store(dB_dtheta, i, 126, 72, load(block, i - first, 1, 4736))
            store(dB_dtheta, i, 126, 73, load(block, i - first, 1, 4800))
            store(dB_dtheta, i, 126, 74, load(block, i - first, 1, 4864))
            store(dB_dtheta, i, 126, 75, load(block, i - first, 1, 4928))
            store(dB_dtheta, i, 126, 76, c1)
            store(dB_dtheta, i, 126, 77, load(block, i - first, 1, 4992))
            store(dB_dtheta, i, 126, 78, load(block, i - first, 1, 5056))
            store(dB_dtheta, i, 126, 79, load(block, i - first, 1, 5120))
            store(dB_dtheta, i, 126, 80, load(block, i - first, 1, 5184))
            store(dB_dtheta, i, 126, 81, load(block, i - first, 1, 5248))
            store(dB_dtheta, i, 126, 82, load(block, i - first, 1, 5312))
            store(dB_dtheta, i, 126, 83, c1)
            store(dB_dtheta, i, 126, 84, load(block, i - first, 1, 5376))
            store(dB_dtheta, i, 126, 85, load(block, i - first, 1, 5440))
            store(dB_dtheta, i, 126, 86, load(block, i - first, 1, 5504))
            store(dB_dtheta, i, 126, 87, load(block, i - first, 1, 5568))
            store(dB_dtheta, i, 126, 88, load(block, i - first, 1, 5632))
            store(dB_dtheta, i, 126, 89, load(block, i - first, 1, 5696))
            store(dB_dtheta, i, 126, 90, c1)
            store(dB_dtheta, i, 126, 91, load(block, i - first, 1, 5760))
            store(dB_dtheta, i, 126, 92, load(block, i - first, 1, 5824))
            store(dB_dtheta, i, 126, 93, load(block, i - first, 1, 5888))
            store(dB_dtheta, i, 126, 94, load(block, i - first, 1, 5952))
            store(dB_dtheta, i, 126, 95, load(block, i - first, 1, 6016))
            store(dB_dtheta, i, 126, 96, load(block, i - first, 1, 6080))
            store(dB_dtheta, i, 126, 97, c1)
            store(dB_dtheta, i, 126, 98, load(block, i - first, 1, 6144))
            store(dB_dtheta, i, 126, 99, load(block, i - first, 1, 6208))
            store(dB_dtheta, i, 126, 100, load(block, i - first, 1, 6272))
            store(dB_dtheta, i, 126, 101, load(block, i - first, 1, 6336))
            store(dB_dtheta, i, 126, 102, load(block, i - first, 1, 6400))
            store(dB_dtheta, i, 126, 103, load(block, i - first, 1, 6464))
            store(dB_dtheta, i, 126, 104, c1)
            store(dB_dtheta, i, 126, 105, load(block, i - first, 1, 6528))
            store(dB_dtheta, i, 126, 106, load(block, i - first, 1, 6592))
            store(dB_dtheta, i, 126, 107, load(block, i - first, 1, 6656))
            store(dB_dtheta, i, 126, 108, load(block, i - first, 1, 6720))
            store(dB_dtheta, i, 126, 109, load(block, i - first, 1, 6784))
            store(dB_dtheta, i, 126, 110, load(block, i - first, 1, 6848))
            store(dB_dtheta, i, 126, 111, c1)
            store(dB_dtheta, i, 126, 112, load(block, i - first, 1, 6912))
            store(dB_dtheta, i, 126, 113, load(block, i - first, 1, 6976))
            store(dB_dtheta, i, 126, 114, load(block, i - first, 1, 7040))
            store(dB_dtheta, i, 126, 115, load(block, i - first, 1, 7104))
            store(dB_dtheta, i, 126, 116, load(block, i - first, 1, 7168))
            store(dB_dtheta, i, 126, 117, load(block, i - first, 1, 7232))
            store(dB_dtheta, i, 126, 118, c1)
            store(dB_dtheta, i, 126, 119, load(block, i - first, 1, 7296))
            store(dB_dtheta, i, 126, 120, load(block, i - first, 1, 7360))
            store(dB_dtheta, i, 126, 121, load(block, i - first, 1, 7424))
            store(dB_dtheta, i, 126, 122, load(block, i - first, 1, 7488))
            store(dB_dtheta, i, 126, 123, load(block, i - first, 1, 7552))
            store(dB_dtheta, i, 126, 124, load(block, i - first, 1, 7616))
            store(dB_dtheta, i, 126, 125, c1)


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.3333333333333333)
    c3 = real(3.0)
    c4 = real(2.0)
    c5 = real(0.16666666666666666)
    c6 = real(0.5)
    c7 = real(9.81)
    c8 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 6, 0)
        elbow = load(x, i, 6, 1)
        wrist = load(x, i, 6, 2)
        shoulder_rate = load(x, i, 6, 3)
        elbow_rate = load(x, i, 6, 4)
        wrist_rate = load(x, i, 6, 5)
        shoulder_torque = load(u, i, 3, 0)
        elbow_torque = load(u, i, 3, 1)
        wrist_torque = load(u, i, 3, 2)
        costate_shoulder = load(costate, i, 6, 0)
        costate_elbow = load(costate, i, 6, 1)
        costate_wrist = load(costate, i, 6, 2)
        costate_shoulder_rate = load(costate, i, 6, 3)
        costate_elbow_rate = load(costate, i, 6, 4)
        costate_wrist_rate = load(costate, i, 6, 5)
        upper_mass = load(theta, row, 7, 0)
        fore_mass = load(theta, row, 7, 1)
        hand_mass = load(theta, row, 7, 2)
        upper_length = load(theta, row, 7, 3)
        fore_length = load(theta, row, 7, 4)
        hand_length = load(theta, row, 7, 5)
        damping = load(theta, row, 7, 6)
        t1 = upper_length * upper_length
        t2s, t2c = sincos(elbow, real, half_pi)
        t3 = upper_length * fore_length
        t4 = t2c * t3
        t5 = fore_mass * t4
        t6 = elbow + wrist
        t7s, t7c = sincos(t6, real, half_pi)
        t8 = upper_length * t7c
        t9 = hand_mass * hand_length
        t10 = t8 * t9
        t11 = hand_mass * t4
        t12 = fore_length * fore_length
        t13 = hand_length * hand_length
        t14 = hand_mass * c2
        t15 = t13 * t14
        t16s, t16c = sincos(wrist, real, half_pi)
        t17 = fore_length * t16c
        t18 = hand_mass * t12 + (c2 * (fore_mass * t12) + (t15 + t9 * t17))
        t19 = t17 * c3 + hand_length * c4
        t20 = t9 * c5
        t21 = fore_length * t16s
        t22 = t21 + upper_length * t7s
        t23 = t9 * t22
        t24 = wrist_rate * t23
        t25 = wrist_rate * wrist_rate
        t26 = t23 * c6
        t27 = fore_length * t2s
        t28 = fore_mass * t27
        t29 = hand_mass * t27
        t30 = t9 * t7s
        t31 = shoulder_rate * elbow_rate
        t32 = elbow_rate * elbow_rate
        t33 = c6 * t30 + (t29 + c6 * t28)
        t34 = upper_length * t33
        t35s, t35c = sincos(shoulder, real, half_pi)
        t36 = upper_length * t35s
        t37 = c4 * t36
        t38 = shoulder + elbow
        t39s, t39c = sincos(t38, real, half_pi)
        t40 = fore_length * t39s
        t41 = fore_mass * c7
        t42 = shoulder + t6
        t43s, t43c = sincos(t42, real, half_pi)
        t44 = c4 * t40 + hand_length * t43s
        t45 = hand_mass * c7
        t46 = t9 * t21
        t47 = wrist_rate * t46
        t48 = c6 * t46
        t49 = shoulder_rate * shoulder_rate
        t50 = c2 * (upper_mass * t1) + (hand_mass * t1 + (fore_mass * t1 + (t11 * c4 + (t18 + (t5 + t10)))))
        t51 = t10 * c6 + (t5 * c6 + (t11 + t18))
        t52 = t19 + t8 * c3
        t53 = t20 * t52
        t54 = t37 + t40
        t55 = c6 * t41
        t56 = t37 + t44
        t57 = c6 * t45
        t58 = c4 * t29 + (t28 + t30)
        t59 = upper_length * t31
        t60 = c8 * (upper_mass * t36) + (t32 * t34 + (t25 * t26 + (elbow_rate * t24 + shoulder_rate * t24)))
        t61 = c6 * t40
        t62 = c6 * t44
        t63 = shoulder_rate * t47 + (elbow_rate * t47 + (t45 * t62 + (t25 * t48 + t41 * t61)))
        t64 = c8 * (t9 * t43s) - t26 * t49 - t31 * t46 - t32 * t48 - damping * wrist_rate
        t65 = c1 / t50
        t66 = t51 * t65
        t67 = c1 / (t18 - t51 * t66)
        t68 = t19 * t20 - t53 * t66
        t69 = t53 * t65
        t70 = t67 * t68
        t71 = c1 / (t15 - (t53 * t69 + t68 * t70))
        t72 = shoulder_torque + (t58 * t59 + (t56 * t57 + (t54 * t55 + t60)) - damping * shoulder_rate)
        t73 = elbow_torque + (t63 - t34 * t49 - damping * elbow_rate) - t66 * t72
        t74 = t71 * (wrist_torque + t64 - (t69 * t72 + t70 * t73))
        t75 = t67 * t73 - t70 * t74
        t76 = t65 * t72 - (t66 * t75 + t69 * t74)
        t77 = costate_elbow_rate - costate_shoulder_rate * t66
        t78 = t71 * (costate_wrist_rate - (costate_shoulder_rate * t69 + t70 * t77))
        t79 = t67 * t77 - t70 * t78
        t80 = costate_shoulder_rate * t65 - (t66 * t79 + t69 * t78)
        t81 = t76 * t80
        t82 = t76 * t79 + t75 * t80
        t83 = t76 * t78 + t74 * t80
        t84 = t75 * t78 + t74 * t79
        t85 = c8 * t78
        t86 = elbow_rate * t79
        t87 = t47 * t79
        t88 = t86 + shoulder_rate * t79
        t89 = t59 * t80
        t90 = t58 * t80
        t91 = upper_length * t90 - t46 * t78
        t92 = shoulder_rate * t80
        t93 = t57 * t80
        t94 = c6 * (t45 * t79) + t93
        t95 = t55 * t80
        t96 = c8 * t80
        t97 = t32 * t80 - t49 * t79
        t98 = t24 * t80
        t99 = t92 + elbow_rate * t80
        t100 = t20 * t83
        t101 = t20 * t84 + t100
        t102 = t81 + (t75 * t79 + t82)
        t103 = t81 + c6 * t82
        t104 = c2 * t81
        t105 = t1 * t81
        t106 = t82 + c4 * t81
        t107 = shoulder_rate * (t26 * t78 + t34 * t79)
        t108 = c6 * (t25 * t79 - t32 * t78) - t31 * t78 + wrist_rate * t88
        t109 = c6 * (t41 * t79) + t95 + c4 * t94
        t110 = t43c * (t9 * t85 + hand_length * t94)
        t111 = t39c * (fore_length * t109)
        t112 = upper_mass * t96 + c4 * (t93 + t95)
        t113 = upper_length * t97
        t114 = c4 * t89 + t113
        t115 = t89 + c6 * t113
        t116 = elbow_rate * (t34 * t80 - t48 * t78)
        t117 = hand_mass * t114 + fore_mass * t115
        t118 = wrist_rate * (t48 * t79 + t26 * t80)
        t119 = c6 * (t25 * t80 - t49 * t78) + wrist_rate * t99
        t120 = t9 * t119
        t121 = t9 * t108 + t120
        t122 = t43s * t85 + t21 * t108 + t7s * t115 + t22 * t119 - c5 * (t19 * t84 + t52 * t83)
        t123 = t74 * t78 + t102
        t124 = c7 * (t62 * t79 + c6 * (t56 * t80)) - t105 + t27 * t114 - t12 * t102
        t125 = c2 * t102
        t126 = c7 * (t61 * t79 + c6 * (t54 * t80)) - t105 + t27 * t115 - t12 * t125
        t127 = c3 * t101 + t9 * t102
        t128 = hand_length * (t14 * t123)
        t129 = fore_length * (hand_mass * t102 + fore_mass * t125)
        t130 = t39s * t109 + t2s * t117 + t16s * t121 - t16c * t127 - t129 - t129
        t131 = c3 * t100 + t9 * t103
        t132 = t122 - t17 * t102 - t8 * t103
        t133 = t31 * t90 + t35s * t112 + t33 * t97 + t7s * t120 - t7c * t131
        t134 = t110 + t7c * (t9 * t115 + upper_length * t120) + t7s * (upper_length * t131)
        t135 = hand_mass * t106 + fore_mass * t103
        t136 = t2c * t135
        t137 = upper_length * (upper_mass * t104 + hand_mass * t81 + fore_mass * t81)
        store(dH_dx, i, 6, 0, t110 + t111 + t35c * (upper_length * t112))
        store(dH_dx, i, 6, 1, t111 + t2c * (fore_length * t117) + t134 + t2s * (t3 * t135))
        store(dH_dx, i, 6, 2, t16c * (fore_length * t121) + t16s * (fore_length * t127) + t134)
        store(dH_dx, i, 6, 3, costate_shoulder + t87 - damping * t80 + t98 - t107 - t107 + elbow_rate * t91)
        store(dH_dx, i, 6, 4, t116 + (costate_elbow - damping * t79 + t87 + t98 + t116) + shoulder_rate * t91)
        store(dH_dx, i, 6, 5, t118 + (costate_wrist - damping * t78 + t46 * t88 + t118) + t23 * t99)
        store(dH_du, i, 3, 0, t80)
        store(dH_du, i, 3, 1, t79)
        store(dH_du, i, 3, 2, t78)
        store(dH_dtheta, i, 7, 0, t36 * t96 - t1 * t104)
        store(dH_dtheta, i, 7, 1, t126 - t4 * t103)
        store(dH_dtheta, i, 7, 2, t124 - c2 * (t13 * t123) - t4 * t106 + hand_length * t132)
        store(dH_dtheta, i, 7, 3, t133 - fore_length * t136 - t137 - t137)
        store(dH_dtheta, i, 7, 4, t130 - upper_length * t136)
        store(dH_dtheta, i, 7, 5, t43s * t94 - c4 * t101 - t128 - t128 + hand_mass * t132)
        store(dH_dtheta, i, 7, 6, -(wrist_rate * t78 + t86 + t92))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(2.0)
    c2 = real(4.0)
    c3 = real(0.05)
    c4 = real(0.1)
    for i in range(x.shape[0]):
        row = step * i
        shoulder = load(x, i, 6, 0)
        elbow = load(x, i, 6, 1)
        wrist = load(x, i, 6, 2)
        shoulder_rate = load(x, i, 6, 3)
        elbow_rate = load(x, i, 6, 4)
        wrist_rate = load(x, i, 6, 5)
        t1 = wrist_rate * wrist_rate * c3 + (c1 * (wrist * wrist) + (c2 * (elbow * elbow) + c2 * (shoulder * shoulder)))
        t2 = wrist * c1
        t3 = shoulder * c2
        t4 = elbow * c2
        t5 = shoulder_rate * c4
        t6 = elbow_rate * c4
        t7 = wrist_rate * c3
        store(q, i, 1, 0, shoulder_rate * shoulder_rate * c4 + (elbow_rate * elbow_rate * c4 + t1))
        store(dq_dx, i, 6, 0, t3 + t3)
        store(dq_dx, i, 6, 1, t4 + t4)
        store(dq_dx, i, 6, 2, t2 + t2)
        store(dq_dx, i, 6, 3, t5 + t5)
        store(dq_dx, i, 6, 4, t6 + t6)
        store(dq_dx, i, 6, 5, t7 + t7)
