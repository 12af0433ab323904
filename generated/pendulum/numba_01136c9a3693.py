"""pendulum: kernels for Numba, made by modelgen; not to be edited."""

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
    c4 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        angle = load(x, i, 2, 0)
        angle_rate = load(x, i, 2, 1)
        mass = load(theta, row, 2, 0)
        length = load(theta, row, 2, 1)
        t1 = c2 / (length * length * (mass * c3))
        store(a, i, 2, 0, angle_rate)
        store(a, i, 2, 1, sincos(angle, real, half_pi)[0] * (c4 * (mass * length)) * t1)
        store(B, i, 2, 0, c1)
        store(B, i, 2, 1, t1)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.3333333333333333)
    c3 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        angle = load(x, i, 2, 0)
        angle_rate = load(x, i, 2, 1)
        torque = load(u, i, 1, 0)
        mass = load(theta, row, 2, 0)
        length = load(theta, row, 2, 1)
        t1 = c1 / (length * length * (mass * c2)) * (torque + sincos(angle, real, half_pi)[0] * (c3 * (mass * length)))
        store(xdot, i, 2, 0, angle_rate)
        store(xdot, i, 2, 1, t1)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(0.3333333333333333)
    c4 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        angle = load(x, i, 2, 0)
        angle_rate = load(x, i, 2, 1)
        mass = load(theta, row, 2, 0)
        length = load(theta, row, 2, 1)
        t1 = length * length
        t2 = mass * c3
        t3s, t3c = sincos(angle, real, half_pi)
        t4 = c4 * (mass * length)
        t5 = c2 / (t1 * t2)
        t6 = t3s * t4 * t5
        t7 = c3 * t1
        t8 = t2 * (length + length)
        store(a, i, 2, 0, angle_rate)
        store(a, i, 2, 1, t6)
        store(B, i, 2, 0, c1)
        store(B, i, 2, 1, t5)
        store(da_dx, i, 4, 0, c1)
        store(da_dx, i, 4, 1, c2)
        store(da_dx, i, 4, 2, t5 * (t4 * t3c))
        store(da_dx, i, 4, 3, c1)
        store(dB_dx, i, 4, 0, c1)
        store(dB_dx, i, 4, 1, c1)
        store(dB_dx, i, 4, 2, c1)
        store(dB_dx, i, 4, 3, c1)
        store(da_dtheta, i, 4, 0, c1)
        store(da_dtheta, i, 4, 1, c1)
        store(da_dtheta, i, 4, 2, t5 * (t3s * (length * c4) - t6 * t7))
        store(da_dtheta, i, 4, 3, t5 * (t3s * (mass * c4) - t6 * t8))
        store(dB_dtheta, i, 4, 0, c1)
        store(dB_dtheta, i, 4, 1, c1)
        store(dB_dtheta, i, 4, 2, -(t5 * (t5 * t7)))
        store(dB_dtheta, i, 4, 3, -(t5 * (t5 * t8)))


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(0.3333333333333333)
    c3 = real(4.905)
    for i in range(x.shape[0]):
        row = step * i
        angle = load(x, i, 2, 0)
        torque = load(u, i, 1, 0)
        costate_angle = load(costate, i, 2, 0)
        costate_angle_rate = load(costate, i, 2, 1)
        mass = load(theta, row, 2, 0)
        length = load(theta, row, 2, 1)
        t1 = length * length
        t2 = mass * c2
        t3s, t3c = sincos(angle, real, half_pi)
        t4 = c3 * (mass * length)
        t5 = c1 / (t1 * t2)
        t6 = costate_angle_rate * t5
        t7 = t5 * (torque + t3s * t4) * t6
        t8 = c3 * (t3s * t6)
        t9 = length * (t2 * t7)
        store(dH_dx, i, 2, 0, t3c * (t4 * t6))
        store(dH_dx, i, 2, 1, costate_angle)
        store(dH_du, i, 1, 0, t6)
        store(dH_dtheta, i, 2, 0, length * t8 - c2 * (t1 * t7))
        store(dH_dtheta, i, 2, 1, mass * t8 - t9 - t9)


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.1)
    c2 = real(9.869604401089358)
    c3 = real(0.5)
    for i in range(x.shape[0]):
        row = step * i
        angle = load(x, i, 2, 0)
        angle_rate = load(x, i, 2, 1)
        t1 = angle * c3
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = c2 * t2s
        t4 = angle_rate * c1
        store(q, i, 1, 0, c1 * (angle_rate * angle_rate) + c2 * (t2s * t2s))
        store(dq_dx, i, 2, 0, c3 * ((t3 + t3) * t2c))
        store(dq_dx, i, 2, 1, t4 + t4)
