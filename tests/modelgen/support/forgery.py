"""Artifacts and descriptions that an attacker could make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelgen.metadata import Metadata


def forged(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
    """Change the manifest of an artifact, and recompute its hashes."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("hash")
    (program,) = folder.glob("program_*.json")
    manifest["program"] = hashlib.sha256(program.read_bytes()).hexdigest()
    program.rename(folder / f"program_{manifest['program'][:12]}.json")
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    change(manifest)
    content = {key: manifest.get(key) for key in ("metadata", "model_hash", "program")}
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    manifest["hash"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def with_free_text(metadata: Metadata, text: str) -> Metadata:
    """The description with a text in place of every free text of a model file."""

    def replaced(group: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(entry, meaning=text, unit=text) for entry in group)

    groups = {name: replaced(getattr(metadata, name)) for name in ("states", "inputs", "parameters")}
    changed: Any = {**groups, "description": text}
    return replace(metadata, **changed)
