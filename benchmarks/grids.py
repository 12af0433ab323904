"""Rivals on a grid: processor seconds until hj_reachability and the grid oracle swing up the pendulum.

    pip install hj-reachability
    python benchmarks/grids.py

Both solve the Hamilton-Jacobi-Bellman equation of the same robot and task in pseudo-time, from V = 0. After every
`--interval` seconds of it, the policy of V makes 100 rollouts from the task's starts, with an input that is held for a
control period. They are not timed. A row has the processor seconds of all threads, with the compilation of JAX, to 95
and 99 % of the way from the idle robot's return to the best return of the run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hj_reachability as hj
import jax.numpy as jnp
import numpy as np
import torch
from machine import gemm_gflops_fp32

import modelgen
from modelgen.artifact.folder import SHIPPED
from solver.game import Game
from solver.game.policies import Hold
from solver.oracles.grid import GridValue, solve
from solver.plants.outcome import controller, rollouts, sample_starts, without_input
from solver.problem import Problem
from solver.problem.robots import load_robot

ROBOT = "pendulum"
ROLLOUTS = 100
SECONDS = 12.0  # of pseudo-time; the task lasts five


class Swing(hj.dynamics.Dynamics):  # type: ignore[misc]
    """The discounted task as dynamics of hj_reachability: V is the cost to go, and the policy minimises it."""

    def __init__(self, problem: Problem) -> None:
        self.robot = modelgen.load(ROBOT, backend="jax", dtype="float32", directory=SHIPPED)
        self.rate, self.limits = problem.discount_rate, jnp.asarray(self.robot.input_limits)
        super().__init__("min", "max", hj.sets.Box(-self.limits, self.limits), hj.sets.Box(jnp.zeros(1), jnp.zeros(1)))

    def __call__(self, state: Any, control: Any, disturbance: Any, time: Any) -> Any:  # noqa: ARG002
        return self.robot.dynamics(state, control)

    def optimal_control_and_disturbance(self, state: Any, time: Any, grad_value: Any) -> tuple[Any, Any]:  # noqa: ARG002
        return self.robot.optimal_input(-grad_value @ self.robot.affine_dynamics(state)[1]), jnp.zeros(1)

    def hamiltonian(self, state: Any, time: Any, value: Any, grad_value: Any) -> Any:
        u, _ = self.optimal_control_and_disturbance(state, time, grad_value)
        xdot, limit = self.robot.dynamics(state, u), self.robot.state_limits[1]
        outward = (jnp.abs(state[1]) >= limit) & (state[1] * xdot[1] > 0.0)  # a rate stays within its limit
        xdot = xdot.at[1].set(jnp.where(outward, 0.0, xdot[1]))
        cost = self.robot.state_cost(state)[0] + self.robot.action_cost(u)[0]
        return grad_value @ xdot + cost - self.rate * value

    def partial_max_magnitudes(self, state: Any, time: Any, value: Any, grad_value_box: Any) -> Any:  # noqa: ARG002
        drift, B = self.robot.affine_dynamics(state)
        return jnp.abs(drift) + jnp.abs(B) @ self.limits


def rival(problem: Problem, nodes: int, interval: float) -> Iterator[tuple[float, GridValue]]:
    """Processor seconds of hj_reachability so far and its V, after every interval of pseudo-time."""
    limits = problem.state_limits.numpy()
    domain = hj.sets.Box(-limits, limits)
    grid = hj.Grid.from_lattice_parameters_and_boundary_conditions(domain, (nodes, nodes), periodic_dims=0)
    settings = hj.SolverSettings.with_accuracy(
        "very_high", artificial_dissipation_scheme=hj.artificial_dissipation.local_local_lax_friedrichs
    )
    dynamics, value, spent = Swing(problem), jnp.zeros(grid.shape), 0.0
    for k in range(round(SECONDS / interval)):
        begin = time.process_time()
        value = hj.step(settings, dynamics, grid, -k * interval, value, -(k + 1) * interval, progress_bar=False)
        slopes = np.asarray(grid.grad_values(value, settings.upwind_scheme))
        spent += time.process_time() - begin
        found = -np.concatenate([np.asarray(value)[None], np.moveaxis(slopes, -1, 0)])
        found = np.concatenate([found, found[:, :1]], 1)  # the first angle again, so that every angle lies between two
        position = torch.linspace(-1.0, 1.0, nodes + 1) * limits[0]
        yield spent, GridValue((position, torch.linspace(-1.0, 1.0, nodes) * limits[1]), torch.tensor(found), 0.0)


def oracle(problem: Problem, nodes: int, interval: float) -> Iterator[tuple[float, GridValue]]:
    """Processor seconds of the grid oracle so far and its V, after every interval of pseudo-time."""
    value, spent = None, 0.0
    for _ in range(round(SECONDS / interval)):
        begin = time.process_time()
        value = solve(Game(problem), (nodes, nodes), tolerance=0.0, seconds=interval, begin=value)
        spent += time.process_time() - begin
        yield spent, replace(value, nodes=value.nodes.float())


def measured(problem: Problem, found: Iterator[tuple[float, GridValue]]) -> dict[str, float]:
    """Processor seconds to 95 and 99 % of the best return, in all, the best return and its success rate."""
    starts = sample_starts(problem, ROLLOUTS, 0)
    idle = float(rollouts(problem, without_input(problem), starts).returns.mean())
    rows = []
    for seconds, value in found:
        result = rollouts(problem, controller(problem, value, Hold(1.0)), starts)
        rows.append((float(result.returns.mean()), seconds, float(result.success.float().mean())))
    best, _, success = max(rows)
    to = {f"seconds_to_{share}": _first(rows, idle + 0.01 * share * (best - idle)) for share in (95, 99)}
    return to | {"seconds": rows[-1][1], "return": best, "success": success}


def _first(rows: list[tuple[float, float, float]], least: float) -> float:
    return next(seconds for found, seconds, _ in rows if found >= least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[51, 101], metavar="K", help="of each state")
    parser.add_argument("--interval", type=float, default=0.5, help="pseudo-time between two evaluations, in seconds")
    options = parser.parse_args()
    problem = Problem(load_robot(ROBOT, "cpu", None))
    solvers = {"hj_reachability": rival, "grid oracle": oracle}
    results = [
        {"solver": name, "nodes": nodes} | measured(problem, solver(problem, nodes, options.interval))
        for nodes in options.nodes
        for name, solver in solvers.items()
    ]
    print(json.dumps({"gemm_gflops_fp32": gemm_gflops_fp32(), "results": results}, indent=1))


if __name__ == "__main__":
    main()
