"""cartpole: kernels for Numba, made by modelgen; not to be edited."""

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
    for i in range(x.shape[0]):
        row = step * i
        pole = load(x, i, 4, 1)
        cart_rate = load(x, i, 4, 2)
        pole_rate = load(x, i, 4, 3)
        cart_mass = load(theta, row, 5, 0)
        pole_mass = load(theta, row, 5, 1)
        pole_half_length = load(theta, row, 5, 2)
        cart_damping = load(theta, row, 5, 3)
        pole_damping = load(theta, row, 5, 4)
        t1s, t1c = sincos(pole, real, half_pi)
        t2 = pole_mass * pole_half_length
        t3 = t1c * t2
        t4 = t1s * t2
        t5 = pole_rate * pole_rate * t4 - cart_damping * cart_rate
        t6 = c2 / (cart_mass + pole_mass)
        t7 = t3 * t6
        t8 = c2 / (pole_mass * (pole_half_length * pole_half_length) - t3 * t7)
        t9 = t8 * (t4 * c3 - pole_damping * pole_rate - t5 * t7)
        t10 = t7 * t8
        store(a, i, 4, 0, cart_rate)
        store(a, i, 4, 1, pole_rate)
        store(a, i, 4, 2, t5 * t6 - t7 * t9)
        store(a, i, 4, 3, t9)
        store(B, i, 4, 0, c1)
        store(B, i, 4, 1, c1)
        store(B, i, 4, 2, t6 + t7 * t10)
        store(B, i, 4, 3, -t10)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        pole = load(x, i, 4, 1)
        cart_rate = load(x, i, 4, 2)
        pole_rate = load(x, i, 4, 3)
        force = load(u, i, 1, 0)
        cart_mass = load(theta, row, 5, 0)
        pole_mass = load(theta, row, 5, 1)
        pole_half_length = load(theta, row, 5, 2)
        cart_damping = load(theta, row, 5, 3)
        pole_damping = load(theta, row, 5, 4)
        t1s, t1c = sincos(pole, real, half_pi)
        t2 = pole_mass * pole_half_length
        t3 = t1c * t2
        t4 = t1s * t2
        t5 = c1 / (cart_mass + pole_mass)
        t6 = t3 * t5
        t7 = force + (pole_rate * pole_rate * t4 - cart_damping * cart_rate)
        t8 = c1 / (pole_mass * (pole_half_length * pole_half_length) - t3 * t6) * (t4 * c2 - pole_damping * pole_rate - t6 * t7)
        store(xdot, i, 4, 0, cart_rate)
        store(xdot, i, 4, 1, pole_rate)
        store(xdot, i, 4, 2, t5 * t7 - t6 * t8)
        store(xdot, i, 4, 3, t8)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(9.81)
    block = np.empty(1536, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            pole = load(x, i, 4, 1)
            cart_rate = load(x, i, 4, 2)
            pole_rate = load(x, i, 4, 3)
            cart_mass = load(theta, row, 5, 0)
            pole_mass = load(theta, row, 5, 1)
            pole_half_length = load(theta, row, 5, 2)
            cart_damping = load(theta, row, 5, 3)
            pole_damping = load(theta, row, 5, 4)
            t1s, t1c = sincos(pole, real, half_pi)
            t2 = pole_rate * pole_rate
            t3 = pole_mass * pole_half_length
            t4 = t1c * t3
            t5 = pole_half_length * pole_half_length
            t6 = t1s * t3
            t7 = t2 * t6 - cart_damping * cart_rate
            t8 = c2 / (cart_mass + pole_mass)
            t9 = t4 * t8
            t10 = c2 / (pole_mass * t5 - t4 * t9)
            t11 = t10 * (t6 * c3 - pole_damping * pole_rate - t7 * t9)
            t12 = t7 * t8 - t9 * t11
            t13 = t9 * t10
            t14 = t8 + t9 * t13
            t15 = -t13
            t16 = t2 * t4 + t6 * t11
            t17 = t10 * (t4 * c3 + t6 * t12 - t9 * t16)
            t18 = t10 * (cart_damping * t9)
            t19 = t6 * (pole_rate + pole_rate)
            t20 = t10 * (pole_damping + t9 * t19)
            t21 = t6 * t15
            t22 = t10 * (t6 * t14 - t9 * t21)
            t23 = t10 * (t9 * t12)
            t24 = pole_half_length * t1c
            t25 = pole_half_length * t1s
            t26 = t2 * t25 - (t12 + t11 * t24)
            t27 = t10 * (c3 * t25 - (t12 * t24 + t5 * t11) - t9 * t26)
            t28 = pole_mass * t1c
            t29 = pole_mass * (pole_half_length + pole_half_length)
            t30 = pole_mass * t1s
            t31 = t2 * t30 - t11 * t28
            t32 = t10 * (c3 * t30 - (t12 * t28 + t11 * t29) - t9 * t31)
            t33 = t10 * (cart_rate * t9)
            t34 = pole_rate * t10
            t35 = t10 * (t9 * t14)
            t36 = t14 + t15 * t24
            t37 = t10 * (t9 * t36 - (t14 * t24 + t5 * t15))
            t38 = t15 * t28
            t39 = t10 * (t9 * t38 - (t14 * t28 + t15 * t29))
            store(a, i, 4, 0, cart_rate)
            store(a, i, 4, 1, pole_rate)
            store(a, i, 4, 2, t12)
            store(a, i, 4, 3, t11)
            store(B, i, 4, 0, c1)
            store(B, i, 4, 1, c1)
            store(B, i, 4, 2, t14)
            store(B, i, 4, 3, t15)
            store(block, i - first, 1, 0, t8 * t16 - t9 * t17)
            store(block, i - first, 1, 64, -(cart_damping * t8 + t9 * t18))
            store(block, i - first, 1, 128, t8 * t19 + t9 * t20)
            store(block, i - first, 1, 192, t17)
            store(block, i - first, 1, 256, t18)
            store(block, i - first, 1, 320, -t20)
            store(block, i - first, 1, 384, t8 * t21 - t9 * t22)
            store(block, i - first, 1, 448, t22)
            store(block, i - first, 1, 512, -(t8 * t12 + t9 * t23))
            store(block, i - first, 1, 576, t8 * t26 - t9 * t27)
            store(block, i - first, 1, 640, t8 * t31 - t9 * t32)
            store(block, i - first, 1, 704, -(cart_rate * t8 + t9 * t33))
            store(block, i - first, 1, 768, t9 * t34)
            store(block, i - first, 1, 832, t23)
            store(block, i - first, 1, 896, t27)
            store(block, i - first, 1, 960, t32)
            store(block, i - first, 1, 1024, t33)
            store(block, i - first, 1, 1088, -t34)
            store(block, i - first, 1, 1152, -(t8 * t14 + t9 * t35))
            store(block, i - first, 1, 1216, -(t8 * t36 + t9 * t37))
            store(block, i - first, 1, 1280, -(t8 * t38 + t9 * t39))
            store(block, i - first, 1, 1344, t35)
            store(block, i - first, 1, 1408, t37)
            store(block, i - first, 1, 1472, t39)
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
            store(da_dtheta, i, 20, 0, c1)
            store(da_dtheta, i, 20, 1, c1)
            store(da_dtheta, i, 20, 2, c1)
            store(da_dtheta, i, 20, 3, c1)
            store(da_dtheta, i, 20, 4, c1)
            store(da_dtheta, i, 20, 5, c1)
            store(da_dtheta, i, 20, 6, c1)
            store(da_dtheta, i, 20, 7, c1)
            store(da_dtheta, i, 20, 8, c1)
            store(da_dtheta, i, 20, 9, c1)
            store(da_dtheta, i, 20, 10, load(block, i - first, 1, 512))
            store(da_dtheta, i, 20, 11, load(block, i - first, 1, 576))
            store(da_dtheta, i, 20, 12, load(block, i - first, 1, 640))
            store(da_dtheta, i, 20, 13, load(block, i - first, 1, 704))
            store(da_dtheta, i, 20, 14, load(block, i - first, 1, 768))
            store(da_dtheta, i, 20, 15, load(block, i - first, 1, 832))
            store(da_dtheta, i, 20, 16, load(block, i - first, 1, 896))
            store(da_dtheta, i, 20, 17, load(block, i - first, 1, 960))
            store(da_dtheta, i, 20, 18, load(block, i - first, 1, 1024))
            store(da_dtheta, i, 20, 19, load(block, i - first, 1, 1088))
            store(dB_dtheta, i, 20, 0, c1)
            store(dB_dtheta, i, 20, 1, c1)
            store(dB_dtheta, i, 20, 2, c1)
            store(dB_dtheta, i, 20, 3, c1)
            store(dB_dtheta, i, 20, 4, c1)
            store(dB_dtheta, i, 20, 5, c1)
            store(dB_dtheta, i, 20, 6, c1)
            store(dB_dtheta, i, 20, 7, c1)
            store(dB_dtheta, i, 20, 8, c1)
            store(dB_dtheta, i, 20, 9, c1)
            store(dB_dtheta, i, 20, 10, load(block, i - first, 1, 1152))
            store(dB_dtheta, i, 20, 11, load(block, i - first, 1, 1216))
            store(dB_dtheta, i, 20, 12, load(block, i - first, 1, 1280))
            store(dB_dtheta, i, 20, 13, c1)
            store(dB_dtheta, i, 20, 14, c1)
            store(dB_dtheta, i, 20, 15, load(block, i - first, 1, 1344))
            store(dB_dtheta, i, 20, 16, load(block, i - first, 1, 1408))
            store(dB_dtheta, i, 20, 17, load(block, i - first, 1, 1472))
            store(dB_dtheta, i, 20, 18, c1)
            store(dB_dtheta, i, 20, 19, c1)


@kernel
def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        cart = load(x, i, 4, 0)
        pole = load(x, i, 4, 1)
        cart_rate = load(x, i, 4, 2)
        pole_rate = load(x, i, 4, 3)
        force = load(u, i, 1, 0)
        costate_cart = load(costate, i, 4, 0)
        costate_pole = load(costate, i, 4, 1)
        costate_cart_rate = load(costate, i, 4, 2)
        costate_pole_rate = load(costate, i, 4, 3)
        cart_mass = load(theta, row, 5, 0)
        pole_mass = load(theta, row, 5, 1)
        pole_half_length = load(theta, row, 5, 2)
        cart_damping = load(theta, row, 5, 3)
        pole_damping = load(theta, row, 5, 4)
        t1s, t1c = sincos(pole, real, half_pi)
        t2 = pole_rate * pole_rate
        t3 = pole_mass * pole_half_length
        t4 = t1c * t3
        t5 = pole_half_length * pole_half_length
        t6 = t1s * t3
        t7 = c2 / (cart_mass + pole_mass)
        t8 = t4 * t7
        t9 = c2 / (pole_mass * t5 - t4 * t8)
        t10 = force + (t2 * t6 - cart_damping * cart_rate)
        t11 = t9 * (t6 * c3 - pole_damping * pole_rate - t8 * t10)
        t12 = t7 * t10 - t8 * t11
        t13 = t9 * (costate_pole_rate - costate_cart_rate * t8)
        t14 = costate_cart_rate * t7 - t8 * t13
        t15 = t12 * t14
        t16 = t11 * t13
        t17 = t12 * t13 + t11 * t14
        t18 = c3 * t13 + t2 * t14
        t19 = pole_half_length * (pole_mass * t16)
        t20 = t1s * t18 - t1c * t17
        t21 = pole_rate * (t6 * t14)
        store(dH_dx, i, 4, 0, cart - cart)
        store(dH_dx, i, 4, 1, t1s * (t3 * t17) + t1c * (t3 * t18))
        store(dH_dx, i, 4, 2, costate_cart - cart_damping * t14)
        store(dH_dx, i, 4, 3, t21 + (costate_pole - pole_damping * t13 + t21))
        store(dH_du, i, 1, 0, t14)
        store(dH_dtheta, i, 5, 0, -t15)
        store(dH_dtheta, i, 5, 1, pole_half_length * t20 - t5 * t16 - t15)
        store(dH_dtheta, i, 5, 2, pole_mass * t20 - (t19 + t19))
        store(dH_dtheta, i, 5, 3, -(cart_rate * t14))
        store(dH_dtheta, i, 5, 4, -(pole_rate * t13))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(10.0)
    c3 = real(385.75197594478317)
    c4 = real(25.0)
    c5 = real(0.1)
    c6 = real(0.5)
    c7 = real(9.869604401089358)
    c8 = real(10.000000000000002)
    c9 = real(4.0)
    c10 = real(24.0701949750009)
    c11 = real(34.55751918948773)
    c12 = real(37.8125)
    c13 = real(55.0)
    c14 = real(121.00000000000001)
    c15 = real(220.0)
    for i in range(x.shape[0]):
        row = step * i
        cart = load(x, i, 4, 0)
        pole = load(x, i, 4, 1)
        cart_rate = load(x, i, 4, 2)
        pole_rate = load(x, i, 4, 3)
        t1 = cart * c2
        t2 = pole * c2
        t3 = cart_rate * c2
        t4 = pole_rate * c2
        t5 = pole * c6
        t6s, t6c = sincos(t5, real, half_pi)
        t7 = math.tanh(t1 - c9)
        t8 = math.tanh(t1 + c9)
        t9 = math.tanh(t2 - c11)
        t10 = math.tanh(t2 + c11)
        t11 = math.tanh(t3 - c13)
        t12 = math.tanh(t3 + c13)
        t13 = math.tanh(t4 - c15)
        t14 = math.tanh(t4 + c15)
        t15 = c6 * (cart_rate * cart_rate) + (pole_rate * pole_rate * c5 + (c3 + c4 * (cart * cart)))
        t16 = c12 * t11 + (c10 * t9 + (c8 * t7 + (c7 * (t6s * t6s) + t15)))
        t17 = c14 * t13 + t16 - c8 * t8 - c10 * t10 - c12 * t12 - c14 * t14
        t18 = c7 * t6s
        t19 = cart_rate * c6
        t20 = cart * c4
        t21 = t19 + t19 + c2 * (c12 * (c1 - t11 * t11) - c12 * (c1 - t12 * t12))
        t22 = c6 * ((t18 + t18) * t6c) + c2 * (c10 * (c1 - t9 * t9) - c10 * (c1 - t10 * t10))
        t23 = t20 + t20 + c2 * (c8 * (c1 - t7 * t7) - c8 * (c1 - t8 * t8))
        t24 = pole_rate * c5
        t25 = c2 * (c14 * (c1 - t13 * t13) - c14 * (c1 - t14 * t14)) + t24
        store(q, i, 1, 0, t17)
        store(dq_dx, i, 4, 0, t23)
        store(dq_dx, i, 4, 1, t22)
        store(dq_dx, i, 4, 2, t21)
        store(dq_dx, i, 4, 3, t24 + t25)
