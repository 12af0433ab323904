"""Many searches for the best motions of one task from a few starts: coarse ones first, and the best made exact."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.oracles.guesses import idle, pumped, random_motions, straight
from solver.oracles.trajectory import Guess, NonlinearProgram, Trajectory

Array = NDArray[np.float64]
PERIODS = 250  # of a coarse search: it holds inputs longer, where the task has more control periods
PUMPS = (0.2, 0.4, 0.7)  # shares of the inputs, with which motions are pumped up
REFINED = 2  # coarse optima that are made exact, from every start
DISTINCT = 1e-3  # of the return, by which two optima differ


def coarse_hold(robot: CompiledRobot) -> int:
    """Control periods for which a coarse search holds an input."""
    return math.ceil(robot.metadata.task.horizon * robot.metadata.task.control_rate / PERIODS)


def search(
    robot: CompiledRobot, theta: Array | None, starts: Array, guesses: int, seed: int, own: list[Guess]
) -> Searches:
    """Search from starts (N, n), with so many random motions among them.

    robot, theta: as `NonlinearProgram` takes them. own: the motions of a run, one a start, or none.
    """
    exact, hold = Searches(NonlinearProgram(robot, theta), starts, guesses, seed), coarse_hold(robot)
    coarse = Searches(NonlinearProgram(robot, theta, hold=hold), starts, guesses, seed)
    if hold == 1 and coarse.program.steps == exact.program.steps:
        exact.explore(own)
        return exact
    periods = coarse.program.periods
    coarse.explore([Guess(each.name, each.x[::hold][: periods + 1], each.u[::hold][:periods]) for each in own])
    exact.refine(coarse, own)
    return exact


class Searches:
    """The searches from all starts. A good motion from one start is a good guess for its neighbours."""

    def __init__(self, program: NonlinearProgram, starts: Array, guesses: int, seed: int) -> None:
        self.program, self.starts, self.seed = program, starts, seed
        self.shares = [len(part) for part in np.array_split(np.arange(guesses), len(starts))]
        self.found: list[list[Trajectory]] = [[] for _ in starts]
        self.solved, self.tried = [0] * len(starts), [0] * len(starts)

    def explore(self, own: list[Guess]) -> None:
        """Begin from all guesses of every start, then from the best motions of neighbours and of the best start."""
        asked: list[set[tuple[int, float]]] = [set() for _ in self.starts]  # whose motion a start has tried, its return
        for k in range(len(self.starts)):
            self._explore(k, own[k : k + 1])
            self._ask(k, self._nearest(k), asked[k])
        for k in range(len(self.starts)):  # again, for what was found after
            self._ask(k, self._nearest(k), asked[k])
            self._ask(k, self._best(k), asked[k])

    def refine(self, coarse: Searches, own: list[Guess]) -> None:
        """Begin from the best motions of a coarse search; from all guesses, where none of them leads to one."""
        for k in range(len(self.starts)):
            for guess in (*own[k : k + 1], *(self._finer(coarse.program, each) for each in coarse.distinct(k))):
                self._try(k, guess)
            self.solved[k], self.tried[k] = self.solved[k] + coarse.solved[k], self.tried[k] + coarse.tried[k]
            if not self.found[k]:
                self._explore(k, [])

    def motions(self) -> list[Trajectory]:
        """The best motion from every start. Raises SolverError for a start without one."""
        for k, found in enumerate(self.found):
            if not found:
                raise SolverError(
                    f"none of {self.tried[k]} searches from start {k} found a motion of "
                    f"{self.program.metadata.name} within its limits. Widen the state limits in the model file, raise "
                    "its control_rate, or look further with --guesses."
                )
        return [self._motion(k) for k in range(len(self.starts))]

    def distinct(self, k: int) -> list[Trajectory]:
        """The best motions from a start, REFINED at most, that differ in their return."""
        best: list[Trajectory] = []
        for motion in sorted(self.found[k], key=_reward, reverse=True):
            if not best or best[-1].reward - motion.reward > DISTINCT * abs(motion.reward):
                best.append(motion)
        return best[:REFINED]

    def _explore(self, k: int, own: list[Guess]) -> None:
        start, seed = self.starts[k], self.seed if k == 0 else (self.seed, k)
        swings = [pumped(self.program, start, share) for share in PUMPS[: self.shares[k]]]
        tried = [*own, idle(self.program, start), straight(self.program, start), *swings]
        for guess in (*tried, *random_motions(self.program, start, self.shares[k], seed)):
            self._try(k, guess)

    def _try(self, k: int, guess: Guess) -> None:
        motion = self.program.solve(self.starts[k], guess)
        self.tried[k] += 1
        if motion is not None:
            self.solved[k] += 1
            self.found[k].append(motion)

    def _nearest(self, k: int) -> list[int]:
        """The nearest other start that has a motion, if there is one."""
        distance = np.linalg.norm((self.starts - self.starts[k]) / self.program.state_limits, axis=1)
        return [j for j in np.argsort(distance, kind="stable").tolist() if j != k and self.found[j]][:1]

    def _best(self, k: int) -> list[int]:
        """The other start with the best motion, if there is one."""
        others = [j for j in range(len(self.starts)) if j != k and self.found[j]]
        return [max(others, key=lambda j: self._motion(j).reward)] if others else []

    def _ask(self, k: int, others: list[int], asked: set[tuple[int, float]]) -> None:
        """Begin from the best motions of other starts, once from each motion."""
        for j in others:
            motion = self._motion(j)
            if (j, motion.reward) not in asked:
                asked.add((j, motion.reward))
                self._try(k, Guess(f"the motion from start {j}", motion.x, motion.u))

    def _motion(self, k: int) -> Trajectory:
        return max(self.found[k], key=_reward)

    def _finer(self, coarse: NonlinearProgram, motion: Trajectory) -> Guess:
        """A motion of a coarse search, at all control periods."""
        periods = np.arange(self.program.periods + 1)
        x = [np.interp(periods, coarse.hold * np.arange(coarse.periods + 1), each) for each in motion.x.T]
        held = np.minimum(periods[:-1] // coarse.hold, coarse.periods - 1)
        return Guess(motion.guess, np.column_stack(x), motion.u[held])


def _reward(motion: Trajectory) -> float:
    return motion.reward
