"""Errors of states in the tangent space, and rotations among the states, on tensors.

It is `modelgen.tangent` for N states and their gradients. A rotation is a unit quaternion (w, x, y, z) among the
states; its error is e = 2 sign(w) (x, y, z) of conj(q*) q.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from modelgen.metadata import Metadata, Rotation

TURN = 2.0 * math.pi
ENTRIES = 9  # of a rotation matrix
GRID = 1025  # angles of a distribution
SMALLEST = 1e-30  # keeps divisions by a length finite


def product_entries(p: Iterable[Any], q: Iterable[Any]) -> tuple[Any, ...]:
    """The four entries of the product of two quaternions, whose entries are tensors or arrays of JAX."""
    (a, b, c, d), (w, x, y, z) = p, q
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def matrix_entries(q: Iterable[Any]) -> tuple[Any, ...]:
    """The nine entries of `matrix` of a quaternion, whose entries are tensors or arrays of JAX."""
    w, x, y, z = q
    return (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


def product(p: Tensor, q: Tensor) -> Tensor:
    """Products (..., 4) of quaternions."""
    return torch.stack(product_entries(p.unbind(-1), q.unbind(-1)), -1)


def conjugate(q: Tensor) -> Tensor:
    """Inverse rotations (..., 4)."""
    return torch.cat([q[..., :1], -q[..., 1:]], -1)


def pure(h: Tensor) -> Tensor:
    """Quaternions (..., 4) with the vectors h (..., 3) and w = 0."""
    return torch.cat([torch.zeros_like(h[..., :1]), h], -1)


def matrix(q: Tensor) -> Tensor:
    """Rotation matrices (..., 9) of unit quaternions, row by row, from the turned frame to the frame before."""
    return torch.stack(matrix_entries(q.unbind(-1)), -1)


def by_turns(q: Tensor, by_matrix: Tensor) -> Tensor:
    """dV/de (..., 3) of small turns in the turned frame, from dV/dR (..., 9)."""
    shape = (*q.shape[:-1], 3, 3)
    turns: Tensor = torch.linalg.cross(by_matrix.reshape(shape), matrix(q).reshape(shape)).sum(-2)
    return turns


def by_quaternion(q: Tensor, by_turn: Tensor) -> Tensor:
    """dV/dq (..., 4), tangent to the sphere, from dV/de (..., 3) of small turns in the turned frame."""
    return product(q, pure(2.0 * by_turn))


def exponential(vector: Tensor) -> Tensor:
    """Unit quaternions (..., 4) of rotation vectors (..., 3)."""
    angle = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    half = 0.5 * angle
    share = torch.where(angle > 1e-6, torch.sin(half) / angle.clamp_min(SMALLEST), 0.5)
    return torch.cat([torch.cos(half), share * vector], -1)


def logarithm(q: Tensor) -> Tensor:
    """Rotation vectors (..., 3) of unit quaternions (..., 4), of at most half a turn."""
    w, size = q[..., :1], torch.linalg.vector_norm(q[..., 1:], dim=-1, keepdim=True)
    share = torch.where(size > 1e-6, 2.0 * torch.atan2(size, w.abs()) / size.clamp_min(SMALLEST), 2.0)
    vector: Tensor = torch.where(w < 0.0, -share, share) * q[..., 1:]
    return vector


def uniform(size: int, generator: torch.Generator) -> Tensor:
    """Unit quaternions (size, 4), uniform over all rotations."""
    q = torch.randn(size, 4, generator=generator, device=generator.device)
    length: Tensor = torch.linalg.vector_norm(q, dim=1, keepdim=True).clamp_min(SMALLEST)
    return q / length


def angles_within(limit: float) -> tuple[Tensor, Tensor]:
    """Shares (GRID,) of the rotations by at most `limit` rad that turn by at most an angle (GRID,)."""
    grid = torch.linspace(0.0, limit, GRID, dtype=torch.float64)
    return (grid - torch.sin(grid)) / (limit - math.sin(limit)), grid


def turns_within(size: int, limit: float, generator: torch.Generator) -> Tensor:
    """Rotation vectors (size, 3), uniform over the rotations by at most `limit` rad.

    The angle has the density 1 - cos(angle). Its distribution is inverted on a grid.
    """
    axis = torch.randn(size, 3, generator=generator, device=generator.device)
    axis = axis / torch.linalg.vector_norm(axis, dim=1, keepdim=True).clamp_min(SMALLEST)
    share, grid = angles_within(limit)
    drawn = torch.rand(size, generator=generator, device=generator.device)
    place = torch.searchsorted(share, drawn.double().cpu()).clamp(1, GRID - 1)
    low, high = share[place - 1], share[place]
    angle = grid[place - 1] + (grid[place] - grid[place - 1]) * (drawn.double().cpu() - low) / (high - low)
    turns: Tensor = axis * angle.float().to(axis.device)[:, None]
    return turns


@dataclass(frozen=True)
class Geometry:
    """Errors e (N, nt) of states x (N, n) from a target (n,): angles that wrap, and rotations."""

    continuous: Tensor  # (n,) bool, True for continuous angles
    rotations: tuple[Rotation, ...] = ()

    @staticmethod
    def of(metadata: Metadata, device: torch.device | str = "cpu") -> Geometry:
        """The geometry of a robot."""
        wraps = [state.continuous for state in metadata.states]
        return Geometry(torch.tensor(wraps, device=device), metadata.rotations)

    @cached_property
    def _plain(self) -> tuple[list[int], list[int]]:
        """Indices in x, and in e, of the states that are no entry of a quaternion."""
        inside = {i for rotation in self.rotations for i in range(rotation.coordinate, rotation.coordinate + 4)}
        states = [i for i in range(len(self.continuous)) if i not in inside]
        return states, [i - sum(rotation.coordinate < i for rotation in self.rotations) for i in states]

    @cached_property
    def _unit(self) -> Tensor:
        """dx/de (n, nt) without the rotations."""
        result = torch.zeros(len(self.continuous), self.size)
        for state, place in zip(*self._plain, strict=True):
            result[state, place] = 1.0
        return result.to(self.continuous.device)

    @cached_property
    def _places(self) -> list[tuple[slice, slice]]:
        """Entries in x and in e of every rotation."""
        places = [(each.coordinate, each.coordinate - k) for k, each in enumerate(self.rotations)]
        return [(slice(x, x + 4), slice(e, e + 3)) for x, e in places]

    @property
    def size(self) -> int:
        """The number nt."""
        return len(self.continuous) - len(self.rotations)

    def error(self, x: Tensor, target: Tensor) -> Tensor:
        """Error e (..., nt) of x (..., n), with continuous angles in [-pi, pi]."""
        e = x - target
        e = torch.where(self.continuous, e - TURN * torch.round(e / TURN), e)
        if not self.rotations:
            return e
        states, places = self._plain
        result = e.new_empty(*e.shape[:-1], self.size)
        result[..., places] = e[..., states]
        for entries, turn in self._places:
            apart = product(conjugate(target[..., entries]), x[..., entries])
            result[..., turn] = 2.0 * torch.where(apart[..., :1] < 0.0, -apart[..., 1:], apart[..., 1:])
        return result

    def pull_back(self, x: Tensor, target: Tensor, by_error: Tensor) -> Tensor:
        """dV/dx (..., n) from dV/de (..., nt) at x (..., n). In quaternions it is tangent to the sphere."""
        if not self.rotations:
            return by_error
        states, places = self._plain
        result = torch.empty_like(x)
        result[..., states] = by_error[..., places]
        for entries, turn in self._places:
            q, g = x[..., entries], by_error[..., turn]
            apart = product(conjugate(target[..., entries]), q)
            # de = (w + [v]x) times the small turn, with the sign of w, where (w, v) is `apart`.
            g = torch.where(apart[..., :1] < 0.0, -g, g)
            result[..., entries] = by_quaternion(q, apart[..., :1] * g - torch.linalg.cross(apart[..., 1:], g))
        return result

    def moved(self, x: Tensor, e: Tensor) -> Tensor:
        """States (N, n) at the errors e (N, nt) or (1, nt) from x (n,) or (N, n).

        A rotation is moved by half a turn at most.
        """
        if not self.rotations:
            return x + e
        states, places = self._plain
        e = e.expand(len(x), -1) if x.ndim == 2 else e
        result = x.expand(len(e), -1).clone()
        result[:, states] += e[:, places]
        for entries, turn in self._places:
            half = 0.5 * e[:, turn]
            half = half / torch.linalg.vector_norm(half, dim=1, keepdim=True).clamp_min(1.0)
            w = (1.0 - (half * half).sum(1, keepdim=True)).clamp_min(0.0).sqrt()
            result[:, entries] = product(result[:, entries], torch.cat([w, half], 1))
        return result

    def spread(self, x: Tensor, e: Tensor) -> Tensor:
        """States (N, n) at x (N, n) changed by e (N, nt), whose entries of a rotation are a vector of any length."""
        if not self.rotations:
            return x + e
        states, places = self._plain
        result = x.expand(len(e), -1).clone()
        result[:, states] += e[:, places]
        for entries, turn in self._places:
            result[:, entries] = product(result[:, entries], exponential(e[:, turn]))
        return result

    def rounded(self, x: Tensor, count: Tensor) -> Tensor:
        """States (N, n) at x (N, n) whose first errors are whole multiples of count (k,); of rotations, the vector."""
        states, places = self._plain
        result = x.clone()
        for i, place in zip(states, places, strict=True):
            if place < len(count):
                result[:, i] = torch.round(x[:, i] / count[place]) * count[place]
        for entries, turn in self._places:
            vector = torch.round(logarithm(x[:, entries]) / count[turn]) * count[turn]
            result[:, entries] = exponential(vector)
        return result

    def basis(self, x: Tensor) -> Tensor:
        """dx/de (N, n, nt) for errors from x (N, n)."""
        result = self._unit.to(x).repeat(len(x), 1, 1)
        for entries, turn in self._places:
            columns = [product(x[:, entries], pure(axis.expand(len(x), 3))) for axis in torch.eye(3).to(x)]
            result[:, entries, turn] = 0.5 * torch.stack(columns, 2)
        return result

    def projection(self, x: Tensor) -> Tensor:
        """de/dx (N, nt, n) for errors from x (N, n), the left inverse of `basis`."""
        result = self.basis(x).mT.clone()
        for entries, turn in self._places:
            result[:, turn, entries] *= 4.0
        return result

    def normalised(self, x: Tensor) -> Tensor:
        """States (N, n) with quaternions of length one, with a graph to x (N, n)."""
        for entries, _ in self._places:
            q = x[:, entries]
            q = q / torch.linalg.vector_norm(q, dim=1, keepdim=True).clamp_min(SMALLEST)
            x = torch.cat([x[:, : entries.start], q, x[:, entries.stop :]], 1)
        return x

    def normalise(self, x: Tensor) -> None:
        """Scale the quaternions of x (N, n) to length one, in place."""
        for entries, _ in self._places:
            x[:, entries] /= torch.linalg.vector_norm(x[:, entries], dim=1, keepdim=True).clamp_min(SMALLEST)
