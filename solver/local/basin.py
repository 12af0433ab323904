"""Basin of a robot: the states around the target where the Riccati equation gives the value function.

Near the target V = -e^T P e, where P solves the Riccati equation of the discounted task, xdot = (A - rho/2) x + B u.
The basin is the largest sublevel set of e^T P e on which the policy of this V works on the nonlinear robot, whose
inputs are limited and held. Every rollout from its boundary arrives at the target, reaches no limit of a state that is
not fast, and costs e^T P e, more or less by COST_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from modelgen import linear
from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.policies import Hold
from solver.local.linearization import Linearization, holding, linearization, linearize
from solver.plants.outcome import controller, rollouts, sample_starts, without_input
from solver.problem import Problem
from solver.problem.context import Given
from solver.value.family import REACH, Basin, BasinFamily, composed, crossing, exponents, factored, terms
from solver.value.features import times

REST = 1e-6  # limits per second: a slower drift at the target is an equilibrium
HALVINGS = 30  # of the level, from the cost with every state at its limit to the smallest level that is tried
SAMPLES = 256  # states on a shell
#: A rollout may cost more or less than the Riccati equation says, by the larger of these shares.
COST_ERROR = 0.15  # of the cost of the Riccati equation
NEGLIGIBLE = 0.005  # of the cost of the task from its starts
STARTS = 64  # for the estimate of the cost of the task
ARRIVED = 0.05  # share of the level at which a rollout has arrived
TIME_CONSTANTS = 5.0  # longest rollout, in time constants of the slowest closed-loop motion,
PARTS = 10  # and its parts, after each of which the rollouts end if all have arrived or one has failed
LEAST_PERIODS, MOST_HORIZONS = 10, 2.0  # bounds of this duration, in control periods and in horizons of the task
NEAREST, SPREAD = 0.1, 3000.0  # smallest level of `near_target` by the basin's, and its largest level by its smallest
INNER = 0.1  # of these levels, where the basin is empty and V is not known nearer to the target
SEED = 0
FITTED, CHECKED = 3, 200  # contexts of the fit of P(c) for each coefficient, and contexts at which it is checked
MISFIT = 0.02  # largest error of P(c), as a share of it in any direction
REGULAR = 1e-9  # of that cost is added to every form: a state that costs nothing would make it singular
UNRESOLVED = 1e-6  # of the cost with every state at its limit: smaller forms count as zero


def cost_to_go(problem: Problem) -> tuple[Array, float] | None:
    """P (nt, nt) in SI units, and the decay (1/s) of the slowest closed-loop motion that the cost observes.

    None if the target is no equilibrium under the trim, or if no regulator exists.
    """
    return _cost_to_go(linearization(problem.robot), problem.discount_rate)


def _cost_to_go(local: Linearization, discount_rate: float) -> tuple[Array, float] | None:
    limits = local.limits
    if np.abs(local.drift / limits).max() > REST:
        return None
    A, B = local.scaled_dynamics(discount_rate)
    Q, R = local.scaled_weights()
    if linear.obstacle(A, B, Q):
        return None
    P = linear.cost_to_go(A, B, Q, R)
    if P is None:
        return None
    decays = -np.linalg.eigvals(A - B @ np.linalg.solve(R, B.T @ P)).real
    slowest = decays[decays > linear.DECAY * np.abs(decays).max()].min()
    return P / np.outer(limits, limits), float(slowest)


def find_basin(problem: Problem, hold: Hold, negligible: float = NEGLIGIBLE) -> Basin | BasinFamily | None:
    """Basin of a problem, or None. Bisection with rollouts finds its level.

    Where the inputs reach a motion by manoeuvres only, as that of a car across its wheels, no level is good, and the
    basin is empty. The Riccati equation then gives what it costs to stand beside the target: a form that measures
    errors up to the cost of the task.

    With told parameters it is the family of the basins of all contexts, whose level holds in every one of them.
    hold: of the policy. negligible: error of the cost that is allowed, as a share of the cost of the task from its
    starts. Raises SolverError if P changes too fast with the context.
    """
    found = _quadratic_form(problem)
    if found is None:
        return None
    largest, make, decay = found
    shortest = LEAST_PERIODS * problem.control_step
    seconds = min(max(TIME_CONSTANTS / decay, shortest), MOST_HORIZONS * problem.robot.metadata.task.horizon)

    def basin(exponent: int) -> Basin | BasinFamily:
        return make(largest * 2.0**exponent)

    start_cost = _start_cost(problem, basin(0))
    good, bad = -HALVINGS, 0  # exponents
    while bad - good > 1:
        between = (good + bad) // 2
        if _arrives(problem, basin(between), seconds, hold, negligible * start_cost):
            good = between
        else:
            bad = between
    if good > -HALVINGS:
        return basin(good)
    form = make(0.0)
    if isinstance(form, Basin) and start_cost > 0.0:  # where all starts are the target, it has no scale for errors
        return replace(form, unit=start_cost / REACH)
    return None


def can_tell(robot: CompiledRobot, given: tuple[Given, ...]) -> bool:
    """Whether polynomials follow the quadratic form P(c) of a robot over these ranges, or it has none."""
    try:
        _quadratic_form(Problem(robot, given=given))
    except SolverError:
        return False
    return True


def _quadratic_form(problem: Problem) -> tuple[float, Callable[[float], Basin | BasinFamily], float] | None:
    """Largest level, the basin of a level, and the decay (1/s) of the slowest motion; None as in `cost_to_go`."""
    target, continuous, limits = problem.target, problem.geometry.continuous, problem.tangent_limits
    rotations = problem.geometry.rotations
    if problem.context is None:
        riccati = cost_to_go(problem)
        if riccati is None:
            return None
        cost = torch.as_tensor(riccati[0], dtype=torch.float32, device=target.device)
        largest = float(torch.trace(cost * limits * limits[:, None]))
        return largest, lambda level: Basin(target, continuous, cost, level, rotations), riccati[1]
    degrees = exponents(len(problem.context), problem.context.shift)
    size = FITTED * len(degrees)
    c = problem.context.spread(size, CHECKED, torch.Generator(device=problem.device).manual_seed(SEED))
    found = riccati_solutions(problem, c)
    if found is None:
        return None
    forms, decay = found
    P, design, squares = torch.as_tensor(forms), terms(c, degrees), limits.cpu().double() ** 2
    most = (P.diagonal(dim1=1, dim2=2) * squares).sum(1)[:, None]
    regular, counted = (P + share * torch.diag_embed(most / squares) for share in (REGULAR, UNRESOLVED))
    fitted = _fitted(design[:size].numpy(), regular[:size], most[:size], counted[:size])
    coefficients = torch.from_numpy(fitted).float()
    pivots = [i * (i + 3) // 2 for i in range(len(squares))]  # of the triangle, whose rows follow each other
    for numbers in coefficients.T[[*pivots, -1]]:
        zero = crossing(numbers, degrees)
        if zero is not None:
            raise _refusal(problem, torch.from_numpy(zero), "a polynomial cannot follow it, and crosses zero")
    used = composed((design.float() @ coefficients)[:, :-1], len(squares)).double()  # in the precision of V
    _require_smooth(problem, c, P, used)
    family = degrees.to(target.device), coefficients.to(target.device), problem.context.shift
    nothing, middle = torch.zeros_like(P[0], dtype=torch.float32, device=target.device), problem.context.target
    return 1.0, lambda share: BasinFamily(Basin(middle, continuous, nothing, share, rotations), *family), decay


def _fitted(design: Array, forms: Tensor, most: Tensor, counted: Tensor) -> Array:
    """Coefficients (b, q + 1) by the terms (N, b) of the numbers of N forms, and of 1/most (N, 1): least squares.

    An error counts as the share of the forms `counted` that it makes in the worst direction, to first order, as in
    `_require_smooth`. So an error of a column of M counts by the square roots of the later pivots, which may be
    thousands of times smaller than its own.
    """
    root, size = torch.linalg.cholesky(counted).numpy(), forms.shape[1]
    numbers = np.hstack([factored(forms).numpy(), 1.0 / most.numpy()])
    found = np.empty((design.shape[1], numbers.shape[1]))

    def fit(at: list[int], weight: Array) -> None:
        left = np.einsum("nij,nb->nibj", weight, design).reshape(-1, design.shape[1] * len(at))
        right = (weight @ numbers[:, at, None]).reshape(-1)
        # NumPy's solution has the same bits in every call. Torch's depends on where MKL finds the numbers in memory.
        found[:, at] = np.linalg.lstsq(left, right, rcond=None)[0].reshape(-1, len(at))

    rows, columns = np.tril_indices(size)
    for j in range(size):
        below = np.flatnonzero((rows > j) & (columns == j))
        if len(below):
            fit(below.tolist(), np.linalg.inv(root[:, j + 1 :, j + 1 :]) * root[:, j : j + 1, j : j + 1])
    for place in [*np.flatnonzero(rows == columns), -1]:  # the reciprocals, whose relative errors count
        fit([int(place)], 1.0 / numbers[:, [place], None])
    return found


def riccati_solutions(problem: Problem, c: Tensor) -> tuple[Array, float] | None:
    """P (N, n, n) of the contexts c (N, k), and the decay (1/s) of their slowest motion; None as in `cost_to_go`."""
    assert problem.context is not None
    robot, solutions = problem.robot.with_kernels(), []
    parameters = problem.context.theta(c.float().to(problem.device))
    trims = problem.trim_of(parameters) if problem.moving_trim else problem.trim.expand(len(c), -1)
    for theta, trim in zip(parameters.tolist(), trims.tolist(), strict=True):
        told = holding(robot.with_nominal(theta), trim)
        solutions.append(_cost_to_go(linearize(told, told.metadata), problem.discount_rate))
    found = [solution for solution in solutions if solution is not None]
    if len(found) < len(solutions):
        return None
    return np.stack([P for P, _ in found]), min(decay for _, decay in found)


def misfit(problem: Problem, exact: Tensor, fitted: Tensor) -> Tensor:
    """Largest errors (N,) in any direction of fitted forms (N, n, n), as shares of the exact ones."""
    limits = problem.tangent_limits.cpu().double()
    exact, fitted = (form * limits * limits[:, None] for form in (exact, fitted))
    unresolved = UNRESOLVED * exact.diagonal(dim1=1, dim2=2).sum(1)[:, None, None] * torch.eye(len(limits))
    inverse = torch.linalg.inv(torch.linalg.cholesky(exact + unresolved))
    error: Tensor = torch.linalg.matrix_norm(inverse @ (fitted - exact) @ inverse.mT, 2)
    return error


def _require_smooth(problem: Problem, c: Tensor, exact: Tensor, fitted: Tensor) -> None:
    """Raises SolverError unless fitted forms (N, n, n) of the contexts c (N, k) agree with the exact ones."""
    error = float(misfit(problem, exact, fitted).max())
    if error > MISFIT:
        squares = problem.tangent_limits.cpu().double() ** 2
        costs = (exact.diagonal(dim1=1, dim2=2) * squares).sum(1)
        most = int(costs.argmax())
        text = f"a polynomial misses it by {100 * error:.2g} %. "
        text += f"An error costs {costs[most] / costs.median():.2g} times as much as usual"
        raise _refusal(problem, c[most], text)


def _refusal(problem: Problem, c: Tensor, found: str) -> SolverError:
    """The error of a fit of P(c) that fails at a context c (k,); found: what was seen there."""
    assert problem.context is not None
    names = problem.context.names
    values = problem.context.theta(c[None].float().to(problem.device))[0, problem.context.columns].tolist()
    place = ", ".join(f"{name} = {value:.3g}" for name, value in zip(names, values, strict=True))
    return SolverError(
        f"the value near the target changes too fast with {', '.join(names)}: {found} with {place}. It grows without "
        f"bound where the inputs lose control of a motion. Give smaller ranges there: --given "
        f"{names[int(c.abs().argmax())]}=LOWER:UPPER"
    )


def _start_cost(problem: Problem, basin: Basin | BasinFamily) -> float:
    """Estimate of the cost of the task from its starts: the Riccati equation's, or the trim's if that is less."""
    x = sample_starts(problem, STARTS, SEED)
    idle = -rollouts(problem, without_input(problem), x).returns
    return float(torch.minimum(basin.at(x).distance(problem.split(x)[0]), idle).mean())


def shell(problem: Problem, family: Basin | BasinFamily, size: int) -> Tensor:
    """Rows (size, n + k) on the boundary of a basin. States without cost are drawn up to their limits."""
    generator = torch.Generator(device=problem.target.device).manual_seed(SEED)
    away = torch.randn(size, problem.geometry.size, generator=generator, device=problem.target.device)
    rows = problem.sample_targets(size, generator)
    basin = family.at(rows)
    e = times(away, _inverse_root(problem, basin))
    e = e * (column(basin.level) / (times(e, basin.cost) * e).sum(1, keepdim=True)).sqrt()
    return problem.join(problem.geometry.moved(problem.targets(rows), e), rows)


def column(level: float | Tensor) -> float | Tensor:
    """The level, as (N, 1) if there are N of them."""
    return level[:, None] if isinstance(level, Tensor) else level


def _inverse_root(problem: Problem, basin: Basin) -> Tensor:
    """S (nt, nt) or (N, nt, nt) with S^T (P + level/limits^2) S = 1."""
    limits, level = problem.tangent_limits.double(), basin.level
    level = level[:, None, None] if isinstance(level, Tensor) else level
    scaled = basin.cost.double() * limits * limits[:, None] + level * torch.eye(len(limits)).to(limits)
    values, vectors = torch.linalg.eigh(scaled)
    least = 1e-12 * values.amax(-1, keepdim=True)
    root: Tensor = ((vectors * values.clamp_min(least).rsqrt()[..., None, :]) @ vectors.mT * limits).float()
    return root


def _arrives(
    problem: Problem,
    family: Basin | BasinFamily,
    seconds: float,
    hold: Hold,
    negligible: float,
) -> bool:
    """Whether the policy of the quadratic form brings the robot from the basin's boundary to the target.

    A rollout must reach no limit of a state that is not fast, and cost no more, and in the end no less, than COST_ERROR
    and `negligible` allow: a cost that is steep near the target only is less than its curvature there says. What is
    left when all have arrived costs what the quadratic form says.
    """
    rows = shell(problem, family, SAMPLES)
    if bool(problem.braked(problem.split(rows)[0]).any()):
        return False
    rows = problem.join(problem.confine(problem.split(rows)[0]), rows)
    basin = family.at(rows)
    cost = basin.distance(problem.split(rows)[0]).clamp_max(basin.level)
    allowed = (COST_ERROR * cost).clamp_min(negligible)

    def value(at: Tensor) -> tuple[Tensor, Tensor]:
        return basin.quadratic(problem.split(at)[0])[:2]

    act, paid, periods = controller(problem, value, hold), torch.zeros_like(cost), round(seconds / problem.control_step)
    for part in np.diff(np.linspace(0, periods, min(PARTS, periods) + 1).round()):
        result = rollouts(problem, act, rows, seconds=float(part) * problem.control_step, leaning=False)
        rows, paid = result.x[-1], paid - result.returns
        left = basin.distance(problem.split(rows)[0])
        if bool((paid >= cost + allowed).any() | (result.at_limit & ~problem.fast).any()):
            return False
        if bool((left < ARRIVED * basin.level).all()):
            return bool(((paid + left - cost).abs() < allowed).all())
    return False


def near_target(problem: Problem, family: Basin | BasinFamily, size: int, generator: torch.Generator) -> Tensor:
    """Rows (size, n + k) around the target in the metric of P, within the limits.

    The logarithm of their level is uniform, from a tenth of the basin's level to 300 times the basin's level. Both ends
    are a tenth of this where the basin is empty.
    """
    device = generator.device
    rows = problem.sample_targets(size, generator)
    basin = family.at(rows)
    limits, cost = problem.tangent_limits.double(), basin.cost.double()
    values, vectors = torch.linalg.eigh(cost * limits * limits[:, None])
    exponent = torch.rand(size, 1, generator=generator, device=device)
    nearest = NEAREST * INNER if family.empty else NEAREST
    level = column(basin.scale) * nearest * SPREAD**exponent
    away = torch.randn(size, len(limits), generator=generator, device=device)
    away = away / torch.linalg.vector_norm(away, dim=1, keepdim=True)
    axes = (values.clamp_min(0.0) / level.double() + 1.0).rsqrt()  # half axes, as shares of the limits
    e = times((away * axes).float(), vectors.mT.float()) * problem.tangent_limits
    return problem.join(problem.confine(problem.geometry.moved(problem.targets(rows), e)), rows)
