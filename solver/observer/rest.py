"""Rest of a robot with other parameters: inputs, and where no input balances a force a pose, that hold the target.

A policy knows one robot. `shift` is the disturbance of the inputs with the effect of other parameters at the target,
and `lean` is the pose in which such a robot rests, as in the target calculator of offset-free control (Pannocchia and
Rawlings, 2003, doi 10.1002/aic.690490213).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from solver.problem import Problem

DRIVE = 0.1  # of the input limit: largest disturbance of an input that no parameter explains
NEWTON = 3  # steps to a pose that leans: a force of a tenth of the weight is then balanced to rounding
REDUNDANT = 1e-3  # of the largest singular value: smaller ones are directions in which the pose changes no acceleration
#: Of the slopes of all accelerations: smaller ones that no input balances are rounding of single precision. The rank of
#: the inputs does not tell: an acceleration without an input may have no slope, as that of a trolley on a level rail.
ROUNDING = 1e-5
UPRIGHT = 1e-3  # of the state limits: a smaller lean counts as upright


def shift(problem: Problem, theta: Tensor, apart: Tensor | None = None) -> Tensor:
    """Disturbances (N, m) of the inputs that have the effect of the parameters theta (N, p) at the target.

    With the trim plus such a disturbance, the robot that the policy knows has the accelerations of the robot with theta
    and the trim, in least squares in units of the limits. It is the nominal robot, but with the told parameters
    of theta where a policy is told some. apart: (N, nt) errors from the target at which the robot with theta rests.
    """
    target = problem.targets_of(theta)
    nominal, u = _policy_holds(problem, theta)
    x = target if apart is None else problem.geometry.moved(target, apart)
    errors, limits, reach = problem.geometry.projection(x), problem.tangent_limits, problem.input_limits
    control_matrix = errors @ problem.robot.affine_dynamics(x, theta)[1] * reach / limits[:, None]
    change = problem.robot.dynamics(x, u, theta) - problem.robot.dynamics(target, u, nominal)
    change = torch.einsum("bij,bj->bi", errors, change) / limits
    return torch.einsum("bmn,bn->bm", torch.linalg.pinv(control_matrix), change) * reach


def _policy_holds(problem: Problem, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Parameters (N, p) that the policy knows of theta (N, p), and the trims (N, m) with which it holds the target."""
    trim = problem.trim.expand(len(theta), -1).contiguous()
    if problem.context is None:
        return problem.theta.expand(len(theta), -1).contiguous(), trim
    nominal = problem.context.known(theta, problem.theta)
    return nominal, problem.trim_of(nominal) if problem.moving_trim else trim


def lean(problem: Problem, theta: Tensor, near: Tensor | None = None) -> Tensor:
    """Errors (N, nt) from the target at which robots with theta (N, p) can rest, zero where an input holds the target.

    A force that no input can balance, such as wind across a quadrotor, is balanced by another pose. Of all rest poses
    it is the nearest one in units of the state limits, so that coordinates which balance nothing keep their targets.
    Newton's method on the accelerations that the best input leaves; from
    `near` (N, nt), one step.
    """
    geometry, pose, limits = problem.geometry, problem.robot.metadata.pose, problem.tangent_limits
    rows = [i - len(problem.target) + geometry.size for i in problem.robot.metadata.held]
    target, (_, u) = problem.targets_of(theta), _policy_holds(problem, theta)
    apart = target.new_zeros(len(target), geometry.size) if near is None else near
    for _ in range(NEWTON if near is None else 1):
        x = geometry.moved(target, apart)
        a, B, a_by_x, B_by_x, _, _ = problem.robot.jacobians(x, theta)
        errors = geometry.projection(x)[:, rows] / limits[rows, None]
        gain = errors @ B * problem.input_limits
        inverse = torch.linalg.pinv(gain)
        left = torch.eye(len(rows)).to(gain) - gain @ inverse
        rest = errors @ (a[..., None] + B @ u[..., None])
        u = u - (inverse @ rest)[..., 0] * problem.input_limits
        slope = errors @ (a_by_x + torch.einsum("bnmk,bm->bnk", B_by_x, u)) @ geometry.basis(x)[..., :pose]
        slope = slope * limits[:pose]
        least = ROUNDING * torch.linalg.matrix_norm(slope)  # what the inputs balance leaves rounding, and no slope
        slope = left @ slope
        shares = slope @ (apart[:, :pose] / limits[:pose])[..., None] - left @ rest
        apart = torch.zeros_like(apart)
        inverse = torch.linalg.pinv(slope, atol=least, rtol=torch.full_like(least, REDUNDANT))
        apart[:, :pose] = (inverse @ shares)[..., 0] * limits[:pose]
    return apart


def leaning(problem: Problem, estimated: Sequence[int]) -> list[int]:
    """Those of the parameters, by index, for which no input holds the target at some end of their bounds."""
    if not estimated or not problem.robot.metadata.held:
        return []
    ends = problem.theta.repeat(1 + 2 * len(estimated), 1)
    for k, i in enumerate(estimated):
        ends[1 + 2 * k : 3 + 2 * k, i] = problem.theta_bounds[i]
    most = (lean(problem, ends) / problem.tangent_limits).abs().amax(1)
    if float(most[0]) > UPRIGHT:  # no input holds even the target of the nominal robot
        return []
    return [i for k, i in enumerate(estimated) if float(most[1 + 2 * k : 3 + 2 * k].max()) > UPRIGHT]


def rest_apart(problem: Problem, theta: Tensor | None) -> Tensor | None:
    """The `lean` (N, nt) of robots with theta (p,) or (N, p), None where no bounds of parameters need one."""
    if theta is None or not leaning(problem, range(len(problem.theta))):
        return None
    return lean(problem, theta.reshape(-1, len(problem.theta)))


def largest_disturbance(problem: Problem, estimated: Sequence[int] = ()) -> Tensor:
    """Largest disturbance (m,) of each input: DRIVE of its limit, and what the bounds of the parameters can cause.

    The latter is the sum over the parameters, except the estimated ones, of the `shift` at the worse end of their
    bounds. The result is at most the input limit.
    """
    total = DRIVE * problem.input_limits
    for i in set(range(len(problem.theta))) - set(estimated):
        total = total + largest_shift(problem, i)
    return torch.minimum(total, problem.input_limits)


def largest_shift(problem: Problem, i: int) -> Tensor:
    """Size (m,) of the `shift` at the worse end of the bounds of parameter i."""
    ends = problem.theta.repeat(2, 1)
    ends[:, i] = problem.theta_bounds[i]
    return shift(problem, ends).abs().max(0).values
