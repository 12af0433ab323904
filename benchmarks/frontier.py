"""What makes a robot hard for fitted value iteration, measured before a training: docs/results/gallery.md.

    python benchmarks/frontier.py pendulum cartpole triple_cart --generated generated

A row has the number of states, the fastest unstable motion at the target, the number of fast states, the level of the
basin, and the cost of the idle robot from the task's starts as a multiple of that level. Over this range V must be
right to a few per cent of itself, because the policy follows its slope from the starts into the basin.

With `--cost` a row has what an iteration of cFVI costs with the preset `fast`, in products of the networks alone:
docs/concepts/performance.md.

With `--near` a table shows who balances from starts near the target: the regulator, the policy of the quadratic form of
the basin, and that of networks of the default size that were fitted to this form, which is exact and smooth. The first
column says which starts an input can bring back at all, by a linear program of the linearised robot.

With `--follow` a table shows which policies follow the motion of `solver limit` from the mean start to the target, if V
is right: a second-order expansion of the cost to go along it, with IPOPT's exact derivatives. Rows are policies,
columns the share of 32 rollouts that arrive, from angles off by some rad at some time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import casadi
import numpy as np
import torch
from networks import WEIGHTS, evaluations
from scipy.optimize import linprog
from torch import Tensor

from modelgen import linear
from modelgen.loader import CompiledRobot
from solver.fvi.targets import Lookahead
from solver.game.policies import Hold
from solver.local.basin import find_basin
from solver.local.linearization import linearization, unstable_directions
from solver.oracles.limit import design
from solver.oracles.search import search
from solver.plants.outcome import Controller, controller, rollouts, sample_starts, without_input
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.streams import Purpose
from solver.training.session import Session, workers_of
from solver.training.settings import make_settings
from solver.training.solution import make_ensemble
from solver.value.family import Basin
from solver.value.frozen import FrozenValue

STARTS = 64
OFF = 0.02, 0.05, 0.1  # rad, largest angles of starts near the target
LARGEST = 200.0  # -V that the networks are fitted to
COSTS = (
    "robot",
    "states n",
    "inputs m",
    "entries of L",
    "weights",
    "a target, MFLOP",
    "a fit of one state, MFLOP",
    "an iteration, GFLOP",
)
COLUMNS = ("robot", "states", "fastest unstable motion, 1/s", "fast states", "basin, V", "idle cost / basin")


def row(name: str, generated: str | None) -> str:
    """One line of the table."""
    robot = load_robot(name, "cpu", generated)
    problem = Problem(robot)
    basin = find_basin(problem, Hold(1.0))
    growth = max((motion.rate for motion in unstable_directions(linearization(robot))), default=0.0)
    starts = sample_starts(problem, STARTS, 0)
    cost = -float(rollouts(problem, without_input(problem), starts).returns.mean())
    level, share = ("none", "") if not isinstance(basin, Basin) else (f"{basin.level:.2g}", f"{cost / basin.level:.2g}")
    count, fast = len(problem.target), int(problem.fast.sum())
    return f"| `{name}` | {count} | {growth:.1f} | {fast} | {level} | {share} |"


def cost(name: str, generated: str | None) -> str:
    """One line of the table of costs. Each weight takes four operations for V and its gradient in the state."""
    robot = load_robot(name, "cpu", generated)
    settings = make_settings("fast", robot, "cfvi")
    ensemble, problem = make_ensemble(robot, settings), Problem(robot)
    weights = sum(weight.numel() for member in ensemble.factors for weight in member.weights)
    steps = Lookahead(settings.trace_decay, settings.trace_floor, 1).steps
    target = 4e-6 * weights * evaluations(problem, settings) * steps
    fit = 4e-6 * weights * WEIGHTS * settings.epochs
    sizes = len(problem.target), len(problem.input_limits), len(ensemble.factors[0].rows), weights
    numbers = *sizes, f"{target:.1f}", f"{fit:.1f}", f"{1e-3 * settings.states * (target + fit):.0f}"
    return f"| `{name}` | {' | '.join(map(str, numbers))} |"


class Along:
    """Expansion of V along a motion of K periods, as a value function that moves on with every period.

    Behind its end, V is the quadratic form of the basin. robot: with the backend casadi.
    """

    def __init__(self, robot: CompiledRobot, problem: Problem, basin: Basin, seconds: float) -> None:
        found = search(robot, None, design(robot.metadata, 1), 0, 0, [], seconds)
        motion, program = found.motions()[0], found.program
        n, m, periods = len(problem.target), len(problem.input_limits), len(motion.u)
        x, u, slope = (casadi.SX.sym(name, size) for name, size in (("x", n), ("u", m), ("slope", n)))
        later, cost = program.step(x, u)[:2]
        z, discount = casadi.vertcat(x, u), problem.discount(1)
        both = cost + discount * casadi.dot(slope, later)
        outputs = [casadi.jacobian(later, z), casadi.gradient(both, z), casadi.hessian(both, z)[0], cost]
        expansion = casadi.Function("expansion", [x, u, slope], outputs)
        form = 2.0 * basin.cost.double().numpy()
        slopes, forms, gains = np.zeros((periods + 1, n)), np.zeros((periods + 1, n, n)), np.zeros((periods, m, n))
        costs = np.zeros(periods + 1)
        forms[-1], slopes[-1] = form, form @ (motion.x[-1] - problem.target.numpy())
        for k in reversed(range(periods)):
            jacobian, first, second, paid = (np.asarray(v) for v in expansion(motion.x[k], motion.u[k], slopes[k + 1]))
            second, first = second + discount * jacobian.T @ forms[k + 1] @ jacobian, first.ravel()
            gains[k] = -np.linalg.solve(second[n:, n:], second[n:, :n])
            forms[k], slopes[k] = second[:n, :n] + second[:n, n:] @ gains[k], first[:n] + gains[k].T @ first[n:]
            costs[k] = float(paid.ravel()[0]) + discount * costs[k + 1]
        self.x, self.u, self.gains, self.forms, self.slopes, self.costs = (
            torch.tensor(v, dtype=torch.float32) for v in (motion.x, motion.u, gains, forms, slopes, costs)
        )
        self.problem, self.basin, self.periods, self.now = problem, basin, periods, 0

    def _error(self, x: Tensor, k: int) -> Tensor:
        return self.problem.geometry.error(x, self.x[k])

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at x (N, n)."""
        if self.now >= self.periods:
            return self.basin.quadratic(x)[:2]
        e, slope = self._error(x, self.now), self.slopes[self.now]
        along = e @ self.forms[self.now]
        return -(self.costs[self.now] + e @ slope + 0.5 * (along * e).sum(1)), -(slope + along)

    def feedback(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The linear feedback of the expansion, a controller."""
        if self.now >= self.periods:
            return controller(self.problem, self, Hold(1.0))(x)
        u = self.u[self.now] + self._error(x, self.now) @ self.gains[self.now].T
        room = 0.999 * self.problem.input_limits
        u = self.problem.input_middle + (u - self.problem.input_middle).clamp(-room, room)
        return u, self.problem.action_cost.cost(u)

    def moving(self, act: Controller, k: int, ahead: int) -> Controller:
        """The controller, with this V at the time k + ahead at first, and a period later at every call."""
        self.now = k + ahead

        def moved(x: Tensor) -> tuple[Tensor, Tensor]:
            result = act(x)
            self.now += 1
            return result

        return moved


def follow(name: str, generated: str | None, seconds: float) -> None:
    """Print the table of a robot."""
    problem = Problem(load_robot(name, "cpu", generated))
    basin = find_basin(problem, Hold(1.0))
    assert isinstance(basin, Basin)
    along = Along(problem.robot.with_kernels("casadi"), problem, basin, seconds)
    policies: dict[str, tuple[Controller, int]] = {
        "linear feedback": (along.feedback, 0),
        "held input": (controller(problem, along, Hold(1.0)), 0),
        "with the drift": (controller(problem, along, Hold(1.0, drift=True)), 1),
    }
    places = [(at, off) for at in (0.0, 0.2, 0.5) for off in (1e-4, 1e-2)]
    times = " | ".join(f"at {at * seconds:g} s, off {off:g}" for at, off in places)
    print(f"| {name} | {times} |\n|{(1 + len(places)) * '---|'}")
    for title, (act, ahead) in policies.items():
        cells = []
        for at, off in places:
            k = round(at * along.periods)
            draw = torch.randn(STARTS // 2, len(problem.target), generator=torch.Generator().manual_seed(0))
            draw = torch.where(problem.geometry.continuous, off, 0.0) * draw
            starts = problem.confine(along.x[k] + draw)
            result = rollouts(problem, along.moving(act, k, ahead), starts, seconds=(1.0 - at) * seconds + 2.0)
            cells.append(f"{100.0 * float(result.success.float().mean()):.0f} %")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def recoverable(problem: Problem, x: Tensor) -> Tensor:
    """Mask (N,) of the states x (N, n) whose unstable motions the inputs can end, by the linearised robot."""
    local, h = linearization(problem.robot), problem.control_step
    motions, times = unstable_directions(local), h * np.arange(round(1.0 / h))
    decay = [np.exp(-motion.rate * times) * -np.expm1(-motion.rate * h) / motion.rate for motion in motions]
    w = np.array([motion.w.real for motion in motions])
    pushes = np.vstack([np.kron(shares, push) for shares, push in zip(decay, w @ local.B, strict=True)])
    box = [(-limit, limit) for limit in local.input_limits] * len(times)
    away = problem.geometry.error(x, problem.target).double().numpy() @ w.T
    none = np.zeros(len(box))
    return torch.tensor([linprog(none, A_eq=pushes, b_eq=-row, bounds=box).status == 0 for row in away])


def near(name: str, generated: str | None, fits: int = 12) -> None:
    """Print the table of a robot with real unstable motions. The networks are fitted by the default, cFVI, seed 0."""
    robot = load_robot(name, "cpu", generated)
    session = Session(robot, make_settings("fast", robot, "cfvi", drift=True, iterations=fits, threads=1))
    problem, basin, hold, local = session.problem, session.value.basin, Hold(1.0, drift=True), linearization(robot)
    gain = linear.gain(*local.scaled_dynamics(problem.discount_rate), *local.scaled_weights())
    assert gain is not None
    feedback = torch.tensor(gain / local.limits, dtype=torch.float32)

    def clipped(x: Tensor) -> tuple[Tensor, Tensor]:
        share = (-basin.error(x) @ feedback.T).clamp(-0.999, 0.999)
        return (u := problem.trim + problem.input_limits * share), problem.action_cost.cost(u)

    draw = 2.0 * torch.rand(STARTS, len(problem.target), generator=torch.Generator().manual_seed(0)) - 1.0
    starts = [problem.target + torch.where(problem.geometry.continuous, off * draw, 0.0) for off in OFF]

    def line(title: str, mask: Callable[[Tensor], Tensor]) -> None:
        shares = [f"{100.0 * float(mask(x).float().mean()):.0f} %" for x in starts]
        print(f"| {title} | {' | '.join(shares)} |", flush=True)

    def balanced(title: str, act: Controller) -> None:
        line(title, lambda x: rollouts(problem, act, x, seconds=3.0).success)

    print(f"| {name} | {' | '.join(f'{off:g} rad' for off in OFF)} |\n|{(1 + len(OFF)) * '---|'}")
    line("recoverable", lambda x: recoverable(problem, x))
    balanced("linear feedback, clipped", clipped)
    balanced("quadratic form", controller(problem, lambda x: basin.quadratic(x)[:2], hold))
    with workers_of(session.settings) as workers:
        for step in session.schedule:
            policy = controller(problem, FrozenValue(session.value), hold)
            x = session.states.draw(policy, step.states, step.generator(Purpose.STATES, "cpu"))
            session.fitter.fit(session.value, x, basin.quadratic(x)[0].clamp_min(-LARGEST), step, workers)
            if session.schedule.position in (1, fits):
                act = controller(problem, FrozenValue(session.value), hold)
                balanced(f"networks fitted to this form, {session.schedule.position} fits", act)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--generated")
    parser.add_argument("--cost", action="store_true", help="what an iteration costs, in place of what is hard")
    parser.add_argument("--near", action="store_true", help="who balances near the target, instead")
    parser.add_argument("--follow", type=float, metavar="SECONDS", help="follow a motion of this time instead")
    options = parser.parse_args()
    if options.near:
        for name in options.robots:
            near(name, options.generated)
        return
    if options.follow:
        for name in options.robots:
            follow(name, options.generated, options.follow)
        return
    columns, line = (COSTS, cost) if options.cost else (COLUMNS, row)
    print(f"| {' | '.join(columns)} |\n{len(columns) * '|---'}|")
    for name in options.robots:
        print(line(name, options.generated), flush=True)


if __name__ == "__main__":
    main()
