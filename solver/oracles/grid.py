"""The stationary Hamilton-Jacobi-Bellman or -Isaacs equation of a one-joint robot, solved on a grid.

An oracle for trained value functions. It shares with training the robot's kernels and the players' closed-form moves,
and nothing of the networks, the n-step targets or the fit: the partial differential equation

    dV/dt = -rho V - q_c(x) - g_c(u) + dV/dx . (xdot of both players' moves)

is marched in pseudo-time until V rests, with fifth-order WENO differences (Jiang and Peng, 2000), a local
Lax-Friedrichs Hamiltonian and a second-order Runge-Kutta step, the usual scheme for reachability problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from solver.errors import SolverError
from solver.game.game import Game, Modulation
from solver.game.policies import ClosedFormPolicy

GHOSTS = 3  # nodes beyond the edge that a WENO difference needs
BOTH = torch.ones(2, dtype=torch.float64)  # a product with it takes a fifteenth of the time of `sum(1)`
COURANT = 0.7


@dataclass(frozen=True)
class GridValue:
    """V and its gradient on the nodes, and a callable like `FrozenValue`: x (N, 2) -> V (N,), dV/dx (N, 2)."""

    axes: tuple[Tensor, Tensor]
    nodes: Tensor  # (3, K0, K1): V, dV/dx_0, dV/dx_1
    residual: float  # largest |dV/dt| that is left, in units of the reward

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Linear interpolation of V and of its gradient."""
        share = [2.0 * (x[:, i] - axis[0]) / (axis[-1] - axis[0]) - 1.0 for i, axis in enumerate(self.axes)]
        where = torch.stack([share[1], share[0]], 1)[None, None]
        found = grid_sample(self.nodes[None].to(x), where, mode="bilinear", padding_mode="border", align_corners=True)
        return found[0, 0, 0], found[0, 1:, 0].T.contiguous()


def one_sided(value: Tensor, spacing: float, wraps: bool) -> tuple[Tensor, Tensor]:
    """Differences of value (K, M) along its first axis from the left and from the right, both (K, M)."""
    if wraps:
        padded = torch.cat([value[-GHOSTS:], value, value[:GHOSTS]])
    else:
        steps = torch.arange(1, GHOSTS + 1).to(value)[:, None]
        before = value[0] - (value[1] - value[0]) * steps.flip(0)
        padded = torch.cat([before, value, value[-1] + (value[-1] - value[-2]) * steps])
    slope = (padded[1:] - padded[:-1]) / spacing  # (K + 5, M)
    size = len(value)
    parts = [slope[i : i + size] for i in range(2 * GHOSTS)]
    return _weno(parts[:5]), _weno(parts[:0:-1])


def _weno(d: list[Tensor]) -> Tensor:
    """The weighted average of the three parabolas through five neighbouring slopes."""
    smoothness = (
        13 / 12 * (d[0] - 2 * d[1] + d[2]) ** 2 + 0.25 * (d[0] - 4 * d[1] + 3 * d[2]) ** 2,
        13 / 12 * (d[1] - 2 * d[2] + d[3]) ** 2 + 0.25 * (d[1] - d[3]) ** 2,
        13 / 12 * (d[2] - 2 * d[3] + d[4]) ** 2 + 0.25 * (3 * d[2] - 4 * d[3] + d[4]) ** 2,
    )
    small = 1e-6 * torch.stack(d).square().amax(0) + 1e-12
    a, b, c = (ideal / (s + small) ** 2 for ideal, s in zip((0.1, 0.6, 0.3), smoothness, strict=True))
    left, middle, right = 2 * d[0] - 7 * d[1] + 11 * d[2], -d[1] + 5 * d[2] + 2 * d[3], 2 * d[2] + 5 * d[3] - d[4]
    return (a * left + b * middle + c * right) / (6 * (a + b + c))


class _Equation:
    """The right-hand side dV/dt on the nodes."""

    def __init__(self, game: Game, size: tuple[int, int]) -> None:
        problem = game.problem
        states = problem.robot.metadata.states
        if [state.kind for state in states] != ["position", "velocity"]:
            raise SolverError(
                "the grid solves robots with one coordinate and its rate; "
                f"{problem.robot.name} has {len(states)} states"
            )
        self.game, self.problem, self.size, self.wraps = game, problem, size, states[0].continuous
        limits = problem.state_limits.double()
        position = torch.linspace(-1.0, 1.0, size[0] + self.wraps, dtype=torch.float64)[: size[0]] * limits[0]
        self.axes = position, torch.linspace(-1.0, 1.0, size[1], dtype=torch.float64) * limits[1]
        self.spacing = [float(axis[1] - axis[0]) for axis in self.axes]
        self.per_node = 1.0 / torch.tensor(self.spacing, dtype=torch.float64)
        self.x = torch.cartesian_prod(*self.axes).float()
        self.policy = ClosedFormPolicy(problem)
        self.modulation = Modulation("stationary", 1.0, torch.Generator())  # displacements per second
        self.state_cost = problem.state_cost(self.x)
        control_matrix = problem.robot.affine_dynamics(self.x)[1]
        self.authority: Tensor = (control_matrix.abs() @ problem.input_limits).double()  # (N, 2) of the largest inputs

    def gradients(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """dV/dx (K0, K1, 2) from the left and from the right."""
        along_position = one_sided(value, self.spacing[0], self.wraps)
        along_rate = one_sided(value.T, self.spacing[1], False)
        left, right = (torch.stack([a, b.T], -1) for a, b in zip(along_position, along_rate, strict=True))
        return left, right

    def __call__(self, value: Tensor) -> tuple[Tensor, float]:
        """dV/dt (K0, K1), and the largest stable time step."""
        left, right = self.gradients(value)
        costate = 0.5 * (left + right).reshape(-1, 2)
        xdot, displaced, action_cost = self._flow(costate.float())
        speed = self._fastest(xdot, displaced)
        gain = (costate * xdot) @ BOTH - self.state_cost - action_cost
        spread = (speed * (right - left).reshape(-1, 2)) @ BOTH
        rate = (gain + 0.5 * spread).reshape(self.size) - self.problem.discount_rate * value
        return rate, COURANT / float((speed @ self.per_node).max())

    def _flow(self, costate: Tensor) -> tuple[Tensor, float, Tensor]:
        """xdot (N, 2) under both players' moves, confined to the domain; the largest speed at which an adversary
        displaces the state; and the action cost (N,)."""
        move = self.game.move(self.x, costate, self.policy, self.modulation)
        disturbed = move.disturbed
        at = self.x if disturbed.offset is None else self.x + disturbed.offset
        xdot = self.problem.robot.dynamics(at, disturbed.u, disturbed.theta)
        displaced = 0.0
        if disturbed.displacement is not None:
            xdot = xdot + disturbed.displacement
            displaced = float(torch.linalg.vector_norm(disturbed.displacement, dim=1).max())
        outward = (self.x.abs() >= self.problem.state_limits) & (self.x * xdot > 0.0) & self.problem.clipped
        return torch.where(outward, 0.0, xdot).double(), displaced, move.cost

    def _fastest(self, xdot: Tensor, displaced: float) -> Tensor:
        """A bound (N, 2) of |dH/d(dV/dx)|: the speed reached, plus what adversaries and the input may change."""
        return xdot.abs() + displaced + 0.5 * self.authority


def solve(
    game: Game,
    size: tuple[int, int],
    tolerance: float = 0.05,
    seconds: float = 15.0,
    begin: GridValue | None = None,
) -> GridValue:
    """V of the stationary game on size = (positions, rates) nodes over the state domain.

    Marches until |dV/dt| is below `tolerance` everywhere, at most `seconds` of pseudo-time: the task's duration and
    some more, since V starts from zero and the reward has to travel. begin: a coarser solution to start from
    instead, for a fraction of that time. Raises SolverError for a robot of more than one joint.
    """
    equation = _Equation(game, size)
    value = torch.zeros(size, dtype=torch.float64)
    if begin is not None:
        value = begin(equation.x)[0].double().reshape(size)
    time, residual = 0.0, float("inf")
    while time < seconds and residual > tolerance:
        rate, step = equation(value)
        ahead = value + step * rate
        value = 0.5 * (value + ahead + step * equation(ahead)[0])
        time, residual = time + step, float(rate.abs().max())
    left, right = equation.gradients(value)
    nodes = torch.cat([value[None], 0.5 * (left + right).permute(2, 0, 1)])
    position, rates = equation.axes
    if equation.wraps:  # repeat the first column at the far edge, so that every angle lies between two nodes
        nodes, position = torch.cat([nodes, nodes[:, :1]], 1), torch.cat([position, -position[:1]])
    return GridValue((position, rates), nodes, residual)
