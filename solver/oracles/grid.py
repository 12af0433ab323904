"""Solution of the stationary Hamilton-Jacobi-Bellman or -Isaacs equation of a robot with one joint, on a grid.

It checks trained value functions. It shares the robot's kernels and the players' closed-form moves with the training,
but not the networks, the n-step targets and the fit. The partial differential equation

    dV/dt = -rho V - q_c(x) - g_c(u) + dV/dx . (xdot with the moves of both players)

is integrated in pseudo-time until V is stationary, with fifth-order WENO differences (Jiang and Peng, 2000), a local
Lax-Friedrichs Hamiltonian and Runge-Kutta steps of second order, the usual scheme for reachability problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from solver.errors import SolverError
from solver.game import ClosedFormPolicy, Game
from solver.game.adversaries import Modulation

GHOSTS = 3  # nodes beyond the edge that a WENO difference needs
#: By five slopes from the left: second differences and slopes of three parabolas through three of them each, whose
#: squares say how smooth they are; and six times their values at the node. The same by the slopes from the right.
CURVED = [[1, -2, 1, 0, 0], [0, 1, -2, 1, 0], [0, 0, 1, -2, 1]]
TILTED = [[1, -4, 3, 0, 0], [0, 1, 0, -1, 0], [0, 0, 3, -4, 1]]
PARABOLAS = [[2, -7, 11, 0, 0], [0, -1, 5, 2, 0], [0, 0, 2, 5, -1]]
FROM_LEFT = torch.tensor([*CURVED, *TILTED, *PARABOLAS], dtype=torch.float64)
WENO = torch.cat([pad(FROM_LEFT, (0, 1)), pad(FROM_LEFT.flip(1), (1, 0))])  # (18, 6)
IDEAL = torch.tensor([[0.1], [0.6], [0.3]], dtype=torch.float64)  # weights of the parabolas of a smooth function
BOTH = torch.ones(2, dtype=torch.float64)  # a product with it takes a fifteenth of the time of `sum(1)`
COURANT = 0.7  # pseudo-time step, as a share of the largest stable one


@dataclass(frozen=True)
class GridValue:
    """V and its gradient on the nodes of a grid. It is a `ValueFunction`."""

    axes: tuple[Tensor, Tensor]  # positions (K0,) and rates (K1,) of the nodes
    nodes: Tensor  # (3, K0, K1): V, dV/dx_0, dV/dx_1
    residual: float  # largest remaining |dV/dt|, in units of the reward per second

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, 2) at x (N, 2), by linear interpolation of both."""
        share = [2.0 * (x[:, i] - axis[0]) / (axis[-1] - axis[0]) - 1.0 for i, axis in enumerate(self.axes)]
        at = torch.stack([share[1], share[0]], 1)[None, None]
        values = grid_sample(self.nodes[None].to(x), at, mode="bilinear", padding_mode="border", align_corners=True)
        return values[0, 0, 0], values[0, 1:, 0].T.contiguous()


def one_sided(value: Tensor, spacing: float, wraps: bool) -> tuple[Tensor, Tensor]:
    """Left-sided and right-sided differences (K, M) of value (K, M) along its first axis."""
    if wraps:
        padded = torch.cat([value[-GHOSTS:], value, value[:GHOSTS]])
    else:
        steps = torch.arange(1, GHOSTS + 1).to(value)[:, None]
        before = value[0] - (value[1] - value[0]) * steps.flip(0)
        padded = torch.cat([before, value, value[-1] + (value[-1] - value[-2]) * steps])
    slope = (padded[1:] - padded[:-1]) / spacing  # (K + 5, M)
    windows = torch.stack([slope[i : i + len(value)] for i in range(2 * GHOSTS)]).flatten(1)  # (6, K M)
    curved, tilted, parabolas = (WENO @ windows).view(2, 3, 3, -1).unbind(1)  # (2, 3, K M) each
    squares = windows.square()
    largest = torch.stack([squares[:-1].amax(0), squares[1:].amax(0)])[:, None]
    smoothness = 13 / 12 * curved.square() + 0.25 * tilted.square()
    weights = IDEAL / (smoothness + 1e-6 * largest + 1e-12).square()
    left, right = ((weights * parabolas).sum(1) / (6 * weights.sum(1))).view(2, *value.shape)
    return left, right


class _Equation:
    """Right-hand side dV/dt of the equation on the nodes."""

    def __init__(self, game: Game, size: tuple[int, int]) -> None:
        problem = game.problem
        states = problem.robot.metadata.states
        if [state.kind for state in states] != ["position", "velocity"]:
            raise SolverError(
                f"the grid solves robots with one coordinate and its rate, but {problem.robot.name} has {len(states)} "
                "states; use trajectory optimisation (`solver limit`)"
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
        self.authority: Tensor = (control_matrix.abs() @ problem.input_limits).double()  # (N, 2) xdot by full inputs

    def gradients(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Left-sided and right-sided dV/dx (K0, K1, 2)."""
        along_position = one_sided(value, self.spacing[0], self.wraps)
        along_rate = one_sided(value.T, self.spacing[1], False)
        left, right = (torch.stack([a, b.T], -1) for a, b in zip(along_position, along_rate, strict=True))
        return left, right

    def __call__(self, value: Tensor) -> tuple[Tensor, float]:
        """dV/dt (K0, K1), and a stable step of pseudo-time in seconds."""
        left, right = self.gradients(value)
        costate = 0.5 * (left + right).reshape(-1, 2)
        xdot, displaced, action_cost = self._flow(costate.float())
        speed = self._fastest(xdot, displaced)
        gain = (costate * xdot) @ BOTH - self.state_cost - action_cost
        spread = (speed * (right - left).reshape(-1, 2)) @ BOTH
        rate = (gain + 0.5 * spread).reshape(self.size) - self.problem.discount_rate * value
        return rate, COURANT / float((speed @ self.per_node).max())

    def _flow(self, costate: Tensor) -> tuple[Tensor, float, Tensor]:
        """xdot (N, 2) with the moves of both players, without its part out of the domain; the largest speed at which
        an adversary displaces the state; and the action cost (N,)."""
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
        """Bound (N, 2) of |dH/d(dV/dx)|: the speed, plus changes of it by adversaries and the input."""
        return xdot.abs() + displaced + 0.5 * self.authority


def solve(
    game: Game, size: tuple[int, int], tolerance: float = 0.05, seconds: float = 15.0, begin: GridValue | None = None
) -> GridValue:
    """V of the stationary game on a grid over the state domain.

    size: number of positions and of rates.
    tolerance: largest |dV/dt| of the result. It may be larger after `seconds` of pseudo-time.
    seconds: should exceed the task's horizon, because V starts at zero.
    begin: a coarser solution to start from, with which a fraction of that time is enough.

    Raises SolverError for a robot with more than one joint.
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
    if equation.wraps:  # repeat the first column at the last edge, so that every angle lies between two nodes
        nodes, position = torch.cat([nodes, nodes[:, :1]], 1), torch.cat([position, -position[:1]])
    return GridValue((position, rates), nodes, residual)
