"""The command lines of both programs: options from dataclasses by tyro, exit codes, Ctrl-C, safe output.

A command is a module with a dataclass `Options` and a function `run(options)`, which returns an exit code, or None for
0. The doc string under a field is its help. Annotations of tyro (`Positional`, `arg`) and `Range` say how it is read.

A module may have more names. `defaults(given)` makes the `Options` to start from, where they depend on the given
ones; `undecided(given)` names those fields whose defaults need an option that is not given. `COMMON`
names the fields of a short `--help`; `--help-all` shows all of them.
"""
