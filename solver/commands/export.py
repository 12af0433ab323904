"""`solver export`: a run's policy in C99, for the robot's controller, or in ONNX or JavaScript, for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.files import require_apart


@dataclass(frozen=True)
class Options:
    """At least one of --c, --onnx and --js."""

    run: Annotated[Path, Argument(positional=True)]
    """Run folder of a training, or a policy of `solver policies`."""
    c: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Folder for the C files, beside those of `modelgen export NAME --c DIR`, which they call."""
    onnx: Annotated[Path | None, Argument(metavar="FILE")] = None
    """ONNX file of policy, V and dV/dx."""
    js: Annotated[Path | None, Argument(metavar="FILE")] = None
    """JavaScript module of robot, policy, V and dV/dx, in one file."""
    observer: bool = False
    """With --c: write the observer too, the state from measurements and past inputs, its memory in a struct."""
    budget: Annotated[str | None, Argument(metavar="TIME@CLOCK")] = None
    """With --c: distil the policy into a small network for a microcontroller, so that a control period takes no longer
    than this on a Cortex-M4F, at two cycles an instruction: 500us@168MHz. With --observer, the observer is part of it,
    for one period of delay. Takes minutes. The instructions are counted where `modelgen export NAME --c DIR` was called
    before, and a cross-compiler and an emulator are installed."""
    max_loss: float = 0.02
    """With --budget: write nothing where the distilled policy loses more than this share of the mean return, or of the
    successes, on the nominal robot."""
    seed: int = 0
    """With --budget: of the weights and states of the distillation."""
    reaction_periods: float | None = None
    """Control periods that an input acts before the next one can, as in `solver evaluate`. By default as in
    training."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""
    trust: Annotated[tuple[str, ...], Argument(metavar="HASH")] = ()
    """Let code of these artifacts run, which were neither built here nor shipped. A message names the hash."""


def run(options: Options) -> None:
    """Write, and print the paths."""
    from solver.errors import SolverError
    from solver.runs.folder import write_bytes
    from solver.training.solution import label, load_solution

    if options.c is None and options.onnx is None and options.js is None:
        raise SolverError("nothing to export; give --c DIR, --onnx FILE or --js FILE")
    if options.observer and options.c is None:
        raise SolverError("--observer is written in C; give --c DIR too")
    if options.budget is not None and options.c is None:
        raise SolverError("--budget distils a policy in C; give --c DIR too")
    if options.budget is None and (options.max_loss, options.seed) != (Options.max_loss, Options.seed):
        raise SolverError("--max-loss and --seed are of a policy that --budget distils; give --budget TIME@CLOCK too")
    require_apart({"--onnx": options.onnx, "--js": options.js}, error=SolverError)
    solution = load_solution(options.run, options.generated, options.reaction_periods)
    robot = solution.problem.robot
    files: dict[Path, bytes] = {}
    if options.c is not None:
        from solver.export.c_export import emit as emit_c
        from solver.export.c_export import emit_observer

        if options.budget is None:
            sources = emit_c(solution, label(solution.run, robot))
            sources |= emit_observer(solution.problem) if options.observer else {}
        else:
            from solver.export.distilled.export import export

            text = label(solution.run, robot)
            words = options.budget, options.c, options.max_loss, options.seed
            sources = export(solution, text, *words, report=print, observer=options.observer)
        files.update((options.c / name, text.encode()) for name, text in sources.items())
    if options.onnx is not None:
        from solver.export.onnx_export import emit as emit_onnx

        files[options.onnx] = emit_onnx(solution, label(solution.run, robot), options.generated)
    if options.js is not None:
        from solver.export.js_export import emit as emit_js

        files[options.js] = emit_js(solution, label(solution.run, robot)).encode()
    for path, content in files.items():
        write_bytes(path, content)
        print(path)
    if options.c is not None and not (options.c / f"{robot.name}.c").exists():
        print(f"next: modelgen export {robot.name} --c {options.c}, for {robot.name}.h and {robot.name}.c")
