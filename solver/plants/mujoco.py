"""MuJoCo plant from an MJCF file: an engine that is independent of the model file.

An MJCF file has numbers and no parameters. For each of these robots a function writes the parameters to their places in
the file. Other robots can only be simulated with their nominal parameters.

The engine integrates by Runge-Kutta at the task's simulation rate, with the contacts, limits and dry friction of the
file.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from modelgen.arrays import Array
from modelgen.engines.mujoco import ASSETS, read
from solver.errors import SolverError
from solver.observer import Sensing, make_sensing
from solver.plants.plant import Seeds, Simulation
from solver.problem import Problem

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


TIME_ERROR = 1e-9  # s, largest error of the time at the end of a simulated period
EFFECTS: tuple[str, ...] = ()


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> MuJoCoPlant:  # noqa: ARG001
    """Plant without effects and noise."""
    return MuJoCoPlant(problem, theta)


class MuJoCoPlant:
    """Robot in MuJoCo with parameters theta (p,) or (N, p), nominal by default.

    Raises SolverError if there is no MJCF file, if a changed parameter has no place in it, or if a velocity is not the
    rate of a coordinate. Raises ModelError if MuJoCo is not installed, or the file does not fit the robot.
    """

    def __init__(self, problem: Problem, theta: Tensor | None = None) -> None:
        robot = problem.robot
        if robot.metadata.internal:
            raise SolverError(
                f"{robot.metadata.internal[0]} of {robot.name} is a state of first order, which the plant mujoco does "
                "not have; use another plant, such as nominal or harsh"
            )
        other = robot.metadata.unrated
        if turning := robot.metadata.rotations:
            raise SolverError(
                f"{turning[0].name} of {robot.name} is a rotation, which the plant mujoco does not have; use "
                "--plant nominal or --plant harsh"
            )
        if other is not None:
            raise SolverError(
                f"the rate of {other} is not an entry of the state of {robot.name}, but MuJoCo's velocities are the "
                "rates of all coordinates; use --plant nominal or --plant harsh"
            )
        self.problem, self.theta = problem, problem.theta if theta is None else theta
        self.mujoco, self.model, self.joints, self.actuators = read(_description(robot.name), robot.metadata)
        task = robot.metadata.task
        self.steps = task.simulation_rate // task.control_rate
        self.model.opt.timestep = problem.control_step / self.steps
        self.model.opt.integrator = self.mujoco.mjtIntegrator.mjINT_RK4
        self.declared = problem.theta.new_tensor(robot.declared_parameters)  # (p,) parameters of the MJCF file
        changed = (self.theta != self.declared).reshape(-1, len(problem.theta)).any(0)
        if robot.name not in PARAMETERS and bool(changed.any()):
            name = robot.parameter_names[int(changed.nonzero()[0])]
            raise SolverError(
                f"the MuJoCo plant of {robot.name} cannot change {name}, whose place in the MJCF file is unknown; it "
                f"changes parameters of {', '.join(PARAMETERS)} only. Use --plant nominal"
            )

    def models(self, size: int) -> list[Any]:
        """MjModels of `size` rollouts. Rollouts with equal parameters share one.

        Raises SolverError if theta has another number of rows.
        """
        rows = self.theta.expand(size, -1) if self.theta.ndim == 1 else self.theta
        if len(rows) != size:
            raise SolverError(f"theta has {len(rows)} rows for {size} rollouts; give {size} rows, or one for all")
        made: dict[tuple[float, ...], Any] = {}
        for row in map(tuple, rows.tolist()):
            if row not in made:
                made[row] = self._at(row)
        return [made[row] for row in map(tuple, rows.tolist())]

    def _at(self, values: tuple[float, ...]) -> Any:
        """MjModel with the parameters `values` (p,)."""
        model, robot = copy.copy(self.model), self.problem.robot
        if robot.name in PARAMETERS:
            usual = dict(zip(robot.parameter_names, self.declared.tolist(), strict=True))
            write_parameters(model, robot.name, dict(zip(robot.parameter_names, values, strict=True)), usual)
            self.mujoco.mj_setConst(model, self.mujoco.MjData(model))
        return model

    @property
    def sensing(self) -> Sensing:
        """Exact sensors without delay."""
        return make_sensing(self.problem)

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from x (N, n)."""
        return _MuJoCoSimulation(self, x)


class _MuJoCoSimulation:
    """Rollouts by MuJoCo's batch routine. States are confined to the domain after every control period."""

    def __init__(self, plant: MuJoCoPlant, x: Tensor) -> None:
        from mujoco.rollout import Rollout

        threads = os.cpu_count() or 1
        self.plant, self.x, self.measured = plant, x, x
        self.models = plant.models(len(x))
        self.data = [plant.mujoco.MjData(plant.model) for _ in range(threads)]
        self.rollout = Rollout(nthread=threads if threads > 1 else 0)
        joints = np.array(plant.joints)
        positions = joints[: plant.problem.robot.metadata.nq]  # ignored coordinates stay at zero
        self.columns = [1 + positions, 1 + len(joints) + joints]  # of the physics state: time, positions, rates

    def step(self, u: Tensor) -> Tensor:
        """Integral (N,) of the state cost over one control period, simulated with the input u (N, m) held.

        The integral is the trapezoidal rule over the engine's steps.
        """
        q, v = self.columns
        state = np.zeros((len(self.x), 1 + 2 * len(self.plant.joints)))
        control = np.zeros((len(u), self.plant.steps, u.shape[1]))
        state[:, np.concatenate([q, v])] = np.nan_to_num(self.x.numpy(), posinf=0.0, neginf=0.0)
        control[:, :, self.plant.actuators] = u.numpy()[:, None]
        with _no_warnings(self.plant.mujoco):
            states, _ = self.rollout.rollout(self.models, self.data, state, control)
        cost = self._cost(states[:, :, np.concatenate([q, v])])
        x = np.ascontiguousarray(states[:, -1, np.concatenate([q, v])], np.float32)
        # MuJoCo resets a simulation that diverges, and its time.
        late = np.abs(states[:, -1, 0] - self.plant.problem.control_step) > TIME_ERROR
        x[late | ~np.isfinite(self.x.numpy()).all(1)] = np.nan
        self.x = self.measured = self.plant.problem.confine(torch.from_numpy(x))
        return cost

    def _cost(self, later: Array) -> Tensor:
        """Integral (N,) of the state cost over a period, from the states `later` (N, K, n) at the ends of its steps."""
        problem = self.plant.problem
        x = torch.cat([self.x[:, None], torch.from_numpy(later).float()], 1)
        x = problem.confine(x.transpose(0, 1).reshape(-1, x.shape[2]))
        cost = problem.state_cost(x, self.plant.theta).view(-1, len(self.x))
        return torch.trapezoid(cost, dx=problem.control_step / self.plant.steps, dim=0)


@contextmanager
def _no_warnings(mujoco: Any) -> Iterator[None]:
    """Context without MuJoCo's warnings, which it prints and writes to a file in the working folder."""
    usual = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(usual)


def _description(name: str) -> Path:
    """MJCF file of a robot: models/NAME.xml, or a shipped one. Raises SolverError if there is none."""
    places = [Path("models") / f"{name}.xml", ASSETS / f"{name}.xml"]
    for place in places:
        if place.is_file():
            return place
    shipped = ", ".join(sorted(path.stem for path in ASSETS.glob("*.xml")))
    raise SolverError(
        f"there is no MJCF file for {name}: write {places[0]}, with the names of the coordinates for its joints and "
        f"the names of the inputs for its actuators. Files are shipped for {shipped}"
    )
