"""ball_on_beam: kernels for Numba, made by modelgen; not to be edited."""

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
    c4 = real(2.0)
    for i in range(x.shape[0]):
        row = step * i
        ball = load(x, i, 4, 0)
        beam = load(x, i, 4, 1)
        ball_rate = load(x, i, 4, 2)
        beam_rate = load(x, i, 4, 3)
        ball_mass = load(theta, row, 4, 0)
        ball_radius = load(theta, row, 4, 1)
        ball_inertia = load(theta, row, 4, 2)
        beam_inertia = load(theta, row, 4, 3)
        t1 = ball_mass * c3
        t2 = ball_mass * ball
        t3s, t3c = sincos(beam, real, half_pi)
        t4 = c2 / (ball_mass * (ball * ball) + (ball_inertia + beam_inertia))
        t5 = (beam_rate * beam_rate * t2 - t1 * t3s) * (c2 / (ball_mass + ball_inertia / (ball_radius * ball_radius)))
        store(a, i, 4, 0, ball_rate)
        store(a, i, 4, 1, beam_rate)
        store(a, i, 4, 2, t5)
        store(a, i, 4, 3, -((t3c * (ball * t1) + t2 * (ball_rate * beam_rate) * c4) * t4))
        store(B, i, 4, 0, c1)
        store(B, i, 4, 1, c1)
        store(B, i, 4, 2, c1)
        store(B, i, 4, 3, t4)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(9.81)
    c3 = real(2.0)
    for i in range(x.shape[0]):
        row = step * i
        ball = load(x, i, 4, 0)
        beam = load(x, i, 4, 1)
        ball_rate = load(x, i, 4, 2)
        beam_rate = load(x, i, 4, 3)
        torque = load(u, i, 1, 0)
        ball_mass = load(theta, row, 4, 0)
        ball_radius = load(theta, row, 4, 1)
        ball_inertia = load(theta, row, 4, 2)
        beam_inertia = load(theta, row, 4, 3)
        t1 = ball_mass * c2
        t2 = ball_mass * ball
        t3s, t3c = sincos(beam, real, half_pi)
        t4 = (beam_rate * beam_rate * t2 - t1 * t3s) * (c1 / (ball_mass + ball_inertia / (ball_radius * ball_radius)))
        t5 = c1 / (ball_mass * (ball * ball) + (ball_inertia + beam_inertia)) * (torque - (t3c * (ball * t1) + t2 * (ball_rate * beam_rate) * c3))
        store(xdot, i, 4, 0, ball_rate)
        store(xdot, i, 4, 1, beam_rate)
        store(xdot, i, 4, 2, t4)
        store(xdot, i, 4, 3, t5)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(9.81)
    c4 = real(2.0)
    block = np.empty(1088, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            ball = load(x, i, 4, 0)
            beam = load(x, i, 4, 1)
            ball_rate = load(x, i, 4, 2)
            beam_rate = load(x, i, 4, 3)
            ball_mass = load(theta, row, 4, 0)
            ball_radius = load(theta, row, 4, 1)
            ball_inertia = load(theta, row, 4, 2)
            beam_inertia = load(theta, row, 4, 3)
            t1 = ball * ball
            t2 = ball_mass * c3
            t3 = beam_rate * beam_rate
            t4 = ball_mass * ball
            t5 = ball_radius * ball_radius
            t6 = ball_inertia / t5
            t7s, t7c = sincos(beam, real, half_pi)
            t8 = ball * t2
            t9 = ball_rate * beam_rate
            t10 = c2 / (ball_mass + t6)
            t11 = c2 / (ball_mass * t1 + (ball_inertia + beam_inertia))
            t12 = (t3 * t4 - t2 * t7s) * t10
            t13 = -((t7c * t8 + t4 * t9 * c4) * t11)
            t14 = ball_mass * (ball + ball)
            t15 = t2 * t7c
            t16 = -(t11 * (t7c * (ball * c3) + c4 * (ball * t9) + t1 * t13))
            t17 = c2 / t5
            t18 = -(t11 * t13)
            t19 = -(t11 * t11)
            store(a, i, 4, 0, ball_rate)
            store(a, i, 4, 1, beam_rate)
            store(a, i, 4, 2, t12)
            store(a, i, 4, 3, t13)
            store(B, i, 4, 0, c1)
            store(B, i, 4, 1, c1)
            store(B, i, 4, 2, c1)
            store(B, i, 4, 3, t11)
            store(block, i - first, 1, 0, t10 * (ball_mass * t3))
            store(block, i - first, 1, 64, -(t10 * t15))
            store(block, i - first, 1, 128, t10 * (t4 * (beam_rate + beam_rate)))
            store(block, i - first, 1, 192, -(t11 * (t15 + c4 * (ball_mass * t9) + t13 * t14)))
            store(block, i - first, 1, 256, t11 * (t7s * t8))
            store(block, i - first, 1, 320, -(t11 * (c4 * (beam_rate * t4))))
            store(block, i - first, 1, 384, -(t11 * (c4 * (ball_rate * t4))))
            store(block, i - first, 1, 448, -(t11 * (t11 * t14)))
            store(block, i - first, 1, 512, t10 * (ball * t3 - c3 * t7s - t12))
            store(block, i - first, 1, 576, t10 * (t12 * ((ball_radius + ball_radius) * (t6 * t17))))
            store(block, i - first, 1, 640, -(t10 * (t12 * t17)))
            store(block, i - first, 1, 704, t16)
            store(block, i - first, 1, 768, t18)
            store(block, i - first, 1, 832, t18)
            store(block, i - first, 1, 896, -(t11 * (t1 * t11)))
            store(block, i - first, 1, 960, t19)
            store(block, i - first, 1, 1024, t19)
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
            store(da_dx, i, 16, 10, c1)
            store(da_dx, i, 16, 11, load(block, i - first, 1, 128))
            store(da_dx, i, 16, 12, load(block, i - first, 1, 192))
            store(da_dx, i, 16, 13, load(block, i - first, 1, 256))
            store(da_dx, i, 16, 14, load(block, i - first, 1, 320))
            store(da_dx, i, 16, 15, load(block, i - first, 1, 384))
            store(dB_dx, i, 16, 0, c1)
            store(dB_dx, i, 16, 1, c1)
            store(dB_dx, i, 16, 2, c1)
            store(dB_dx, i, 16, 3, c1)
            store(dB_dx, i, 16, 4, c1)
            store(dB_dx, i, 16, 5, c1)
            store(dB_dx, i, 16, 6, c1)
            store(dB_dx, i, 16, 7, c1)
            store(dB_dx, i, 16, 8, c1)
            store(dB_dx, i, 16, 9, c1)
            store(dB_dx, i, 16, 10, c1)
            store(dB_dx, i, 16, 11, c1)
            store(dB_dx, i, 16, 12, load(block, i - first, 1, 448))
            store(dB_dx, i, 16, 13, c1)
            store(dB_dx, i, 16, 14, c1)
            store(dB_dx, i, 16, 15, c1)
            store(da_dtheta, i, 16, 0, c1)
            store(da_dtheta, i, 16, 1, c1)
            store(da_dtheta, i, 16, 2, c1)
            store(da_dtheta, i, 16, 3, c1)
            store(da_dtheta, i, 16, 4, c1)
            store(da_dtheta, i, 16, 5, c1)
            store(da_dtheta, i, 16, 6, c1)
            store(da_dtheta, i, 16, 7, c1)
            store(da_dtheta, i, 16, 8, load(block, i - first, 1, 512))
            store(da_dtheta, i, 16, 9, load(block, i - first, 1, 576))
            store(da_dtheta, i, 16, 10, load(block, i - first, 1, 640))
            store(da_dtheta, i, 16, 11, c1)
            store(da_dtheta, i, 16, 12, load(block, i - first, 1, 704))
            store(da_dtheta, i, 16, 13, c1)
            store(da_dtheta, i, 16, 14, load(block, i - first, 1, 768))
            store(da_dtheta, i, 16, 15, load(block, i - first, 1, 832))
            store(dB_dtheta, i, 16, 0, c1)
            store(dB_dtheta, i, 16, 1, c1)
            store(dB_dtheta, i, 16, 2, c1)
            store(dB_dtheta, i, 16, 3, c1)
            store(dB_dtheta, i, 16, 4, c1)
            store(dB_dtheta, i, 16, 5, c1)
            store(dB_dtheta, i, 16, 6, c1)
            store(dB_dtheta, i, 16, 7, c1)
            store(dB_dtheta, i, 16, 8, c1)
            store(dB_dtheta, i, 16, 9, c1)
            store(dB_dtheta, i, 16, 10, c1)
            store(dB_dtheta, i, 16, 11, c1)
            store(dB_dtheta, i, 16, 12, load(block, i - first, 1, 896))
            store(dB_dtheta, i, 16, 13, c1)
            store(dB_dtheta, i, 16, 14, load(block, i - first, 1, 960))
            store(dB_dtheta, i, 16, 15, load(block, i - first, 1, 1024))


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(9.81)
    c3 = real(2.0)
    for i in range(x.shape[0]):
        row = step * i
        ball = load(x, i, 4, 0)
        beam = load(x, i, 4, 1)
        ball_rate = load(x, i, 4, 2)
        beam_rate = load(x, i, 4, 3)
        torque = load(u, i, 1, 0)
        costate_ball = load(costate, i, 4, 0)
        costate_beam = load(costate, i, 4, 1)
        costate_ball_rate = load(costate, i, 4, 2)
        costate_beam_rate = load(costate, i, 4, 3)
        ball_mass = load(theta, row, 4, 0)
        ball_radius = load(theta, row, 4, 1)
        ball_inertia = load(theta, row, 4, 2)
        beam_inertia = load(theta, row, 4, 3)
        t1 = ball * ball
        t2 = ball_mass * c2
        t3 = beam_rate * beam_rate
        t4 = ball_mass * ball
        t5 = ball_radius * ball_radius
        t6 = ball_inertia / t5
        t7s, t7c = sincos(beam, real, half_pi)
        t8 = ball * t2
        t9 = ball_rate * beam_rate
        t10 = c1 / (ball_mass + t6)
        t11 = c1 / (ball_mass * t1 + (ball_inertia + beam_inertia))
        t12 = c1 / t5
        t13 = costate_ball_rate * t10
        t14 = costate_beam_rate * t11
        t15 = (t3 * t4 - t2 * t7s) * t10 * t13
        t16 = t11 * (torque - (t7c * t8 + t4 * t9 * c3)) * t14
        t17 = c3 * t14
        t18 = t4 * t17
        t19 = t7c * t14
        t20 = t3 * t13 - t9 * t17
        t21 = ball_radius * (t6 * t12 * t15)
        t22 = beam_rate * (t4 * t13)
        t23 = ball * t20 - (t15 + t1 * t16) - c2 * (ball * t19 + t7s * t13)
        t24 = ball * (ball_mass * t16)
        store(dH_dx, i, 4, 0, ball_mass * t20 - t2 * t19 - t24 - t24)
        store(dH_dx, i, 4, 1, t7s * (t8 * t14) - t7c * (t2 * t13))
        store(dH_dx, i, 4, 2, costate_ball - beam_rate * t18)
        store(dH_dx, i, 4, 3, t22 + (costate_beam - ball_rate * t18 + t22))
        store(dH_du, i, 1, 0, t14)
        store(dH_dtheta, i, 4, 0, t23)
        store(dH_dtheta, i, 4, 1, t21 + t21)
        store(dH_dtheta, i, 4, 2, -(t16 + t12 * t15))
        store(dH_dtheta, i, 4, 3, -t16)


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(2.0)
    c2 = real(20.0)
    c3 = real(0.1)
    for i in range(x.shape[0]):
        row = step * i
        ball = load(x, i, 4, 0)
        beam = load(x, i, 4, 1)
        ball_rate = load(x, i, 4, 2)
        beam_rate = load(x, i, 4, 3)
        t1 = c1 * (ball_rate * ball_rate) + (beam_rate * beam_rate * c3 + (beam * beam + ball * ball * c2))
        t2 = ball_rate * c1
        t3 = beam_rate * c3
        t4 = ball * c2
        store(q, i, 1, 0, t1)
        store(dq_dx, i, 4, 0, t4 + t4)
        store(dq_dx, i, 4, 1, beam + beam)
        store(dq_dx, i, 4, 2, t2 + t2)
        store(dq_dx, i, 4, 3, t3 + t3)
