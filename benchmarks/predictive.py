"""A predictive controller on the same model and the same V: what looking ahead in every control period is worth.

python benchmarks/predictive.py cartpole-rfvi --episodes 299
python benchmarks/predictive.py pendulum-rfvi --nodes 32 --hold 8 --terminal none --set mass=1.3x

CasADi plans with the artifact's own functions: --nodes inputs, each held for --hold control periods, by direct multiple
shooting over the Runge-Kutta method of the evaluation. The terminal cost is -V of the run, with the run's discount, or
none, without a discount. IPOPT or fatrop solves the plan anew in every control period, from the plan before, which
moves on when an input's hold has ended. Where it finds none, the plan before goes on. The first plan of a rollout is
the best of --guesses: no input, and random sine waves of full input. The plan has the nominal parameters; --set changes
those of the plant. The functions of the program are compiled by the C compiler `gcc`, for this processor.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import casadi
import numpy as np
import torch
from machine import gemm_gflops_fp32
from numpy.typing import NDArray
from torch import Tensor

from modelgen.loader import load
from solver.certification.experiment import failure_bound
from solver.commands.changes import read_changes
from solver.oracles.trajectory import NonlinearProgram
from solver.plants.outcome import Rollouts, rollouts, sample_starts, summary
from solver.plants.plant import Nominal
from solver.problem.parameters import changed_parameters
from solver.training.solution import Solution, load_solution
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor

Array = NDArray[np.float64]
CONFIDENCE = 0.95
OPTIONS: dict[str, Any] = {
    "print_time": False,
    "error_on_fail": False,
    "jit": True,
    "compiler": "shell",
    "jit_options": {"flags": ["-O2", "-march=native"]},
}

SOLVERS: dict[str, dict[str, Any]] = {
    "ipopt": {
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "ipopt.tol": 1e-4,
        "ipopt.max_iter": 40,
        "ipopt.mu_init": 1e-3,
        "ipopt.warm_start_init_point": "yes",
    },
    "fatrop": {
        "structure_detection": "auto",
        "fatrop.print_level": 0,
        "fatrop.tol": 1e-4,
        "fatrop.max_iter": 40,
        "fatrop.mu_init": 1e-3,
    },
}


def value_function(ensemble: Ensemble) -> Any:
    """-V as a casadi.Function of a column x (n,), the formula of `solver.value.network`."""
    features, basin = ensemble.features, ensemble.basin
    x = casadi.MX.sym("x", len(basin.target))
    angle, others = (x[indices.tolist()] for indices in (features.angles, features.others))
    z = casadi.vertcat(casadi.sin(angle), casadi.cos(angle), casadi.DM(features.scale.numpy()) * others)
    straight = casadi.DM(features.metric.double().numpy().T) @ (z - casadi.DM(features.at_target.double().numpy()))
    error = straight / casadi.sqrt(1.0 + float(features.bend) * casadi.sumsqr(straight))
    networks = sum(_member(member, z, error) for member in ensemble.factors) / len(ensemble.factors)
    away = x - casadi.DM(basin.target.double().numpy())
    turns = casadi.DM(basin.continuous.double().numpy()) * casadi.floor(away / (2.0 * np.pi) + 0.5)
    away = away - 2.0 * np.pi * turns
    quadratic = casadi.bilin(casadi.DM(basin.cost.double().numpy()), away, away)
    cost = casadi.if_else(quadratic < float(basin.level), quadratic, networks)
    return casadi.Function("cost_to_go", [x], [cost])


def _member(member: Factor, z: Any, error: Any) -> Any:
    """|L' e|^2 of one member."""
    layers = [
        (casadi.DM(weight.detach().double().numpy().T), casadi.DM(bias.detach().double().numpy()))
        for weight, bias in zip(member.weights, member.biases, strict=True)
    ]
    h = z
    for weight, bias in layers[:-1]:
        h = casadi.tanh(weight @ h + bias)
    entries = layers[-1][0] @ h + layers[-1][1]
    positive = casadi.log1p(casadi.exp(-casadi.fabs(entries))) + casadi.fmax(entries, 0.0) + DIAGONAL_FLOOR
    diagonal = casadi.DM(member.diagonal.double().numpy())
    entries = diagonal * positive + (1.0 - diagonal) * entries
    y = casadi.DM(member.column_sum.double().numpy().T) @ (entries * error[member.rows.tolist()])
    return casadi.sumsqr(y)


class Predictive:
    """A controller x (N, n) -> u (N, m) and its cost (N,), with a plan for every row from call to call."""

    def __init__(self, solution: Solution, nodes: int, hold: int, terminal: str, solver: str, guesses: int) -> None:
        self.problem, self.nodes, self.hold = solution.problem, nodes, hold
        program = NonlinearProgram(load(solution.run.robot, backend="casadi"))
        self.x_limit, self.u_limit, self.u_middle = program.state_limits, program.input_limits, program.input_middle
        self.bound, self.wraps = np.where(program.clipped, 1.0, np.inf), program.wraps
        self.guesses, self.random = guesses, np.random.default_rng(0)
        self.cost_to_go = value_function(solution.ensemble)
        self.solver = self._solver(program, terminal == "value", solver)
        self.plans: dict[int, Array] = {}
        self.calls: dict[int, int] = {}
        self.seconds: list[float] = []
        self.unsolved = 0

    def _solver(self, program: NonlinearProgram, valued: bool, solver: str) -> Any:
        """Solver of the columns (u_k/limit, x_{k+1}/limit), with the present state as its parameter."""
        n, m = len(self.x_limit), len(self.u_limit)
        w, start = casadi.MX.sym("w", (n + m) * self.nodes), casadi.MX.sym("start", n)
        columns = casadi.reshape(w, n + m, self.nodes)
        discount = self.problem.discount if valued else lambda _: 1.0
        x, u = casadi.MX.sym("x", n), casadi.MX.sym("u", m)
        later, cost = casadi.DM(self.x_limit) * x, 0.0
        for period in range(self.hold):
            later, part, *_ = program.step(later, casadi.DM(self.u_middle) + casadi.DM(self.u_limit) * u)
            cost += discount(period) * part
        held = casadi.Function("held", [x, u], [later / self.x_limit, cost])
        self.simulated = casadi.Function("next", [x, u], [later / self.x_limit]).mapaccum(self.nodes)
        before = casadi.horzcat(start / self.x_limit, columns[m:, :-1])
        after, costs = held.map(self.nodes)(before, columns[:m, :])
        total = costs @ casadi.DM([discount(k * self.hold) for k in range(self.nodes)])
        if valued:
            total += discount(self.nodes * self.hold) * self.cost_to_go(casadi.DM(self.x_limit) * columns[m:, -1])
        plan = {"x": w, "p": start, "f": total, "g": casadi.vec(columns[m:, :] - after)}
        options = OPTIONS | SOLVERS[solver]
        if solver == "fatrop":
            options["equality"] = [True] * (n * self.nodes)
        return casadi.nlpsol("predictive", solver, plan, options)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The first input of every row's plan; one row is solved after the other, and timed."""
        u = torch.tensor(np.array([self._plan(row, start) for row, start in enumerate(x.double().numpy())]))
        u = self.problem.input_of(u.to(x))
        return u, self.problem.action_cost.cost(u)

    def _plan(self, row: int, start: Array) -> Array:
        """The first input/limit (m,) of the plan of a row."""
        m = len(self.u_limit)
        calls = self.calls[row] = self.calls.get(row, -1) + 1
        if calls == 0:
            return self._first(row, start)[:m]
        guess = self.plans[row]
        if calls % self.hold == 0:
            size = len(guess) // self.nodes
            guess = np.concatenate([guess[size:], guess[-size:]])
        turns = np.round((guess[m : m + len(start)] * self.x_limit - start) / (2.0 * np.pi))
        found = self._solved(start + 2.0 * np.pi * turns * self.wraps, guess)  # the plan's angles do not wrap
        self.unsolved += found is None
        self.plans[row] = guess if found is None else found[1]
        return self.plans[row][:m]

    def _first(self, row: int, start: Array) -> Array:
        """The best plan (n + m) * nodes from the guesses; without any, the guess of no input."""
        waves = self.random.uniform([0.2, 0.0], [2.0, 2.0 * np.pi], (self.guesses - 1, len(self.u_limit), 1, 2))
        t = np.arange(self.nodes) * self.hold * self.problem.control_step
        shares = [np.zeros((len(self.u_limit), self.nodes))]
        shares += [np.sin(2.0 * np.pi * wave[..., 0] * t + wave[..., 1]) for wave in waves]
        plans = [np.vstack([u, np.asarray(self.simulated(start / self.x_limit, u))]).T.ravel() for u in shares]
        found = [plan for guess in plans if (plan := self._solved(start, guess)) is not None]
        self.plans[row] = min(found, key=lambda plan: plan[0])[1] if found else plans[0]
        return self.plans[row]

    def _solved(self, start: Array, guess: Array) -> tuple[float, Array] | None:
        """Cost and plan from a guess, or None; timed."""
        upper = np.tile(np.concatenate([np.ones(len(self.u_limit)), self.bound]), self.nodes)
        begun = time.process_time()  # another job may have the processor
        found = self.solver(x0=guess, p=start, lbx=-upper, ubx=upper, lbg=0.0, ubg=0.0)
        self.seconds.append(time.process_time() - begun)
        return (float(found["f"]), np.asarray(found["x"]).ravel()) if self.solver.stats()["success"] else None


def main() -> None:
    """Parse, roll out, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=299)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--hold", type=int, default=2, help="control periods that a planned input is held")
    parser.add_argument("--terminal", choices=["value", "none"], default="value", help="terminal cost of a plan")
    parser.add_argument("--solver", choices=sorted(SOLVERS), default="ipopt")
    parser.add_argument("--guesses", type=int, default=16, help="guesses of the first plan of a rollout")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="changed parameters of the plant")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    solution = load_solution(options.run)
    plant = Nominal(solution.problem, changed_parameters(solution.problem, read_changes(options.set)))
    act = Predictive(solution, options.nodes, options.hold, options.terminal, options.solver, options.guesses)
    starts = sample_starts(solution.problem, options.episodes, options.seed)
    report: dict[str, Any] = {**vars(options)}
    again = np.array(act.cost_to_go.map(len(starts))(starts.double().numpy().T)).ravel()
    report["value_error"] = float(np.abs(again + solution.value(starts)[0].double().numpy()).max())
    report |= _outcome(_played(solution, act, starts, plant))
    milliseconds = 1e3 * np.array(act.seconds)
    report |= {"ms_of_a_period": float(np.median(milliseconds)), "ms_worst": float(milliseconds.max())}
    report["ms_99_percent"] = float(np.quantile(milliseconds, 0.99))
    report |= {"unsolved": act.unsolved / len(act.seconds), "gemm_gflops_fp32": gemm_gflops_fp32()}
    report["policy"] = _outcome(rollouts(solution.problem, solution.controller(), starts, plant))
    print(json.dumps(report, indent=1))


def _played(solution: Solution, act: Predictive, starts: Tensor, plant: Nominal) -> Rollouts:
    """The rollouts of the planner, one after the other; each is reported on stderr when it has ended."""
    played: list[Rollouts] = []
    for start in starts:
        act.plans.clear()
        act.calls.clear()
        played.append(one := rollouts(solution.problem, act, start[None], plant))
        failures = sum(not each.success.item() for each in played)
        print(f"{len(played)} played, {failures} failed, return {one.returns.item():.2f}", file=sys.stderr, flush=True)

    def joined(name: str, axis: int = 0) -> Tensor:
        return torch.cat([getattr(one, name) for one in played], axis)

    rewards = joined("state_reward"), joined("action_reward")
    return Rollouts(*rewards, joined("success"), joined("at_limit"), joined("x", 1), joined("u", 1))


def _outcome(result: Rollouts) -> dict[str, float]:
    episodes, failures = len(result.success), int((~result.success).sum())
    return {"failures": failures, "failure_bound": failure_bound(episodes, failures, CONFIDENCE), **summary(result)}


if __name__ == "__main__":
    main()
