"""The manifest of an artifact as dataclasses, and its JSON; read without SymPy."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from modelgen.artifact.typed import typed
from modelgen.metadata import Input, Metadata, Parameter, State

#: Increase this number with every change of the content of artifacts; older artifacts then count as stale.
GENERATOR_VERSION = 9
#: Entries of an output for one sample; a hundred states and as many inputs have a tenth of them.
MOST_ENTRIES = 10_000_000


@dataclass(frozen=True)
class Signature:
    """One function: the names of its arguments, and the names and shapes (without the sample axis) of its results."""

    arguments: tuple[str, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json."""

    metadata: Metadata
    model_hash: str  # sha256 of the model's content
    generator_version: int
    functions: dict[str, Signature]
    operations: dict[str, int]
    files: dict[str, dict[str, str]]  # backend or drawing -> file name -> sha256

    @property
    def hash(self) -> str:
        """The sha256 of all the rest of the manifest, which ends with it."""
        return hashlib.sha256(_text(asdict(self)).encode()).hexdigest()

    def sizes(self) -> dict[str, int]:
        """Entries per sample of every array argument."""
        n, m, p = len(self.metadata.states), len(self.metadata.inputs), len(self.metadata.parameters)
        return {"x": n, "u": m, "costate": n, "theta": p, "w": m}


@dataclass(frozen=True)
class MechanicsManifest(Manifest):
    """The content of mechanics/manifest.json: functions built on request, in a folder of their own in the artifact's.

    They leave the artifact and its hash as they are.
    """

    points: dict[str, str]  # name -> hash of what the model file states of it, for `modelgen check`


def to_json(manifest: Manifest) -> str:
    """The manifest as text, the same on every machine and at every time."""
    return _text(asdict(manifest) | {"hash": manifest.hash})


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> Manifest:
    """Read a manifest, a MechanicsManifest where the text is one of these.

    Raises KeyError, TypeError or ValueError for a text that is not one, or that was edited.
    """
    data = json.loads(text)
    told = data.pop("hash")
    manifest: Manifest = typed(MechanicsManifest if "points" in data else Manifest, data, "manifest")
    _check(manifest)
    if manifest.hash != told:
        raise ValueError("it was edited: its hash is not that of its content")
    return manifest


def _check(manifest: Manifest) -> None:
    """Raise ValueError for what the types leave open: names that no model file can have, lengths, files elsewhere."""
    metadata, states, task = manifest.metadata, manifest.metadata.states, manifest.metadata.task
    named: list[State | Input | Parameter] = [*states, *metadata.inputs, *metadata.parameters]
    for name in (metadata.name, *(each.name for each in named)):
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"{name!r} is no name")
    lengths = {len(task.target), len(task.start_mean), len(task.start_deviation)}
    if lengths != {len(states)} or len(task.action_cost.weights) != len(manifest.metadata.inputs):
        raise ValueError("its task is of another number of states or inputs")
    if 2 * len(manifest.metadata.coordinates) != len(states):
        raise ValueError("its states are not as many positions as velocities")
    for name in (name for files in manifest.files.values() for name in files):
        if not name or Path(name).name != name:
            raise ValueError(f"its file {name!r} is in another folder")
    for shape in (shape for each in manifest.functions.values() for _, shape in each.outputs):
        if min(shape, default=0) < 0 or math.prod(shape) > MOST_ENTRIES:
            raise ValueError(f"an output has the shape {shape}")
