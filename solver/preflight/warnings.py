"""Warnings before a training: what usually goes wrong with a new robot."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from modelgen.linear.regulator import gain, obstacle
from modelgen.loader import CompiledRobot
from solver.game.adversaries import make_adversaries
from solver.game.adversaries.adversary import Adversary, Hamiltonian
from solver.local.authority import unstable_directions
from solver.local.basin import REST
from solver.local.linearization import in_double_precision, in_units_of_limits, linearized, scaled_weights
from solver.local.time_scale import crossing_time, time_scale
from solver.plants.outcome import ANGLE, tolerances
from solver.problem.identified import Identified
from solver.problem.problem import Problem
from solver.problem.robots import largest_rates
from solver.training.settings import Settings

STARTS, SEED = 2000, 0
#: Thresholds: shares of the starts and of the input's authority, and passes of the horizon.
CLIPPED, OVERPOWERED, PASSES = 0.05, 0.5, 1.0
#: Largest share of a motion's time scale that a control period may be: twelve periods a swing (Astrom and Wittenmark,
#: Computer-Controlled Systems, third edition, section 4.3: 0.2 to 0.6).
COARSE = 0.5
#: Most control periods' worth of decay in one, of the regulator's fastest motion; the shipped robots have 0.02 to 0.6.
SWITCHING = 2.0
DESCENTS, FREE = 16, 0.01  # of the state cost; the share of its value beside the target that counts as none
DEAREST = 12  # powers of ten by which an action cost is raised, in search of one that counts


def forewarnings(robot: CompiledRobot, settings: Settings, identified: Identified | None = None) -> list[str]:
    """A paragraph for each thing that is likely to fail: what, the number that shows it, and what to change.

    `robot` has float32 kernels on the CPU.
    """
    problem = Problem(robot, identified=identified)
    found = [
        _starts(problem),
        _rates_too_low(problem),
        _too_few_iterations(problem, settings),
        _too_fast(problem),
        _almost_free_inputs(problem),
        _not_at_rest(problem),
        _beyond_a_regulator(problem),
        _other_targets(problem),
    ]
    found += _unstable_directions(problem, settings)
    return [text for text in found if text]


def _starts(problem: Problem) -> str:
    """Starts outside of the state domain, which are clipped to it, or all at the target."""
    task, states = problem.robot.metadata.task, problem.robot.metadata.states
    if task.start_mean == task.target and not any(task.start_deviation):
        return (
            "every start is the target itself, so that every rollout succeeds and tells nothing. State where the robot "
            "begins in robot.task(start=...)."
        )
    draw = torch.randn(STARTS, len(states), generator=torch.Generator().manual_seed(SEED))
    starts = torch.tensor(task.start_mean) + draw * torch.tensor(task.start_deviation)
    share = ((starts.abs() > problem.state_limits) & problem.clipped).float().mean(0)
    worst = int(share.argmax())
    if float(share[worst]) <= CLIPPED:
        return ""
    return (
        f"{100 * float(share[worst]):.0f} % of the starts lie beyond the limit of {states[worst].name}, "
        f"{states[worst].limit:g} {states[worst].unit}, and are moved onto it. Widen the limit in the model file or "
        "narrow the start distribution."
    )


def _rates_too_low(problem: Problem) -> str:
    """A target that cannot be reached in time at the largest rates."""
    task, states = problem.robot.metadata.task, problem.robot.metadata.states
    for i, rate in enumerate(largest_rates(problem.robot)):
        way = abs(task.start_mean[i] - task.target[i])
        if states[i].continuous:
            way = min(way % (2.0 * np.pi), 2.0 * np.pi - way % (2.0 * np.pi))
        seconds = way / rate
        if seconds > task.horizon:
            return (
                f"the target is out of reach: {states[i].name} needs {seconds:.2g} s from the mean start at its "
                f"largest rate, and the task lasts {task.horizon:g} s. Raise the rate limit or the horizon."
            )
    return ""


def _too_few_iterations(problem: Problem, settings: Settings) -> str:
    """Too few iterations: each carries the reward back by about one look-ahead."""
    horizon = problem.robot.metadata.task.horizon
    steps = settings.iterations * sum(settings.step_periods) / len(settings.step_periods)
    carried = steps * problem.control_step / (1.0 - settings.trace_decay)
    if carried >= PASSES * horizon:
        return ""
    enough = int(np.ceil(PASSES * horizon / carried * settings.iterations))
    return (
        f"{settings.iterations} iterations carry the reward back by about {carried:.2g} s, and the task lasts "
        f"{horizon:g} s. Give --iterations {enough}, or a --trace-decay nearer to 1."
    )


def _too_fast(problem: Problem) -> str:
    """Motions that grow or swing, or inputs that cross the domain, faster than the control rate can answer."""
    robot = problem.robot
    fastest = min(time_scale(robot), crossing_time(robot))
    if problem.control_step <= COARSE * fastest:
        return ""
    what = (
        "a full input takes a state from the target to its limit"
        if fastest == crossing_time(robot)
        else "the robot's motion at the target goes on"
    )
    return (
        f"the robot is too fast for its control rate: {what} within {fastest:.2g} s, and an input is held for "
        f"{problem.control_step:.2g} s. Raise control_rate in robot.task(...) to {np.ceil(1.0 / (COARSE * fastest)):g} "
        "or more, or check masses and units in the model file."
    )


def _almost_free_inputs(problem: Problem) -> str:
    """An action cost so small that the best regulator acts faster than the control rate (cheap control)."""
    robot = in_double_precision(problem.robot)
    _, A, B = linearized(robot)
    A, B = in_units_of_limits(robot, A, B)
    Q, R = scaled_weights(robot)
    if obstacle(A, B, Q):
        return ""

    def speed(power: int) -> float:
        K = gain(A, B, Q, 10.0**power * R)
        return math.inf if K is None else float(np.abs(np.linalg.eigvals(A - B @ K)).max())

    enough = next((power for power in range(DEAREST) if speed(power) * problem.control_step <= SWITCHING), None)
    if not enough:  # a motion that grows is as fast under the dearest regulator: `_too_fast` tells of it
        return ""
    return (
        f"the action cost is next to nothing beside the state cost: the best regulator answers within "
        f"{1.0 / speed(0):.2g} s, and an input is held for {problem.control_step:.2g} s. The policy may switch its "
        f"inputs from limit to limit and not come to rest. Multiply the weights of the action cost by {10**enough:g} "
        "in the model file (that of a log-cos is per cube of the input's limit), or raise control_rate."
    )


def _not_at_rest(problem: Problem) -> str:
    """A target that the robot leaves under its trim."""
    drift, states = linearized(in_double_precision(problem.robot))[0], problem.robot.metadata.states
    share = np.abs(drift) / np.array([state.limit for state in states])
    worst = int(share.argmax())
    if share[worst] <= REST:
        return ""
    unit = states[worst].unit
    return (
        f"the robot is not at rest at its target: under the input of the artifact that should hold it "
        f"({', '.join(f'{entry.name} {entry.trim:g} {entry.unit}' for entry in problem.robot.metadata.inputs)}), "
        f"{states[worst].name} changes there by {drift[worst]:.3g} {unit} per second. V is zero at the target, as if "
        "staying there cost nothing. Move the target to an equilibrium, widen the limits of the inputs, or write the "
        "parameters of this training as values in the model file, from which the build finds that input."
    )


def _beyond_a_regulator(problem: Problem) -> str:
    """A motion at the target that does not decay, and that no input reaches or that costs nothing."""
    robot = in_double_precision(problem.robot)
    _, A, B = linearized(robot)
    found = obstacle(*in_units_of_limits(robot, A, B), scaled_weights(robot)[0])
    if found is None or problem.robot.state_names[found.state] in problem.robot.metadata.task.free:
        return ""
    name = problem.robot.state_names[found.state]
    hint = {
        "no input reaches": "check that an input acts on it near the target",
        "the state cost does not see": f"add {name} to the state cost",
    }[found.reason]
    return (
        f"near the target {found.reason} a motion of {name} that does not decay by itself (eigenvalue "
        f"{found.eigenvalue:.3g}), so that the policy may not settle there: {hint}, or list it in "
        "robot.task(free=[...])."
    )


def _other_targets(problem: Problem) -> str:
    """Another state that costs as little as the target: a robot that rests there has not succeeded."""
    robot, task = in_double_precision(problem.robot), problem.robot.metadata.task
    states, target = problem.robot.metadata.states, np.array(task.target)
    limits = np.array([state.limit for state in states])
    allowed = torch.cat(tolerances(problem)).double().numpy()
    judged = [i for i, state in enumerate(states) if state.name not in task.free]
    turning = [state.continuous for state in states]

    def cost(share: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        q, gradient = robot.state_cost((share * limits)[None])
        return float(q[0]), gradient[0] * limits

    for begin in np.random.default_rng(SEED).uniform(-1.0, 1.0, (DESCENTS, len(states))):
        least = minimize(cost, begin, jac=True, bounds=[(-1.0, 1.0)] * len(states))
        x = least.x * limits
        error = np.abs(x - target)
        error = np.where(turning, np.minimum(error, np.abs(2.0 * np.pi - error)), error)
        i = max(judged, key=lambda k: error[k] / allowed[k])
        beside = target.copy()
        beside[i] += allowed[i] * (1.0 if target[i] <= 0.0 else -1.0)
        if error[i] > 2.0 * allowed[i] and least.fun < FREE * cost(beside / limits)[0]:
            return (
                f"the state cost is as low with {states[i].name} at {x[i]:.3g} {states[i].unit} as at the target, "
                f"{target[i]:g}, and a rollout that ends there is no success. Let the cost tell them apart, give "
                "continuous=True to an angle that turns without end, or narrow its limit to one of them."
            )
    return ""


def _unstable_directions(problem: Problem, settings: Settings) -> list[str]:
    """Unstable motions at the target that the inputs are too weak for, alone or against the adversaries."""
    _, A, B = linearized(problem.robot)
    adversaries = make_adversaries(settings.adversaries)
    texts = []
    for direction in unstable_directions(problem.robot, A, B):
        state = problem.robot.metadata.states[direction.joint]
        needed = min(float(tolerances(problem)[0][direction.joint]), ANGLE if state.unit == "rad" else math.inf)
        if direction.reach < needed:
            texts.append(
                f"the input is too weak to hold the target: {state.name} cannot be brought back from more than "
                f"{direction.reach:.2g} {state.unit} (unstable at {direction.rate:.2g} per second). Raise the input "
                "limit, or check that the input acts on this joint."
            )
            continue
        disturbance = sum(_push(problem, adversary, direction.w) for adversary in adversaries)
        if disturbance > OVERPOWERED * direction.authority:
            taken = 100 * disturbance / direction.authority
            texts.append(
                f"the adversaries are strong compared with the input: at the target they take {taken:.0f} % of the "
                f"authority that holds {state.name}, and the robot may never learn to leave the start. Lower the radii "
                f"of {' or '.join(adversary.name for adversary in adversaries)} (adversaries)."
            )
    return texts


def _push(problem: Problem, adversary: Adversary, w: NDArray[np.complex128]) -> float:
    """How fast an adversary can move |w.x| at the target under the trim: the largest of w.(its disturbance of xdot)."""
    x, idle = problem.target[None], problem.trim[None]
    _, control_matrix = problem.robot.affine_dynamics(x)
    admissible = adversary.admissible_set(problem, adversary.alpha)
    pushes = []
    for part in (w.real, w.imag):
        costate = torch.tensor(part[None], dtype=x.dtype)
        hamiltonian = Hamiltonian(problem, x, idle, costate, torch.einsum("bnm,bn->bm", control_matrix, costate))
        z = adversary.direction(hamiltonian)
        centre = admissible.extreme_point(torch.zeros_like(z))
        pushes.append(float((z * (centre - admissible.extreme_point(z))).sum()))
    return math.hypot(*pushes)
