"""The command lines of both programs: options from dataclasses, help, mistakes, exit codes and Ctrl-C.

A command is a module with a dataclass `Options`, whose fields with their doc strings are the command's options, and a
function `run(options)` that returns an exit code, or None for 0. Where the defaults depend on other options, the module
has `defaults(given)` too: it makes the `Options` to start from out of what the command line says.
"""
