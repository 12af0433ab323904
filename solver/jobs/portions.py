"""The policy of a run on whatever machine has the run: what portions of its rollouts need, as short jobs."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from solver.errors import SolverError
from solver.jobs.versions import require_versions, versions
from solver.plants.rollouts import Controller
from solver.problem.problem import Problem
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import kind_of, load_controller
from solver.runs.shipped import is_shipped, run_folder

MOST_LOADED = 16  # policies that a process keeps


@dataclass(frozen=True)
class Policy:
    """A trained policy as a job names it: where it is, and what must be found there."""

    run: str  # an absolute path, or the name of a shipped policy
    generated: str | None
    reaction_periods: float | None  # as in `load_controller`
    checkpoint: str  # SHA-256
    versions: tuple[tuple[str, str], ...]  # where the job is given
    host: str  # where the job is given

    def load(self) -> tuple[Problem, Controller, str]:
        """What `load_controller` returns, loaded once a process.

        Raises SolverError, with both hashes, where versions, artifact or checkpoint are others than where the job was
        given.
        """
        return _load(self)


def policy(run: str | Path, generated: str | None = None, reaction_periods: float | None = None) -> Policy:
    """Name the policy of a run for jobs. Raises SolverError for a folder without a run or a checkpoint."""
    kind_of(run_folder(run)).training.read(run_folder(run))
    return Policy(
        str(run) if is_shipped(run) else str(Path(run).absolute()),
        generated and str(Path(generated).absolute()),
        reaction_periods,
        _checkpoint(run_folder(run)),
        tuple(versions().items()),
        socket.gethostname(),
    )


def _checkpoint(folder: Path) -> str:
    """SHA-256 of a run's checkpoint."""
    try:
        return hashlib.sha256((folder / CHECKPOINT).read_bytes()).hexdigest()
    except OSError as error:
        raise SolverError(
            f"{folder} holds no {CHECKPOINT} that this machine ({socket.gethostname()}) can read. A training writes it "
            "after its first iteration; on a cluster all machines must share the folder."
        ) from error


@lru_cache(MOST_LOADED)
def _load(told: Policy) -> tuple[Problem, Controller, str]:
    require_versions(dict(told.versions))
    found = _checkpoint(run_folder(told.run))
    if found != told.checkpoint:
        raise SolverError(
            f"{socket.gethostname()} has checkpoint {found[:12]} of {told.run} in place of {told.checkpoint[:12]}: the "
            "run is being trained, or this machine sees another folder"
        )
    try:
        return load_controller(told.run, told.generated, told.reaction_periods)
    except SolverError as error:
        if socket.gethostname() == told.host:
            raise
        raise SolverError(f"on {socket.gethostname()}: {error}") from error
