"""The content of a file of `modelgen identify`, made up."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelgen.loader import CompiledRobot


def identified(robot: CompiledRobot, centre: Any = None, shape: Any = None) -> dict[str, Any]:
    """A set about `centre` (p,), by default one per cent above the declared values, of two per cent."""
    names, n, m = list(robot.parameter_names), len(robot.state_names), len(robot.input_names)
    values = 1.01 * np.array(robot.declared_parameters) if centre is None else np.array(centre, float)
    shape = np.diag((0.02 * values) ** 2) if shape is None else np.asarray(shape)
    return {
        "robot": robot.name,
        "model_hash": robot.model_hash,
        "confidence": 0.95,
        "parameters": {
            name: {"value": value, "lower": 0.98 * value, "upper": 1.02 * value, "identified": True}
            for name, value in zip(names, values.tolist(), strict=True)
        },
        "ellipsoid": {"names": names, "centre": values.tolist(), "shape": shape.tolist()},
        "effects": {},
        "unidentifiable": [],
        "fix": [],
        "radii": {"state": n * [0.1], "action": m * [0.2], "observation": [0.003, *(n - 1) * [None]]},
        "prediction": None,
        "residual": {
            "states": list(robot.state_names),
            "root_mean_square": [0.003, *(n - 1) * [None]],
            "correlation_seconds": 0.1,
            "condition": 2.0,
            "windows": 24,
            "window_seconds": 0.5,
            "blocks": 24,
            "inflation": 1.0,
            "held_out": [],
        },
        "recordings": [],
    }
