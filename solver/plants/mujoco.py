"""MuJoCo as the plant, from an MJCF file, so that a policy is tried in an engine that did not make its model.

The engine integrates by Runge-Kutta at the task's simulation rate, with the contacts, limits and dry friction that the
file states. The parameters of the robots in PARAMETERS are written into the compiled file.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modelgen.engines.mjcf import ASSETS, read
from solver.errors import SolverError
from solver.plants.plant import Motion
from solver.problem.problem import Problem

Array = NDArray[np.float64]
Values = Mapping[str, float]  # of the parameters, by name
TIME_ERROR = 1e-9  # s, beyond which a period was not simulated to its end
SMALLEST = 1e-14  # kg m^2, the inertia of what has none; MuJoCo takes no zero


def _pendulum(model: Any, p: Values) -> None:
    """A uniform rod."""
    _mass(model, "rod", p["mass"], p["length"] / 2, p["mass"] * p["length"] ** 2 / 12)


def _cartpole(model: Any, p: Values) -> None:
    """A point mass on a cart."""
    _mass(model, "cart", p["cart_mass"], 0.0, SMALLEST)
    _mass(model, "pole", p["pole_mass"], p["pole_half_length"], SMALLEST)
    _damping(model, cart=p["cart_damping"], pole=p["pole_damping"])


def _furuta(model: Any, p: Values) -> None:
    """The arm's inertia and the pendulum's about its centre turn with their hinges alone; a motor without gear."""
    _mass(model, "pendulum", p["pendulum_mass"], p["pendulum_length"] / 2, SMALLEST)
    model.body("pendulum").pos[0] = p["arm_length"]
    model.joint("arm").armature[:] = p["arm_mass"] * p["arm_length"] ** 2 / 12
    model.joint("pendulum").armature[:] = p["pendulum_mass"] * p["pendulum_length"] ** 2 / 12
    _damping(model, arm=p["arm_damping"], pendulum=p["pendulum_damping"])
    gain = p["torque_constant"] / p["resistance"]  # N m/V
    model.actuator("voltage").gainprm[0] = gain
    model.actuator("voltage").biasprm[2] = -gain * p["torque_constant"]


#: How the parameters of a robot stand in its MJCF file.
PARAMETERS: dict[str, Callable[[Any, Values], None]] = {
    "pendulum": _pendulum,
    "cartpole": _cartpole,
    "furuta": _furuta,
}


def _mass(model: Any, name: str, mass: float, height: float, inertia: float) -> None:
    """The mass of a body, its centre along z and the inertia about it across z."""
    body = model.body(name)
    body.mass[:], body.ipos[2], body.inertia[:2] = mass, height, inertia


def _damping(model: Any, **coefficients: float) -> None:
    for name, coefficient in coefficients.items():
        model.joint(name).damping[:] = coefficient


class _Recorded(dict[str, float]):
    """Values that know which of them were read."""

    def __init__(self, values: Iterable[tuple[str, float]]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.read.add(name)
        return super().__getitem__(name)


class MuJoCoPlant:
    """A robot in MuJoCo at theta (p,) or (N, p), by default the nominal parameters.

    Raises SolverError when there is no MJCF file, a changed parameter has no place in it or v is not dq/dt, ModelError
    when MuJoCo is not installed or the file does not fit the robot.
    """

    def __init__(self, problem: Problem, theta: Tensor | None = None) -> None:
        robot = problem.robot
        other = robot.metadata.quasi_velocity
        if other is not None:
            raise SolverError(
                f"{other} of {robot.name} is no coordinate's rate, and MuJoCo's velocities are; use --plant nominal or "
                "--plant harsh"
            )
        self.problem, self.theta = problem, problem.theta if theta is None else theta
        self.threads = torch.get_num_threads()  # rollouts keep Torch to one
        self.mujoco, self.model, self.joints, self.actuators = read(_description(robot.name), robot.metadata)
        self.model.opt.timestep = problem.integration_step
        self.model.opt.integrator = self.mujoco.mjtIntegrator.mjINT_RK4
        changed = (self.theta != problem.theta).reshape(-1, len(problem.theta)).any(0)
        if robot.name not in PARAMETERS and bool(changed.any()):
            name = robot.parameter_names[int(changed.nonzero()[0])]
            raise SolverError(
                f"the MJCF file of {robot.name} holds numbers, and where {name} stands in it is not known; the MuJoCo "
                f"plants with parameters are {', '.join(PARAMETERS)}. Change {name} with --plant nominal"
            )

    def models(self, size: int) -> list[Any]:
        """An MjModel for each of `size` rollouts; equal parameters share one."""
        rows = self.theta.expand(size, -1) if self.theta.ndim == 1 else self.theta
        if len(rows) != size:
            raise SolverError(f"theta has {len(rows)} rows for {size} rollouts; give one row each, or one for all")
        made: dict[tuple[float, ...], Any] = {}
        for row in map(tuple, rows.tolist()):
            if row not in made:
                made[row] = self._at(row)
        return [made[row] for row in map(tuple, rows.tolist())]

    def _at(self, values: tuple[float, ...]) -> Any:
        """The model at the parameters `values`."""
        model = copy.copy(self.model)
        robot = self.problem.robot
        if robot.name in PARAMETERS:
            stated = _Recorded(zip(robot.parameter_names, values, strict=True))
            try:
                PARAMETERS[robot.name](model, stated)
            except KeyError as error:
                raise SolverError(
                    f"the MuJoCo plant of {robot.name} and its model file or MJCF file have different names: {error}. "
                    "Give a robot of your own another name than a shipped one's"
                ) from error
            nominal = zip(stated, values, self.problem.theta.tolist(), strict=True)
            unread = [name for name, value, usual in nominal if value != usual and name not in stated.read]
            if unread:
                raise SolverError(
                    f"where {unread[0]} stands in the MJCF file of {robot.name} is not known; change it with --plant "
                    "nominal"
                )
            self.mujoco.mj_setConst(model, self.mujoco.MjData(model))
        return model

    def begin(self, x: Tensor) -> Motion:
        """Rollouts from x (N, n)."""
        return _MuJoCoMotion(self, x)


class _MuJoCoMotion:
    """Rollouts in MuJoCo's own batch routine. The states are confined to the domain after every control period."""

    def __init__(self, plant: MuJoCoPlant, x: Tensor) -> None:
        from mujoco.rollout import Rollout

        threads = plant.threads
        self.plant, self.x, self.seen = plant, x, x
        self.models = plant.models(len(x))
        self.data = [plant.mujoco.MjData(plant.model) for _ in range(threads)]
        self.rollout = Rollout(nthread=threads if threads > 1 else 0)
        coordinates = len(plant.problem.robot.metadata.coordinates)
        joints = np.array(plant.joints)
        self.columns = [1 + joints, 1 + coordinates + joints]  # of the physics state: time, positions, rates

    def step(self, u: Tensor) -> None:
        """One control period under the input u (N, m), held."""
        q, v = self.columns
        state = np.zeros((len(self.x), 1 + self.x.shape[1]))
        control = np.zeros((len(u), self.plant.problem.substeps, u.shape[1]))
        state[:, np.concatenate([q, v])] = np.nan_to_num(self.x.numpy(), posinf=0.0, neginf=0.0)
        control[:, :, self.plant.actuators] = u.numpy()[:, None]
        with _no_warnings(self.plant.mujoco):
            states, _ = self.rollout.rollout(self.models, self.data, state, control)
        x = np.ascontiguousarray(states[:, -1, np.concatenate([q, v])], np.float32)
        # MuJoCo puts a simulation that blows up back to its start, time included.
        late = np.abs(states[:, -1, 0] - self.plant.problem.control_step) > TIME_ERROR
        x[late | ~np.isfinite(self.x.numpy()).all(1)] = np.nan
        self.x = self.seen = self.plant.problem.confine(torch.from_numpy(x))


@contextmanager
def _no_warnings(mujoco: Any) -> Iterator[None]:
    """MuJoCo would print its own and write them to a file in the working folder."""
    usual = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(usual)


def _description(name: str) -> Path:
    """The MJCF file of a robot: models/NAME.xml, or a shipped one."""
    places = [Path("models") / f"{name}.xml", ASSETS / f"{name}.xml"]
    for place in places:
        if place.is_file():
            return place
    shipped = ", ".join(sorted(path.stem for path in ASSETS.glob("*.xml")))
    raise SolverError(
        f"there is no MJCF file for {name}: write one to {places[0]}, its joints named like the coordinates and its "
        f"actuators like the inputs. Shipped are those of {shipped}"
    )
