"""A predictive controller on the same model and the same V: what looking ahead in every control period is worth.

python benchmarks/predictive.py cartpole-rfvi --episodes 299 --json

CasADi plans with the artifact's own functions: --nodes inputs, each held for --hold control periods, by direct multiple
shooting over the Runge-Kutta method of the evaluation, with -V of the run as the terminal cost and its discount. IPOPT
solves the plan anew in every control period, from the plan before. Where it finds none, the plan before goes on. The
functions of the program are compiled by the C compiler `gcc`, for this processor: 2.5 times faster (20 s to build).
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
from solver.oracles.trajectory import NonlinearProgram
from solver.plants.outcome import Rollouts, rollouts, sample_starts, summary
from solver.training.solution import Solution, load_solution
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor

Array = NDArray[np.float64]
CONFIDENCE = 0.95
OPTIONS: dict[str, Any] = {
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "print_time": False,
    "ipopt.tol": 1e-4,
    "ipopt.max_iter": 40,
    "ipopt.mu_init": 1e-3,
    "ipopt.warm_start_init_point": "yes",
    "error_on_fail": False,
    "jit": True,
    "compiler": "shell",
    "jit_options": {"flags": ["-O2", "-march=native"]},
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

    def __init__(self, solution: Solution, nodes: int, hold: int) -> None:
        self.problem, self.nodes = solution.problem, nodes
        program = NonlinearProgram(load(solution.run.robot, backend="casadi"))
        self.x_limit, self.u_limit, self.u_middle = program.state_limits, program.input_limits, program.input_middle
        self.bound = np.where(program.clipped, 1.0, np.inf)
        self.cost_to_go = value_function(solution.ensemble)
        self.solver = self._solver(program, hold)
        self.plans: dict[int, Array] = {}
        self.seconds: list[float] = []
        self.unsolved = 0

    def _solver(self, program: NonlinearProgram, hold: int) -> Any:
        """IPOPT on the columns (u_k/limit, x_{k+1}/limit), with the present state as its parameter."""
        n, m = len(self.x_limit), len(self.u_limit)
        w, start = casadi.MX.sym("w", (n + m) * self.nodes), casadi.MX.sym("start", n)
        columns = casadi.reshape(w, n + m, self.nodes)
        x, total, gaps = start, 0.0, []
        for k in range(self.nodes):
            for period in range(hold):
                x, cost, *_ = program.step(x, casadi.DM(self.u_middle) + casadi.DM(self.u_limit) * columns[:m, k])
                total += self.problem.discount(k * hold + period) * cost
            planned = columns[m:, k]
            gaps.append(x / self.x_limit - planned)
            x = casadi.DM(self.x_limit) * planned
        total += self.problem.discount(self.nodes * hold) * self.cost_to_go(x)
        return casadi.nlpsol(
            "predictive", "ipopt", {"x": w, "p": start, "f": total, "g": casadi.vertcat(*gaps)}, OPTIONS
        )

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The first input of every row's plan; one row is solved after the other, and timed."""
        u = torch.tensor(np.array([self._plan(row, start) for row, start in enumerate(x.double().numpy())]))
        u = self.problem.input_of(u.to(x))
        return u, self.problem.action_cost.cost(u)

    def _plan(self, row: int, start: Array) -> Array:
        """The first input/limit (m,) of the plan of a row."""
        m = len(self.u_limit)
        idle = np.tile(np.concatenate([np.zeros(m), start / self.x_limit]), self.nodes)
        upper = np.tile(np.concatenate([np.ones(m), self.bound]), self.nodes)
        begun = time.process_time()  # another job may have the processor
        found = self.solver(x0=self.plans.get(row, idle), p=start, lbx=-upper, ubx=upper, lbg=0.0, ubg=0.0)
        self.seconds.append(time.process_time() - begun)
        if self.solver.stats()["success"]:
            self.plans[row] = np.asarray(found["x"]).ravel()
        else:
            self.unsolved += 1
        return self.plans.get(row, idle)[:m]


def main() -> None:
    """Parse, roll out, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=299)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--hold", type=int, default=2, help="control periods that a planned input is held")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    torch.set_num_threads(1)
    solution = load_solution(options.run)
    act = Predictive(solution, options.nodes, options.hold)
    starts = sample_starts(solution.problem, options.episodes, options.seed)
    report: dict[str, Any] = {name: value for name, value in vars(options).items() if name != "json"}
    again = np.array(act.cost_to_go.map(len(starts))(starts.double().numpy().T)).ravel()
    report["value_error"] = float(np.abs(again + solution.value(starts)[0].double().numpy()).max())
    report |= _outcome(_played(solution, act, starts))
    milliseconds = 1e3 * np.array(act.seconds)
    report |= {"ms_of_a_period": float(np.median(milliseconds)), "ms_worst": float(milliseconds.max())}
    report["ms_99_percent"] = float(np.quantile(milliseconds, 0.99))
    report |= {"unsolved": act.unsolved / len(act.seconds), "gemm_gflops_fp32": gemm_gflops_fp32()}
    report["policy"] = _outcome(rollouts(solution.problem, solution.controller(), starts))
    print(json.dumps(report, indent=1) if options.json else report)


def _played(solution: Solution, act: Predictive, starts: Tensor) -> Rollouts:
    """The rollouts of the planner, one after the other; each is reported on stderr when it has ended."""
    played: list[Rollouts] = []
    for start in starts:
        act.plans.clear()
        played.append(one := rollouts(solution.problem, act, start[None]))
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
