"""Distilled policy in C99, with facts and cost in its header."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from solver.export.c_export import UNTOLD
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
    _, slope, level = network.correction()
    fields = (
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
            "slope": ",\n".join(f"    {{{_floats(row)}}}" for row in slope.numpy()),
            "level": _floats(level.numpy()),
            "network": ",\n".join(f"    {_floats(row)}" for row in rows),
            "input_scale": listed(network.scale.tolist()),
            "largest": repr(LARGEST),
        }
        | UNTOLD
        | {"context_struct": ""}
        | header(robot, "`solver export --budget`", " in one small network", "")
        | replay(problem, controller(problem, network), CLOSE)
    )
    ends = (".h", ".c", "_driver.c", "_replay.c")
    own = (".c", "_driver.c")  # the others are those of every policy
    return {
        f"{robot.name}_policy{end}": filled(f"{'distilled_' if end in own else ''}policy{end}", fields) for end in ends
    }


def _rows(network: SmallNetwork) -> list[NDArray[np.float32]]:
    """Rows of all outputs of all layers: the bias, then the weights, in float32."""
    biases = [*(bias.detach() for bias in network.biases), network.correction()[0]]
    layers = zip(network.weights, biases, strict=True)
    return [row for weight, bias in layers for row in torch.cat([bias[:, None], weight.detach().T], 1).numpy()]


def _floats(row: NDArray[np.float32]) -> str:
    return ", ".join(f"{value!s}f" for value in row)
