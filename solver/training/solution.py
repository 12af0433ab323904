"""A run of fitted value iteration: its description (run.json), its checkpoint, and its value function and policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from modelgen.artifact.manifest import typed
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.policies import require_reaction_periods
from solver.plants.outcome import Controller, controller
from solver.problem import Problem
from solver.problem.context import Context, Given
from solver.problem.identified import IdentifiedSet
from solver.problem.parameters import Change, changed_parameters, require_told_names
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs import artifact
from solver.runs import folder as files
from solver.runs.kinds import Description
from solver.runs.shipped import run_folder
from solver.streams import Purpose, stream
from solver.training.settings import ADVERSARY, Settings
from solver.value.fitting import Adam, Optimiser, Soap
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble, Factor

RUN = "run.json"
PARTS = ("iteration", "ensemble", "optimisers", "best", files.RUN)  # of a checkpoint
KEYS = ("iteration", "value_error")  # of every row of metrics.jsonl; the first is the counter


@dataclass(frozen=True)
class RunDescription(Description):
    """Description of a run: its robot, its settings, and what it begins with."""

    settings: Settings
    preset: str
    warm_from: str = ""  # folder of the run whose value function it begins with
    identified: IdentifiedSet | None = None  # parameters from recordings: nominal values and sets
    given: tuple[Given, ...] = ()  # parameters that the policy is told, with the references of the robot
    references: tuple[str, ...] = ()  # their names

    @property
    def nominal(self) -> tuple[float, ...]:
        """Identified parameters (p,); empty for the parameters of the model file."""
        return self.identified.nominal if self.identified else ()

    @property
    def told_names(self) -> tuple[str, ...]:
        """Names of the parameters that the policy is told."""
        return tuple(entry.name for entry in self.given)

    @property
    def reference_names(self) -> tuple[str, ...]:
        """Names of the references among the told ones."""
        return self.references

    @property
    def name(self) -> str:
        """Name of the run folder: robot, algorithm, preset, told parameters (references are always told) and seed."""
        told = "".join(f"-{name}" for name in self.told_names if name not in self.references)
        return f"{self.robot}-{self.settings.algorithm}-{self.preset}{told}-seed{self.settings.seed}"

    @property
    def label(self) -> str:
        """Robot and algorithm, and the preset unless it is `fast`."""
        label = f"{self.robot}-{self.settings.algorithm}"
        return label if self.preset == "fast" else f"{label}-{self.preset}"

    @property
    def length(self) -> int:
        """Number of value iterations."""
        return self.settings.iterations

    def identity(self) -> dict[str, Any]:
        """All settings but the threads and, for cFVI, the settings of the adversaries; and what the run begins with."""
        idle = {"threads", *(ADVERSARY if self.settings.algorithm == "cfvi" else ())}
        settings = {name: value for name, value in vars(self.settings).items() if name not in idle}
        begins = {"warm_from": self.warm_from, "identified": self.identified and asdict(self.identified)}
        return settings | begins | ({"given": [asdict(entry) for entry in self.given]} if self.given else {})

    def results(self) -> dict[str, Any]:
        """As in the base class. Runs of earlier versions have no entries `given` and `references`."""
        content = super().results()
        for name in ("given", "references"):
            if not content[name]:
                del content[name]
        return content


@dataclass(frozen=True)
class BestEntry:
    """Entry `best` of a checkpoint, see `solver.training.selection.Best`."""

    iteration: int
    score: tuple[float, float, float, float, float]
    ensemble: dict[str, Any]


def load_run(folder: Path) -> RunDescription:
    """Content of run.json. Raises SolverError if it is missing or damaged, or for a run of another kind."""
    return artifact.load(folder, "train", RunDescription)


def load_run_checkpoint(folder: Path, device: str = "cpu") -> dict[str, Any]:
    """Checkpoint of a run. Raises SolverError if it is missing, damaged, or of another run than run.json."""
    return files.load_checkpoint(folder, PARTS, device, _check_content, lambda: load_run(folder).results())


def _check_content(content: dict[str, Any]) -> None:
    """Raises ValueError or TypeError for entries of another type."""
    optimisers = content.get("optimisers", [])
    if not isinstance(optimisers, list) or not all(isinstance(state, dict) for state in optimisers):
        raise ValueError("its entry `optimisers` is not a list of states of optimisers")
    if not isinstance(content.get("visited", torch.empty(0)), torch.Tensor):
        raise ValueError("its entry `visited` is not a tensor")
    best = content.get("best", {})
    if not isinstance(best, dict) or not isinstance(content.get("ensemble", {}), dict):
        raise ValueError("its value function is not a mapping of weights")
    if best:
        typed(BestEntry, best, "best")


POSITION_SCALE = 2.0  # network input of a position that does not wrap: 2 q/limit
WEIGHT_DECAY = 1e-6  # L2 penalty on the weights, as in the paper


def make_ensemble(robot: CompiledRobot, settings: Settings, context: Context | None = None) -> Ensemble:
    """Untrained value function on the CPU. context: of the problem, where parameters are told."""
    states = robot.metadata.states
    scales = {"position": POSITION_SCALE, "velocity": settings.input_scale}
    scaled = settings.input_scale > 0.0
    return Ensemble(
        continuous=[state.continuous for state in states],
        target=list(robot.metadata.task.target) if context is None else context.target.tolist(),
        scale=[scales.get(state.kind, settings.input_scale) / state.limit if scaled else 1.0 for state in states],
        members=settings.members,
        layers=settings.layers,
        width=settings.width,
        generator=torch.Generator().manual_seed(stream(settings.seed, 0, Purpose.WEIGHTS)),
        told=0 if context is None else len(context),
        rotations=robot.metadata.rotations,
        shift=None if context is None or context.shift is None else context.shift.cpu(),
    )


def make_optimiser(member: Factor, settings: Settings) -> Optimiser:
    """Fresh optimiser of a member of the ensemble."""
    if settings.authors:
        return Adam(member, settings.learning_rate, WEIGHT_DECAY, True, member.held)
    return Soap(member, settings.learning_rate, WEIGHT_DECAY, member.held)


@dataclass(frozen=True)
class Solution:
    """A trained run, ready to evaluate: the nominal problem and the best value function of the training."""

    run: RunDescription
    problem: Problem
    ensemble: Ensemble
    value: FrozenValue
    iteration: int  # of the last checkpoint

    def controller(self) -> Controller:
        """Policy of the run."""
        return controller(self.problem, self.value, self.run.settings.hold)

    def told_that(self, told: Mapping[str, Change]) -> Solution:
        """The solution of the one robot with these told parameters, the others nominal; itself without contexts.

        Raises SolverError for a value out of its range.
        """
        context = self.problem.context
        if context is None:
            return self
        theta = changed_parameters(self.problem, told)
        problem, ensemble = self.problem.told_that(theta), self.ensemble.told_that(context.of(theta))
        return replace(self, problem=problem, ensemble=ensemble, value=FrozenValue(ensemble))

    @property
    def label(self) -> str:
        """Label of the run, with its progress if the training has not ended."""
        return self.run.label_at(self.iteration, "iterations")


def load_solution(
    folder: str | Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
    told: Mapping[str, Change] = MappingProxyType({}),
    contexts: bool = False,
) -> Solution:
    """Solution of a run folder, or of a shipped policy by its name.

    generated: the folder of artifacts if it has moved. reaction_periods: of the policy, by default as in training.
    told: parameters that the policy is told; the other ones of its training are nominal. The solution is the one of the
    robot with these parameters. contexts: the problem and the value function have contexts instead, if the run has told
    parameters. Raises SolverError for a folder without a run, a damaged checkpoint, another artifact,
    and for a parameter that the policy cannot be told.
    """
    name, folder = folder, run_folder(folder)
    run, checkpoint = load_run(folder), load_run_checkpoint(folder)
    require_told_names(name, run.told_names, told)
    robot = load_robot(run.robot, "cpu", generated or run.generated, nominal=run.nominal)
    require_same_artifact(folder, run.artifact_hash, robot)
    if reaction_periods is not None:
        require_reaction_periods(reaction_periods)
        run = replace(run, settings=replace(run.settings, reaction_periods=float(reaction_periods)))
    kept = checkpoint["best"] or checkpoint  # `best` is empty before the first evaluation
    family = Problem(robot, identified=run.identified, given=run.given)
    ensemble = make_ensemble(robot, run.settings, family.context)
    try:
        ensemble.load_state_dict(kept["ensemble"])
    except (RuntimeError, KeyError, TypeError) as error:
        raise SolverError(
            f"the checkpoint in {folder} does not fit the settings in its run.json: {' '.join(str(error).split())}"
        ) from error
    solution = Solution(run, family, ensemble, FrozenValue(ensemble), checkpoint["iteration"])
    return solution if contexts else solution.told_that(told)
