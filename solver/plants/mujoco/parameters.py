"""Parameters of shipped robots in their MJCF files.

An MJCF file has numbers and no parameters. For each of these robots a function writes the parameters to their places in
the file. Other robots can only be simulated with their nominal parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from solver.errors import SolverError

SMALLEST = 1e-14  # kg m^2, used instead of a zero inertia, which MuJoCo rejects


def _pendulum(model: Any, p: Mapping[str, float]) -> None:
    """Uniform rod."""
    _mass(model, "rod", p["mass"], p["length"] / 2, p["mass"] * p["length"] ** 2 / 12)


def _cartpole(model: Any, p: Mapping[str, float]) -> None:
    """Point mass on a cart."""
    _mass(model, "cart", p["cart_mass"], 0.0, SMALLEST)
    _mass(model, "pole", p["pole_mass"], p["pole_half_length"], SMALLEST)
    _damping(model, cart=p["cart_damping"], pole=p["pole_damping"])


def _furuta(model: Any, p: Mapping[str, float]) -> None:
    """Arm and pendulum. Inertias about the centres act on one hinge only; the motor has no gear."""
    _mass(model, "pendulum", p["pendulum_mass"], p["pendulum_length"] / 2, SMALLEST)
    model.body("pendulum").pos[0] = p["arm_length"]
    model.joint("arm").armature[:] = p["arm_mass"] * p["arm_length"] ** 2 / 12
    model.joint("pendulum").armature[:] = p["pendulum_mass"] * p["pendulum_length"] ** 2 / 12
    _damping(model, arm=p["arm_damping"], pendulum=p["pendulum_damping"])
    gain = p["torque_constant"] / p["resistance"]  # N m/V
    model.actuator("voltage").gainprm[0] = gain
    model.actuator("voltage").biasprm[2] = -gain * p["torque_constant"]


#: Functions that write the parameters of a robot, by name, into its compiled MJCF file.
PARAMETERS: dict[str, Callable[[Any, Mapping[str, float]], None]] = {
    "pendulum": _pendulum,
    "cartpole": _cartpole,
    "furuta": _furuta,
}


def _mass(model: Any, name: str, mass: float, height: float, inertia: float) -> None:
    """Set the mass of a body, the height of its centre, and its inertia about the axes across z."""
    body = model.body(name)
    body.mass[:], body.ipos[2], body.inertia[:2] = mass, height, inertia


def _damping(model: Any, **coefficients: float) -> None:
    for name, coefficient in coefficients.items():
        model.joint(name).damping[:] = coefficient


class _Recorded(dict[str, float]):
    """Dictionary that records which of its values were read."""

    def __init__(self, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.read.add(name)
        return super().__getitem__(name)


def write_parameters(model: Any, robot: str, values: Mapping[str, float], nominal: Mapping[str, float]) -> None:
    """Write the values of a robot's parameters into its compiled MJCF file.

    Raises SolverError if the file has other names, or if the function of the robot ignores a changed parameter.
    """
    recorded = _Recorded(values)
    try:
        PARAMETERS[robot](model, recorded)
    except KeyError as error:
        raise SolverError(
            f"the MuJoCo plant of {robot} expects the shipped model file and MJCF file, but these have other names: "
            f"{error}. Rename your robot"
        ) from error
    for name, value in values.items():
        if value != nominal[name] and name not in recorded.read:
            raise SolverError(
                f"the MuJoCo plant of {robot} cannot change {name}, whose place in the MJCF file is unknown; use "
                "--plant nominal"
            )
