"""The manifest of an artifact as dataclasses, and its JSON; read without SymPy."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from modelgen.metadata import ActionCost, Input, Metadata, Parameter, State, Task

#: Increase this number with every change of the content of artifacts; older artifacts then count as stale.
GENERATOR_VERSION = 9


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
    data: dict[str, Any] = json.loads(text)
    fields: dict[str, Any] = dict(
        metadata=_metadata(data["metadata"]),
        model_hash=str(data["model_hash"]),
        generator_version=int(data["generator_version"]),
        functions={
            name: Signature(
                tuple(signature["arguments"]),
                tuple((output, tuple(shape)) for output, shape in signature["outputs"]),
            )
            for name, signature in data["functions"].items()
        },
        operations={name: int(count) for name, count in data["operations"].items()},
        files={backend: dict(files) for backend, files in data["files"].items()},
    )
    manifest = MechanicsManifest(**fields, points=dict(data["points"])) if "points" in data else Manifest(**fields)
    if manifest.hash != data["hash"]:
        raise ValueError("it was edited: its hash is not that of its content")
    return manifest


def _metadata(data: dict[str, Any]) -> Metadata:
    task: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data["task"].items()
    }
    cost = task.pop("action_cost")
    return Metadata(
        name=data["name"],
        description=data["description"],
        states=tuple(State(**state) for state in data["states"]),
        inputs=tuple(Input(**entry) for entry in data["inputs"]),
        parameters=tuple(Parameter(**parameter) for parameter in data["parameters"]),
        task=Task(action_cost=ActionCost(cost["name"], tuple(cost["weights"])), **task),
    )
