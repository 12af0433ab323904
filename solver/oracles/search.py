"""Searches for the best motions of one task from a few starts: coarse searches first, then exact ones from the best.

The end of the file has the guesses from which searches start.
"""

from __future__ import annotations

import math

import numpy as np

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from modelgen.metadata import Rotation
from modelgen.tangent import kinematics
from solver.errors import SolverError
from solver.oracles.trajectory import FirstMotion, NonlinearProgram, PlannedMotion

PERIODS = 250  # most holds of a coarse search, which holds inputs for several control periods if necessary
PUMPS = (0.2, 0.4, 0.7)  # shares of the input limits in the guesses of `pumped`
REFINED = 2  # coarse optima from every start that exact searches continue
NEAR = 0.7  # cosine of half the angle to the target, above which no guess takes the longer way round
DISTINCT = 1e-3  # of the return: two optima with a smaller difference count as one


def coarse_hold(robot: CompiledRobot, seconds: float | None = None) -> int:
    """Control periods for which a coarse search holds an input. seconds: of a motion, by default the horizon."""
    return math.ceil((seconds or robot.metadata.task.horizon) * robot.metadata.task.control_rate / PERIODS)


def search(
    robot: CompiledRobot,
    theta: Array | None,
    starts: Array,
    guesses: int,
    seed: int,
    own: list[FirstMotion],
    seconds: float | None = None,
    trim: Array | None = None,
) -> Searches:
    """Completed searches from the starts (N, n).

    robot, theta, seconds, trim: see `NonlinearProgram`. guesses: number of random motions, shared among the starts.
    seed: of these. own: motions of a run, one for each start, or an empty list.
    """
    exact = Searches(NonlinearProgram(robot, theta, seconds, trim=trim), starts, guesses, seed)
    hold = coarse_hold(robot, seconds)
    coarse = Searches(NonlinearProgram(robot, theta, seconds, hold, trim=trim), starts, guesses, seed)
    if hold == 1 and coarse.program.steps == exact.program.steps:
        exact.explore(own)
        return exact
    periods = coarse.program.periods
    coarse.explore(
        [FirstMotion(guess.name, guess.x[::hold][: periods + 1], guess.u[::hold][:periods]) for guess in own]
    )
    exact.refine(coarse, own)
    return exact


class Searches:
    """Searches from all starts. A good motion from one start is a good guess for its neighbours."""

    def __init__(self, program: NonlinearProgram, starts: Array, guesses: int, seed: int) -> None:
        self.program, self.starts, self.seed = program, starts, seed
        self.shares = [len(part) for part in np.array_split(np.arange(guesses), len(starts))]
        self.optima: list[list[PlannedMotion]] = [[] for _ in starts]
        self.solved, self.tried = [0] * len(starts), [0] * len(starts)

    def explore(self, own: list[FirstMotion]) -> None:
        """Search from all guesses of every start, then from the best motions of its neighbour and of the best start."""
        used: list[set[tuple[int, float]]] = [set() for _ in self.starts]  # motions (start, return) that were guesses
        for k in range(len(self.starts)):
            self._explore(k, own[k : k + 1])
            self._continue(k, self._nearest(k), used[k])
        for k in range(len(self.starts)):  # again, because better motions may have been found since
            self._continue(k, self._nearest(k), used[k])
            self._continue(k, self._best(k), used[k])

    def refine(self, coarse: Searches, own: list[FirstMotion]) -> None:
        """Search from the best motions of coarse searches, and from all guesses if none of them leads to an optimum."""
        for k in range(len(self.starts)):
            for guess in (*own[k : k + 1], *(self._finer(coarse.program, motion) for motion in coarse.distinct(k))):
                self._try(k, guess)
            self.solved[k], self.tried[k] = self.solved[k] + coarse.solved[k], self.tried[k] + coarse.tried[k]
            if not self.optima[k]:
                self._explore(k, [])

    def motions(self) -> list[PlannedMotion]:
        """Best motion from every start. Raises SolverError for a start without a motion."""
        for k, optima in enumerate(self.optima):
            if not optima:
                raise SolverError(
                    f"none of {self.tried[k]} searches from start {k} found a motion of "
                    f"{self.program.metadata.name} within its limits. Widen the state limits in the model file, raise "
                    "its control_rate, or search longer with more --guesses."
                )
        return [self._motion(k) for k in range(len(self.starts))]

    def distinct(self, k: int) -> list[PlannedMotion]:
        """At most REFINED best motions from a start, with different returns."""
        best: list[PlannedMotion] = []
        for motion in sorted(self.optima[k], key=_reward, reverse=True):
            if not best or best[-1].reward - motion.reward > DISTINCT * abs(motion.reward):
                best.append(motion)
        return best[:REFINED]

    def _explore(self, k: int, own: list[FirstMotion]) -> None:
        start, seed = self.starts[k], self.seed if k == 0 else (self.seed, k)
        swings = [pumped(self.program, start, share) for share in PUMPS[: self.shares[k]]]
        simple = [*own, idle(self.program, start), straight(self.program, start), *swings]
        for guess in (*simple, *random_motions(self.program, start, self.shares[k], seed)):
            self._try(k, guess)

    def _try(self, k: int, guess: FirstMotion) -> None:
        motion = self.program.solve(self.starts[k], guess)
        self.tried[k] += 1
        if motion is not None:
            self.solved[k] += 1
            self.optima[k].append(motion)

    def _nearest(self, k: int) -> list[int]:
        """The nearest other start with a motion, if there is one."""
        distance = np.linalg.norm((self.starts - self.starts[k]) / self.program.state_limits, axis=1)
        return [j for j in np.argsort(distance, kind="stable").tolist() if j != k and self.optima[j]][:1]

    def _best(self, k: int) -> list[int]:
        """The other start with the best motion, if there is one."""
        others = [j for j in range(len(self.starts)) if j != k and self.optima[j]]
        return [max(others, key=lambda j: self._motion(j).reward)] if others else []

    def _continue(self, k: int, others: list[int], used: set[tuple[int, float]]) -> None:
        """Search from the best motions of other starts that were not used before."""
        for j in others:
            motion = self._motion(j)
            if (j, motion.reward) not in used:
                used.add((j, motion.reward))
                self._try(k, FirstMotion(f"the motion from start {j}", motion.x, motion.u))

    def _motion(self, k: int) -> PlannedMotion:
        return max(self.optima[k], key=_reward)

    def _finer(self, coarse: NonlinearProgram, motion: PlannedMotion) -> FirstMotion:
        """Guess for all control periods from a motion of a coarse search."""
        periods = np.arange(self.program.periods + 1)
        x = [np.interp(periods, coarse.hold * np.arange(coarse.periods + 1), state) for state in motion.x.T]
        held = np.minimum(periods[:-1] // coarse.hold, coarse.periods - 1)
        return FirstMotion(motion.guess, self.program.normalised(np.column_stack(x)), motion.u[held])


def _reward(motion: PlannedMotion) -> float:
    return motion.reward


def _same_half(target: Array, x: Array, rotation: Rotation) -> Array:
    """The quaternion (4,) of the target, with the sign with which it is nearer to the state x (n,)."""
    goal: Array = target[rotation.quaternion]
    return -goal if goal @ x[rotation.quaternion] < 0.0 else goal


def idle(program: NonlinearProgram, start: Array) -> FirstMotion:
    """Guess of a robot that stays at its start (n,) under the trim."""
    k = program.periods
    return FirstMotion("an idle robot", np.tile(start, (k + 1, 1)), np.tile(program.trim, (k, 1)))


def straight(program: NonlinearProgram, start: Array) -> FirstMotion:
    """Guess of the shortest way to the target, within a third of the horizon."""
    return _motion(program, start, "the straight way", program.task.horizon / 3.0, np.zeros(program.coordinates), 0.0)


def pumped(program: NonlinearProgram, start: Array, share: float) -> FirstMotion:
    """Guess that adds energy, as one pumps a swing, until the motion is nearest to the target, and then stays there.

    Every input has a share of the way from its trim to its limit, in the direction in which its joint moves.
    """
    limits, target = program.state_limits, np.array(program.task.target)
    q, v, away = program.coordinates, program.metadata.velocities, program.trim - program.input_middle
    x, u = np.tile(target, (program.periods + 1, 1)), np.tile(program.trim, (program.periods, 1))
    rates = [program.metadata.rate(entry.coordinate or "") for entry in program.metadata.inputs]
    slow = ~program.control_matrix(start)[v].any(axis=0)  # inputs that act through a state of first order
    driven = np.array([[i == rate for rate in rates] for i in range(len(target))]) * slow
    x[0], distance = start, np.full(program.periods + 1, np.inf)
    for k in range(program.periods):
        along = np.sign(x[k, v] @ program.control_matrix(x[k])[v] + x[k] @ driven)
        along = np.where(along == 0.0, 1.0, along)
        u[k] = program.trim + share * (program.input_limits - along * away) * along
        x[k + 1] = np.asarray(program.step(x[k], u[k])[0]).ravel()
        if not (np.abs(x[k + 1]) < np.where(program.clipped, limits, np.inf)).all():
            break
        error = x[k + 1] - target
        error[:q] -= 2.0 * np.pi * program.wraps[:q] * np.round(error[:q] / (2.0 * np.pi))
        for rotation in program.metadata.rotations:
            error[rotation.quaternion] = x[k + 1, rotation.quaternion] - _same_half(target, x[k + 1], rotation)
        distance[k + 1] = np.linalg.norm(error / limits)
    nearest = int(distance.argmin())
    turns = 2.0 * np.pi * program.wraps[:q] * np.round((x[nearest] - target)[:q] / (2.0 * np.pi))
    x[nearest + 1 :], u[nearest:] = target, program.trim
    x[nearest + 1 :, :q] += turns
    for rotation in program.metadata.rotations:
        x[nearest + 1 :, rotation.quaternion] = _same_half(target, x[nearest], rotation)
    return FirstMotion(f"pumped with {share:g} of the inputs", x, u)


def random_motions(
    program: NonlinearProgram, start: Array, count: int, seed: int | tuple[int, ...]
) -> list[FirstMotion]:
    """Guesses of `count` ways to the target with a swing of random amplitude, frequency and duration, either way
    round."""
    rng = np.random.default_rng(seed)
    q = program.coordinates
    wraps = program.wraps[:q]
    motions = []
    for i in range(count):
        seconds = rng.uniform(0.12, 0.8) * program.periods / program.rate
        swing = rng.uniform(-0.6, 0.6, q) * program.state_limits[:q]
        either = rng.choice([-1.0, 0.0, 1.0], q)  # if the start is near the target; from the far side, only two ways
        turns: Array = wraps * np.where(
            np.abs(start[:q]) < np.pi / 2, either, np.sign(start[:q]) * np.maximum(either, 0)
        )
        cycles = rng.uniform(0.5, 3.0)
        if program.metadata.rotations and i % 2:  # the longer way round
            turns = turns + np.isin(np.arange(q), list(program.metadata.turning))
        motions.append(_motion(program, start, f"random motion {i + 1}", seconds, swing, cycles, turns))
    return motions


def _motion(
    program: NonlinearProgram,
    start: Array,
    name: str,
    seconds: float,
    swing: Array,
    cycles: float,
    turns: Array | float = 0.0,
) -> FirstMotion:
    """Guess under the trim that reaches the target after `seconds`, plus `cycles` of a sine of amplitude `swing` (q,).

    turns: (q,) full turns by which the last angles differ from the target; 1 in the entries of a rotation that takes
    the longer way round.
    """
    q, period = program.coordinates, 1.0 / program.rate
    around, turns = np.broadcast_to(turns, q) > 0.0, turns * program.wraps[:q]
    share = np.minimum(np.arange(program.periods + 1) * period / seconds, 1.0)[:, None]
    target = np.array(program.task.target)
    goal = target[:q] + 2.0 * np.pi * turns
    for rotation in program.metadata.rotations:
        nearer = _same_half(target, start, rotation)
        longer = around[rotation.coordinate] and nearer @ start[rotation.quaternion] < NEAR
        goal[rotation.quaternion] = -nearer if longer else nearer
    position = start[:q] + share**2 * (3.0 - 2.0 * share) * (goal - start[:q])
    position = position + swing * np.sin(np.pi * share) * np.sin(2.0 * np.pi * cycles * share)
    position = program.normalised(position)
    rates = np.gradient(position, period, axis=0)
    x = np.tile(target, (len(position), 1))
    x[:, :q] = position
    if program.metadata.uneven or program.metadata.rotations:  # speeds without a coordinate stay those of the target
        followed = {program.metadata.rate(name): i for i, name in enumerate(program.metadata.coordinates)}
        for state, i in ((state, i) for state, i in followed.items() if state is not None):
            x[:, state] = rates[:, i]
        for rotation in program.metadata.rotations:
            pairs = zip(position[:, rotation.quaternion], rates[:, rotation.quaternion], strict=True)
            x[:, rotation.speeds] = [2.0 * kinematics(at).T @ rate for at, rate in pairs]
    else:
        x[:, program.metadata.velocities] = rates
    bound = np.where(program.clipped, program.state_limits, np.inf)
    return FirstMotion(name, np.clip(x, -bound, bound), np.tile(program.trim, (program.periods, 1)))
