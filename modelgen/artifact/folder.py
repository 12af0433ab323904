"""The folder generated/NAME, with manifest.json, the program and the files beside it: find, read, write, check."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelgen.artifact.manifest import GENERATOR_VERSION, Manifest, MechanicsManifest, from_json, to_json
from modelgen.errors import ArtifactError, ModelError, StaleArtifactWarning, suggestion, warn
from modelgen.files import UNFINISHED, file_hash, kept, shipped, sources, write_together
from modelgen.program import functions, graph, stored
from modelgen.program.functions import Program

MANIFEST = "manifest.json"
LONGEST_NAME = 255  # bytes, of a folder in every file system
REPORT = "build_report.json"
PROOF = "proof.json"
#: The folder in an artifact's that holds the functions of mechanics, which are built on request. No robot's name.
ON_REQUEST = "on-request"
_EMITTED = re.compile(r"\w+_[0-9a-f]{12}\.\w+")
#: The artifacts shipped beside the packages.
SHIPPED = shipped("generated")


def find(name: str | Path, directory: str | Path | None = None) -> Path:
    """The folder of the artifact NAME, given as NAME or NAME.py. Raises ArtifactError when it is missing."""
    places, name = _places(directory), os.fspath(name)
    if name.endswith(".py"):
        name = Path(name).stem
    short = name and Path(name).name == name and _fits(name)
    for place in places if short else ():
        if (place / name / MANIFEST).is_file():
            return place / name
    names = known(directory)
    listed = f" There are: {', '.join(names)}." if names else ""
    raise ArtifactError(
        f"There is no artifact {name!r} in {' or '.join(str(place) for place in places)}."
        f"{suggestion(name, names)}{listed} `modelgen build` makes it from a model file: give the robot's name for one "
        "in models/, or the file's path."
    )


def known(directory: str | Path | None = None) -> list[str]:
    """The names of all artifacts that `find` finds, sorted."""
    return sorted({entry.parent.name for place in _places(directory) for entry in place.glob(f"*/{MANIFEST}")})


def _places(directory: str | Path | None) -> list[Path]:
    if directory is None:
        return [Path("generated"), SHIPPED]
    place = Path(directory)
    if not all(map(_fits, place.parts)):
        raise ModelError(f"the directory {str(place)[:40]!r}... has a name of more than {LONGEST_NAME} bytes.")
    return [place]


def _fits(name: str) -> bool:
    """Whether every file system takes this name of a folder."""
    return len(name.encode("utf-8", "replace")) <= LONGEST_NAME


def read(folder: Path) -> Manifest:
    """The manifest of an artifact. Raises ArtifactError when it cannot be read or another version wrote it."""
    path, remedy = folder / MANIFEST, rebuild(folder)
    try:
        text = path.read_text(encoding="utf-8")
        version = json.loads(text)["generator_version"]
        if version != GENERATOR_VERSION:
            raise ArtifactError(
                f"{path} was made by generator version {version}, and this is version {GENERATOR_VERSION}. {remedy}"
            )
        return from_json(text)
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read ({error.strerror}). {remedy}") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ArtifactError(f"{path} is damaged: it is not the manifest that was written. {remedy}") from error


def opened(name: str | Path, directory: str | Path | None = None) -> tuple[Path, Manifest]:
    """The folder and the manifest of the artifact NAME. Gives a StaleArtifactWarning for an outdated one.

    Raises ArtifactError when it is missing or cannot be read.
    """
    folder = find(name, directory)
    manifest = read(folder)
    if mistake := outdated(folder, manifest, directory):
        warn(mistake, StaleArtifactWarning)
    return folder, manifest


def outdated(folder: Path, manifest: Manifest, directory: str | Path | None = None) -> str:
    """The mistake of an artifact that was built from another file than models/NAME.py; empty if there is none.

    That file lies in the folder `models` beside the folder of artifacts, ./models by default. It may also be a file of
    the user with the name of a shipped robot, which was never built.
    """
    name = manifest.metadata.name
    path = Path("generated" if directory is None else directory).parent / "models" / f"{name}.py"
    if not manifest.model_file or not path.is_file():
        return ""
    try:
        if file_hash(path.read_bytes()) == manifest.model_file:
            return ""
    except OSError as error:
        return f"{path} cannot be compared with the artifact {folder}: {error.strerror}."
    where = "" if directory is None else f" --generated {directory}"
    return f"{path} is not the file that the artifact {folder} was built from. Run `modelgen build {path}{where}`."


def _content(folder: Path, name: str, expected: str) -> bytes:
    """The bytes of a file with that sha256. Raises ArtifactError for another file, and where there is none."""
    path = folder / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read ({error.strerror}). {rebuild(folder)}") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise ArtifactError(f"{path} was edited or truncated: its sha256 is not the manifest's. {rebuild(folder)}")
    return content


def program(folder: Path, manifest: Manifest) -> Program:
    """The program of an artifact.

    Raises ArtifactError if its file is missing or was edited, and, with the place in the file, if it does not hold a
    program of a robot with this metadata.
    """
    path = folder / manifest.program_file
    content = _content(folder, path.name, manifest.program)
    try:
        made = _read_once(content, manifest)
        robot = manifest.metadata
        n, m, p = len(robot.states), len(robot.inputs), len(robot.parameters)
        for name, size in {"x": n, "u": m, "costate": n, "theta": p, "w": m}.items():
            if made.sizes.get(name, size) != size:
                raise ValueError(f"the argument {name} has {made.sizes[name]} entries, and the robot has {size}")
    except ValueError as error:
        raise ArtifactError(f"{path} is not a program that modelgen writes: {error}. {rebuild(folder)}") from error
    return made


def _read_once(content: bytes, manifest: Manifest) -> Program:
    """The program of a file, of which an outline is kept for the next process."""
    read: list[Program] = []

    def make() -> bytes:
        read.append(stored.read(content))
        return stored.outline(read[0])

    readers = sources(stored, functions, graph)
    identity = f"{sys.implementation.cache_tag} {GENERATOR_VERSION} {readers} {manifest.program}"
    outline = kept(f"{manifest.metadata.name}_{manifest.program[:12]}", ".outline", identity, make)
    return read[0] if read else stored.reopened(outline, content)


def rebuild(folder: Path, model: str = "", functions: str = "") -> str:
    """The command that makes the artifact of a folder anew. model: its model file, if it is not the robot's name."""
    if folder.name == ON_REQUEST:
        folder, functions = folder.parent, "mechanics"
    where = "" if folder.parent in (Path("generated"), SHIPPED) else f" --generated {folder.parent}"
    return f"Run `modelgen build {model or folder.name}{where}{functions and f' --functions {functions}'}`."


def has_mechanics(name: str, directory: str | Path | None = None) -> bool:
    """Whether there is a folder with functions of mechanics."""
    return any((place / name / ON_REQUEST / MANIFEST).is_file() for place in _places(directory))


def find_mechanics(name: str, model_hash: str, directory: str | Path | None = None) -> tuple[Path, MechanicsManifest]:
    """The folder of a robot's functions of mechanics, and its manifest. model_hash: the one of the robot's artifact.

    Raises ArtifactError if they are missing, damaged or made from another content of the model file.
    """
    places = [place / name / ON_REQUEST for place in _places(directory)]
    folder = next((place for place in places if (place / MANIFEST).is_file()), None)
    if folder is None:
        raise ArtifactError(
            f"The functions of mechanics of `{name}` are built on request. {rebuild(places[0])} Of a robot in Python: "
            f"modelgen.build(robot, '{places[0].parents[1]}', 'mechanics')."
        )
    manifest = read(folder)
    if not isinstance(manifest, MechanicsManifest) or manifest.model_hash != model_hash:
        raise ArtifactError(
            f"{folder} was made from another content of the model file than the artifact. {rebuild(folder)}"
        )
    return folder, manifest


def check(
    name: str,
    directory: str | Path | None = None,
    model_hash: str | None = None,
    points: Mapping[str, str] | None = None,
) -> list[str]:
    """Findings in an artifact, one text for each; an empty list if it is whole and matches its model.

    model_hash: the content hash of the model file; without it, the artifact is checked for damage only.
    points: points of the model file, with hashes, for the functions of mechanics if these are built.
    """
    try:
        folder = find(name, directory)
        findings = _check_folder(folder, model_hash)
        beside = folder / ON_REQUEST
        if (beside / MANIFEST).is_file():
            findings += _check_folder(beside, model_hash)
            manifest = read(beside)
            if points is not None and isinstance(manifest, MechanicsManifest) and manifest.points != points:
                findings.append(f"{beside} was made of other points than the model file states. {rebuild(beside)}")
    except ArtifactError as error:
        return [str(error)]
    return findings


def _check_folder(folder: Path, model_hash: str | None) -> list[str]:
    """Findings in one folder. Raises ArtifactError if its manifest or its whole program cannot be read."""
    manifest = read(folder)
    files = {manifest.program_file: manifest.program, **manifest.files}
    findings = []
    for name, expected in files.items():
        try:
            _content(folder, name, expected)
        except ArtifactError as error:
            findings.append(str(error))
    if not findings:
        program(folder, manifest)
    if (folder / MANIFEST).read_text(encoding="utf-8") != to_json(manifest):
        findings.append(f"{folder / MANIFEST} was edited: its text is not what its content is written as.")
    there = (entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith(UNFINISHED))
    strangers = sorted(name for name in there if name not in {MANIFEST, REPORT, PROOF, *files})
    findings += [f"{folder / stranger} does not belong to the artifact." for stranger in strangers]
    if model_hash is not None and model_hash != manifest.model_hash:
        findings.append(f"{folder} was made from another content of the model file. {rebuild(folder)}")
    return findings


def keep_proof(folder: Path, manifest: Manifest, number: Mapping[str, int], seconds: float) -> None:
    """Write the result of a full proof beside the artifact that it is of. number: of checks, by their outcome.

    Raises ArtifactError where it cannot be written.
    """
    made = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "modelgen": GENERATOR_VERSION}
    result = {"artifact": manifest.hash, **made, **number, "seconds": round(seconds, 1)}
    text = json.dumps(result, indent=1) + "\n"
    try:
        write_together({folder / PROOF: text.encode()})
    except OSError as error:
        raise ArtifactError(f"{folder / PROOF} cannot be written: {error.strerror or error}.") from error


def proof(folder: Path, manifest: Manifest) -> dict[str, Any] | None:
    """The result of the last full proof; None where there is none of this artifact."""
    try:
        result = json.loads((folder / PROOF).read_text(encoding="utf-8"))
        whole = {"date", "modelgen", "passed", "failed", "skipped", "seconds"} <= result.keys()
        return dict(result) if whole and result["artifact"] == manifest.hash else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def hashed(name: str, content: bytes) -> str:
    """kernels.py -> kernels_0123456789ab.py. The name holds the hash of the content, so no cache can be stale."""
    path = Path(name)
    return f"{path.stem}_{hashlib.sha256(content).hexdigest()[:12]}{path.suffix}"


def write(folder: Path, manifest: Manifest, files: Mapping[str, bytes], report: str) -> Path:
    """Put an artifact in its folder, which is returned; an equal one is left alone.

    Emitted files have their hash in the name, so that the new ones stand beside the old ones until the manifest is
    replaced, as the last file; that one step makes them the artifact. Raises ArtifactError when the folder cannot be
    written (disk full, read-only); the old artifact then stays.
    """
    content = {**files, REPORT: report.encode(), MANIFEST: to_json(manifest).encode()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            places = {folder / name: data for name, data in content.items()}
            write_together({at: data for at, data in places.items() if not at.is_file() or at.read_bytes() != data})
            _remove_leftovers(folder, content)
    except OSError as error:
        raise ArtifactError(
            f"The artifact {folder} cannot be written: {error.strerror or error}. "
            "What was there before is unchanged. Free the disk or choose another folder with --generated."
        ) from error
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other builds from writing to the folder; on a system without such locks, do nothing."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: Path, current: Collection[str]) -> None:
    """Remove emitted files of older builds, and unfinished files of builds that were killed."""
    for entry in folder.iterdir():
        if entry.name.startswith(UNFINISHED) or (_EMITTED.fullmatch(entry.name) and entry.name not in current):
            entry.unlink()
