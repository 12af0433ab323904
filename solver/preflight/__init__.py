"""All checks and warnings before a training, and a preview of its task by trajectory optimisation.

The checks show whether the robot can be held at its target, also on an identified set. The preview shows whether there
is a motion to the target, its return compared with the idle robot's, and the limits it reaches.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import chain, product

import numpy as np
import torch

from modelgen.arrays import Array
from modelgen.linear import obstacle
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.local.basin import REST
from solver.local.linearization import Linearization, linearization, linearize, unstable_directions
from solver.oracles.limit import design
from solver.oracles.search import PUMPS, coarse_hold, pumped, random_motions, straight
from solver.oracles.trajectory import NonlinearProgram, PlannedMotion
from solver.plants.outcome import rollouts, succeeded, tolerances, without_input
from solver.preflight.warnings import forewarnings
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.identified import IdentifiedSet
from solver.problem.robots import require_current
from solver.training.solution import RunDescription

HELD = 1e-3  # limits per second: largest drift at the target that the inputs may leave


def require_controllable(robot: CompiledRobot, identified: IdentifiedSet) -> None:
    """Raises SolverError with the semi-axis along which the robot cannot be controlled any more.

    robot: with the identified parameters. A robot that cannot be controlled at these parameters passes, because the set
    is not the cause.
    """
    from modelgen.identification.confidence import in_words  # imports Numba and all statistics of SciPy

    nominal_linearization = linearization(robot)
    if _obstacle(nominal_linearization):
        return
    robot = nominal_linearization.robot
    nominal = np.array(identified.nominal)
    for axis in identified.semi_axes().T:
        for change in (axis, -axis):
            changed = robot.with_nominal((nominal + change).tolist())
            reason = _obstacle(linearize(changed, changed.metadata))
            if reason:
                there = zip(robot.parameter_names, nominal + change, strict=True)
                values = ", ".join(f"{name} {value:.4g}" for name, value in there)
                raise SolverError(
                    f"{robot.name} cannot be controlled on the whole set in {identified.source}. At its end with "
                    f"{in_words(robot.parameter_names, change, nominal)} ({values}), {reason}. Record motion that "
                    "excites this direction, narrow the bounds in the model file, or use a part of the set: "
                    "--adversaries parameters=0.5."
                )


def weak_corners(robot: CompiledRobot, given: tuple[Given, ...]) -> list[str]:
    """Warning of a corner of the ranges of told parameters at which the robot cannot be controlled near its target.

    A robot that cannot be controlled at the nominal parameters gives none, because the ranges are not the cause.
    """
    local = linearization(robot)
    if not given or _obstacle(local):
        return []
    for corner in product(*((entry.lower, entry.upper) for entry in given)):
        values = dict(zip(robot.parameter_names, robot.nominal_parameters.tolist(), strict=True))
        values |= {entry.name: value for entry, value in zip(given, corner, strict=True)}
        changed = local.robot.with_nominal(list(values.values()))
        reason = _obstacle(linearize(changed, changed.metadata))
        if reason:
            where = ", ".join(f"{entry.name} {value:.4g}" for entry, value in zip(given, corner, strict=True))
            return [f"at the corner of --given with {where}, {reason}. Make a range smaller, or widen the limits."]
    return []


def _obstacle(local: Linearization) -> str:
    """Reason why the robot cannot be held at its target, or an empty text."""
    names = local.tangent.names
    if not (np.isfinite(local.drift).all() and np.isfinite(local.A).all() and np.isfinite(local.B).all()):
        return "the dynamics are not finite"
    left = _left(local)
    worst = int(np.abs(left).argmax())
    if abs(left[worst]) > HELD:
        return f"no input within the limits holds {names[worst]} at the target"
    motion = obstacle(*local.scaled_dynamics(), local.scaled_weights()[0], local.free)
    if motion is not None:
        return f"near the target {motion.reason} a motion of {names[motion.state]} that does not decay"
    return _too_weak_input(local)


def _left(local: Linearization) -> Array:
    """Drift (nt,) that the inputs nearest to holding the target leave, in limits per second; zero for free states."""
    judged = np.array([name not in local.tangent.free for name in local.tangent.names])
    drift, B = local.drift / local.limits, local.scaled_dynamics()[1]
    if np.abs(drift[judged]).max(initial=0.0) > REST:
        trim = [entry.trim for entry in local.metadata.inputs]
        (u0,) = local.robot.trim_at(np.array([local.metadata.task.target]), local.robot.nominal_parameters)
        drift = drift + B @ ((u0 - trim) / local.input_limits)
    return np.where(judged, drift, 0.0)


def _too_weak_input(local: Linearization) -> str:
    """Message on an unstable coordinate that the inputs cannot bring back from its tolerance, or an empty text."""
    near, tangent = tolerances(Problem(local.robot))[0], local.tangent
    for direction in unstable_directions(local):
        if direction.reach < float(near[tangent.states[direction.joint]]):
            name, unit, _ = tangent.entries[direction.joint]
            return (
                f"the input is too weak to hold the target: {name} is brought back from at most "
                f"{direction.reach:.2g} {unit}"
            )
    return ""


@dataclass(frozen=True)
class Preflight:
    """Result of the checks before a training: lines to show, and warnings."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def preflight(
    robot: CompiledRobot, run: RunDescription, preview: float = 20.0, unheld_target: bool = False
) -> Preflight:
    """Checks of a task and of the settings before minutes of training.

    robot: with float32 kernels on the CPU and the nominal parameters of the training. preview: seconds of the search
    for a motion to the target, 0 for no search. unheld_target: accept a target that no input holds. Raises SolverError
    for such a target otherwise, for an artifact that was not built from the present model file, and if the robot cannot
    be controlled on the identified set.
    """
    settings, identified, given = run.settings, run.identified, run.given
    require_current(robot)
    if not 0.0 <= preview < float("inf"):
        raise SolverError(f"preview is {preview}; give seconds, or 0 for no preview")
    if not unheld_target:
        _require_held_target(robot)
    lines = []
    if identified is not None:
        share = settings.adversaries.get("parameters", 0.0)
        if share > 0.0:
            require_controllable(robot, identified.scaled(share))
        lines.append(identified.text(robot, settings.algorithm == "rfvi"))
    if given:
        lines.append("told: " + ", ".join(f"{entry.name} {entry.lower:g} to {entry.upper:g}" for entry in given))
    task, horizon = robot.metadata.task, Problem(robot, given=given).horizon
    if horizon > task.horizon:
        lines.append(
            f"a rollout lasts {horizon:g} s, for the slowest robot of the family; the task lasts {task.horizon:g} s"
        )
    motion, warnings = previewed(robot, preview)
    lines += [motion] if motion else []
    return Preflight(
        tuple(lines), (*forewarnings(robot, settings, identified, given), *weak_corners(robot, given), *warnings)
    )


def _require_held_target(robot: CompiledRobot) -> None:
    """Raise SolverError if a state outside `free` moves at the target under every input within the limits."""
    local, inputs = linearization(robot), robot.metadata.inputs
    left = _left(local)
    worst = int(np.abs(left).argmax())
    if np.abs(left[worst]) <= REST:
        return
    state, unit, limit = local.tangent.entries[worst]
    ranges = ", ".join(f"{entry.name} {entry.range} {entry.unit}" for entry in inputs)
    raise SolverError(
        f"no input within the limits ({ranges}) holds the target of {robot.name}: {state} changes there by at "
        f"least {abs(left[worst] * limit):.3g} {unit} per second, so a policy cannot stay. In the model "
        f"file, choose another target=..., widen the limits, or write free=['{state}'] if its final value does "
        "not matter. With --unheld-target the training begins all the same."
    )


GUESSES, SEED = 12, 0  # random motions at most
GAIN = 0.02  # least gain of a useful motion, as a share of the idle robot's cost
NOTHING = 1e-6  # a cost below this is zero
BESIDE = 1.25  # tolerances of success: a robot that stops there fails
LEANS, AT_LIMIT = 0.05, 0.99  # share of the horizon with a state above this share of its limit


@dataclass(frozen=True)
class Preview:
    """Best motion from the mean start that the search found."""

    robot: CompiledRobot
    seconds: float  # of the search
    idle_return: float
    costs: tuple[float, float]  # per second: of the mean start, and of all inputs at half of their limits
    best: PlannedMotion | None = None
    at_target: bool = False  # by the success criterion of evaluations
    dead: tuple[str, ...] = ()  # coordinates in which a rolling robot may as well stop beside the target

    def text(self) -> str:
        """One line for the terminal. Empty if there is no useful motion to the target, or the mean start is there."""
        if self.best is None or not (self.at_target and self.is_useful) or self.idle_return > -NOTHING:
            return ""
        returns = [f"{value + 0.0:.4g}" for value in (self.best.reward, self.idle_return)]
        return (
            f"a motion to the target returns {returns[0]} from the mean start, the robot without input {returns[1]} "
            f"(found in {self.seconds:.0f} s; `solver limit {self.robot.name}` looks for the best)"
        )

    def warnings(self) -> list[str]:
        """Warnings, a paragraph each."""
        return [text for text in (self._no_motion(), *self._leaning(), self._dead_zone()) if text]

    def _no_motion(self) -> str:
        horizon = self.robot.metadata.task.horizon
        remedies = (
            f"If the training does not reach it either, the target is out of reach within {horizon:g} s, or too "
            "expensive: lengthen the horizon, raise an input limit or a rate limit, or lower the action cost (a second "
            f"at half of the input limits costs {self.costs[1]:.3g}, a second at the start {self.costs[0]:.3g}). "
            f"`solver limit {self.robot.name} --guesses 40` searches longer."
        )
        if self.best is None or not self.is_useful:
            return (
                f"a search of {self.seconds:.0f} s found no motion from the mean start that costs less than doing "
                f"nothing, which returns {self.idle_return:.4g}. {remedies}"
            )
        if not self.at_target:
            return (
                f"the best motion that a search of {self.seconds:.0f} s found from the mean start does not end at the "
                f"target: it returns {self.best.reward:.4g}, and doing nothing {self.idle_return:.4g}. {remedies}"
            )
        return ""

    @property
    def is_useful(self) -> bool:
        """Whether the motion costs less than the idle robot, or the idle robot costs nothing."""
        least = self.idle_return + GAIN * abs(self.idle_return)
        return self.best is not None and self.best.reward >= min(least, -NOTHING)

    def _dead_zone(self) -> str:
        if not self.dead:
            return ""
        names = " and ".join(self.dead)
        return (
            f"{self.robot.name} rolls, and from rest at {BESIDE:g} tolerances of success beside the target in {names} "
            "no motion was found that costs less than standing there. A policy that stops there is as good, and yet "
            f"evaluations count it as a failure. Write a cost that grows as |{self.dead[0]}| does, such as weight * "
            f"(sqrt({self.dead[0]}**2 + near**2) - near) with near below the tolerance, raise its weight, lower the "
            "weights of the coordinates that a manoeuvre moves, or lengthen the horizon."
        )

    def _leaning(self) -> list[str]:
        """Warnings of states that stay at their limit during the motion."""
        if self.best is None:
            return []
        states, horizon = self.robot.metadata.states, self.robot.metadata.task.horizon
        turning = self.robot.metadata.turning
        free = [state.continuous or i in turning for i, state in enumerate(states)]
        limits = np.array([np.inf if each else state.limit for each, state in zip(free, states, strict=True)])
        share = (np.abs(self.best.x) > AT_LIMIT * limits).mean(0)
        return [
            f"the best motion found keeps {states[i].name} at its limit of {states[i].limit:g} {states[i].unit} for "
            f"{share[i] * horizon:.2g} s. A policy learns to steer along a limit with difficulty: raise "
            "the limit in the model file if the robot allows it."
            for i in np.flatnonzero(share > LEANS)
        ]


def preview(robot: CompiledRobot, seconds: float) -> Preview:
    """Search for a motion to the target that costs less than the idle robot.

    robot: of any backend, with the nominal parameters of the training. seconds: of processor time; the last search may
    take half as long again. Raises SolverError for a mean start beyond a limit.
    """
    begun = time.process_time()
    hold = coarse_hold(robot)
    program = NonlinearProgram(robot.with_kernels("casadi"), hold=hold, patience=seconds / 2.0)
    problem, start = Problem(robot), design(robot.metadata, 1)[0]
    begin = problem.confine(torch.tensor(start[None], dtype=torch.float32))
    resting = float(rollouts(problem, without_input(problem), begin).returns)
    costs = float(problem.state_cost(begin)), float(problem.action_cost.cost(_half_input(problem)))
    result = Preview(robot, 0.0, resting, costs)
    swings = (pumped(program, start, share) for share in PUMPS)
    random = random_motions(program, start, GUESSES, SEED)
    for guess in (straight(program, start), *chain(*zip(random, swings, strict=False)), *random[len(PUMPS) :]):
        motion = program.solve(start, guess)
        if motion is not None and (result.best is None or motion.reward > result.best.reward):
            x = problem.confine(torch.tensor(motion.x.repeat(hold, axis=0), dtype=torch.float32))
            at_target = bool(succeeded(problem, x[:, None])[0])
            result = replace(result, best=motion, at_target=at_target)
        over = time.process_time() - begun
        if over > seconds or (result.at_target and result.is_useful):
            break
    return replace(result, seconds=over, dead=_dead_zone(problem, program))


def _dead_zone(problem: Problem, program: NonlinearProgram) -> tuple[str, ...]:
    """Coordinates in which a robot that rolls without slip loses nothing if it stops beside the tolerance of success.

    A way across the wheels costs about its length, and standing there the square of it.
    """
    metadata, names = problem.robot.metadata, []
    position = tolerances(problem)[0].double().numpy()
    for i in range(metadata.nq if metadata.rolls else 0):
        if metadata.states[i].name in metadata.task.free or i in metadata.turning:
            continue
        start = np.array(metadata.task.target)
        start[i] += BESIDE * position[i]
        standing = float(problem.state_cost(torch.tensor(start[None], dtype=torch.float32))) * metadata.task.horizon
        worthwhile, least = (1.0 - GAIN) * standing, math.inf
        for guess in (straight(program, start), *random_motions(program, start, len(PUMPS), SEED)):
            motion = program.solve(start, guess)
            least = least if motion is None else min(least, -motion.reward)
            if least <= worthwhile:
                break
        if worthwhile < least < math.inf:
            names.append(metadata.states[i].name)
    return tuple(names)


def _half_input(problem: Problem) -> torch.Tensor:
    """Inputs (1, m) half of the way from the trim to the limits that are farther from it."""
    far = torch.where(problem.input_middle >= problem.trim, problem.upper_input, problem.lower_input)
    return (problem.trim + 0.5 * (far - problem.trim))[None]


def previewed(robot: CompiledRobot, seconds: float) -> tuple[str, list[str]]:
    """Line and warnings of a preview: both empty for 0 seconds, and a warning if the search is not possible."""
    if seconds == 0.0:
        return "", []
    try:
        result = preview(robot, seconds)
    except SolverError as error:
        return "", [f"no preview of the task: {error}"]
    return result.text(), result.warnings()
