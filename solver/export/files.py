"""Files of an exported policy: C99, ONNX, JavaScript or an FMU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.training.solution import Solution

FORMATS = ("c", "onnx", "js", "fmu")


def policy_files(
    solution: Solution,
    directory: Path,
    formats: Sequence[str],
    observer: bool = False,
    fmi: int = 3,
    estimate: Sequence[str] = (),
) -> dict[Path, bytes]:
    """Contents of a policy in some formats, by path. observer: add the observer to "c" and "fmu". fmi: 2 or 3.
    estimate: parameters that the observer in "c" estimates.

    Raises SolverError for an unknown format, for no format, and for an observer without C or FMU.
    """
    for name in formats:
        if name not in FORMATS:
            raise SolverError(f"unknown format {name!r}.{suggestion(name, FORMATS)} Formats: {', '.join(FORMATS)}")
    if not formats:
        raise SolverError(f"there is no format; name one of {', '.join(FORMATS)}")
    if observer and not {"c", "fmu"} & set(formats):
        raise SolverError("the observer is written in C; export c or fmu too")
    if estimate and not (observer and "c" in formats and "fmu" not in formats):
        raise SolverError(f"--estimate {' '.join(estimate)} is for the observer in C; export c with the observer")
    text, stem = solution.label, f"{solution.problem.robot.name}_policy"
    files: dict[Path, bytes] = {}
    if "c" in formats:
        from solver.export.c_export import emit, emit_observer
        from solver.export.c_folder import complete, without_those_of_the_user

        sources = emit(solution, text) | (emit_observer(solution.problem, estimate) if observer else {})
        files |= without_those_of_the_user(directory, complete(solution.problem, text, sources, observer))
    if "onnx" in formats:
        from solver.export.onnx_export import emit as emit_onnx

        files[directory / f"{stem}.onnx"] = emit_onnx(solution, text)
    if "js" in formats:
        from solver.export.js_export import emit as emit_js

        files[directory / f"{stem}.js"] = emit_js(solution, text).encode()
    if "fmu" in formats:
        from solver.export.fmu_export import emit as emit_fmu

        files[directory / f"{stem}.fmu"] = emit_fmu(solution, text, fmi, observer)
    return files
