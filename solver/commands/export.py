"""`solver export`: the policy of a run in C99, ONNX, JavaScript or as an FMU."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable
from solver.streams import SEEDS

COMMON = ("run", "c", "onnx", "js", "fmu", "told", "observer", "estimate", "budget", "max_loss", "reaction_periods")


@dataclass(frozen=True)
class Options:
    """Name at least one of --c, --onnx, --js and --fmu."""

    run: Annotated[Path, Positional]
    """Run folder of a training, or a policy of `solver policies`."""
    c: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder for C99: the policy, what it needs of the robot, test vectors, README.md and CMakeLists.txt."""
    onnx: Annotated[Path | None, arg(metavar="FILE")] = None
    """ONNX file of policy, V and dV/dx."""
    js: Annotated[Path | None, arg(metavar="FILE")] = None
    """JavaScript module of robot, policy, V and dV/dx, in one file."""
    fmu: Annotated[Path | None, arg(metavar="FILE")] = None
    """FMU of the controller, for Simulink, Modelica and other tools: sources, and machine code for this machine."""
    fmi: Literal[2, 3] = 3
    """With --fmu: version of the standard. Older tools read 2."""
    told: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """Parameters that the policy is told, where its training gave some: mass=1.3x or mass=1.1, as in `solver evaluate`.
    The files hold the policy of this robot. Without it, the files of a family are told the parameters when they are
    used."""
    observer: bool = False
    """With --c: write the observer too. Its memory is a struct. With --fmu: the FMU measures positions only."""
    estimate: Annotated[list[str], arg(metavar="NAME ...")] = field(default_factory=list)
    """With --c and --observer: parameters that it estimates, as in `solver evaluate`."""
    budget: Annotated[str | None, arg(metavar="TIME@CLOCK")] = None
    """With --c: distil the policy into a small network for a Cortex-M4F, in minutes. TIME is the limit of a control
    period at two cycles an instruction, with the observer where --observer is given: 500us@168MHz. Instructions are
    counted where a cross-compiler and an emulator are installed."""
    max_loss: Annotated[float, Range(0.0, 1.0)] = 0.02
    """With --budget: the largest loss of mean return or of successes on the nominal robot, as a share. A policy that
    loses more is not written."""
    seed: Annotated[int, Range(0, SEEDS - 1)] = 0
    """With --budget: seed of the weights and states of the distillation."""
    reaction_periods: Annotated[float | None, Range(0.0, 100.0)] = None
    """Control periods that an input acts before the next one can, as in `solver evaluate`. By default as in
    training."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> None:
    """Write, and print the paths."""
    from solver.commands.changes import read_changes
    from solver.errors import SolverError
    from solver.export import FORMATS, policy_files, require_formats
    from solver.runs.folder import write_bytes
    from solver.runs.kinds import names_to_estimate, warn_unfinished
    from solver.training.solution import load_solution

    places = {name: path for name in FORMATS if (path := getattr(options, name)) is not None}
    if not places:
        raise SolverError("nothing to export; name --c DIR, --onnx FILE, --js FILE or --fmu FILE")
    require_formats(places, options.observer, options.estimate)
    if options.fmi != Options.fmi and options.fmu is None:
        raise SolverError("--fmi is the version of an FMU; give --fmu FILE too")
    if options.budget is not None and options.c is None:
        raise SolverError("--budget distils a policy in C; give --c DIR too")
    if options.budget is None and (options.max_loss, options.seed) != (Options.max_loss, Options.seed):
        raise SolverError("--max-loss and --seed belong to --budget; give --budget TIME@CLOCK too")
    written = {f"--{name}": path / "policy.c" if name == "c" else path for name, path in places.items()}
    require_writable(written, error=SolverError)
    warn_unfinished(options.run)
    told, estimate = read_changes(options.told), names_to_estimate(options.run, options.estimate)
    solution = load_solution(options.run, options.generated, options.reaction_periods, told, contexts=not told)
    sources = None
    if options.budget is not None:
        from solver.export.distilled import export

        words = options.budget, options.max_loss, options.seed
        sources = export(solution, solution.label, *words, report=print, observer=options.observer, estimate=estimate)
    for path, content in policy_files(solution, places, options.observer, options.fmi, estimate, sources).items():
        write_bytes(path, content)
        print(path)
