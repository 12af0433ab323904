"""What commands have in common that write or read model files."""

from __future__ import annotations

from pathlib import Path

from modelgen.errors import ModelError
from modelgen.files import replacing

ARTIFACTS = "generated"  # the folder that `modelgen build` writes to


def write_model_file(folder: Path, name: str, text: str) -> None:
    """Write a new model file and say what to do next. Raises ModelError where there is one already."""
    path = folder / f"{name}.py"
    if path.exists():
        raise ModelError(f"{path} exists already and is left as it is. Choose another name, or remove it.")
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")
    print(f"{path} is written. Next: modelgen build {name if folder == Path('models') else path}")
