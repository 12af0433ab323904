"""Specification of a certificate, from a TOML file: distribution, plant, horizon, failure rule, and required bound."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import suggestion
from solver.certification.sets import Distribution, parameters, starts
from solver.certification.toml_table import TomlTable, read_toml
from solver.errors import SolverError
from solver.observer import make_sensing
from solver.observer.observability import estimated_parameters
from solver.plants import PLANTS, make_plant
from solver.plants.outcome import Rollouts
from solver.problem import Problem
from solver.runs.kinds import names_to_estimate

#: Specification without a file, and default of every key that a file leaves out.
USUAL = """\
starts = "task"
parameters = "nominal"
plant = "nominal"
failure = "not at the target"
failure_probability = 0.01
confidence = 0.999999
allowed_failures = 0
"""
KEYS = (
    "starts",
    "parameters",
    "plant",
    "effects",
    "observer",
    "estimate",
    "horizon",
    "failure",
    "failure_probability",
    "confidence",
    "allowed_failures",
    "map",
)
MOST_FAILURES = 10_000  # largest allowed_failures
LONGEST = 3600.0  # s, longest horizon


@dataclass(frozen=True)
class FailureRule:
    """Conditions that make a rollout a failure. One of them is enough."""

    not_at_target: bool
    limits: tuple[tuple[int, float], ...]  # index of a state, and the magnitude that it must never exceed
    return_below: float | None

    def failed(self, result: Rollouts) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask (N,) of the rollouts that failed."""
        failed = ~result.success if self.not_at_target else result.success.new_zeros(len(result.success))
        for index, limit in self.limits:
            failed = failed | (result.x[:, :, index].abs() > limit).any(0)
        if self.return_below is not None:
            failed = failed | (result.returns < self.return_below)
        mask: np.ndarray[Any, np.dtype[np.bool_]] = failed.numpy()
        return mask


@dataclass(frozen=True)
class Conditions:
    """Conditions of a rollout."""

    plant: str
    effects: tuple[str, ...]  # of the harsh plant
    observer: bool  # whether the policy gets the estimates of an observer
    estimate: tuple[str, ...]  # parameters that the observer estimates: names, or `all`
    horizon: float  # s


@dataclass(frozen=True)
class Specification:
    """Content of a specification for one robot."""

    text: str  # of the file, unchanged
    distribution: Distribution
    conditions: Conditions
    failure: FailureRule
    failure_probability: float  # required bound
    confidence: float
    allowed_failures: int
    map_states: tuple[int, int]


def read(path: Path | None, problem: Problem, run: str | Path | None = None) -> Specification:
    """Specification from a file, or the default one. run: whose told parameters `estimate = ["told"]` means.

    Raises SolverError, which names file and key, for a file that is not TOML, for unknown keys, and for values out of
    range.
    """
    text, content = (USUAL, tomllib.loads(USUAL)) if path is None else read_toml(path, "specification")
    table = TomlTable(str(path or "the default specification"), "", content)
    table.require_keys(KEYS)
    folder = Path() if path is None else path.parent
    name = table.choice("plant", PLANTS, "nominal")
    effects = tuple(table.words("effects"))
    try:
        make_plant(name, problem, effects=effects)
    except SolverError as error:
        raise table.mistake("effects" if effects else "plant", str(error)) from error
    estimate = _estimate(table, problem, run)
    return Specification(
        text,
        Distribution(starts(table, problem), parameters(table, problem, folder), _moved(table, problem, estimate)),
        Conditions(
            name,
            effects,
            table.flag("observer"),
            estimate,
            table.number("horizon", problem.horizon, least=problem.control_step, most=LONGEST),
        ),
        _failure(table, problem),
        table.number("failure_probability", 0.01, least=1e-6, below=1.0),
        table.number("confidence", 0.999999, least=0.5, below=1.0),
        table.whole("allowed_failures", 0, MOST_FAILURES),
        _map_states(table, problem),
    )


def _moved(table: TomlTable, problem: Problem, estimate: Sequence[str]) -> NDArray[np.float64] | None:
    """What a unit of every parameter adds to the start (p, n): references move that of the task. None: nothing does.

    Where the policy is told estimates, a state of first order that holds the robot follows what it is told too.
    """
    if table.content.get("starts", "task") != "task":
        return None
    task = problem.robot.metadata.task
    told = problem.context.names if estimate and problem.context is not None else ()
    moves = (*task.references, *(each for each in task.followed if each.name in told))
    slopes = {each.name: each.start for each in moves}
    still = (0.0,) * len(problem.target)
    return np.array([slopes.get(name, still) for name in problem.robot.parameter_names]) if slopes else None


def _estimate(table: TomlTable, problem: Problem, run: str | Path | None) -> tuple[str, ...]:
    """Names of the parameters that the observer estimates, from the key `estimate`."""
    names = tuple(table.words("estimate"))
    if names and not table.flag("observer"):
        raise table.mistake("estimate", "needs an observer; write observer = true too")
    try:
        names = names if run is None else names_to_estimate(run, names)
        estimated_parameters(problem, make_sensing(problem), names)
    except SolverError as error:
        raise table.mistake("estimate", str(error)) from error
    return names


def _failure(table: TomlTable, problem: Problem) -> FailureRule:
    """Failure rule of the key `failure`: a text, or a table of limits and a return."""
    entry = table.content.get("failure", "not at the target")
    if entry == "not at the target":
        return FailureRule(True, (), None)
    if not isinstance(entry, Mapping):
        raise table.mistake(
            "failure",
            f'is {entry!r}; write "not at the target", or a table with any of not_at_target = true, '
            "limits = {STATE = NUMBER}, return_below = NUMBER",
        )
    inner = table.inner("failure")
    inner.require_keys(("not_at_target", "limits", "return_below"))
    limits: list[tuple[int, float]] = []
    if "limits" in inner.content:
        beyond, states = inner.inner("limits"), problem.robot.metadata.states
        names = [state.name for state in states]
        beyond.require_keys(names)
        for name in beyond.content:
            index = names.index(name)
            limits.append((index, beyond.number(name, 0.0, above=0.0, below=states[index].limit)))
    below = inner.number("return_below", 0.0) if "return_below" in inner.content else None
    failure = FailureRule(inner.flag("not_at_target"), tuple(limits), below)
    if not (failure.not_at_target or limits or below is not None):
        raise table.mistake(
            "failure", "has no condition; add not_at_target = true, limits = {STATE = NUMBER} or return_below = NUMBER"
        )
    return failure


def _map_states(table: TomlTable, problem: Problem) -> tuple[int, int]:
    """Indices of the two states of the map; by default a coordinate, continuous if there is one, and its velocity."""
    metadata = problem.robot.metadata
    names: Sequence[str] = [state.name for state in metadata.states]
    plain = [i for i in range(len(names)) if i not in metadata.turning]  # an entry of a quaternion is no axis of a map
    usual = problem.continuous[0] if problem.continuous else plain[0]
    partner = metadata.partner(usual) if usual < metadata.nq else plain[1]
    chosen = table.words("map") or [names[usual], names[partner]]
    shown = [names[i] for i in plain]
    for name in chosen:
        if name not in shown:
            what = "is an entry of a quaternion" if name in names else "is not a state"
            raise table.mistake("map", f"has {name}, which {what}.{suggestion(name, shown)} States: {', '.join(shown)}")
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        raise table.mistake("map", f'is {chosen}; write two different states, as in ["{names[0]}", "{names[1]}"]')
    return names.index(chosen[0]), names.index(chosen[1])
