"""Rollouts of a policy on a plant, and their outcome: the success rule, and statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game.policies import CLOSED_FORM, Hold
from solver.observer import Observer, Sensing
from solver.observer.observability import UnknownDelay, make_observer
from solver.observer.rest import rest_apart
from solver.parallel import Replayed
from solver.plants.plant import Nominal, Plant
from solver.problem import Problem
from solver.problem.geometry import conjugate, product
from solver.problem.parameters import is_whole
from solver.value.frozen import ValueFunction

SETTLED = 0.5  # s, end of a rollout in which a success stays at the target,
SETTLED_SHARE = 0.2  # or this share of the task's horizon if that is shorter
ANGLE, RATE = math.radians(5.0), 0.5  # rad and rad/s, tolerances of an angle and of its rate,
SHARE = 0.05  # or this share of the limit if that is larger


@dataclass(frozen=True)
class Outcome:
    """What N rollouts were paid, and where they came to."""

    state_reward: Tensor  # (N,) minus the undiscounted state cost
    action_reward: Tensor  # (N,) minus the undiscounted action cost
    success: Tensor  # (N,) bool
    at_limit: Tensor  # (N, n) bool, True for states that were at their limit at any time

    @property
    def returns(self) -> Tensor:
        """Returns (N,): undiscounted sums of the reward."""
        return self.state_reward + self.action_reward


@dataclass(frozen=True)
class Rollouts(Outcome):
    """N rollouts of T control periods."""

    x: Tensor  # (T + 1, N, n + k) true states, with the contexts that the policy was told
    u: Tensor  # (T, N, m) inputs of the policy
    estimates: Mapping[str, Tensor] = field(default_factory=dict)  # (N,) the observer's last, by parameter
    innovation: Tensor | None = None  # (N,) the observer's mean normalised innovation for each measured number


@dataclass(frozen=True)
class Ended(Outcome):
    """N rollouts, each of which ended when its robot had come to rest at the target, or at the horizon.

    The rewards are those of the whole horizon, see `until_rest`.
    """

    discounted: Tensor  # (N,) reward to the end, discounted
    end: Tensor  # (N, n + k) last states
    seconds: Tensor  # (N,) their times

    def part(self, rows: slice) -> Ended:
        """Rollouts of a slice of the starts."""
        return replace(self, **{entry.name: getattr(self, entry.name)[rows] for entry in fields(self)})


def succeeded(problem: Problem, rows: Tensor, theta: Tensor | None = None) -> Tensor:
    """Mask (N,) of the successes among rollouts through the rows (K, N, n + k), one for every control period.

    A success has every coordinate, the angle of every rotation, and their rates within their tolerances of the target
    of its row during the last `settling_periods`, or during all of a shorter rollout, and no state at its limit. States
    that the task declares free may have any other value. theta: parameters (p,) or (N, p) of the robots; where no input
    holds one at the target, a success rests in the nearest pose in which it can.
    """
    rows = rows[-1 - settling_periods(problem) :]
    x, target = rows[..., : len(problem.target)], problem.targets(rows)
    inside = ~problem.at_limit(x).any(-1)
    if (apart := rest_apart(problem, theta)) is not None:
        x = torch.stack([problem.geometry.moved(at, -apart) for at in x])
    states, count = problem.robot.metadata.states, problem.robot.metadata.nq
    position, rate = tolerances(problem)
    error = (x - target)[..., :count].abs()
    way = torch.minimum(error, (2.0 * math.pi - error).abs())  # a state that leans may be a turn and more away
    turned = torch.where(problem.clipped[:count], error, way)
    for rotation in problem.robot.metadata.rotations:
        turn = product(conjugate(problem.target[rotation.quaternion]), x[..., rotation.quaternion])
        sine = torch.linalg.vector_norm(turn[..., 1:], dim=-1, keepdim=True)
        turned[..., rotation.quaternion] = 2.0 * torch.atan2(sine, turn[..., :1].abs())
    still = problem.rates(target.reshape(-1, len(states))).view(*target.shape[:-1], -1)
    speed = (problem.rates(x.reshape(-1, len(states))).view(*x.shape[:-1], -1) - still).abs()
    near = torch.cat([turned <= position, speed <= rate], -1)
    judged = states[: near.shape[-1]]
    restricted = [i for i, state in enumerate(judged) if state.name not in problem.robot.metadata.task.free]
    return (near[..., restricted].all(-1) & inside).all(0)


def settling_periods(problem: Problem) -> int:
    """Control periods for which a success stays at the target: the shorter of SETTLED seconds and SETTLED_SHARE of the
    task's horizon."""
    return round(min(SETTLED, SETTLED_SHARE * problem.robot.metadata.task.horizon) / problem.control_step)


def tolerances(problem: Problem) -> tuple[Tensor, Tensor]:
    """Tolerances (nq,) of the coordinates, and (nv,) of their rates, in a success.

    They are SHARE of the limits. For an angle, they are at least ANGLE and RATE. A continuous angle has no limit: its
    tolerance is ANGLE. Each entry of a quaternion has the tolerance of the angle of its rotation.
    """
    metadata, device = problem.robot.metadata, problem.target.device
    states, turning = metadata.states[: metadata.nq], metadata.turning
    angles = torch.tensor([state.unit == "rad" or i in turning for i, state in enumerate(states)], device=device)
    limits = torch.where(problem.clipped, problem.state_limits, 0.0)[: len(states)]
    for rotation in problem.limited:
        limits[rotation.quaternion] = rotation.limit
    position = torch.maximum(SHARE * limits, ANGLE * angles)
    turns = [unit == "rad" for _, unit, _ in problem.tangent.entries[: metadata.pose]]
    if metadata.uneven:
        turns = [state.unit == "rad/s" for state in metadata.states[metadata.velocities]]
    return position, torch.maximum(SHARE * problem.largest_rates, RATE * torch.tensor(turns, device=device))


def summary(result: Outcome) -> dict[str, float]:
    """Statistics of N rollouts, with the names of metrics.jsonl (docs/reference/run-folder.md)."""
    spread = 1.96 * result.returns.std() if len(result.returns) > 1 else torch.zeros(())
    return {
        "return_mean": float(result.returns.mean()),
        "return_spread": float(spread),
        "return_worst": float(result.returns.min()),
        "state_reward": float(result.state_reward.mean()),
        "action_reward": float(result.action_reward.mean()),
        "success_rate": float(result.success.float().mean()),
        "limit_rate": float(result.at_limit.any(1).float().mean()),
    }


def decimals(size: float, least: int = 2) -> int:
    """Number of decimals, at least `least`, that prints a return of this size with `least` + 1 significant digits."""
    return least if size == 0.0 or not math.isfinite(size) else max(least, least - math.floor(math.log10(abs(size))))


MOST_EPISODES = 100_000  # at once, because states and inputs of all periods are stored

Controller = Callable[[Tensor], tuple[Tensor, Tensor]]  # from rows (N, n + k) to u (N, m) and its action cost (N,)


def controller(problem: Problem, value: ValueFunction, hold: Hold = CLOSED_FORM) -> Controller:
    """Controller from the policy of a value function."""
    policy = hold.policy(problem, value)

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        return policy.respond(x, value(x)[1])[:2]

    return Replayed(act)


def without_input(problem: Problem) -> Controller:
    """Controller with the trim as its input."""

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        cost = problem.cost_at(x)
        u = cost.trim.expand(len(x), -1).contiguous()
        return u, cost.cost(u)

    return act


def sample_starts(problem: Problem, episodes: int, seed: int, contexts: Tensor | None = None) -> Tensor:
    """Starts (episodes, n + k) from the task's Gaussian distribution, confined to the state domain.

    contexts: (episodes, k), random by default.
    """
    generator = torch.Generator(device=problem.state_limits.device).manual_seed(seed)
    return problem.sample_starts(episodes, generator, contexts)


@dataclass(frozen=True)
class Jumps:
    """References that jump along rollouts: after every `periods` control periods, to the next of `contexts`."""

    periods: int
    contexts: Tensor  # (S, N, k); a rollout has S + 1 parts


@torch.no_grad()
def rollouts(
    problem: Problem,
    act: Controller,
    x: Tensor,
    plant: Plant | None = None,
    seconds: float | None = None,
    observed: bool = False,
    longest_delay: int | None = None,
    estimate: Sequence[str] = (),
    jumps: Jumps | None = None,
    leaning: bool = True,
    blind: bool = False,
) -> Rollouts:
    """Rollouts of a controller from the rows x (N, n + k). Its input is held for one control period at a time.

    The controller is told the contexts of the rows in every period, but unless it is blind the observer's estimates,
    held within the ranges, of the parameters that it estimates. plant: by default the robot that they describe.
    seconds: by default the problem's horizon. observed: the controller gets the estimates of an observer instead of the
    plant's measured states. longest_delay: in control periods; if given, the observer does not know the plant's delay
    and estimates it up to this one. estimate: names of parameters that the observer estimates too, or `all`. jumps: of
    the references in `plant.theta` (N, p), which is changed; they also give the time. A success reaches every target,
    or, if leaning, the nearest pose in which a robot can rest that no input holds there.

    The state reward is computed from the true states. The action reward is computed from the inputs of the controller,
    even if the plant delays or limits them.
    """
    rows = told = x
    x, theta = problem.split(rows)
    plant = plant or Nominal(problem, theta)
    simulation, sensing = plant.begin(x), plant.sensing
    observer = _observer(problem, sensing, theta, longest_delay, estimate) if observed else None
    steps = round((seconds or problem.horizon) * problem.robot.metadata.task.control_rate)
    if jumps is not None:
        steps = (len(jumps.contexts) + 1) * jumps.periods
    states, inputs = [rows], []
    state_reward, action_reward, innovation = (torch.zeros_like(x[:, 0]) for _ in range(3))
    with torch.inference_mode():  # saves a sixth of the time; the returned tensors are made after it
        for period in range(steps):
            if jumps is not None and period and period % jumps.periods == 0:
                rows = torch.cat([rows[:, : x.shape[1]], jumps.contexts[period // jumps.periods - 1]], 1)
                told = _jumped(problem, rows, plant, observer)
            measured = simulation.measured
            seen = measured if observer is None else observer.estimate(measured[:, : sensing.entries])
            if observer is not None and observer.parameters is not None:
                told = told if blind else problem.told(seen, observer.parameters)
                seen = observer.upright(seen)
            u, cost = act(problem.join(seen, told))
            if observer is not None:
                u = observer.compensate(u)
                cost = problem.cost_at(rows).cost(u)
                observer.sent(u)
                innovation += observer.normalised_innovation.to(x.dtype) / (steps * len(sensing.deviation))
            action_reward -= cost * problem.control_step
            state_reward -= simulation.step(u)
            states.append(problem.join(simulation.x, told))
            inputs.append(u)
    x = torch.stack(states)
    at_limit = problem.at_limit(x[1:, :, : len(problem.target)]).any(0)
    parts = [x] if jumps is None else torch.split(x[1:], jumps.periods)
    success = torch.stack([succeeded(problem, part, plant.theta if leaning else None) for part in parts]).all(0)
    result = Rollouts(state_reward, action_reward, success, at_limit, x, torch.stack(inputs))
    if observer is None:
        return result
    names, theta = problem.robot.parameter_names, observer.parameters
    estimates = {names[i]: theta[:, i] for i in observer.estimated} if theta is not None else {}
    return replace(result, estimates=estimates, innovation=innovation)


def _observer(
    problem: Problem, sensing: Sensing, theta: Tensor | None, longest_delay: int | None, estimate: Sequence[str]
) -> Observer | UnknownDelay:
    """Observer of robots with the parameters theta (N, p), of which it knows all but those that it estimates."""
    observer = make_observer(problem, sensing, longest_delay, estimate)
    if theta is not None:
        known = theta.clone()
        known[:, observer.estimated] = problem.theta[observer.estimated]
        observer.know(known)
    return observer


SMALLEST_FALL = 1e-4  # of a term of a series to the next one
RESTS = 2  # parts of the time for which a success stays at the target


@torch.no_grad()
def until_rest(problem: Problem, act: Controller, rows: Tensor, theta: Tensor | None = None) -> Ended:
    """Rollouts of the nominal plant with theta (N, p) from the rows (N, n + k), each until it rests.

    A robot rests when it has fulfilled the rule of success for the time that the rule asks for, and would go on to
    fulfil it if it drifted as it does until the horizon. Most of a horizon belongs to robots at rest, and tells nothing
    new: what is left of it is paid as a geometric series, whose ratio is that of the last two parts, at most 1. Rest is
    rest at the target: no observer tells the controller to lean.
    """
    periods, rate = round(problem.horizon / problem.control_step), 1.0 / problem.control_step
    part = max(1, math.ceil(settling_periods(problem) / RESTS))
    paid, last = rows.new_zeros(len(rows), 2), rows.new_zeros(len(rows), 2)  # state and action reward; in the last part
    discounted, seconds, end = torch.zeros_like(paid[:, 0]), torch.zeros_like(paid[:, 0]), rows.clone()
    rested = torch.zeros(len(rows), dtype=torch.long, device=rows.device)  # parts
    at_limit = torch.zeros_like(rows[:, : len(problem.target)], dtype=torch.bool)
    active, done = torch.arange(len(rows), device=rows.device), 0
    steps = Nominal(problem, theta).steps
    while len(active) and done < periods:
        length = part + (periods % part if done == 0 else 0)
        of_active = None if theta is None else theta.expand(len(rows), -1)[active]
        plant = Nominal(problem, of_active, steps)
        run = rollouts(problem, act, end[active], plant, seconds=length / rate, leaning=False)
        reward = torch.stack([run.state_reward, run.action_reward], 1)
        paid[active] += reward
        discounted[active] += problem.discount(done) * _discounted(problem, run)
        done += length
        end[active], seconds[active] = run.x[-1], done / rate
        at_limit[active] |= run.at_limit
        stays = run.success & _stays(problem, run.x, (periods - done) / length)
        rested[active] = torch.where(stays, rested[active] + 1, 0)
        resting = rested[active] >= RESTS
        left = active[resting]
        reward *= part / length
        paid[left] += _series(last[left], reward[resting], (periods - done) / part)
        last[active] = reward
        active = active[~resting]
    return Ended(paid[:, 0], paid[:, 1], rested >= RESTS, at_limit, discounted, end, seconds)


def _stays(problem: Problem, rows: Tensor, parts: float) -> Tensor:
    """Mask (N,) of the robots at their targets after the change over the rows (K, N, n + k) came `parts` times more."""
    begin, end = rows[0, :, : len(problem.target)], rows[-1, :, : len(problem.target)]
    ahead = problem.geometry.moved(end, parts * problem.geometry.error(end, begin))
    return succeeded(problem, problem.join(ahead, rows[-1])[None])


def _discounted(problem: Problem, run: Rollouts) -> Tensor:
    """Discounted reward (N,) of rollouts. The state cost of a period is the cost at its beginning."""
    rows, u = run.x[:-1].flatten(0, 1), run.u.flatten(0, 1)
    cost = problem.state_cost(*problem.split(rows)) + problem.cost_at(rows).cost(u)
    elapsed = problem.control_step * torch.arange(len(run.u), device=u.device)
    weight = problem.control_step * torch.exp(-problem.discount_rate * elapsed)
    return -(weight[:, None] * cost.view(len(run.u), -1)).sum(0)


def _series(before: Tensor, now: Tensor, parts: float) -> Tensor:
    """Sum over the next `parts` terms of the geometric series with the terms `before` and `now`, whose ratio is held
    within 0 and 1."""
    ratio = (now / before).nan_to_num(0.0).clamp(0.0, 1.0 - SMALLEST_FALL)
    return now * ratio * (1.0 - ratio**parts) / (1.0 - ratio)


def _jumped(problem: Problem, rows: Tensor, plant: Plant, observer: Observer | UnknownDelay | None) -> Tensor:
    """The rows, after plant and observer have taken their references."""
    assert problem.context is not None
    assert plant.theta is not None
    columns = problem.context.columns[list(problem.context.references)].tolist()
    values = problem.context.theta(rows[:, len(problem.target) :])[:, columns]
    plant.theta[:, columns] = values
    if observer is not None:
        observer.tell(columns, values)
    return rows


def require_episodes(episodes: int) -> None:
    """Raises SolverError unless 1 <= episodes <= MOST_EPISODES."""
    if not is_whole(episodes) or not 1 <= episodes <= MOST_EPISODES:
        raise SolverError(f"--episodes is {episodes!r}; give a whole number from 1 to {MOST_EPISODES}")
