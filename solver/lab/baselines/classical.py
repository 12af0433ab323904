"""Controllers that a control engineer builds in an afternoon, as runs with the functions of `solver.runs.kinds`.

`energy`: shaping of the pendulum's energy (Astrom and Furuta, 2000), by the acceleration of the joint that carries it
(Spong, 1995), and a linear-quadratic regulator near the target.
`tvlqr`: time-varying linear-quadratic regulators along the best known motions from some starts. The nearest node by the
regulators' own cost-to-go acts (LQR-trees, Tedrake et al., 2010), because the policy has no clock.

Both are tuned with a budget of tries. A try draws gains, or searches motions. The controller with the most successes,
then with the largest mean return from starts of its own, is kept. A try has its own random numbers, so that a resumed
run equals an uninterrupted one.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

import modelgen
from modelgen import linear
from modelgen.arrays import Array
from modelgen.commandline import Range
from modelgen.errors import in_shell
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent
from solver.errors import SolverError
from solver.lab.baselines.settings import KEYS
from solver.local.linearization import linearization
from solver.oracles.limit import design
from solver.oracles.search import search
from solver.oracles.trajectory import NonlinearProgram, PlannedMotion
from solver.plants.outcome import Controller, rollouts, sample_starts, summary
from solver.problem import Problem
from solver.problem.robots import load_robot, require_current, require_same_artifact
from solver.runs import artifact
from solver.runs.folder import RUN, load_checkpoint, save_checkpoint
from solver.runs.kinds import Description, RolloutPolicy
from solver.runs.metrics import Report, metrics_log
from solver.streams import EVALUATION_SEED, Purpose, serial_torch, stream
from solver.training.settings import require_fields, require_names

ClassicalAlgorithm = Literal["energy", "tvlqr"]
TRIES: dict[ClassicalAlgorithm, int] = {"energy": 64, "tvlqr": 4}
STARTS = 5  # from which motions are searched
SINE = 0.02  # largest error of the pendulum's acceleration, as a share of its slope, for energy shaping
Parts = dict[str, Tensor]  # of a controller, by name


@dataclass(frozen=True)
class ClassicalSettings:
    """One controller. Two runs with equal settings on one machine give bit-identical controllers."""

    algorithm: ClassicalAlgorithm = "tvlqr"
    """`energy`: energy shaping and a linear-quadratic regulator, for a pendulum and for one on a driven joint. `tvlqr`:
    time-varying linear-quadratic regulators along the best known motions."""
    tries: Annotated[int, Range(0, 10**6)] = 0
    """Controllers that are tried. 0: 64 gains of energy shaping, or 4 searches of motions."""
    episodes: Annotated[int, Range(1, 10**6)] = 100
    """Rollouts of an evaluation."""
    seed: int = 0
    """Seed of the tries."""

    def __post_init__(self) -> None:
        """Raises SolverError for the first setting that has another type or is out of its range."""
        require_fields(self)


@dataclass(frozen=True)
class ClassicalRun(Description):
    """Description of a run: its robot and its settings."""

    settings: ClassicalSettings

    @property
    def name(self) -> str:
        """Name of the run folder."""
        return f"{self.robot}-{self.settings.algorithm}-seed{self.settings.seed}"

    @property
    def length(self) -> int:
        """Number of tries."""
        return self.settings.tries

    def identity(self) -> dict[str, Any]:
        """All settings but the evaluation's."""
        return {name: value for name, value in vars(self.settings).items() if name != "episodes"}


def describe(
    robot: CompiledRobot, generated: str | None, algorithm: ClassicalAlgorithm = "tvlqr", **choices: Any
) -> ClassicalRun:
    """Description of a new run. Raises SolverError for an unknown setting."""
    require_names(ClassicalSettings, choices)
    require_current(robot)
    settings = ClassicalSettings(algorithm, **choices)
    settings = replace(settings, tries=settings.tries or TRIES[settings.algorithm])
    return ClassicalRun(robot.name, robot.hash, generated, settings)


def start(run: ClassicalRun, folder: Path, report: Report, robot: CompiledRobot | None = None) -> None:
    """Tune a new controller in `folder`. Replaces a run in it."""
    robot = robot or load_robot(run.robot, "cpu", run.generated)
    require_same_artifact(folder, run.artifact_hash, robot)
    _designer(run, Problem(robot))  # its errors come before the folder is touched
    artifact.begin(folder, run, robot)
    _save(folder, run, 0, {})
    _tune(folder, run, robot, 0, {}, report)


def resume(folder: Path, report: Report) -> None:
    """Continue with the tries that are missing."""
    run, content = read(folder), _checkpoint(folder)
    robot = load_robot(run.robot, "cpu", run.generated)
    require_same_artifact(folder, run.artifact_hash, robot)
    _tune(folder, run, robot, int(content["steps"]), content["best"], report)


def read(folder: Path) -> ClassicalRun:
    """Content of classical.json. Raises SolverError if it is missing or damaged."""
    return artifact.load(folder, "classical", ClassicalRun)


def diagnosis(folder: Path) -> str:  # noqa: ARG001
    """An empty text: there is no diagnosis of these controllers."""
    return ""


def load_rollout_policy(
    folder: str | Path, generated: str | None = None, reaction_periods: float | None = None
) -> RolloutPolicy:
    """Nominal problem, the best controller so far, and the run's label.

    Raises SolverError for `reaction_periods`, and for a run before its first try.
    """
    folder = Path(folder)
    run, content = read(folder), _checkpoint(folder)
    if reaction_periods is not None:
        raise SolverError(f"{folder} holds no value function; leave out --reaction-periods")
    if not content["best"]:
        raise SolverError(
            f"{folder} holds no controller yet; continue with `solver classical --resume {in_shell(folder)}`"
        )
    robot = load_robot(run.robot, "cpu", generated or run.generated)
    require_same_artifact(folder, run.artifact_hash, robot)
    problem = Problem(robot)
    act = CONTROLLERS[run.settings.algorithm](problem, content["best"]["parts"])
    return RolloutPolicy(problem, act, run.label_at(int(content["steps"]), "tries"))


def _tune(
    folder: Path, run: ClassicalRun, robot: CompiledRobot, done: int, best: dict[str, Any], report: Report
) -> None:
    """Tries from `done` on, with metrics and a checkpoint after every one."""
    s, problem = run.settings, Problem(robot)
    propose, make = _designer(run, problem), CONTROLLERS[s.algorithm]
    x = sample_starts(problem, s.episodes, EVALUATION_SEED)
    selection = sample_starts(problem, s.episodes, stream(s.seed, 0, Purpose.SELECTION))
    with metrics_log(folder, done + 1, KEYS, "classical") as log, serial_torch():
        for number in range(done, s.tries):
            started = time.perf_counter()
            parts = propose(np.random.default_rng([s.seed, number]))
            found = summary(rollouts(problem, make(problem, parts), selection))
            reached = (found["success_rate"], float(np.nan_to_num(found["return_mean"], nan=-np.inf)))
            if not best or reached > tuple(best["reached"]):
                best = {"reached": reached, "try": number, "parts": parts}
            row = {"steps": number + 1.0, "seconds": time.perf_counter() - started, "kept": float(best["try"])}
            row |= summary(rollouts(problem, make(problem, best["parts"]), x))
            log.write(row)
            _save(folder, run, number + 1, best)
            report(row)


def _save(folder: Path, run: ClassicalRun, done: int, best: dict[str, Any]) -> None:
    save_checkpoint(folder, {"steps": done, RUN: run.results(), "best": best})


def _checkpoint(folder: Path) -> dict[str, Any]:
    return load_checkpoint(folder, ("steps", "best", RUN), results=lambda: read(folder).results())


def _designer(run: ClassicalRun, problem: Problem) -> Any:
    """The function that makes the parts of a controller from random numbers. Raises SolverError for a robot that the
    controller is not for."""
    if problem.context is not None:
        raise SolverError(f"`solver classical` is for robots without references; {run.robot} has some")
    designs = {"energy": EnergyDesign, "tvlqr": MotionDesign}
    return designs[run.settings.algorithm](problem)


def regulator(problem: Problem) -> tuple[Array, Array]:
    """K (m, nt) of u = trim - K e and P (nt, nt) of its cost, in SI units, from the task's cost at its target.

    e (nt,) is the error of `modelgen.tangent`: x - target, and three numbers for a rotation.

    Raises SolverError if no regulator exists.
    """
    local = linearization(problem.robot)
    (A, B), (Q, R) = local.scaled_dynamics(), local.scaled_weights()
    P = None if linear.obstacle(A, B, Q) else linear.cost_to_go(A, B, Q, R)
    if P is None:
        raise SolverError(f"{problem.robot.name} has no linear-quadratic regulator at its target")
    gain = linear.gain_of(P, B, R) * local.input_limits[:, None] / local.limits
    return gain, P / np.outer(local.limits, local.limits)


def _tensors(**parts: Any) -> Parts:
    return {name: torch.as_tensor(np.asarray(part), dtype=torch.float32) for name, part in parts.items()}


def _controller(problem: Problem, inputs: Any) -> Controller:
    """Controller of a function x (N, n) -> u (N, m), whose inputs are clipped to the limits."""

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = torch.minimum(torch.maximum(inputs(x), problem.lower_input), problem.upper_input)
        return u, problem.action_cost.cost(u)

    return act


class EnergyDesign:
    """Gains of energy shaping. Raises SolverError for a robot that is no pendulum on a motor or on a driven joint."""

    def __init__(self, problem: Problem) -> None:
        self.problem, metadata = problem, problem.robot.metadata
        self.gain, self.cost = regulator(problem)
        if metadata.nq > 2 or len(metadata.inputs) != 1 or len(metadata.states) != 2 * metadata.nq:
            raise self._refusal()
        angle, target = torch.linspace(-3.0, 3.0, 13), problem.target
        x = target.repeat(len(angle), 1)
        x[:, metadata.nq - 1] += angle
        acceleration, effect = _pendulum(problem, x)
        near = target.repeat(2, 1)
        near[:, metadata.nq - 1] += torch.tensor([-1e-2, 1e-2])
        at = _pendulum(problem, near)[0]
        self.slope = float(at[1] - at[0]) / (2.0 * math.sin(1e-2))
        misfit = (acceleration - self.slope * torch.sin(angle)).abs().max()
        if self.slope <= 0.0 or misfit > SINE * self.slope:
            raise self._refusal()
        if metadata.nq == 1:
            self.most = float(effect.abs().max() * problem.input_limits[0])
        else:  # an acceleration of the driven joint
            self.most = float((_driven(problem, target[None])[1].abs() * problem.input_limits[0]).max())

    def _refusal(self) -> SolverError:
        return SolverError(
            "energy shaping is for a pendulum on a motor, or on a joint with a motor, and "
            f"{self.problem.robot.name} is another robot. Use --algorithm tvlqr"
        )

    def __call__(self, random: np.random.Generator) -> Parts:
        """Gains of one try, log-uniform over two to four decades around the scales of robot and task."""
        pump, spring, brake, width = 10.0 ** random.uniform([-1.0, -2.0, -2.0, -2.0], [1.0, 0.5, 0.5, 0.0])
        share = random.uniform(0.5, 0.99)  # of the inputs: the task's cost may have a barrier at their limits
        limits = self.problem.tangent_limits.numpy()
        level = np.trace(self.cost * np.square(limits)) * 10.0 ** random.uniform(-4.0, -0.5)
        pump *= self.most / (2.0 * self.slope)  # the full input at the energy that is missing below
        rate = math.sqrt(self.slope)
        gains = [pump, spring * self.slope, brake * rate, width * rate, share]
        return _tensors(gain=self.gain, cost=self.cost, gains=gains, slope=self.slope, level=level)


def _driven(problem: Problem, x: Tensor) -> tuple[Tensor, Tensor]:
    """Accelerations a and b (N,) of the first coordinate: a + b u."""
    a, B = problem.robot.affine_dynamics(x)
    nq = problem.robot.metadata.nq
    return torch.as_tensor(a)[:, nq], torch.as_tensor(B)[:, nq, 0]


def _pendulum(problem: Problem, x: Tensor) -> tuple[Tensor, Tensor]:
    """Acceleration of the last coordinate, f + g r (N,): r is the input of one joint, or else the acceleration of the
    first of two."""
    a, B = (torch.as_tensor(part) for part in problem.robot.affine_dynamics(x))
    nq = problem.robot.metadata.nq
    if nq == 1:
        return a[:, 1], B[:, 1, 0]
    ratio = B[:, 3, 0] / B[:, 2, 0]
    return a[:, 3] - ratio * a[:, 2], ratio


def energy_error(problem: Problem, parts: Parts, x: Tensor) -> Tensor:
    """Energy (N,) of the pendulum minus that at the target, per moment of inertia."""
    nq = problem.robot.metadata.nq
    away = x[:, nq - 1] - problem.target[nq - 1]
    return 0.5 * x[:, 2 * nq - 1] ** 2 + parts["slope"] * (torch.cos(away) - 1.0)


def energy_controller(problem: Problem, parts: Parts) -> Controller:
    """Energy shaping, and the regulator where its cost is below `level`."""
    nq, (pump, spring, brake, width, share) = problem.robot.metadata.nq, parts["gains"]

    def inputs(x: Tensor) -> Tensor:
        effect, rate = _pendulum(problem, x)[1], x[:, 2 * nq - 1]
        along = torch.sign(effect) * torch.tanh(rate / width)  # the energy changes by effect * rate * shaped
        shaped = -pump * energy_error(problem, parts, x) * along
        if nq == 2:
            a, b = _driven(problem, x)
            wanted = shaped - spring * (x[:, 0] - problem.target[0]) - brake * x[:, 2]
            shaped = (wanted - a) / b
        most = share * problem.input_limits
        shaped = problem.input_middle + (shaped[:, None] - problem.input_middle).clamp(-most, most)
        e = problem.geometry.error(x, problem.target)
        held = problem.trim - e @ parts["gain"].T
        near = ((e @ parts["cost"]) * e).sum(1, keepdim=True) < parts["level"]
        return torch.where(near, held, shaped)

    return _controller(problem, inputs)


class MotionDesign:
    """Motions from some starts, and the regulators along them."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.cost = problem, regulator(problem)[1]
        robot = problem.robot
        self.robot = modelgen.load(robot.name, backend="casadi", directory=robot.folder.parent)
        self.program = NonlinearProgram(self.robot)
        self.slopes = self.program.step.factory("slopes", ["x", "u"], ["jac:later:x", "jac:later:u"])
        self.weights, self.tangent = linear.weights(robot.with_kernels()), Tangent(robot.metadata)

    def __call__(self, random: np.random.Generator) -> Parts:
        """Nodes of one search: states, inputs, gains and cost-to-go."""
        starts = design(self.problem.robot.metadata, STARTS)
        motions = search(self.robot, None, starts, STARTS, int(random.integers(2**31)), []).motions()
        nodes = [self.regulators(motion) for motion in motions]
        return _tensors(**{name: np.concatenate([node[name] for node in nodes]) for name in nodes[0]})

    def regulators(self, motion: PlannedMotion) -> dict[str, Array]:
        """x (K, n), u (K, m), gain (K, m, nt) and cost (K, nt, nt) along a motion of K control periods, by the Riccati
        recursion from the regulator of the target, in errors from the states of the motion."""
        Q, R = (self.problem.control_step * weight for weight in self.weights)
        S, gains, costs = self.cost, [], []
        for x, later, u in zip(motion.x[-2::-1], motion.x[:0:-1], motion.u[::-1], strict=True):
            A, B = (self.tangent.projection(later) @ np.asarray(slope) for slope in self.slopes(x, u))
            A = A @ self.tangent.basis(x)
            K = np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A)
            S = Q + A.T @ S @ (A - B @ K)
            S = 0.5 * (S + S.T)
            gains.append(K)
            costs.append(S)
        return {"x": motion.x[:-1], "u": motion.u, "gain": np.array(gains[::-1]), "cost": np.array(costs[::-1])}


def motion_controller(problem: Problem, parts: Parts) -> Controller:
    """The regulator of the node from which the cost-to-go is least."""

    def inputs(x: Tensor) -> Tensor:
        e = problem.geometry.error(x[:, None], parts["x"])
        nearest = torch.einsum("nki,kij,nkj->nk", e, parts["cost"], e).argmin(1)
        e = e[torch.arange(len(x)), nearest]
        return parts["u"][nearest] - torch.einsum("nmi,ni->nm", parts["gain"][nearest], e)

    return _controller(problem, inputs)


CONTROLLERS = {"energy": energy_controller, "tvlqr": motion_controller}
