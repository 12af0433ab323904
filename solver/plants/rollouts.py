"""Rollouts of a policy on a plant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from solver.cuda_graphs import Replayed
from solver.errors import SolverError
from solver.game.policies import make_policy
from solver.observer.observer import Observer
from solver.observer.unknown_delay import UnknownDelay, make_observer
from solver.plants.nominal import Nominal
from solver.plants.outcome import Rollouts, succeeded
from solver.plants.plant import Plant
from solver.problem.problem import Problem
from solver.value.frozen import ValueFunction

MOST_EPISODES = 100_000  # at once, because states and inputs of all periods are stored

Controller = Callable[[Tensor], tuple[Tensor, Tensor]]  # from rows (N, n + k) to u (N, m) and its action cost (N,)


def controller(problem: Problem, value: ValueFunction, reaction_periods: float = 0.0) -> Controller:
    """Controller from the policy of a value function. reaction_periods: see `solver.game.policies.make_policy`."""
    policy = make_policy(problem, value, reaction_periods)

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
) -> Rollouts:
    """Rollouts of a controller from the rows x (N, n + k). Its input is held for one control period at a time.

    The controller is told the contexts of the rows in every period, but the observer's estimates, held within the
    ranges, of the parameters that it estimates. plant: by default the robot that they describe.
    seconds: by default the task's horizon. observed: the controller gets the estimates of an observer instead of the
    plant's measured states. longest_delay: in control periods; if given, the observer does not know the plant's delay
    and estimates it up to this one. estimate: names of parameters that the observer estimates too, or `all`. jumps: of
    the references in `plant.theta` (N, p), which is changed; they also give the time. A success reaches every target.

    The state reward is computed from the true states. The action reward is computed from the inputs of the controller,
    even if the plant delays or limits them.
    """
    task = problem.robot.metadata.task
    rows, (x, theta) = x, problem.split(x)
    told = rows
    plant = plant or Nominal(problem, theta)
    simulation = plant.begin(x)
    sensing = plant.sensing
    observer, entries = None, sensing.entries
    if observed:
        observer = make_observer(problem, sensing, longest_delay, estimate)
        if theta is not None:
            known = theta.clone()
            known[:, observer.estimated] = problem.theta[observer.estimated]
            observer.know(known)
    steps = round((seconds or task.horizon) * task.control_rate)
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
            seen = measured if observer is None else observer.estimate(measured[:, :entries])
            if observer is not None and observer.parameters is not None:
                told = problem.told(seen, observer.parameters)
            u, cost = act(problem.join(seen, told))
            if observer is not None:
                u = observer.compensate(u)
                cost = problem.cost_at(rows).cost(u)
                observer.sent(u)
                innovation += observer.normalised_innovation.to(x.dtype) / (steps * entries)
            action_reward -= cost * problem.control_step
            state_reward -= simulation.step(u)
            states.append(problem.join(simulation.x, told))
            inputs.append(u)
    x = torch.stack(states)
    true = x[..., : len(problem.target)]
    at_limit = problem.at_limit(true[1:]).any(0)
    parts = [x] if jumps is None else torch.split(x[1:], jumps.periods)
    success = torch.stack([succeeded(problem, part) for part in parts]).all(0)
    result = Rollouts(x, torch.stack(inputs), state_reward, action_reward, success, at_limit)
    if observer is None:
        return result
    names, theta = problem.robot.parameter_names, observer.parameters
    estimates = {names[i]: theta[:, i] for i in observer.estimated} if theta is not None else {}
    return replace(result, estimates=estimates, innovation=innovation)


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
    if not 1 <= episodes <= MOST_EPISODES:
        raise SolverError(f"--episodes is {episodes}; give a number from 1 to {MOST_EPISODES}")
