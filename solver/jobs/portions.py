"""Reference to the policy of a run, which short jobs load on any machine, and the versions that they must share."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import RolloutPolicy, kind_of, load_rollout_policy
from solver.runs.shipped import is_shipped, run_folder

PACKAGES = ("torch", "numpy", "llvmlite")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the numerical packages, and the hash of this program's sources, by name."""
    root, content = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(path for package in ("modelgen", "solver") for path in (root / package).rglob("*.py")):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"solver": content.hexdigest()[:12], "python": python} | {name: version(name) for name in PACKAGES}


def require_versions(expected: Mapping[str, str]) -> None:
    """Raises SolverError unless this machine has the versions of the submitting machine."""
    here = versions()
    other = [f"{name} {here.get(name)} in place of {there}" for name, there in expected.items() if here[name] != there]
    if other:
        raise SolverError(
            f"the worker on {socket.gethostname()} has {', '.join(other)}; install the same versions there"
        )


MOST_LOADED = 16  # policies that a process keeps in memory


@dataclass(frozen=True)
class PolicyReference:
    """A trained policy as an argument of a job: its place, and what the worker must find there."""

    run: str  # absolute path, or name of a shipped policy
    generated: str | None
    reaction_periods: float | None  # as in `load_rollout_policy`
    checkpoint: str  # SHA-256
    versions: tuple[tuple[str, str], ...]  # of the submitting machine
    host: str  # the submitting machine

    def load(self, told: tuple[tuple[str, float], ...] = (), contexts: bool = False) -> RolloutPolicy:
        """Policy for rollouts, which is told some parameters, or takes rows with contexts. A process loads it once.

        Raises SolverError with both hashes if versions, artifact or checkpoint differ from the submitting machine's.
        """
        return _load(self, told, contexts)


def policy_reference(
    run: str | Path, generated: str | None = None, reaction_periods: float | None = None
) -> PolicyReference:
    """Reference to the policy of a run. Raises SolverError for a folder without a run or a checkpoint."""
    kind_of(run_folder(run)).training.read(run_folder(run))
    return PolicyReference(
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
            "before its first iteration; on a cluster all machines must share the folder."
        ) from error


@lru_cache(MOST_LOADED)
def _load(policy: PolicyReference, told: tuple[tuple[str, float], ...], contexts: bool) -> RolloutPolicy:
    require_versions(dict(policy.versions))
    checkpoint = _checkpoint(run_folder(policy.run))
    if checkpoint != policy.checkpoint:
        raise SolverError(
            f"{socket.gethostname()} has checkpoint {checkpoint[:12]} of {policy.run} in place of "
            f"{policy.checkpoint[:12]}: the run is being trained, or this machine sees another folder"
        )
    try:
        return load_rollout_policy(policy.run, policy.generated, policy.reaction_periods, dict(told), contexts)
    except SolverError as error:
        if socket.gethostname() == policy.host:
            raise
        raise SolverError(f"on {socket.gethostname()}: {error}") from error
