"""Distilled policy in C99, with facts and cost in its header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from solver.export.c_export import UNTOLD, told_fields
from solver.export.c_folder import replay
from solver.export.c_templates import domain, feature_map, filled, header, listed, names, rotations
from solver.export.c_templates import facts as header_facts
from solver.export.distilled.network import LARGEST, SmallNetwork, controller
from solver.problem.problem import Problem

CLOSE = 1e-3  # largest difference between board and Torch, as a share of an input's limit


def emit(problem: Problem, network: SmallNetwork, label: str, facts: Sequence[str]) -> dict[str, str]:
    """Texts of NAME_policy.h, NAME_policy.c, a driver and the replay, by file name. facts: lines of the header."""
    robot = problem.robot
    sizes = [len(network.weights[0]), *(weight.shape[1] for weight in network.weights)]
    rows = _rows(network)
    fields: dict[str, Any] = (
        names(robot, f"{label}, distilled")
        | feature_map(network.features)
        | header_facts(robot, *facts)
        | domain(problem)
        | rotations(problem, slopes=False)
        | {
            "layers": len(sizes) - 2,
            "widest": max(sizes),
            "sizes": ", ".join(map(str, sizes)),
            "weights": sum(map(len, rows)),
            "network": ",\n".join(f"    {_floats(row)}" for row in rows),
            "input_scale": listed(network.scale.tolist()),
            "largest": repr(LARGEST),
        }
        | (_fixed(problem, network) if problem.context is None else _told(problem, network))
        | header(robot, "`solver export --budget`", " in one small network", "")
        | replay(problem, controller(problem, network), CLOSE)
    )
    fields["trim"] = "\n".join(filled(template, fields) for template in fields["trim"])
    fields["context_struct"] = "" if problem.context is None else filled("told.h", fields)
    ends = (".h", ".c", "_driver.c", "_replay.c")
    own = (".c", "_driver.c")  # the others are those of every policy
    return {
        f"{robot.name}_policy{end}": filled(f"{'distilled_' if end in own else ''}policy{end}", fields) for end in ends
    }


def _fixed(problem: Problem, network: SmallNetwork) -> dict[str, Any]:
    """Fields of a policy that is told nothing. `trim` names templates."""
    _, gain, level = network.correction()
    rows = ",\n".join(f"    {{{_floats(row)}}}" for row in gain.numpy())
    fields = UNTOLD | {"seen": "FEATURES", "biased": "", "trim": [], "optimal": f"{problem.robot.name}_optimal_input("}
    if problem.action_cost.slope is not None:
        slope = f"((const real[]){{{listed(problem.action_cost.slope.tolist())}}})"
        fields |= {"trim": ["about_trim.c"], "slope": slope, "optimal": "optimal("}
    return fields | {"constants": filled("distilled_fixed.c", {"gain": rows, "level": _floats(level.numpy())})}


def _told(problem: Problem, network: SmallNetwork) -> dict[str, Any]:
    """Fields of a policy that is told a context. `trim` names templates."""
    assert problem.context is not None
    m, features = len(problem.input_limits), network.features.size
    fields = told_fields(
        problem, problem.context, problem.robot.name, network.gain.degrees, network.gain.coefficients.flatten(1)
    )
    constants = f"static const real at_target[FEATURES] = {{{listed(network.features.at_target.tolist())}}};\n"
    if problem.moving_trim:
        constants += f"static const real target[STATES] = {{{listed(problem.context.target.tolist())}}};\n"
    return fields | {
        "constants": f"{fields['constants']}{constants}\n",
        "biased": "told->bias[k] + ",
        "members_of_form": f"bias[{m}], gain[{m}][{features}], level[{m}]",
        "of_product": "the gain at the target",
        "unpacked": filled("distilled_told.c", {}),
        "limits": listed(problem.input_limits.tolist()),
    }


def _rows(network: SmallNetwork) -> list[NDArray[np.float32]]:
    """Rows of all outputs of all layers: the bias, then the weights, in float32. The last bias of a family is told."""
    last = torch.zeros(len(network.scale)) if network.told else network.correction()[0]
    biases = [*(bias.detach() for bias in network.biases), last]
    layers = zip(network.weights, biases, strict=True)
    return [row for weight, bias in layers for row in torch.cat([bias[:, None], weight.detach().T], 1).numpy()]


def _floats(row: NDArray[np.float32]) -> str:
    return ", ".join(f"{value!s}f" for value in row)
