"""The compact domain of a robot's states: limits, seams of angles, quaternions of length one, and uniform states."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from modelgen.metadata import Metadata, Rotation
from modelgen.tangent import Tangent
from solver.errors import SolverError
from solver.problem.geometry import SMALLEST, Geometry, conjugate, exponential, product, turns_within, uniform

AT_ANGLE = 1e-3  # rad: an angle from the target this near to its limit counts as at the limit
#: Largest size of a state that a loaded or exported policy is computed at, in SI units or, if larger, in its limits.
FARTHEST, FARTHEST_IN_LIMITS = 1e6, 10.0


class Domain:
    """The states x (n,) with |x_i| <= limit_i, and with every rotation within its limit from the target.

    Tensors: `state_limits` (n,), `target` (n,) at nominal references, `clipped` (n,) bool, the states that are clipped
    to their limits, `bound` (n,) their limits, infinite for the others. `continuous` lists the angles that wrap around,
    `limited` the rotations whose angle from the target has a limit. `geometry` has the errors (nt,) of states, with
    three numbers for a rotation, `tangent` their names, and `tangent_limits` (nt,) their limits.
    """

    def __init__(self, robot: CompiledRobot, device: torch.device | str) -> None:
        metadata = robot.metadata
        self.geometry, self.tangent = Geometry.of(metadata, device), Tangent(metadata)
        self.state_limits, self.target, self.tangent_limits = (
            torch.as_tensor(values, dtype=torch.float32, device=device)
            for values in (robot.state_limits, metadata.task.target, self.tangent.limits)
        )
        self.rotations = metadata.rotations
        self.limited = [rotation for rotation in self.rotations if rotation.limit < math.pi]
        self.continuous = [i for i, state in enumerate(metadata.states) if state.continuous]
        bounded = [not s.continuous and i not in metadata.turning for i, s in enumerate(metadata.states)]
        self.clipped = torch.tensor(bounded, device=device)
        self.bound = torch.where(self.clipped, self.state_limits, torch.inf)
        self.lower_bound = -self.bound

    def difference(self, y: Tensor, x: Tensor) -> Tensor:
        """Errors (N, k) of the first entries y (N, j) of a state from those of x (N, n).

        Continuous angles are in [-pi, pi); every rotation has three errors for its four entries.
        """
        if self.rotations:
            whole = self.geometry.normalised(torch.cat([y, x[:, y.shape[1] :]], 1))
            return self.geometry.error(whole, x)[:, : y.shape[1] - len(self.rotations)]
        difference = y - x[:, : y.shape[1]]
        wrap_in_place(difference, self.continuous)
        return difference

    def confine(self, x: Tensor) -> Tensor:
        """Copy of x (N, n) within the domain.

        Continuous angles are wrapped to [-pi, pi), quaternions have length one, and other states, also the angle of a
        rotation from the target, are clipped to their limits.
        """
        x = x.clone()
        self.confine_in_place(x)
        return x

    def confine_in_place(self, x: Tensor) -> None:
        """Like `confine`, but overwrites x (N, n)."""
        torch.clamp(x, self.lower_bound, self.bound, out=x)
        wrap_in_place(x, self.continuous)
        self.geometry.normalise(x)
        for rotation in self.limited:
            self._limit_in_place(x, rotation)

    def _limit_in_place(self, x: Tensor, rotation: Rotation) -> None:
        goal = self.target[rotation.quaternion]
        apart = product(conjugate(goal), x[:, rotation.quaternion])
        cosine = math.cos(0.5 * rotation.limit)
        size = torch.linalg.vector_norm(apart[:, 1:], dim=1, keepdim=True).clamp_min(SMALLEST)
        vector = apart[:, 1:] * (math.sin(0.5 * rotation.limit) / size)
        w = torch.where(apart[:, :1] < 0.0, -cosine, cosine)
        within = product(goal.expand(len(x), 4), torch.cat([w, vector], 1))
        x[:, rotation.quaternion] = torch.where(apart[:, :1].abs() < cosine, within, x[:, rotation.quaternion])

    def angle_beyond(self, x: Tensor, rotation: Rotation) -> Tensor:
        """Angle (...) of a rotation of x (..., n) from the target, less its limit."""
        apart = product(conjugate(self.target[rotation.quaternion]), x[..., rotation.quaternion])
        return 2.0 * torch.acos(apart[..., 0].abs().clamp_max(1.0)) - rotation.limit

    def at_limit(self, x: Tensor) -> Tensor:
        """Boolean mask (..., n) of the states in x (..., n) that the simulation clips to their limit."""
        held = x.abs() >= self.bound
        for rotation in self.limited:
            held[..., rotation.quaternion] = (self.angle_beyond(x, rotation) >= -AT_ANGLE)[..., None]
        return held

    def sample_states(self, size: int, generator: torch.Generator) -> Tensor:
        """States (size, n), uniform in the domain."""
        unit = torch.rand(size, len(self.state_limits), generator=generator, device=generator.device)
        x = (2.0 * unit - 1.0) * self.state_limits
        self.turn_in_place(x, generator)
        return x

    def turn_in_place(self, x: Tensor, generator: torch.Generator) -> None:
        """Replace the rotations in x (N, n) by uniform ones within their limits."""
        for rotation in self.rotations:
            q = rotation.quaternion
            if rotation.limit < math.pi:
                turn = turns_within(len(x), rotation.limit, generator)
                x[:, q] = product(self.target[q].expand(len(x), 4), exponential(turn))
            else:
                x[:, q] = uniform(len(x), generator)

    @cached_property
    def corner(self) -> Tensor:
        """State (1, n) with every state at its limit, and rotations about the diagonal."""
        x = self.state_limits[None].clone()
        self.geometry.normalise(x)
        return x


def wrap_in_place(x: Tensor, joints: list[int]) -> None:
    """Wrap the entries `joints` of x (N, n) to [-pi, pi)."""
    for i in joints:
        x[:, i].add_(math.pi).remainder_(2.0 * math.pi).sub_(math.pi)


def by_name(x: Any) -> dict[str, Any]:
    """Numbers by name of a mapping, or of a row or a table of pandas; empty for an array."""
    keys = x.keys() if callable(getattr(x, "keys", None)) else getattr(x, "columns", ())
    return {key: x[key] for key in keys} if any(isinstance(key, str) for key in keys) else {}


def numbers_in(x: Any, names: tuple[str, ...], what: str = "x", numpy: Any = np) -> Any:
    """Real numbers (..., n) as an array of NumPy or of `jax.numpy`, from an array, or by name in any order.

    Raises SolverError if a name is missing, for masked arrays, and for other numbers.
    """
    named = by_name(x)
    if named and (missing := [name for name in names if name not in named]):
        raise SolverError(
            f"{what} has the columns {', '.join(map(str, named))}, and no {missing[0]}; give {', '.join(names)}"
        )
    try:
        return numpy.stack([_real(named[name], numpy) for name in names], -1) if named else _real(x, numpy)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SolverError(
            f"{what} is not an array of real numbers: {error}; give {len(names)}: {', '.join(names)}"
        ) from error


def _real(values: Any, numpy: Any) -> Any:
    """An array of real numbers. Raises TypeError or ValueError for other values."""
    if np.ma.isMaskedArray(values):
        raise TypeError("it is masked, and no mask is read (see numpy.ma.filled)")
    if isinstance(values, Tensor):  # NumPy has no bfloat16
        values = values.cpu().double() if values.is_floating_point() else values.cpu()
    array = numpy.asarray(values)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"its dtype is {array.dtype}")
    return array


def require_states(shape: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Raises SolverError unless it is the shape of one state (n,) or of N states (N, n)."""
    if len(shape) not in (1, 2) or shape[-1] != len(names):
        raise SolverError(
            f"x has shape {shape}; give one state ({len(names)},) or states (N, {len(names)}) with the columns "
            f"{', '.join(names)}"
        )


def farthest(robot: Metadata) -> list[float]:
    """Largest sizes (n,) of the entries of a state that a policy of the robot is computed at.

    float32 has no digits of an angle left beyond them. A pressure in Pa reaches 1e6 within its limits.
    """
    return [max(FARTHEST, FARTHEST_IN_LIMITS * state.limit) for state in robot.states]
