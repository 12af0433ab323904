"""The folder of a policy in C, complete by itself: kernels, policy, test vectors, README.md and CMakeLists.txt."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import torch

from modelgen.backends import c
from modelgen.errors import ReliabilityWarning
from modelgen.files import PACKAGE
from solver.errors import SolverError
from solver.export.c_templates import COPYRIGHT, comment, filled, listed, names, signals
from solver.plants.outcome import Controller
from solver.problem.problem import Problem

MADE = "made by `solver export`"  # what every file says of itself
SHARED = ("README.md", "CMakeLists.txt")  # names that files of the user may have too
INSIDE, OUTSIDE = 28, 4  # states of the replay, in the domain and beyond it
CANDIDATES = 16  # times as many states are drawn
ROUNDING = 2e-6  # change of a state, as a share of its limit
STEADY = 1e-4  # change of the input by it, as a share of half of its range


def kernels(problem: Problem, observer: bool = False) -> dict[str, bytes]:
    """NAME.h and NAME.c with the functions of the robot that the policy calls, and the observer.

    Raises SolverError for an artifact without them.
    """
    robot = problem.robot
    needed = ["affine_dynamics", "optimal_input"]
    needed += (["jacobians"] if observer else []) + (["action_cost"] if problem.moving_trim else [])
    missing = set(needed) - robot.program.operations.keys()
    if missing:
        raise SolverError(
            f"`{robot.name}` was built without {', '.join(sorted(missing))}; build it without --functions"
        )
    called = tuple(function for function in robot.program.functions if function.name in needed)
    files = c.emit(replace(robot.program, functions=called), robot.metadata)
    return {name: text for name, text in files.items() if not name.endswith("_driver.c")}


def complete(problem: Problem, label: str, sources: Mapping[str, str], observer: bool) -> dict[str, bytes]:
    """The files of a folder by name, from the sources of a policy, and of its observer if there is one."""
    robot = problem.robot
    texts = kernels(problem, observer) | {name: text.encode() for name, text in sources.items()}
    library = [name for name in texts if name.endswith(".c") and not name.endswith(("_driver.c", "_replay.c"))]
    fields = names(robot, label) | {
        "sources": " ".join(library),
        "sources_in_lines": "\n  ".join(["", *library]).rstrip(),
        "signals": "; ".join(comment(line) for line in signals(robot)),
        "rate": f"{robot.metadata.task.control_rate:g}",
        "version": version(PACKAGE),
        "copyright": COPYRIGHT,
        "rows": INSIDE + OUTSIDE,
        "artifact_hash": robot.hash,
        "model_hash": robot.model_hash,
        "observer_line": "",
    }
    if observer:
        fields["observer_line"] = f"\n- `{robot.name}_observer.h`: the state from measured positions, once a period."
    pages = {"README.md": "folder_readme.txt", "CMakeLists.txt": "folder.cmake"}
    return texts | {name: filled(template, fields).encode() for name, template in pages.items()}


def without_those_of_the_user(directory: Path, files: Mapping[str, bytes]) -> dict[Path, bytes]:
    """The files by path, without a README.md or CMakeLists.txt that would replace one of the user.

    Gives a ReliabilityWarning for such a file.
    """
    kept = [name for name in SHARED if name in files and _of_the_user(directory / name)]
    for name in kept:
        warnings.warn(
            f"{directory / name} is not a file of `solver export` and stays as it is. Export into an empty folder to "
            f"get the {name} of the policy.",
            ReliabilityWarning,
            stacklevel=3,
        )
    return {directory / name: content for name, content in files.items() if name not in kept}


def _of_the_user(path: Path) -> bool:
    return path.is_file() and MADE.encode() not in path.read_bytes()[:400]


def replay(problem: Problem, act: Controller, close: float) -> dict[str, object]:
    """Fields of the replay: states, the inputs of a policy in Torch, and whether the state is in the domain.

    close: the largest difference of an input, as a share of half of its range. States at which rounding of the state
    changes the input are left out: there, no machine computes what another does.
    """
    generator = torch.Generator().manual_seed(0)
    x, n = problem.sample_domain(CANDIDATES * (INSIDE + OUTSIDE), generator), len(problem.target)
    beyond = x[: CANDIDATES * OUTSIDE].clone()
    quaternions = {i for rotation in problem.geometry.rotations for i in range(n)[rotation.quaternion]}
    ends = [i for i in range(n) if problem.clipped[i] and i not in quaternions]
    if ends:
        beyond[:, ends[-1]] = 1.01 * problem.bound[ends[-1]]
    inside = _steady(problem, act, x[CANDIDATES * OUTSIDE :], INSIDE, generator)
    outside = _steady(problem, act, beyond, OUTSIDE, generator)
    rows = torch.cat([inside, outside])
    shown = rows
    if (context := problem.context) is not None:
        shown = torch.cat([rows[:, :n], context.theta(rows[:, n:])[:, context.columns]], 1)
    return {
        "rows": len(rows),
        "inside": INSIDE if ends else len(rows),
        "close": close,
        "replayed_states": _rows(shown),
        "replayed_inputs": _rows(act(rows)[0]),
        "input_limits": listed(problem.input_limits.tolist()),
    }


def _steady(problem: Problem, act: Controller, x: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """The first states whose input hardly changes with rounding; where there are too few, the best ones."""
    u = act(x)[0]
    off = torch.zeros(len(x))
    for _ in range(4):
        n = len(problem.target)
        noise = ROUNDING * (2.0 * torch.rand(len(x), n, generator=generator) - 1.0)
        near = torch.cat([x[:, :n] + noise * problem.bound.clamp(max=10.0), x[:, n:]], 1)
        off = torch.maximum(off, ((act(near)[0] - u).abs() / problem.input_limits).amax(1))
    order = torch.argsort(off.clamp(min=STEADY), stable=True)[:count]
    return x[order.sort().values]


def _rows(values: torch.Tensor) -> str:
    return ",\n".join(f"    {{{listed(row)}}}" for row in values.tolist())
