"""Which artifacts may run code: those built by this user here, those that ship with modelgen, those that one names.

An artifact is known by its hash, which covers its manifest and every emitted file. docs/reference/security.md says
what runs code when it is opened, and against whom this protects.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from modelgen.errors import ArtifactError, ModelError

#: Names the hashes, with spaces between them, that this process and those that it starts trust.
TRUST = "MODELGEN_TRUST"
#: A line for each shipped robot: the hash of its artifact, and its name. A test compares it with generated/.
SHIPPED = Path(__file__).with_name("shipped.txt")
_HASH = re.compile(r"[0-9a-f]{64}")


def _built() -> Path:
    """The folder with an empty file for every artifact that this user has built on this machine, named by its hash."""
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:  # a user without a home
        raise OSError("this user has no home folder") from error
    return Path(state) / "modelgen" / "built"


def note_built(artifact_hash: str) -> None:
    """Remember an artifact as built here. Warns where that cannot be written."""
    try:
        folder = _built()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / artifact_hash).touch()
    except OSError as error:
        warnings.warn(
            f"cannot note that this artifact was built here ({error}), so the backends numba, torch and casadi will "
            "ask for --trust. Set XDG_STATE_HOME to a folder that can be written.",
            stacklevel=2,
        )


def is_trusted(artifact_hash: str, stated: Collection[str] = ()) -> bool:
    """Whether an artifact was built here, ships with modelgen, or is among the hashes that somebody stated."""
    if artifact_hash in {*_checked(stated), *_checked(os.environ.get(TRUST, "").split()), *_shipped()}:
        return True
    try:
        return (_built() / artifact_hash).is_file()
    except OSError:
        return False


def require_trust(
    name: str, folder: Path, artifact_hash: str, backend: str, stated: Collection[str] = (), beside: Sequence[str] = ()
) -> None:
    """Raise ArtifactError, with what to write, unless the files of a backend in an artifact may run code.

    beside: hashes of other folders of the same robot, which the message names too, so that it is the only one.
    """
    if is_trusted(artifact_hash, stated):
        return
    hashes = (artifact_hash, *beside)
    other = " The hash that was given belongs to another artifact." if stated or os.environ.get(TRUST) else ""
    raise ArtifactError(
        f"{folder} was neither built here by you nor shipped with modelgen, and its {backend} files can run any code "
        f"of whoever wrote them.{other} The backend llvm needs no trust, for it runs nothing but arithmetic. If you "
        f"have the model file, `modelgen build {name}` makes the artifact here. If you know where this one comes from, "
        f"add --trust {' '.join(hashes)} to the command; in Python, modelgen.load({name!r}, backend={backend!r}, "
        f"trust={hashes if beside else artifact_hash!r}); for other programs, set {TRUST} to {' '.join(hashes)}."
    )


@contextmanager
def trusting(hashes: Collection[str]) -> Iterator[None]:
    """Trust these artifacts within the block, in processes that it starts too. Raises ModelError for no hash."""
    before = os.environ.get(TRUST)
    if hashes:
        os.environ[TRUST] = " ".join([*(before or "").split(), *_checked(hashes)])
    try:
        yield
    finally:
        if before is not None:
            os.environ[TRUST] = before
        elif hashes:
            del os.environ[TRUST]


def _checked(hashes: Collection[str]) -> Collection[str]:
    for each in hashes:
        if not _HASH.fullmatch(each):
            raise ModelError(f"{each!r} is no hash of an artifact; write all 64 digits, as the message shows them.")
    return hashes


@cache
def _shipped() -> frozenset[str]:
    return frozenset(line.split()[0] for line in SHIPPED.read_text(encoding="utf-8").splitlines())
