"""An artifact as text: states, inputs, parameters, task, operations, its verification and its build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.artifact.folder import MANIFEST, REPORT, program, proof
from modelgen.artifact.manifest import Manifest
from modelgen.backends.casadi import compiled
from modelgen.program.trim import trims

EPSILON = 1e-9  # of an input's limit: a smaller change over the bounds of a parameter is rounding


def data(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """For JSON: the manifest, the operations by function, du0/dtheta by input and parameter where an input is needed at
    the target, and the result of the last full proof (None without one)."""
    more = {"operations": program(folder, manifest).operations, "proof": proof(folder, manifest)}
    more["trim_slopes"] = _trim_slopes(folder, manifest)
    written: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return written | more


def text(folder: Path, manifest: Manifest) -> str:
    """The output of `modelgen show NAME`."""
    tables = _quantities(manifest, _trim_slopes(folder, manifest))
    return "\n".join([*tables, *_task(folder, manifest), _proven(folder, manifest), "", *_build(folder)])


def _trim_slopes(folder: Path, manifest: Manifest) -> dict[str, dict[str, float]]:
    """du0/dtheta by input and parameter, without zeros; empty without a trim or without the functions for it.

    Inputs at a limit stay there.
    """
    robot, stored = manifest.metadata, program(folder, manifest)
    if not any(entry.trim for entry in robot.inputs) or not {"affine_dynamics", "jacobians"} <= {*stored.operations}:
        return {}
    theta, made = [parameter.value for parameter in robot.parameters], trims(stored, robot)
    _, found = compiled(made.graph, made.function("trim_slopes"), robot.name)(robot.task.target, theta)
    slopes: dict[str, dict[str, float]] = {entry.name: {} for entry in robot.inputs}
    for moved, row in zip(robot.inputs, np.asarray(found).tolist(), strict=True):
        for entry, slope in zip(robot.parameters, row, strict=True):
            if abs(slope) * (entry.upper - entry.lower) > EPSILON * moved.limit:
                slopes[moved.name][entry.name] = slope
    return slopes


def _quantities(manifest: Manifest, slopes: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Tables of states, inputs and parameters. slopes: of the trims by the parameters."""
    robot, task = manifest.metadata, manifest.metadata.task
    lines = [f"{robot.name}: {robot.description}", "", f"{'state':<24}{'limit':>10} unit     start"]
    starts = zip(robot.states, task.target, task.start_mean, task.start_deviation, strict=True)
    for state, target, mean, deviation in starts:
        limit = "turns" if state.continuous else f"{state.limit:g}"
        lines.append(
            f"  {state.name:<22}{limit:>10} {state.unit:<8} {mean:.4g} +- {deviation:.3g}, target {target:g} "
            f"  {state.meaning}"
        )
    lines += ["", f"{'input':<24}{'limit':>10} unit"]
    for entry in robot.inputs:
        limit = entry.range if entry.middle else f"{entry.limit:g}"
        trim = f"   holds the target with {entry.trim:g}" if entry.trim else ""
        moved = ", ".join(f"{name} {slope:.4g}" for name, slope in slopes.get(entry.name, {}).items())
        by = f"; du0/dtheta: {moved}" if moved else ""
        lines.append(f"  {entry.name:<22}{limit:>10} {entry.unit:<8} {entry.meaning}{trim}{by}")
    lines += ["", f"{'parameter':<24}{'value':>10} unit     bounds"]
    lines += [
        f"  {entry.name:<22}{entry.value:>10g} {entry.unit:<8} {entry.lower:g} to {entry.upper:g}   {entry.meaning}"
        for entry in robot.parameters
    ]
    return lines


def _task(folder: Path, manifest: Manifest) -> list[str]:
    task = manifest.metadata.task
    weights = ", ".join(f"{weight:g}" for weight in task.action_cost.weights)
    return [
        "",
        f"task: action cost {task.action_cost.name} ({weights}), horizon {task.horizon:g} s with weight "
        f"{task.weight_at_horizon:g} left, control {task.control_rate} Hz, {task.integration_steps} Runge-Kutta "
        f"step(s) a period, simulation {task.simulation_rate} Hz"
        + (f", may end anywhere: {', '.join(task.free)}" if task.free else ""),
        "operations: " + ", ".join(f"{name} {count}" for name, count in program(folder, manifest).operations.items()),
        f"model {manifest.model_hash[:12]}, artifact {manifest.hash[:12]}",
    ]


def _proven(folder: Path, manifest: Manifest) -> str:
    """When and how the artifact was proven."""
    result = proof(folder, manifest)
    if result is None:
        return f"proof: this artifact has none; `modelgen verify {manifest.metadata.name}` makes it"
    outcome = f"{result['failed']} checks FAILED" if result["failed"] else "every check passed"
    return (
        f"proof: {result['date']} by modelgen verify (generator {result['modelgen']}): {outcome}, "
        f"{result['passed']} passed, {result['skipped']} skipped, {result['seconds']} s"
    )


def _build(folder: Path) -> list[str]:
    """Seconds of each stage of the build, and sizes of the sources."""
    path = folder / REPORT
    if not path.exists():
        return [f"build: {path} is missing, so the seconds of each stage are not known"]
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        seconds = ", ".join(f"{stage} {value:.2f} s" for stage, value in report["seconds"].items())
        size = ", ".join(f"{backend} {count / 1024:.0f} KiB" for backend, count in report["source_bytes"].items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError, OverflowError):
        return [f"build: {path} is damaged, so the seconds of each stage are not known"]
    return [f"build: {seconds}", f"sources: {size}"]
