"""The commands of modelgen, one file each, and what several of them write: a model file, the folder of artifacts."""

from __future__ import annotations

from pathlib import Path

from modelgen.errors import ModelError, in_shell
from modelgen.files import replacing

ARTIFACTS = "generated"  # the folder that `modelgen build` writes to


def write_model_file(folder: Path, name: str, text: str) -> None:
    """Write a new model file and print the next command. Raises ModelError where the file exists."""
    path = folder / f"{name}.py"
    if path.exists():
        raise ModelError(f"{path} exists already. Choose another name, or remove it.")
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    print(f"{path} is written. Next: modelgen build {name if folder == Path('models') else in_shell(path)}")
