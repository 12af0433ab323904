"""Export of trained policies: C, ONNX, JavaScript, a page, and distilled networks in C."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelgen.errors import suggestion
from solver.errors import SolverError

if TYPE_CHECKING:
    from solver.training.solution import Solution

FORMATS = ("c", "onnx", "js", "fmu")


def require_formats(formats: Collection[str], observer: bool, estimate: Sequence[str]) -> None:
    """Raises SolverError for an unknown format, for no format, and for an observer without C or FMU."""
    for name in formats:
        if name not in FORMATS:
            raise SolverError(f"unknown format {name!r}.{suggestion(name, FORMATS)} Formats: {', '.join(FORMATS)}")
    if not formats:
        raise SolverError(f"there is nothing to export; name a format: {', '.join(FORMATS)}")
    if observer and not {"c", "fmu"} & set(formats):
        raise SolverError("the observer is written in C; give --c or --fmu too")
    if estimate and not (observer and "c" in formats and "fmu" not in formats):
        raise SolverError(f"--estimate {' '.join(estimate)} is for the observer in C; give --c and --observer")


def places(directory: Path, formats: Sequence[str], robot: str) -> dict[str, Path]:
    """Places of some formats as `policy_files` takes them, in a folder; or the file itself, of one format but "c".

    Raises SolverError for the name of a file of another format, or of several.
    """
    named = directory.suffix.removeprefix(".")
    if named in FORMATS and not directory.is_dir():
        if named == "c" or list(formats) != [named]:
            raise SolverError(f"{directory} is a file's name; name the folder for the files of {', '.join(formats)}")
        return {named: directory}
    return {name: directory if name == "c" else directory / f"{robot}_policy.{name}" for name in formats}


def policy_files(
    solution: Solution,
    places: Mapping[str, Path],
    observer: bool = False,
    fmi: int = 3,
    estimate: Sequence[str] = (),
    distilled: dict[str, str] | None = None,
) -> dict[Path, bytes]:
    """Contents of a policy in some formats, by path. places: the folder of "c", and the files of other formats.

    observer: add the observer to "c" and "fmu". fmi: 2 or 3. estimate: parameters that the observer in "c" estimates.
    distilled: the sources of `solver.export.distilled`, in place of those of the policy in "c".

    Raises SolverError as `require_formats`.
    """
    require_formats(places, observer, estimate)
    text = solution.label
    files: dict[Path, bytes] = {}
    if "c" in places:
        from solver.export.c_export import emit, emit_observer
        from solver.export.c_folder import complete, without_those_of_the_user

        sources = distilled
        if sources is None:
            sources = emit(solution, text) | (emit_observer(solution.problem, estimate) if observer else {})
        files |= without_those_of_the_user(places["c"], complete(solution.problem, text, sources, observer))
    if "onnx" in places:
        from solver.export.onnx_export import emit as emit_onnx

        files[places["onnx"]] = emit_onnx(solution, text)
    if "js" in places:
        from solver.export.js_export import emit as emit_js

        files[places["js"]] = emit_js(solution, text).encode()
    if "fmu" in places:
        from solver.export.fmu_export import emit as emit_fmu

        files[places["fmu"]] = emit_fmu(solution, text, fmi, observer)
    return files
