"""The zip file of an FMU: its description, its sources, and the machine code that the compiler here makes of them."""

from __future__ import annotations

import hashlib
import io
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from modelgen.backends.fmu.description import Unit, build_description, model_description
from modelgen.errors import ModelError

TEMPLATES = Path(__file__).parent
LIBRARIES = {"linux": "so", "darwin": "dylib", "win32": "dll"}
OLD_PLATFORMS = {"linux": "linux64", "darwin": "darwin64", "win32": "win64"}
PLATFORMS = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}


def filled(template: Path, fields: dict[str, object]) -> bytes:
    """A C source, with every $field replaced."""
    text = template.read_text(encoding="utf-8")
    return re.sub(
        r"\$(NAME|[a-z]+(?=_fmu|_dynamics|_jacobians)|[a-z_]+)", lambda match: str(fields[match[1]]), text
    ).encode()


def archive(unit: Unit, version: int, sources: dict[str, bytes], fields: dict[str, object], real: str) -> bytes:
    """The bytes of NAME.fmu.

    sources: by file name; they are compiled together with the functions of FMI, and $token in a source becomes the
    identity of this unit. fields: of the templates `fmu.h` and fmi2.c or fmi3.c. real: the definition of the number
    type, `PENDULUM_REAL`. Raises ModelError for another version than 2 or 3, and without a C compiler.
    """
    if version not in (2, 3):
        raise ModelError(f"there is no FMI {version}; write --fmi 2 or --fmi 3.")
    templates = ("fmu.h", f"fmi{version}.c")
    texts = sources | {f"{unit.name}_{name}": filled(TEMPLATES / name, fields) for name in templates}
    unit = replace(unit, sources=sorted(name for name in texts if name.endswith(".c")))
    described = model_description(unit, version, "")
    digest = hashlib.sha256(described + b"".join(name.encode() + texts[name] for name in sorted(texts))).hexdigest()
    token = f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"
    texts = {name: text.replace(b"$token", token.encode()) for name, text in texts.items()}
    binary, place = _compiled(unit, texts, real), _place(unit.name, version)
    files = {"modelDescription.xml": model_description(unit, version, token), place: binary}
    files |= {f"sources/{name}": text for name, text in texts.items()}
    if version == 3:
        files["sources/buildDescription.xml"] = build_description(unit, {real: "double"})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # with the date 1980: the same bytes
    return packed.getvalue()


def _place(name: str, version: int) -> str:
    """Where machine code for this machine lies. Raises ModelError for a machine that FMI has no name for."""
    machine = MACHINES.get(platform.machine().lower())
    if sys.platform not in LIBRARIES or machine is None or (version == 2 and machine != "x86_64"):
        raise ModelError(
            f"FMI {version} has no name for machine code of {platform.machine()} under {sys.platform}. Write --fmi 3, "
            "or export on a computer with Linux, macOS or Windows."
        )
    folder = OLD_PLATFORMS[sys.platform] if version == 2 else f"{machine}-{PLATFORMS[sys.platform]}"
    return f"binaries/{folder}/{name}.{LIBRARIES[sys.platform]}"


def _compiled(unit: Unit, texts: dict[str, bytes], real: str) -> bytes:
    """Machine code of the sources as a shared library."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise ModelError(
            "an FMU holds machine code, and there is no C compiler here. Install gcc or clang, so that one of cc, gcc "
            "and clang is found."
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_bytes(text)
        position = [] if sys.platform == "win32" else ["-fPIC", "-fvisibility=hidden"]
        options = ["-std=c99", "-O2", "-shared", *position, f"-D{real}=double", "-o", "library", *unit.sources, "-lm"]
        result = subprocess.run([compiler, *options], cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ModelError(f"{compiler} does not compile the sources of the FMU:\n{result.stderr.strip()}")
        return (Path(folder) / "library").read_bytes()
