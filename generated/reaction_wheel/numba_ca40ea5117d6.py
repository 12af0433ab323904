"""reaction_wheel: kernels for Numba, made by modelgen; not to be edited."""

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
        pendulum = load(x, i, 4, 0)
        pendulum_rate = load(x, i, 4, 2)
        wheel_rate = load(x, i, 4, 3)
        pendulum_mass = load(theta, row, 7, 0)
        wheel_mass = load(theta, row, 7, 1)
        length = load(theta, row, 7, 2)
        centre = load(theta, row, 7, 3)
        pendulum_inertia = load(theta, row, 7, 4)
        wheel_inertia = load(theta, row, 7, 5)
        wheel_damping = load(theta, row, 7, 6)
        t1 = sincos(pendulum, real, half_pi)[0] * (c3 * (pendulum_mass * centre + wheel_mass * length))
        t2 = c2 / (wheel_mass * (length * length) + (pendulum_mass * (centre * centre) + (pendulum_inertia + wheel_inertia)))
        t3 = wheel_inertia * t2
        t4 = c2 / (wheel_inertia - wheel_inertia * t3)
        t5 = t4 * (wheel_damping * wheel_rate + t1 * t3)
        store(a, i, 4, 0, pendulum_rate)
        store(a, i, 4, 1, wheel_rate)
        store(a, i, 4, 2, t1 * t2 + t3 * t5)
        store(a, i, 4, 3, -t5)
        store(B, i, 4, 0, c1)
        store(B, i, 4, 1, c1)
        store(B, i, 4, 2, -(t3 * t4))
        store(B, i, 4, 3, t4)


@kernel
def dynamics(x, u, theta, xdot):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(1.0)
    c2 = real(9.81)
    for i in range(x.shape[0]):
        row = step * i
        pendulum = load(x, i, 4, 0)
        pendulum_rate = load(x, i, 4, 2)
        wheel_rate = load(x, i, 4, 3)
        torque = load(u, i, 1, 0)
        pendulum_mass = load(theta, row, 7, 0)
        wheel_mass = load(theta, row, 7, 1)
        length = load(theta, row, 7, 2)
        centre = load(theta, row, 7, 3)
        pendulum_inertia = load(theta, row, 7, 4)
        wheel_inertia = load(theta, row, 7, 5)
        wheel_damping = load(theta, row, 7, 6)
        t1 = sincos(pendulum, real, half_pi)[0] * (c2 * (pendulum_mass * centre + wheel_mass * length))
        t2 = c1 / (wheel_mass * (length * length) + (pendulum_mass * (centre * centre) + (pendulum_inertia + wheel_inertia)))
        t3 = wheel_inertia * t2
        t4 = c1 / (wheel_inertia - wheel_inertia * t3) * (torque - wheel_damping * wheel_rate - t1 * t3)
        store(xdot, i, 4, 0, pendulum_rate)
        store(xdot, i, 4, 1, wheel_rate)
        store(xdot, i, 4, 2, t1 * t2 - t3 * t4)
        store(xdot, i, 4, 3, t4)


@kernel
def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(1.0)
    c3 = real(9.81)
    block = np.empty(1920, x.dtype)
    for first in range(0, x.shape[0], 64):
        last = min(first + 64, x.shape[0])
        for i in range(first, last):
            row = step * i
            pendulum = load(x, i, 4, 0)
            pendulum_rate = load(x, i, 4, 2)
            wheel_rate = load(x, i, 4, 3)
            pendulum_mass = load(theta, row, 7, 0)
            wheel_mass = load(theta, row, 7, 1)
            length = load(theta, row, 7, 2)
            centre = load(theta, row, 7, 3)
            pendulum_inertia = load(theta, row, 7, 4)
            wheel_inertia = load(theta, row, 7, 5)
            wheel_damping = load(theta, row, 7, 6)
            t1 = centre * centre
            t2 = length * length
            t3s, t3c = sincos(pendulum, real, half_pi)
            t4 = c3 * (pendulum_mass * centre + wheel_mass * length)
            t5 = t3s * t4
            t6 = c2 / (wheel_mass * t2 + (pendulum_mass * t1 + (pendulum_inertia + wheel_inertia)))
            t7 = wheel_inertia * t6
            t8 = c2 / (wheel_inertia - wheel_inertia * t7)
            t9 = t8 * (wheel_damping * wheel_rate + t5 * t7)
            t10 = t5 * t6 + t7 * t9
            t11 = -t9
            t12 = -(t7 * t8)
            t13 = t4 * t3c
            t14 = t8 * (t7 * t13)
            t15 = wheel_damping * t8
            t16 = t3s * (centre * c3) - t1 * t10
            t17 = t8 * (t7 * t16)
            t18 = t3s * (length * c3) - t2 * t10
            t19 = t8 * (t7 * t18)
            t20 = wheel_mass * (length + length)
            t21 = t3s * (wheel_mass * c3) - t10 * t20
            t22 = t8 * (t7 * t21)
            t23 = pendulum_mass * (centre + centre)
            t24 = t3s * (pendulum_mass * c3) - t10 * t23
            t25 = t8 * (t7 * t24)
            t26 = t8 * (t7 * t10)
            t27 = t10 + t11
            t28 = t8 * (t7 * t27 - t27)
            t29 = wheel_rate * t8
            t30 = t1 * t12
            t31 = t8 * (t7 * t30)
            t32 = t2 * t12
            t33 = t8 * (t7 * t32)
            t34 = t12 * t20
            t35 = t8 * (t7 * t34)
            t36 = t12 * t23
            t37 = t8 * (t7 * t36)
            t38 = t8 * (t7 * t12)
            t39 = t12 + t8
            t40 = t8 * (t7 * t39 - t39)
            store(a, i, 4, 0, pendulum_rate)
            store(a, i, 4, 1, wheel_rate)
            store(a, i, 4, 2, t10)
            store(a, i, 4, 3, t11)
            store(B, i, 4, 0, c1)
            store(B, i, 4, 1, c1)
            store(B, i, 4, 2, t12)
            store(B, i, 4, 3, t8)
            store(block, i - first, 1, 0, t6 * t13 + t7 * t14)
            store(block, i - first, 1, 64, t7 * t15)
            store(block, i - first, 1, 128, -t14)
            store(block, i - first, 1, 192, -t15)
            store(block, i - first, 1, 256, t6 * t16 + t7 * t17)
            store(block, i - first, 1, 320, t6 * t18 + t7 * t19)
            store(block, i - first, 1, 384, t6 * t21 + t7 * t22)
            store(block, i - first, 1, 448, t6 * t24 + t7 * t25)
            store(block, i - first, 1, 512, -(t6 * t10 + t7 * t26))
            store(block, i - first, 1, 576, -(t6 * t27 + t7 * t28))
            store(block, i - first, 1, 640, t7 * t29)
            store(block, i - first, 1, 704, -t17)
            store(block, i - first, 1, 768, -t19)
            store(block, i - first, 1, 832, -t22)
            store(block, i - first, 1, 896, -t25)
            store(block, i - first, 1, 960, t26)
            store(block, i - first, 1, 1024, t28)
            store(block, i - first, 1, 1088, -t29)
            store(block, i - first, 1, 1152, -(t6 * t30 + t7 * t31))
            store(block, i - first, 1, 1216, -(t6 * t32 + t7 * t33))
            store(block, i - first, 1, 1280, -(t6 * t34 + t7 * t35))
            store(block, i - first, 1, 1344, -(t6 * t36 + t7 * t37))
            store(block, i - first, 1, 1408, -(t6 * t12 + t7 * t38))
            store(block, i - first, 1, 1472, -(t6 * t39 + t7 * t40))
            store(block, i - first, 1, 1536, t31)
            store(block, i - first, 1, 1600, t33)
            store(block, i - first, 1, 1664, t35)
            store(block, i - first, 1, 1728, t37)
            store(block, i - first, 1, 1792, t38)
            store(block, i - first, 1, 1856, t40)
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
            store(da_dx, i, 16, 9, c1)
            store(da_dx, i, 16, 10, c1)
            store(da_dx, i, 16, 11, load(block, i - first, 1, 64))
            store(da_dx, i, 16, 12, load(block, i - first, 1, 128))
            store(da_dx, i, 16, 13, c1)
            store(da_dx, i, 16, 14, c1)
            store(da_dx, i, 16, 15, load(block, i - first, 1, 192))
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
            store(dB_dx, i, 16, 12, c1)
            store(dB_dx, i, 16, 13, c1)
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
            store(da_dtheta, i, 28, 14, load(block, i - first, 1, 256))
            store(da_dtheta, i, 28, 15, load(block, i - first, 1, 320))
            store(da_dtheta, i, 28, 16, load(block, i - first, 1, 384))
            store(da_dtheta, i, 28, 17, load(block, i - first, 1, 448))
            store(da_dtheta, i, 28, 18, load(block, i - first, 1, 512))
            store(da_dtheta, i, 28, 19, load(block, i - first, 1, 576))
            store(da_dtheta, i, 28, 20, load(block, i - first, 1, 640))
            store(da_dtheta, i, 28, 21, load(block, i - first, 1, 704))
            store(da_dtheta, i, 28, 22, load(block, i - first, 1, 768))
            store(da_dtheta, i, 28, 23, load(block, i - first, 1, 832))
            store(da_dtheta, i, 28, 24, load(block, i - first, 1, 896))
            store(da_dtheta, i, 28, 25, load(block, i - first, 1, 960))
            store(da_dtheta, i, 28, 26, load(block, i - first, 1, 1024))
            store(da_dtheta, i, 28, 27, load(block, i - first, 1, 1088))
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
            store(dB_dtheta, i, 28, 14, load(block, i - first, 1, 1152))
            store(dB_dtheta, i, 28, 15, load(block, i - first, 1, 1216))
            store(dB_dtheta, i, 28, 16, load(block, i - first, 1, 1280))
            store(dB_dtheta, i, 28, 17, load(block, i - first, 1, 1344))
            store(dB_dtheta, i, 28, 18, load(block, i - first, 1, 1408))
            store(dB_dtheta, i, 28, 19, load(block, i - first, 1, 1472))
            store(dB_dtheta, i, 28, 20, c1)
            store(dB_dtheta, i, 28, 21, load(block, i - first, 1, 1536))
            store(dB_dtheta, i, 28, 22, load(block, i - first, 1, 1600))
            store(dB_dtheta, i, 28, 23, load(block, i - first, 1, 1664))
            store(dB_dtheta, i, 28, 24, load(block, i - first, 1, 1728))
            store(dB_dtheta, i, 28, 25, load(block, i - first, 1, 1792))
            store(dB_dtheta, i, 28, 26, load(block, i - first, 1, 1856))
            store(dB_dtheta, i, 28, 27, c1)


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
        pendulum = load(x, i, 4, 0)
        wheel = load(x, i, 4, 1)
        wheel_rate = load(x, i, 4, 3)
        torque = load(u, i, 1, 0)
        costate_pendulum = load(costate, i, 4, 0)
        costate_wheel = load(costate, i, 4, 1)
        costate_pendulum_rate = load(costate, i, 4, 2)
        costate_wheel_rate = load(costate, i, 4, 3)
        pendulum_mass = load(theta, row, 7, 0)
        wheel_mass = load(theta, row, 7, 1)
        length = load(theta, row, 7, 2)
        centre = load(theta, row, 7, 3)
        pendulum_inertia = load(theta, row, 7, 4)
        wheel_inertia = load(theta, row, 7, 5)
        wheel_damping = load(theta, row, 7, 6)
        t1 = centre * centre
        t2 = length * length
        t3s, t3c = sincos(pendulum, real, half_pi)
        t4 = c3 * (pendulum_mass * centre + wheel_mass * length)
        t5 = t3s * t4
        t6 = c2 / (wheel_mass * t2 + (pendulum_mass * t1 + (pendulum_inertia + wheel_inertia)))
        t7 = wheel_inertia * t6
        t8 = c2 / (wheel_inertia - wheel_inertia * t7)
        t9 = t8 * (torque - wheel_damping * wheel_rate - t5 * t7)
        t10 = t5 * t6 - t7 * t9
        t11 = t8 * (costate_wheel_rate - costate_pendulum_rate * t7)
        t12 = costate_pendulum_rate * t6 - t7 * t11
        t13 = t10 * t12
        t14 = c3 * (t3s * t12)
        t15 = length * (wheel_mass * t13)
        t16 = centre * (pendulum_mass * t13)
        store(dH_dx, i, 4, 0, t3c * (t4 * t12))
        store(dH_dx, i, 4, 1, wheel - wheel)
        store(dH_dx, i, 4, 2, costate_pendulum)
        store(dH_dx, i, 4, 3, costate_wheel - wheel_damping * t11)
        store(dH_du, i, 1, 0, t11)
        store(dH_dtheta, i, 7, 0, centre * t14 - t1 * t13)
        store(dH_dtheta, i, 7, 1, length * t14 - t2 * t13)
        store(dH_dtheta, i, 7, 2, wheel_mass * t14 - t15 - t15)
        store(dH_dtheta, i, 7, 3, pendulum_mass * t14 - t16 - t16)
        store(dH_dtheta, i, 7, 4, -t13)
        store(dH_dtheta, i, 7, 5, -(t13 + (t9 * t11 + (t10 * t11 + t9 * t12))))
        store(dH_dtheta, i, 7, 6, -(wheel_rate * t11))


@kernel
def state_cost(x, theta, q, dq_dx):
    real = x.dtype.type
    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64
    step = 0 if theta.ndim == 1 else 1
    c1 = real(0.0)
    c2 = real(0.05)
    c3 = real(1e-05)
    c4 = real(9.869604401089358)
    c5 = real(0.5)
    for i in range(x.shape[0]):
        row = step * i
        pendulum = load(x, i, 4, 0)
        wheel = load(x, i, 4, 1)
        pendulum_rate = load(x, i, 4, 2)
        wheel_rate = load(x, i, 4, 3)
        t1 = pendulum * c5
        t2s, t2c = sincos(t1, real, half_pi)
        t3 = c4 * t2s
        t4 = wheel_rate * c3
        t5 = pendulum_rate * c2
        store(q, i, 1, 0, c4 * (t2s * t2s) + (c2 * (pendulum_rate * pendulum_rate) + c3 * (wheel_rate * wheel_rate)))
        store(dq_dx, i, 4, 0, c5 * ((t3 + t3) * t2c))
        store(dq_dx, i, 4, 1, wheel - wheel)
        store(dq_dx, i, 4, 2, t5 + t5)
        store(dq_dx, i, 4, 3, t4 + t4)
