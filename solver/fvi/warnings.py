"""Warnings before a training: what usually goes wrong with a new robot."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot
from solver.fvi.settings import Settings
from solver.game.adversaries.adversary import Adversary, Hamiltonian
from solver.plants.outcome import tolerances
from solver.problem.problem import Problem
from solver.problem.robots import largest_rates

Array = NDArray[np.float64]
STARTS, SEED = 2000, 0
#: Thresholds: shares of the starts and of the input's authority, and passes of the horizon.
CLIPPED, OVERPOWERED, PASSES = 0.05, 0.5, 1.0


def forewarnings(robot: CompiledRobot, settings: Settings) -> list[str]:
    """A paragraph for each thing that is likely to fail: what, the number that shows it, and what to change.

    `robot` has float32 kernels on the CPU.
    """
    problem = Problem(robot)
    found = [
        _starts_outside(problem),
        _rates_too_low(problem),
        _too_few_iterations(problem, settings),
    ]
    found += _unstable_directions(problem, settings)
    return [text for text in found if text]


def _starts_outside(problem: Problem) -> str:
    """Starts outside of the state domain, which are clipped to it."""
    task, states = problem.robot.metadata.task, problem.robot.metadata.states
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
    carried = settings.iterations * problem.control_step / (1.0 - settings.trace_decay)
    if carried >= PASSES * horizon:
        return ""
    enough = int(np.ceil(PASSES * horizon / carried * settings.iterations))
    return (
        f"{settings.iterations} iterations carry the reward back by about {carried:.2g} s, and the task lasts "
        f"{horizon:g} s. Give --iterations {enough}, or a --trace-decay nearer to 1."
    )


def _unstable_directions(problem: Problem, settings: Settings) -> list[str]:
    """For every unstable mode of the linearisation at the target: from how far the input can bring the robot back, and
    how much of that authority the adversaries take.

    With the left eigenvector w of eigenvalue s, z = w.x obeys zdot = s z + w.(B u + xi). The input can bring z back
    from |z| < |w.B| u_max/s, and from no further.
    """
    a, b = _linearised(problem)
    names = problem.robot.state_names
    coordinates = len(problem.robot.metadata.coordinates)
    values, vectors = np.linalg.eig(a.T)
    adversaries = settings.adversaries(settings.iterations)
    found = []
    for value, w in zip(values, vectors.T, strict=True):
        if value.real <= 1e-3 or value.imag < 0.0:
            continue
        authority = float(np.abs(w @ b) @ problem.input_limits.double().numpy())
        reach = authority / (value.real * np.abs(w[:coordinates]).max())
        joint = int(np.abs(w[:coordinates]).argmax())
        state = problem.robot.metadata.states[joint]
        if reach < float(tolerances(problem)[0][joint]):
            found.append(
                f"the input is too weak to hold the target: {names[joint]} cannot be brought back from more than "
                f"{reach:.2g} {state.unit} (unstable at {value.real:.2g} per second). Raise the input limit, or check "
                "that the input acts on this joint."
            )
            continue
        disturbance = sum(_push(problem, each, w) for each in adversaries)
        if disturbance > OVERPOWERED * authority:
            taken = 100 * disturbance / authority
            flags = " or ".join("--" + each.setting().replace("_", "-") for each in adversaries)
            found.append(
                f"the adversaries are strong compared with the input: at the target they take {taken:.0f} % of the "
                f"authority that holds {names[joint]}, and the robot may never learn to leave the start. Lower {flags}."
            )
    return found


def _push(problem: Problem, adversary: Adversary, w: NDArray[np.complex128]) -> float:
    """How fast an adversary can move |w.x| at the target with no input: the largest of w.(its disturbance of xdot)."""
    x, idle = problem.target[None], torch.zeros(1, len(problem.input_limits))
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


def _linearised(problem: Problem) -> tuple[Array, Array]:
    """A (n, n) and B (n, m) at the target with no input."""
    found = problem.robot.jacobians(problem.target[None])
    _, b, da_dx, _, _, _ = (torch.as_tensor(entry).double().numpy() for entry in found)
    return da_dx[0], b[0]
