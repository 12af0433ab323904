"""The `solver` command: reads the command line, runs one of solver.commands, turns errors into exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tyro

from modelgen.errors import ModelError, suggestion
from solver.commands import (
    FAILED,
    INTERRUPTED,
    USAGE,
    baseline,
    evaluate,
    export,
    limit,
    plot,
    reproduce,
    robustness,
    train,
)
from solver.errors import DivergenceError, SolverError


@dataclass(frozen=True)
class Command:
    """A dataclass of options, what to do with them, and what their defaults are after a first reading."""

    options: type
    run: Callable[[Any], None]
    defaults: Callable[[Any], Any] | None = None


COMMANDS = {
    "train": Command(train.Train, train.run, train.defaults),
    "baseline": Command(baseline.Baseline, baseline.run, baseline.defaults),
    "evaluate": Command(evaluate.Evaluate, evaluate.run),
    "limit": Command(limit.Limit, limit.run),
    "robustness": Command(robustness.Options, robustness.run),
    "plot": Command(plot.Plot, plot.run),
    "export": Command(export.Export, export.run),
    "reproduce": Command(reproduce.Options, reproduce.run),
}
HELP = ("-h", "--help")
#: Options with several values. The parser would keep the last of two such options without a word.
LISTS = {
    "--set": "--set mass=1.3x length=1.1",
    "--harsh": "--harsh delay noise=2x",
    "--parameter": "--parameter mass length",
    "--from": "--from 0.5 0.8",
    "--to": "--to 1.5 1.2",
    "--holds": "--holds 4 2 1",
    "--adversary-ramp": "--adversary-ramp 0.3 0.6",
    "--points": "--points 21 11",
    "--robots": "--robots pendulum cartpole",
    "--seeds": "--seeds 0 1 2",
    "--methods": "--methods rFVI SAC-U",
}


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code: 0, 2 for a user's mistake, 1 for a run that diverged."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] not in COMMANDS:
        asked = bool(words) and words[0] in HELP
        if words and not asked:
            print(f"error: unknown command '{words[0]}'.{suggestion(words[0], COMMANDS)}", file=sys.stderr)
        print(f"usage: solver {{{','.join(COMMANDS)}}} ...    `solver COMMAND --help` explains each", file=sys.stderr)
        return 0 if asked else USAGE
    command = COMMANDS[words[0]]
    try:
        for flag, example in LISTS.items():
            if sum(word == flag or word.startswith(f"{flag}=") for word in words) > 1:
                raise SolverError(f"{flag} stands twice; write all its values behind one, for example {example}")
        command.run(_options(command, words))
        sys.stdout.flush()
    except (SolverError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except DivergenceError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone; Python would complain once more at exit
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _options(command: Command, words: list[str]) -> Any:
    """What the command line says, other defaults being those that its own robot, preset or algorithm have.

    Help waits for the second reading, which knows them.
    """
    name, *arguments = words
    if command.defaults is None:
        return tyro.cli(command.options, prog=f"solver {name}", args=arguments)
    resumed = next((word for word in arguments if word.partition("=")[0] == "--resume"), None)
    if resumed and len(arguments) > (1 if "=" in resumed else 2) and not set(HELP) & set(arguments):
        raise SolverError("a resumed run keeps its own robot and settings; give --resume DIR and nothing else")
    first: Any = tyro.cli(command.options, prog=f"solver {name}", args=[word for word in arguments if word not in HELP])
    return tyro.cli(command.options, prog=f"solver {name}", args=arguments, default=command.defaults(first))
