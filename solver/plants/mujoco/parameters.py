"""The parameters of the shipped robots in their MJCF files, by the names of the robots.

An MJCF file holds numbers, so each of these robots has a function that says where its parameters stand in the file. The
robots that have none can be simulated at their nominal parameters only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from solver.errors import SolverError

SMALLEST = 1e-14  # kg m^2, in place of a zero inertia, which MuJoCo refuses


def _pendulum(model: Any, p: Mapping[str, float]) -> None:
    """A uniform rod."""
    _mass(model, "rod", p["mass"], p["length"] / 2, p["mass"] * p["length"] ** 2 / 12)


def _cartpole(model: Any, p: Mapping[str, float]) -> None:
    """A point mass on a cart."""
    _mass(model, "cart", p["cart_mass"], 0.0, SMALLEST)
    _mass(model, "pole", p["pole_mass"], p["pole_half_length"], SMALLEST)
    _damping(model, cart=p["cart_damping"], pole=p["pole_damping"])


def _furuta(model: Any, p: Mapping[str, float]) -> None:
    """The arm's inertia and the pendulum's about its centre turn with their hinges alone; a motor without gear."""
    _mass(model, "pendulum", p["pendulum_mass"], p["pendulum_length"] / 2, SMALLEST)
    model.body("pendulum").pos[0] = p["arm_length"]
    model.joint("arm").armature[:] = p["arm_mass"] * p["arm_length"] ** 2 / 12
    model.joint("pendulum").armature[:] = p["pendulum_mass"] * p["pendulum_length"] ** 2 / 12
    _damping(model, arm=p["arm_damping"], pendulum=p["pendulum_damping"])
    gain = p["torque_constant"] / p["resistance"]  # N m/V
    model.actuator("voltage").gainprm[0] = gain
    model.actuator("voltage").biasprm[2] = -gain * p["torque_constant"]


#: For every shipped robot: writes the parameters, by name, into the compiled MJCF file.
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
    """A dictionary that remembers which of its values were read."""

    def __init__(self, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.read.add(name)
        return super().__getitem__(name)


def write_parameters(model: Any, robot: str, values: Mapping[str, float], nominal: Mapping[str, float]) -> None:
    """Write the values of a robot's parameters into its compiled MJCF file.

    Raises SolverError when the file has other names, or a changed parameter has no place in it.
    """
    recorded = _Recorded(values)
    try:
        PARAMETERS[robot](model, recorded)
    except KeyError as error:
        raise SolverError(
            f"the MuJoCo plant of {robot} and its model file or MJCF file have different names: {error}. Give a robot "
            "of your own another name than a shipped one's"
        ) from error
    for name, value in values.items():
        if value != nominal[name] and name not in recorded.read:
            raise SolverError(
                f"the place of {name} in the MJCF file of {robot} is not known; change it with --plant nominal"
            )
