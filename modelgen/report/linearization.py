"""The linearisation of a robot at an equilibrium: A, B, controllability, eigenvalues and an LQR gain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from modelgen import linear
from modelgen.arrays import Array
from modelgen.commandline import states_given
from modelgen.errors import ModelError
from modelgen.linear import weights
from modelgen.loader import CompiledRobot
from modelgen.metadata import Input, State
from modelgen.tangent import Tangent

STARTS = 40  # initial guesses of the coordinates that are not given
ITERATIONS = 60
REST = 1e-10  # rate that counts as zero, as a share of what the inputs can give, or of the state's limit per second
ROUNDING = 1e-14  # entry that counts as zero, as a share of the largest one of its matrix, in units of the limits


@dataclass(frozen=True)
class Linearization:
    """edot = A e + B (u - input) near an equilibrium, at nominal parameters; e is x - state, as in `Tangent`."""

    state: Array  # (n,), rates zero
    input: Array  # (m,), which holds the robot there
    A: Array  # (nt, nt)
    B: Array  # (nt, m)
    controllable: int  # rank of (B, AB, ...)
    gain: Array | None  # (m, nt), u = input - gain e; None if no gain exists
    without_gain: str  # the reason; empty if there is a gain

    def to_json(self) -> dict[str, object]:
        """All values, matrices as nested lists."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def given_coordinates(pairs: Sequence[str], robot: CompiledRobot) -> dict[str, float]:
    """Coordinate -> value from the `coordinate=value` pairs of `--at`. Raises ModelError for a wrong name or value."""
    positions = [i for i in range(robot.metadata.nq) if i not in robot.metadata.turning]
    return states_given(
        "--at",
        pairs,
        [robot.metadata.states[i] for i in positions],
        f"coordinate of `{robot.name}`",
        lambda name: " Rates are zero at an equilibrium." if name in robot.state_names else "",
    )


def equilibrium(robot: CompiledRobot, at: Mapping[str, float]) -> tuple[Array, Array]:
    """State (n,) and input (m,) at rest. States that are not in `at` are solved for, near the target.

    Without `at`, the state is the task's target. Of several possible inputs, the result is the smallest relative to
    the limits. Raises ModelError if the robot cannot rest there.
    """
    target = np.array(robot.metadata.task.target)
    positions = robot.metadata.nq
    target[robot.metadata.velocities] = 0
    names = robot.state_names[:positions]
    internal = list(range(robot.metadata.velocities.stop, len(target)))
    turning = robot.metadata.turning  # rotations stay as at the target
    coordinates = [i for i in range(positions) if i not in turning]
    free = [*(i for i in coordinates if names[i] not in at), *internal] if at else []
    start = target.copy()
    for name, value in at.items():
        start[names.index(name)] = value
    random = np.random.default_rng(0)
    limits = np.asarray(robot.state_limits)
    for attempt in range(STARTS if free != internal else 1):
        guess = start.copy()
        if attempt:
            guess[free] = random.uniform(-limits[free], limits[free])
        rest = _rest(robot, guess, free)
        if rest:
            return rest
    where = ", ".join(f"{name} = {value:g}" for name, value in at.items()) or "its target"
    nearest = _rest(robot, start, [*coordinates, *internal])
    hint = "Choose another place with --at coordinate=value."
    if nearest:
        near = ", ".join(f"{name} = {round(value, 9) + 0:.10g}" for name, value in zip(names, nearest[0], strict=False))
        hint = f"The nearest equilibrium has {near}; write pi for half a turn."
    raise ModelError(f"no input holds `{robot.name}` at rest at {where}. {hint}")


def _rest(robot: CompiledRobot, start: Array, free: list[int]) -> tuple[Array, Array] | None:
    """A rest near `start` by Newton's method with shortest steps in units of the limits; None if it diverges."""
    x, u = start.copy(), np.array(robot.trim, np.float64)
    reach = np.asarray(robot.input_limits)
    limits = np.concatenate([np.asarray(robot.state_limits)[free], reach])
    positions, rates = robot.metadata.nq, slice(robot.metadata.nq, None)
    units = np.asarray(robot.state_limits)[rates]
    for _ in range(ITERATIONS):
        a, B, slope = _affine(robot, x, u)
        left, by_u = (a + B @ u)[rates] / units, B[rates] / units[:, None]
        if not np.isfinite(left).all():
            return None
        if (np.abs(left) <= REST * np.maximum(1.0, np.abs(by_u * reach).max(axis=1, initial=0.0))).all():
            moving = np.flatnonzero(np.abs(a[:positions]) > REST)
            if len(moving):
                raise ModelError(
                    f"`{robot.state_names[moving[0]]}` moves at {a[moving[0]]:.3g} with all speeds of `{robot.name}` "
                    "at zero: its equilibrium has other speeds, which are not searched. Linearize it with "
                    "modelgen.load(...).jacobians at a state of your own."
                )
            return x, _smallest(robot, by_u, u)
        by_x = slope[rates][:, free] / units[:, None]
        step = np.linalg.lstsq(np.hstack([by_x, by_u]) * limits, -left, rcond=1e-12)[0]
        step *= limits * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))
        x[free] += step[: len(free)]
        u += step[len(free) :]
    return None


def _smallest(robot: CompiledRobot, B: Array, u: Array) -> Array:
    """The inputs (m,) nearest to zero, in units of half ranges, with the same B u; `u` where they exceed a limit."""
    reach = np.asarray(robot.input_limits)
    nearest = np.asarray(reach * np.linalg.lstsq(B * reach, B @ u, rcond=1e-12)[0])
    within = np.abs(nearest - np.asarray(robot.input_middle)) <= reach * (1 + 1e-9)
    return nearest if within.all() else u


def _affine(robot: CompiledRobot, x: Array, u: Array) -> tuple[Array, Array, Array]:
    """a (n,), B (n, m) and d(a + B u)/dx (n, n) at one sample."""
    a, B, da_dx, dB_dx, *_ = (np.asarray(output)[0] for output in robot.jacobians(x[None]))
    return a, B, da_dx + np.einsum("ijk,j->ik", dB_dx, u)


def linearize(robot: CompiledRobot, at: Mapping[str, float]) -> Linearization:
    """A and B at the equilibrium, and the gain for the weights of the task, without its discount.

    Q is half the curvature of the state cost at its target, R half the curvature of the action cost at its trim.
    Entries that are only rounding errors are set to zero.
    """
    x, u = equilibrium(robot, at)
    _, B, A = _affine(robot, x, u)
    tangent = Tangent(robot.metadata)
    if tangent.rotations:
        inward = tangent.projection(x)
        A, B = inward @ A @ tangent.basis(x), inward @ B
    scale, reach, limits = tangent.limits, np.asarray(robot.input_limits), np.asarray(robot.state_limits)
    A_scaled, B_scaled = _rounded(A * scale / scale[:, None]), _rounded(B * reach / scale[:, None])
    A, B = np.where(A_scaled == 0.0, 0.0, A), np.where(B_scaled == 0.0, 0.0, B)
    rank = linear.controllable_subspace(A_scaled, B_scaled).shape[1]
    Q, R = weights(robot)
    Q_scaled, R_scaled = Q * scale * scale[:, None], R * reach * reach[:, None]
    gain = None
    if missing := linear.obstacle(A_scaled, B_scaled, Q_scaled):
        name, value = tangent.names[missing.state], _number(missing.eigenvalue, 3)
        without = f"{missing.reason} a motion of `{name}` that does not decay (eigenvalue {value})"
    else:
        gain = linear.gain(A_scaled, B_scaled, Q_scaled, R_scaled)
        without = "" if gain is not None else "double precision does not suffice to solve its Riccati equation"
    gain = None if gain is None else _rounded(gain) * reach[:, None] / scale
    return Linearization(_rounded(x / limits) * limits, _rounded(u / reach) * reach, A, B, rank, gain, without)


def _rounded(values: Array) -> Array:
    """The array with zeros in place of entries below `ROUNDING` of its largest entry."""
    return np.where(np.abs(values) > ROUNDING * np.abs(values).max(initial=0.0), values, 0.0)


def text(robot: CompiledRobot, result: Linearization) -> str:
    """The linearisation as tables, with states and inputs by name."""
    states, inputs = Tangent(robot.metadata).names, robot.input_names
    lines = [f"{robot.name} at rest, nominal parameters", ""]
    shown = [number for number, state in enumerate(robot.metadata.states) if state.kind != "velocity"]
    entries: list[State | Input] = [*(robot.metadata.states[number] for number in shown), *robot.metadata.inputs]
    for entry, value in zip(entries, [*result.state[shown], *result.input], strict=True):
        middle, beyond = entry.middle if isinstance(entry, Input) else 0.0, ""
        turns = isinstance(entry, State) and entry.continuous
        if not turns and abs(value - middle) > entry.limit * (1 + 1e-9):
            limit = middle + math.copysign(entry.limit, value - middle) if middle else entry.limit
            beyond = f"   beyond its limit of {limit:g}"
        lines.append(f"  {entry.name:<22}{value + 0.0:>12.6g} {entry.unit}{beyond}")
    lines += ["", *_table("A", states, states, result.A), "", *_table("B", states, inputs, result.B), ""]
    lines.append(f"controllable: {result.controllable} of {len(states)} states")
    lines.append(f"eigenvalues of A: {_eigenvalues(result.A)}")
    if result.gain is None:
        return "\n".join([*lines, f"no LQR gain: {result.without_gain}"])
    lines += ["", *_table("LQR gain", inputs, states, result.gain), ""]
    lines.append(f"eigenvalues of A - B gain: {_eigenvalues(result.A - result.B @ result.gain)}")
    return "\n".join(lines)


def _table(title: str, rows: Sequence[str], columns: Sequence[str], values: Array) -> list[str]:
    widths = [max(len(name), 10) + 2 for name in columns]
    lines = [f"{title:<24}" + "".join(f"{name:>{width}}" for name, width in zip(columns, widths, strict=True))]
    for name, row in zip(rows, values, strict=True):
        cells = (f"{value + 0.0:>{width}.5g}" for value, width in zip(row, widths, strict=True))
        lines.append(f"  {name:<22}" + "".join(cells))
    return lines


def _eigenvalues(matrix: Array) -> str:
    values = sorted(np.linalg.eigvals(matrix), key=lambda value: (-value.real, -value.imag))
    size = max(1e-12, *(abs(value) for value in values))
    shown = (complex(*(part if abs(part) > 1e-9 * size else 0.0 for part in (v.real, v.imag))) for v in values)
    return ", ".join(_number(value, 5) for value in shown)


def _number(value: complex, digits: int) -> str:
    return f"{value.real:.{digits}g}" + (f"{value.imag:+.{digits}g}i" if value.imag else "")
