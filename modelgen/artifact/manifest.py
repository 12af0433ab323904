"""The manifest of an artifact as dataclasses, and JSON read as dataclasses, each entry checked by its type."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import types
from dataclasses import asdict, dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from modelgen.metadata import Input, Metadata, Parameter, State

LARGEST = 10**308  # of an integer that stands for a float


def typed(kind: Any, value: Any, name: str) -> Any:
    """The value as that type: a dataclass, tuple, dictionary with text as keys, Literal, number, text, bool or None.

    An integer becomes a float where one belongs, and Any takes every value. name: the entry that a message names.
    Raises TypeError for another value.
    """
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)
        required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
        if not required <= value.keys() <= hints.keys():
            raise TypeError(f"{name} lacks an entry, or has another: {', '.join(sorted(hints.keys() ^ value.keys()))}")
        return kind(**{key: typed(hints[key], entry, key) for key, entry in value.items()})
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else [*inner]
        if len(kinds) == len(value):
            return tuple(typed(inner_kind, entry, name) for inner_kind, entry in zip(kinds, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: typed(inner[1], entry, f"{name}.{key}") for key, entry in value.items()}
    if origin in (Union, types.UnionType):
        (plain,) = (member for member in inner if member is not type(None))
        return None if value is None else typed(plain, value, name)
    if origin is Literal and value in inner:
        return value
    if kind is float and type(value) is int and abs(value) <= LARGEST:
        return float(value)
    if type(value) is kind:
        return value
    raise TypeError(f"{name} is {str(value)[:60]!r}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


#: Increase this number with every change of the content of artifacts; older artifacts then count as stale.
GENERATOR_VERSION = 10


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json."""

    metadata: Metadata
    model_hash: str  # sha256 of the model's content
    model_file: str  # sha256 of the text of the model file; empty for a robot that a program declared
    generator_version: int
    program: str  # sha256 of the program's file
    files: dict[str, str]  # what stands beside the program for its readers: file name -> sha256

    @cached_property
    def hash(self) -> str:
        """The name of the content: sha256 of the metadata, the model's content and the program, the files left out."""
        content = {"metadata": self.metadata.content(), "model_hash": self.model_hash, "program": self.program}
        return hashlib.sha256(_text(content).encode()).hexdigest()

    @property
    def program_file(self) -> str:
        """The name of the program's file."""
        return f"program_{self.program[:12]}.json"


@dataclass(frozen=True)
class MechanicsManifest(Manifest):
    """The content of mechanics/manifest.json: functions built on request, in a folder of their own in the artifact's.

    They leave the artifact and its hash as they are.
    """

    points: dict[str, str]  # name -> hash of what the model file states of it, for `modelgen check`


def to_json(manifest: Manifest) -> str:
    """The manifest as text, the same on every machine and at every time."""
    return _text(asdict(manifest) | {"metadata": manifest.metadata.content(), "hash": manifest.hash})


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@lru_cache(64)  # a command opens its artifact several times
def from_json(text: str) -> Manifest:
    """Read a manifest, a MechanicsManifest where the text is one of these.

    Raises KeyError, TypeError or ValueError for a text that is not a manifest, or that was edited.
    """
    data = json.loads(text)
    written_hash = data.pop("hash")
    manifest: Manifest = typed(MechanicsManifest if "points" in data else Manifest, data, "manifest")
    _check(manifest)
    if manifest.hash != written_hash:
        raise ValueError("it was edited: its hash is not that of its content")
    return manifest


def _check_order(metadata: Metadata) -> None:
    """Raise ValueError for states in another order than (q, v, z), and for speeds that do not fit the coordinates."""
    kinds = [state.kind for state in metadata.states]
    if kinds != sorted(kinds, key=("position", "velocity", "internal").index):
        raise ValueError("its states are not positions, then velocities, then internal states")
    if metadata.pose + len(metadata.ignored) < metadata.nv:
        raise ValueError("its velocities are more than its degrees of freedom")
    for rotation in metadata.rotations:
        if {*kinds[rotation.quaternion]} != {"position"} or {*kinds[rotation.speeds]} != {"velocity"}:
            raise ValueError(f"its rotation {rotation.name} is not a quaternion with an angular velocity")


def _check(manifest: Manifest) -> None:
    """Raise ValueError for what the types leave open: names that no model file can have, lengths, files elsewhere."""
    metadata, states, task = manifest.metadata, manifest.metadata.states, manifest.metadata.task
    named: list[State | Input | Parameter] = [*states, *metadata.inputs, *metadata.parameters]
    for name in (metadata.name, *(entry.name for entry in named)):
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"{name!r} is not a name")
    lengths = {len(task.target), len(task.start_mean), len(task.start_deviation)}
    if lengths != {len(states)} or len(task.action_cost.weights) != len(manifest.metadata.inputs):
        raise ValueError("its task is of another number of states or inputs")
    _check_order(metadata)
    for name in manifest.files:
        if not name or Path(name).name != name:
            raise ValueError(f"its file {name!r} is in another folder")
    if not re.fullmatch("([0-9a-f]{64})?", manifest.model_file):
        raise ValueError(f"its model_file is {manifest.model_file[:80]!r}, not a sha256")
    if not re.fullmatch("[0-9a-f]{64}", manifest.program):
        raise ValueError(f"its program is {manifest.program[:80]!r}, not a sha256")
