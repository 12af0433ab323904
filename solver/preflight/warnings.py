"""Warnings before a training, for the usual mistakes in the model file of a new robot."""

from __future__ import annotations

import math

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from modelgen.linear import gain, obstacle
from modelgen.loader import CompiledRobot
from solver.game.adversaries import Adversary, Hamiltonian, make_adversaries
from solver.local.basin import REST
from solver.local.linearization import crossing_time, linearization, time_scale, unstable_directions
from solver.plants.outcome import ANGLE, tolerances
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.identified import IdentifiedSet
from solver.problem.robots import largest_rates
from solver.training.settings import Settings
from solver.value.features import times

STARTS, SEED = 2000, 0
CLIPPED = 0.05  # share of the starts beyond a limit
OVERPOWERED = 0.5  # share of the authority of the inputs that the adversaries take
PASSES = 1.0  # horizons over which the iterations must carry the reward
#: Largest ratio of a control period to a time scale: twelve periods a swing (Astrom and Wittenmark, Computer-Controlled
#: Systems, third edition, section 4.3: 0.2 to 0.6).
COARSE = 0.5
SWITCHING = 2.0  # largest decay exponent of the regulator's fastest motion in a control period; shipped: 0.02 to 0.6
DESCENTS = 16  # descents of the state cost from random states
FREE = 0.01  # a state costs nothing below this share of the cost at the tolerance of the target
DEAREST = 12  # powers of ten by which the action cost is raised until the regulator is slow enough


def forewarnings(
    robot: CompiledRobot, settings: Settings, identified: IdentifiedSet | None = None, given: tuple[Given, ...] = ()
) -> list[str]:
    """Warnings, a paragraph each: the mistake, the number that shows it, and the change to make.

    robot: with float32 kernels on the CPU. given: parameters that the policy is told.
    """
    problem = Problem(robot, identified=identified)
    texts = [
        _starts(problem),
        _rates_too_low(problem),
        _too_few_iterations(problem, settings),
        _too_fast(problem),
        _almost_free_inputs(problem),
        _not_at_rest(problem),
        _beyond_a_regulator(problem),
        _other_targets(problem),
    ]
    texts += _unstable_directions(Problem(robot, identified=identified, given=given), settings)
    return [text for text in texts if text]


def _starts(problem: Problem) -> str:
    """Starts beyond the limits, which are moved onto them, or starts at the target only."""
    task, states = problem.robot.metadata.task, problem.robot.metadata.states
    moves = (*task.references, *task.followed)
    if task.start_mean == task.target and not any(task.start_deviation) and all(m.start == m.target for m in moves):
        return (
            "every start is the target, so every rollout succeeds. Give the start of the task with "
            "robot.task(start=...)."
        )
    draw = torch.randn(STARTS, len(states), generator=torch.Generator().manual_seed(SEED))
    starts = torch.tensor(task.start_mean) + draw * torch.tensor(task.start_deviation)
    beyond = (starts.abs() > problem.state_limits) & problem.clipped
    held = problem.at_limit(problem.sample_starts(STARTS, torch.Generator().manual_seed(SEED)))
    limits = {i: (state.name, state.limit, state.unit) for i, state in enumerate(states)}
    for rotation in problem.limited:
        beyond[:, rotation.coordinate] = held[:, rotation.coordinate]
        limits[rotation.coordinate] = rotation.name, rotation.limit, "rad"
    share = beyond.float().mean(0)
    worst = int(share.argmax())
    if float(share[worst]) <= CLIPPED:
        return ""
    name, limit, unit = limits[worst]
    return (
        f"{100 * float(share[worst]):.0f} % of the starts lie beyond the limit of {name}, {limit:g} {unit}, and are "
        "moved onto it. Widen the limit in the model file or narrow the start distribution."
    )


def _rates_too_low(problem: Problem) -> str:
    """A target that is out of reach within the horizon at the largest rates."""
    task = problem.robot.metadata.task
    rates, starts = largest_rates(problem.robot), torch.tensor([task.start_mean], device=problem.device)
    error = problem.geometry.error(starts, problem.target)[0].abs().double().numpy()
    for name, way, rate in zip(problem.tangent.names, error, rates, strict=False):
        seconds = way / rate
        if seconds > task.horizon:
            return (
                f"the target is out of reach: {name} needs {seconds:.2g} s from the mean start at its "
                f"largest rate, and the task lasts {task.horizon:g} s. Raise the rate limit or the horizon."
            )
    return ""


def _too_few_iterations(problem: Problem, settings: Settings) -> str:
    """Too few iterations: each iteration carries the reward back by about one look-ahead."""
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
    """Motions, or inputs that cross the domain, that are too fast for the control rate."""
    local = linearization(problem.robot)
    fastest = min(time_scale(local), crossing_time(local))
    if problem.control_step <= COARSE * fastest:
        return ""
    what = (
        "a full input takes a state from the target to its limit"
        if fastest == crossing_time(local)
        else "the robot moves at the target"
    )
    return (
        f"the robot is too fast for its control rate: {what} within {fastest:.2g} s, and an input is held for "
        f"{problem.control_step:.2g} s. Raise control_rate in robot.task(...) to {np.ceil(1.0 / (COARSE * fastest)):g} "
        "or more, or check masses and units in the model file."
    )


def _almost_free_inputs(problem: Problem) -> str:
    """An action cost so small that the optimal regulator is faster than the control rate (cheap control)."""
    local = linearization(problem.robot)
    (A, B), (Q, R) = local.scaled_dynamics(), local.scaled_weights()
    if obstacle(A, B, Q):
        return ""

    def speed(power: int) -> float:
        K = gain(A, B, Q, 10.0**power * R)
        return math.inf if K is None else float(np.abs(np.linalg.eigvals(A - B @ K)).max())

    enough = next((power for power in range(DEAREST) if speed(power) * problem.control_step <= SWITCHING), None)
    if not enough:  # an unstable motion is as fast at every action cost: `_too_fast` warns of it
        return ""
    return (
        f"the action cost is very small compared with the state cost: the optimal regulator reacts within "
        f"{1.0 / speed(0):.2g} s, and an input is held for {problem.control_step:.2g} s. The policy may switch its "
        f"inputs from limit to limit and not come to rest. Multiply the weights of the action cost by {10**enough:g} "
        "in the model file (the weight of a log-cos is divided by the cube of the input's limit), or raise "
        "control_rate."
    )


def _not_at_rest(problem: Problem) -> str:
    """A target that the robot leaves under its trim."""
    local = linearization(problem.robot)
    drift, share = local.drift, np.abs(local.drift) / local.limits
    worst = int(share.argmax())
    if share[worst] <= REST:
        return ""
    name, unit, _ = local.tangent.entries[worst]
    return (
        f"the robot is not at rest at its target: under the input of the artifact that should hold it "
        f"({', '.join(f'{entry.name} {entry.trim:g} {entry.unit}' for entry in problem.robot.metadata.inputs)}), "
        f"{name} changes there by {drift[worst]:.3g} {unit} per second. V is zero at the target, as if "
        "staying there cost nothing. Move the target to an equilibrium, widen the limits of the inputs, or write the "
        "parameters of this training as values in the model file, from which the build finds that input."
    )


def _beyond_a_regulator(problem: Problem) -> str:
    """A motion at the target that does not decay, and that no input reaches or that the state cost does not see.

    Wheels without slip are left out: no linearization reaches the ways across them, but turning and driving does.
    """
    if problem.robot.metadata.rolls:
        return ""
    local = linearization(problem.robot)
    motion = obstacle(*local.scaled_dynamics(), local.scaled_weights()[0], local.free)
    if motion is None:
        return ""
    name = local.tangent.names[motion.state]
    rotation = next(
        (each for each, places in local.tangent.rotations if places.start <= motion.state < places.stop), None
    )
    hint = {
        "no input reaches": "check that an input acts on it near the target",
        "the state cost does not see": f"add {f'{rotation.name}.away()' if rotation else name} to the state cost",
    }[motion.reason]
    # A task frees a rotation as a whole.
    freed = f"{rotation.name}, with all its turns," if rotation else name
    return (
        f"near the target {motion.reason} a motion of {name} that does not decay by itself (eigenvalue "
        f"{motion.eigenvalue:.3g}), so the policy may not settle there: {hint}, or list {freed} in "
        "robot.task(free=[...])."
    )


def _other_targets(problem: Problem) -> str:
    """Another state that costs as little as the target: a rollout that ends there is no success."""
    robot, tangent, pose = linearization(problem.robot).robot, problem.tangent, problem.robot.metadata.pose
    target, limits = np.array(problem.robot.metadata.task.target), tangent.limits
    position, rate = (allowed.double().numpy() for allowed in tolerances(problem))
    allowed = np.concatenate([position[tangent.states[:pose]], rate])
    judged = [i for i in range(len(allowed)) if tangent.names[i] not in tangent.free]
    middle = np.zeros(len(target))
    for rotation, _ in tangent.rotations:
        middle[rotation.coordinate] = 1.0

    def cost(share: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        x = tangent.moved(middle, share * limits)
        q, gradient = robot.state_cost(x[None])
        return float(q[0]), gradient[0] @ tangent.basis(x) * limits

    exact = not tangent.rotations  # a turn of a rotation far from the middle is not a change of its entry alone
    for begin in np.random.default_rng(SEED).uniform(-1.0, 1.0, (DESCENTS, tangent.size)):
        least = scipy.optimize.minimize(
            cost if exact else lambda share: cost(share)[0], begin, jac=exact, bounds=[(-1.0, 1.0)] * tangent.size
        )
        x = tangent.moved(middle, least.x * limits)
        error = problem.geometry.error(torch.from_numpy(x), problem.target.double()).abs().numpy()
        i = max(judged, key=lambda k: error[k] / allowed[k])
        name, unit, _ = tangent.entries[i]
        side = 1.0 if target[tangent.states[i]] <= 0.0 else -1.0
        beside = tangent.moved(target, side * allowed[i] * np.eye(tangent.size)[i])
        if error[i] > 2.0 * allowed[i] and least.fun < FREE * float(robot.state_cost(beside[None])[0][0]):
            away = f"at {x[tangent.states[i]]:.3g}" if i in tangent.plain[1] else f"{error[i]:.3g}"
            goal = f"{target[tangent.states[i]]:g}" if i in tangent.plain[1] else "0"
            return (
                f"the state cost is as low with {name} {away} {unit} as at the target, {goal}, and a rollout that ends "
                "there is no success. Write a state cost that differs at the two, give continuous=True to an angle "
                "that turns without end, or narrow its limit to one of them."
            )
    return ""


def _unstable_directions(problem: Problem, settings: Settings) -> list[str]:
    """Unstable motions at the target for which the inputs are too weak, alone or against the adversaries."""
    adversaries, local = make_adversaries(settings.adversaries), linearization(problem.robot)
    texts = []
    for direction in unstable_directions(local):
        along = direction.w @ problem.tangent.projection(np.array(problem.robot.metadata.task.target))
        name, unit, _ = problem.tangent.entries[direction.joint]
        near = float(tolerances(problem)[0][problem.tangent.states[direction.joint]])
        needed = min(near, ANGLE if unit == "rad" else math.inf)
        if direction.reach < needed:
            texts.append(
                f"the input is too weak to hold the target: {name} cannot be brought back from more than "
                f"{direction.reach:.2g} {unit} (unstable at {direction.rate:.2g} per second). Raise the input "
                "limit, or check that the input acts on this joint."
            )
            continue
        disturbance = sum(_push(problem, adversary, along) for adversary in adversaries)
        if disturbance > OVERPOWERED * direction.authority:
            taken = 100 * disturbance / direction.authority
            texts.append(
                f"the adversaries are strong compared with the input: at the target they take {taken:.0f} % of the "
                f"authority of the inputs over {name}, and the robot may never leave the start. Lower the radii "
                f"of the adversaries {' or '.join(adversary.name for adversary in adversaries)}."
            )
    return texts


def _push(problem: Problem, adversary: Adversary, w: NDArray[np.complex128]) -> float:
    """Largest w.(disturbance of xdot) by an adversary at the target under the trim: its effect on |w.x| per second."""
    x, idle = problem.target[None], problem.trim[None]
    _, control_matrix = problem.robot.affine_dynamics(x)
    admissible = adversary.admissible_set(problem, adversary.alpha)
    pushes = []
    for part in (w.real, w.imag):
        costate = torch.tensor(part[None], dtype=x.dtype)
        hamiltonian = Hamiltonian(problem, x, idle, costate, times(costate, control_matrix))
        z = adversary.direction(hamiltonian)
        centre = admissible.extreme_point(torch.zeros_like(z))
        pushes.append(float((z * (centre - admissible.extreme_point(z))).sum()))
    return math.hypot(*pushes)
