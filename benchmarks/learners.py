"""Rivals that learn from transitions, on the pendulum: SAC of rltools, SAC with a history of observations, M2TD3.

    pip install rltools mkl mkl-include
    python benchmarks/learners.py rltools --seed 0
    python benchmarks/learners.py history --randomize 0.3 --seed 0
    python benchmarks/learners.py m2td3 --randomize 0.3 --seed 0
    python benchmarks/learners.py RUN

`rltools` is SAC in C++, compiled for the environment (BLAS of MKL), with its own settings but for the discount.
`history` is SAC of `solver baseline` whose networks see the last observations and actions: with --randomize a policy
may find out the parameters from them. `m2td3` plays against the worst mass within --randomize, by default
15 % (`m2td3.py`). RUN is a folder of `solver train pendulum`.

All learn with the starts, the hold, the largest input and the number of actions of `solver baseline`. They are judged
by 100 rollouts from the task's starts; an action is held as in training. The row has the processor seconds of learning,
simulation included and evaluations not, to 95 and 99 % of the way from the idle robot's return to the best return of
the run, and return and success of that policy with every mass. The best return is that of the nominal robot, of M2TD3
that of the worst mass. In a RUN they are seconds of one thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Unpack

import gymnasium
import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch import Tensor

from solver.gym.environment import EnvironmentOptions, RobotEnv, RobotVectorEnv
from solver.gym.stable_baselines import Environments
from solver.lab.baselines.lifecycle import usual_hold
from solver.lab.baselines.settings import BaselineSettings, baseline_settings
from solver.lab.baselines.stable_baselines import (
    TEMPERATURE,
    CompiledSAC,
    Scaled,
    discount,
    follow_schedules,
    renew_logger,
)
from solver.plants.episodes import feature_scales, features
from solver.plants.outcome import rollouts, sample_starts, summary, without_input
from solver.plants.plant import Nominal
from solver.problem import Problem
from solver.problem.parameters import Relative, changed_parameters
from solver.problem.robots import load_robot
from solver.streams import EVALUATION_SEED

ROBOT, ROLLOUTS = "pendulum", 100
MASSES = (0.7, 1.0, 1.3, 1.4, 1.5)
DEPTH = 5  # observations of a history
EXPLORATION = 0.3  # deviation of M2TD3's actions, as of DDPG in `solver baseline`
Array = NDArray[Any]
Act = Callable[[Array], Array]  # from observations (N, k) to actions (N, 1) in [-1, 1]
Progress = Iterator[tuple[float, Act]]  # processor seconds so far, and the policy


def begun(shown: Array, depth: int) -> Array:
    """History of robots that have been seen once: the observation (N, k) again and again, and actions of 0."""
    return np.concatenate([np.pad(shown, ((0, 0), (0, 1)))] * depth, 1)[:, :-1]


def later(past: Array, shown: Array, actions: Array) -> Array:
    """History, the newest first, after the actions (N, 1) led to the observations (N, k)."""
    return np.concatenate([shown, actions, past], 1)[:, : past.shape[1]].astype(np.float32)


class History(RobotVectorEnv):
    """Robots of which the last `depth` observations are seen, with the actions between them."""

    def __init__(self, depth: int, num_envs: int, **options: Unpack[EnvironmentOptions]) -> None:
        super().__init__(ROBOT, num_envs, **options)
        self.depth, self.past = depth, np.zeros((num_envs, 0), np.float32)
        most = np.ones(depth * (1 + len(features(self.problem, self.problem.target[None])[0])) - 1, np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-most, most)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        shown, told = super().reset(**options)
        self.past = begun(shown, self.depth)
        return self.past, told

    def step(self, actions: Array) -> Any:
        shown, reward, terminated, ended, infos = super().step(actions)
        before, self.past = self.past, later(self.past, shown, actions)
        for row in np.flatnonzero(ended):
            infos["final_obs"][row] = later(before[[row]], infos["final_obs"][row][None], actions[[row]])[0]
            self.past[row] = begun(shown[[row]], self.depth)[0]
        return self.past, reward, terminated, ended, infos


def usual_options(s: BaselineSettings, robots: RobotVectorEnv, scale: list[float]) -> dict[str, Any]:
    """Options of an algorithm of Stable-Baselines3 as in `solver baseline`. scale: of the observations."""
    return {
        "env": Environments(robots, s.input_share),
        "learning_rate": s.learning_rate,
        "batch_size": s.minibatch,
        "gamma": discount(s, robots.episodes.seconds),
        "seed": s.seed,
        "device": "cpu",
        "buffer_size": s.steps,
        "learning_starts": s.environments * robots.episodes.length,
        "train_freq": 1,
        "gradient_steps": max(1, s.environments // 2),
        "tau": 0.01,
        "policy_kwargs": {
            "net_arch": [s.width] * s.layers,
            "features_extractor_class": Scaled,
            "features_extractor_kwargs": {"scale": scale},
        },
    }


def history(s: BaselineSettings, hold: int) -> Progress:
    """SAC of `solver baseline` with histories."""
    share = s.randomize_share if s.randomize else 0.0
    robots = History(DEPTH, s.environments, start=s.start, target_share=s.target_share, randomize=share, hold=hold)
    scale = [*feature_scales(robots.problem, s.position_scale, s.rate_scale), s.input_share]
    usual = usual_options(s, robots, (scale * DEPTH)[:-1])
    model = CompiledSAC("MlpPolicy", **usual, ent_coef=f"auto_{TEMPERATURE}", target_entropy=s.entropy)
    model.loss_scale = s.loss_scale
    for spent in learned_by(model, s, robots.episodes.seconds):
        yield spent, lambda seen: model.predict(seen, deterministic=True)[0]


def m2td3(s: BaselineSettings, hold: int) -> Progress:
    """M2TD3 against the masses within `s.randomize_share`, with networks, buffer and schedules of `solver baseline`."""
    from m2td3 import M2TD3, Hostile, Policy

    box = {"mass": tuple(Relative(1.0 + sign * s.randomize_share) for sign in (-1.0, 1.0))}
    robots = Hostile(ROBOT, s.environments, start=s.start, target_share=s.target_share, hold=hold, given=box)
    scale, seconds = feature_scales(robots.problem, s.position_scale, s.rate_scale), robots.episodes.seconds
    usual = usual_options(s, robots, [*scale, 1.0])
    usual["policy_kwargs"]["told"] = 1
    noise = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, EXPLORATION), theta=2.0, dt=seconds)
    model = M2TD3(Policy, **usual, action_noise=noise)
    robots.adversary = model
    for spent in learned_by(model, s, seconds):
        yield spent, lambda seen: model.predict(np.pad(seen, ((0, 0), (0, 1))), deterministic=True)[0]


def learned_by(model: OffPolicyAlgorithm, s: BaselineSettings, seconds: float) -> Iterator[float]:
    """Processor seconds so far of a model of Stable-Baselines3, whose action takes `seconds`, at every evaluation."""
    spent = 0.0
    while model.num_timesteps < s.steps:
        begin = time.process_time()
        renew_logger(model)
        follow_schedules(model, s, seconds)
        model.learn(min(s.evaluate_every, s.steps - model.num_timesteps), log_interval=2**62, reset_num_timesteps=False)
        spent += time.process_time() - begin
        yield spent


class Smaller(RobotEnv):
    """Robot whose input has `share` of its limit at an action of 1. `spec` tells rltools the length of an episode."""

    def __init__(self, share: float, **options: Unpack[EnvironmentOptions]) -> None:
        super().__init__(ROBOT, **options)
        self.share, self.spec = share, EnvSpec(f"{ROBOT}-v0", max_episode_steps=self.episodes.length)

    def step(self, action: Array) -> Any:
        return super().step(self.share * action)


def rltools(s: BaselineSettings, hold: int) -> Progress:
    """SAC of rltools."""
    os.environ["RL_TOOLS_IGNORE_TORCH_WARNING"] = "1"  # two libraries of threads in one process; both have one thread
    from rltools import SAC

    share = s.randomize_share if s.randomize else 0.0
    options: EnvironmentOptions = {"start": s.start, "target_share": s.target_share, "randomize": share, "hold": hold}
    seconds, count = RobotEnv(ROBOT, **options).episodes.seconds, itertools.count(1000 * s.seed)

    def environment() -> Smaller:
        made = Smaller(s.input_share, **options)
        made.reset(seed=next(count))
        return made

    module = SAC(environment, STEP_LIMIT=s.steps, GAMMA=discount(s, seconds), enable_evaluation=False)
    state, spent = module.State(s.seed), 0.0
    for _ in range(s.steps // s.evaluate_every):
        begin = time.process_time()
        for _ in range(s.evaluate_every):
            state.step()
        spent += time.process_time() - begin
        yield spent, lambda seen: np.stack([state.action(row) for row in seen])


class Held:
    """Controller of one batch of rollouts that holds an action and remembers `depth` observations."""

    def __init__(self, problem: Problem, act: Act, share: float, hold: int, depth: int) -> None:
        self.problem, self.act, self.share, self.hold, self.depth = problem, act, share, hold, depth
        self.period, self.past, self.actions, self.u = 0, np.zeros((0, 0)), np.zeros((0, 1)), torch.zeros(0, 1)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.period % self.hold == 0:
            shown = features(self.problem, x).numpy()
            self.past = later(self.past, shown, self.actions) if self.period else begun(shown, self.depth)
            self.actions = self.share * self.act(self.past)  # a history has shares of the input's limit, as in training
            self.u = self.problem.input_of(torch.from_numpy(self.actions))
        self.period += 1
        return self.u, self.problem.action_cost.cost(self.u)


def learned(
    problem: Problem, progress: Progress, share: float, hold: int, depth: int, robust: bool = False
) -> dict[str, Any]:
    """Row of a rival: see the module's text. robust: whether the worst mass counts."""
    starts = sample_starts(problem, ROLLOUTS, EVALUATION_SEED)
    rows: list[tuple[float, float]] = []
    masses: dict[str, Any] = {}

    def judged(act: Act, factor: float) -> tuple[float, float]:
        plant = Nominal(problem, changed_parameters(problem, {"mass": Relative(factor)}))
        found = summary(rollouts(problem, Held(problem, act, share, hold, depth), starts, plant))
        return found["return_mean"], found["success_rate"]

    for seconds, act in progress:
        found, success = min(judged(act, factor) for factor in (MASSES if robust else (1.0,)))
        if not rows or found > max(rows)[0]:
            masses = {f"x{factor:g}": judged(act, factor) for factor in MASSES}
        rows.append((found, seconds))
        print(f"{seconds:8.1f} s  return {found:.2f}  success {success:.0%}", flush=True)
    return reached(problem, rows) | {"masses": masses}


def trained(problem: Problem, folder: Path) -> dict[str, Any]:
    """The same columns of a run of `solver train`."""
    rows, seconds = list[tuple[float, float]](), 0.0
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        seconds += row["seconds_targets"] + row["seconds_fit"]
        if "return_mean" in row:
            rows.append((row["return_mean"], seconds))
    return reached(problem, rows)


def reached(problem: Problem, rows: list[tuple[float, float]]) -> dict[str, Any]:
    """Seconds to 95 and 99 % of the best return (None if the idle robot has a better one), and in all.

    rows: return and seconds of every evaluation.
    """
    starts = sample_starts(problem, ROLLOUTS, EVALUATION_SEED)
    idle, best = float(rollouts(problem, without_input(problem), starts).returns.mean()), max(rows)[0]
    found = {
        f"seconds_to_{share}": next((seconds for r, seconds in rows if r >= idle + 0.01 * share * (best - idle)), None)
        for share in (95, 99)
    }
    return found | {"seconds": rows[-1][1], "return": best, "last_return": rows[-1][0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("learner", help="rltools, history, m2td3, or the folder of a run of `solver train pendulum`")
    parser.add_argument("--actions", type=int, default=200_000, help="of a rival")
    parser.add_argument("--every", type=int, default=10_000, help="actions between two evaluations")
    parser.add_argument("--randomize", type=float, metavar="SHARE", help="every episode has other parameters")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    problem = Problem(robot := load_robot(ROBOT, "cpu", None))
    rivals: dict[str, tuple[Callable[[BaselineSettings, int], Progress], int]] = {
        "rltools": (rltools, 1),
        "history": (history, DEPTH),
        "m2td3": (m2td3, 1),
    }
    if options.learner not in rivals:
        print(json.dumps(trained(problem, Path(options.learner))))
        return
    changes = {} if options.randomize is None else {"randomize": True, "randomize_share": options.randomize}
    settings = baseline_settings(
        "sac", steps=options.actions, evaluate_every=options.every, seed=options.seed, **changes
    )
    (learner, depth), hold = rivals[options.learner], usual_hold(robot)
    row = learned(problem, learner(settings, hold), settings.input_share, hold, depth, learner is m2td3)
    print(json.dumps({"learner": options.learner, "seed": options.seed, "randomize": options.randomize} | row))


if __name__ == "__main__":
    main()
