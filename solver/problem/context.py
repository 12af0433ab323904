"""Context of a family of robots: the parameters and the references that a policy is told.

A context c (k,) has one entry in [-1, 1] for each told parameter, from the lower to the upper end of its range. Rows
(x, c) of n + k numbers hold states with their contexts. A problem without a context has k = 0 and rows x.

The target moves with the references among the told ones, x*(c) = target + c @ shift. States of first order that hold
it, such as the current of a motor against a weight, move likewise with parameters. Every error is measured from the
target of its own row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from modelgen.metadata import Metadata
from solver.errors import SolverError


@dataclass(frozen=True)
class Given:
    """A parameter that the policy is told, and the range of its values in SI units."""

    name: str
    lower: float
    upper: float


class Context:
    """The told parameters of a robot as tensors: `columns` (k,) of theta, and their ranges.

    theta (p,): nominal parameters. `target` (n,) is that of the middle of all ranges. `shift` and `start_shift` (k, n)
    are what the entries of c add to target and mean start; None where the target does not move.
    """

    def __init__(self, given: tuple[Given, ...], robot: Metadata, theta: Tensor) -> None:
        names = [parameter.name for parameter in robot.parameters]
        self.given, self.names = given, tuple(entry.name for entry in given)
        self.columns = torch.tensor([names.index(name) for name in self.names], device=theta.device)
        ends = theta.new_tensor([(entry.lower, entry.upper) for entry in given])
        self.middle, self.half = ends.mean(1), 0.5 * (ends[:, 1] - ends[:, 0])  # (k,)
        self._base = theta.clone()
        self._base[self.columns] = self.middle
        self._spread = theta.new_zeros(len(given), len(theta))
        self._spread[torch.arange(len(given)), self.columns] = self.half
        self.references = tuple(i for i, name in enumerate(self.names) if name in robot.references)
        middle = robot.with_nominal(self._base.tolist()).task
        self.target = theta.new_tensor(middle.target)
        self.start_offset = theta.new_tensor(middle.start_mean) - theta.new_tensor(robot.task.start_mean)  # (n,)
        self.shift: Tensor | None = None
        self.start_shift: Tensor | None = None
        slopes = {each.name: (each.target, each.start) for each in (*robot.task.references, *robot.task.followed)}
        if slopes.keys() & {*self.names}:
            still = (0.0,) * len(robot.states), (0.0,) * len(robot.states)
            columns = theta.new_tensor([slopes.get(name, still) for name in self.names])  # (k, 2, n)
            self.shift, self.start_shift = (self.half[:, None, None] * columns).unbind(1)

    def __len__(self) -> int:
        return len(self.given)

    def theta(self, c: Tensor) -> Tensor:
        """Parameters (N, p) with the told ones of the contexts c (N, k), and nominal others."""
        return torch.addmm(self._base, c, self._spread)

    def replaced(self, theta: Tensor, c: Tensor) -> Tensor:
        """Copy of theta (p,) or (N, p) with the told parameters of the contexts c (N, k)."""
        result = theta.expand(len(c), -1).clone()
        result[:, self.columns] = torch.addcmul(self.middle, self.half, c)
        return result

    def has(self, theta: Tensor, nominal: Tensor) -> bool:
        """Whether all parameters theta (..., p) are in the ranges, or nominal (p,) where they are not told."""
        rows = theta.reshape(-1, len(nominal))
        return bool(torch.isclose(rows, self.replaced(nominal, self.of(rows))).all())

    def of(self, theta: Tensor) -> Tensor:
        """Contexts (..., k) of the parameters theta (..., p), held within the ranges."""
        return ((theta[..., self.columns] - self.middle) / self.half).clamp(-1.0, 1.0)

    def redrawn(self, c: Tensor, generator: torch.Generator) -> Tensor:
        """Contexts (N, k) with other references, uniform in their ranges: those of set-points that jumped."""
        jumped, columns = c.clone(), list(self.references)
        jumped[:, columns] = self.draw(len(c), generator)[:, columns]
        return jumped

    def known(self, theta: Tensor, nominal: Tensor) -> Tensor:
        """What a policy with the contexts of theta (N, p) knows: the told ones of theta (N, p) held within the ranges,
        and the others of `nominal` (p,)."""
        result = nominal.repeat(len(theta), 1)
        result[:, self.columns] = theta[:, self.columns].clamp(self.middle - self.half, self.middle + self.half)
        return result

    def with_references(self, nominal: Tensor, theta: Tensor) -> Tensor:
        """Parameters (N, p) that a policy takes for theta (N, p) where it is told the references only."""
        result, columns = nominal.repeat(len(theta), 1), self.columns[list(self.references)]
        result[:, columns] = theta[:, columns]
        return result

    def corners(self) -> Tensor:
        """Contexts (2^k, k) at the ends of all ranges."""
        return self.half.new_tensor(list(product((-1.0, 1.0), repeat=len(self))))

    def draw(self, size: int, generator: torch.Generator) -> Tensor:
        """Contexts (size, k), uniform in their ranges."""
        return 2.0 * torch.rand(size, len(self), generator=generator, device=generator.device) - 1.0

    def spread(self, fitted: int, checked: int, generator: torch.Generator) -> Tensor:
        """Contexts (fitted + checked, k) in double precision on the CPU: for the fit of a polynomial the corners, which
        random ones miss, and others dense at the ends, as the zeros of Chebyshev polynomials; uniform ones after them.
        """
        c = self.draw(fitted + checked, generator).cpu().double()
        c[: 2 ** len(self)] = self.corners()
        c[:fitted] = torch.sin(0.5 * torch.pi * c[:fitted])
        return c

    def require_within(self, theta: Tensor, apart_from: Collection[str] = ()) -> None:
        """Raises SolverError if a told parameter of theta (p,) is out of its range, apart from some."""
        for entry, value in zip(self.given, theta[self.columns].tolist(), strict=True):
            room = 1e-6 * (entry.upper - entry.lower)
            if entry.name not in apart_from and not entry.lower - room <= value <= entry.upper + room:
                if entry.name in (self.names[i] for i in self.references):
                    raise SolverError(
                        f"the reference {entry.name} is {value:g}, outside the range of the training, {entry.lower:g} "
                        f"to {entry.upper:g}. Give a value in this range, or raise its limit in the model file and "
                        "train again."
                    )
                raise SolverError(
                    f"the policy is told {entry.name} = {value:g}, but it was trained for {entry.lower:g} to "
                    f"{entry.upper:g}. Give a value in this range, evaluate with --blind, or train with "
                    f"--given {entry.name}=LOWER:UPPER for a wider one."
                )
