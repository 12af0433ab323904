"""Templates of C sources, and the folder of a policy in C: kernels, policy, test vectors, README.md, CMakeLists.txt."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from string import Template
from struct import pack, unpack

import torch

from modelgen.backends import c
from modelgen.errors import warn
from modelgen.files import PACKAGE
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.outcome import Controller
from solver.problem import Problem
from solver.problem.domain import farthest
from solver.value.features import Features
from solver.value.network import DIAGONAL_FLOOR, Ensemble

TEMPLATES = Path(__file__).parent / "templates"
COPYRIGHT = "Copyright (c) 2026 The robust-value-iteration authors"
WITHOUT_BOUND = 3e38  # bound of an angle that wraps: any finite number


def filled(template: str, fields: Mapping[str, object]) -> str:
    """Text of a file in `templates` with all $names replaced."""
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(fields)


def names(robot: CompiledRobot, label: str) -> dict[str, object]:
    """Fields with the names of the robot, its states and its inputs."""
    metadata = robot.metadata
    return {
        "name": robot.name,
        "NAME": robot.name.upper(),
        "label": comment(label),
        "n": len(metadata.states),
        "m": len(metadata.inputs),
        "states": f"x ({', '.join(state.name for state in metadata.states)})",
        "inputs": f"u ({', '.join(entry.name for entry in metadata.inputs)})",
        "period": repr(1.0 / metadata.task.control_rate),
        "nominal": _nominal(robot),
    }


def _nominal(robot: CompiledRobot) -> str:
    """Nominal parameters as a C argument: the exported robot's, or a literal for identified parameters."""
    values = tuple(parameter.value for parameter in robot.metadata.parameters)
    if values == robot.declared_parameters:
        return f"{robot.name}_nominal" if values else "0"
    return f"(const {robot.name}_real[]){{{listed(values)}}}"


def feature_map(features: Features) -> dict[str, object]:
    """Fields of the feature map z(x)."""
    return {
        "angles": len(features.angles),
        "features": features.size,
        "angle_index": ", ".join(map(str, features.angles.tolist())) or "0",
        "other_index": ", ".join(map(str, features.others.tolist())) or "0",
        "scale": listed(features.scale.tolist()) or "0",
    }


def network(ensemble: Ensemble) -> dict[str, object]:
    """Fields of the weights of an ensemble, and of its features."""
    features, first = ensemble.features, ensemble.factors[0]
    sizes = [len(first.weights[0]), *(len(bias) for bias in first.biases)]
    members = []
    for member in ensemble.factors:
        parts = [
            torch.cat([w.detach().flatten(), b.detach()]) for w, b in zip(member.weights, member.biases, strict=True)
        ]
        members.append(torch.cat(parts).numpy())
    rows = (", ".join(f"{value!s}f" for value in member) for member in members)
    return feature_map(features) | {
        "layers": len(sizes) - 2,
        "widest": max(sizes),
        "members": len(members),
        "weights": len(members[0]),
        "sizes": ", ".join(map(str, sizes)),
        "at_target": listed(features.at_target.tolist()),
        "floor": repr(DIAGONAL_FLOOR),
        "network": ",\n".join(f"    {{{row}}}" for row in rows),
    }


def domain(problem: Problem) -> dict[str, object]:
    """The functions in_domain, is_finite and confined.

    A bound is the limit that the model file states, or the float32 number that the kernels clip a state to where that
    is larger: a state exactly at its limit is inside in double as in float.
    """
    declared = problem.bound.new_tensor([state.limit for state in problem.robot.metadata.states], dtype=torch.float64)
    largest = torch.maximum(problem.bound.double(), declared).clamp(max=WITHOUT_BOUND)
    fields: dict[str, object] = {
        "bounds": listed(largest.tolist()),
        "farthest": listed(farthest(problem.robot.metadata)),
        "name": problem.robot.name,
        "NAME": problem.robot.name.upper(),
        "rotations_inside": "1",
        "normalise_rotations": "",
    }
    if problem.geometry.rotations:
        fields["rotations_inside"] = "rotations_in_domain(x)"
        fields["normalise_rotations"] = "    normalise_rotations(y);\n"
    return {"domain": filled("domain.c", fields)}


def rotations(problem: Problem, *parts: str) -> dict[str, object]:
    """Functions and statements for rotations, empty for a robot without. parts: of `rotations.c` beside the first."""
    turning = problem.geometry.rotations
    if not turning:
        statements = _parts("rotation_statements.c")
        return {"rotations": 0, "rotation_functions": "", **dict.fromkeys(statements, "")}
    goals = [entry for rotation in turning for entry in problem.target[rotation.quaternion].tolist()]
    fields = {
        "quaternions": ", ".join(str(rotation.coordinate) for rotation in turning),
        "goals": listed(goals),
        "least_w": listed(math.cos(rotation.limit / 2.0) if rotation.limit < math.pi else -1.0 for rotation in turning),
        "NAME": problem.robot.name.upper(),
    }
    functions = _parts("rotations.c")
    chosen = Template("".join(functions[part] for part in ("quaternions", *parts))).substitute(fields)
    return {"rotations": len(turning), "rotation_functions": chosen, **_parts("rotation_statements.c")}


def _parts(template: str) -> dict[str, str]:
    """The parts of a template, each after a comment with its name."""
    parts = re.split(r"/\* (\w+) \*/\n", (TEMPLATES / template).read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def facts(robot: CompiledRobot, *lines: str) -> dict[str, object]:
    """Field of a header: states and inputs with units and limits, and then more lines."""
    return {"facts": "\n".join(f" * {comment(line)}".rstrip() for line in [*signals(robot), "", *lines])}


def origin(robot: CompiledRobot) -> list[str]:
    """Lines with the hashes of the artifact and the model of a policy, and the version that made it."""
    return [f"Made from artifact {robot.hash}", f"of model {robot.model_hash}", f"by {PACKAGE} {version(PACKAGE)}."]


def header(robot: CompiledRobot, made: str, also: str, note: str, value: str = "") -> dict[str, object]:
    """Fields of policy.h. made: the command. also: what else there is. note: a sentence. value: its declaration."""
    return {
        "made": made,
        "also": also,
        "note": note,
        "value_declaration": value,
        "copyright": COPYRIGHT,
        "version": version(PACKAGE),
        "artifact_hash": robot.hash,
        "model_hash": robot.model_hash,
    }


def signals(robot: CompiledRobot) -> list[str]:
    """A line for each state and input: index, name, unit and range."""
    lines = []
    for index, state in enumerate(robot.metadata.states):
        range_ = "any number of turns" if state.continuous else f"-{state.limit:g} to {state.limit:g}"
        lines.append(f"x[{index}] {state.name} ({state.unit}) {range_}")
    for index, entry in enumerate(robot.metadata.inputs):
        lines.append(f"u[{index}] {entry.name} ({entry.unit}) {entry.range}")
    return lines


def comment(text: str) -> str:
    """Text that cannot end a C comment, because labels and units come from files of other people."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("\n", " ").replace("\r", " ")


def listed(values: Iterable[float]) -> str:
    """Numbers in C with all digits, as those of the type `real` where they are none of a float."""
    return ", ".join(repr(value) if in_single(value) else f"(real){value!r}" for value in values)


def in_single(value: float) -> bool:
    """Whether a number of single precision holds all its digits."""
    return not math.isfinite(value) or (abs(value) < 3e38 and unpack("f", pack("f", value))[0] == value)


MADE = b"made by `solver export", b"made by modelgen"  # one of which every file says of itself
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

    Gives a ReliabilityWarning for such a file. Raises SolverError for a source that is the user's.
    """
    for name in files:
        if name not in SHARED and _of_the_user(directory / name):
            raise SolverError(
                f"{directory / name} is not a file of `solver export`, which would replace it. Name another folder."
            )
    kept = [name for name in SHARED if name in files and _of_the_user(directory / name)]
    for name in kept:
        warn(
            f"{directory / name} is not a file of `solver export` and stays as it is. Export into an empty folder to "
            f"get the {name} of the policy.",
        )
    return {directory / name: content for name, content in files.items() if name not in kept}


def _of_the_user(path: Path) -> bool:
    if not path.is_file():
        return False
    begin = path.read_bytes()[:1000]
    return not any(made in begin for made in MADE)


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
