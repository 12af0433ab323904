"""Robot whose velocity state is not the rate of its coordinate: rates, time scale and success use dq/dt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch

import modelgen
from modelgen.cli import main as modelgen_main
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.mujoco import MuJoCoPlant
from solver.plants.outcome import rollouts, succeeded
from solver.preflight.warnings import forewarnings
from solver.problem import Problem
from solver.problem.robots import largest_rates
from solver.training.settings import make_settings

GEARED = '''
"""The shipped pendulum behind a gear: its velocity is the spin of the drive, half the rate of the angle."""
import sympy as sp
from sympy.physics.mechanics import KanesMethod, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from modelgen import LogCos, Robot

robot = Robot("geared", "The pendulum, stated by Kane with another speed")
angle = robot.revolute("angle", continuous=True)
spin = robot.speed("spin", limit=4, unit="rad/s", meaning="half the rate of the angle")
mass = robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2))
length = robot.parameter("length", 1.0, "m", bounds=(0.5, 2))
torque = robot.input("torque", 2.5, "N m")

q, u, m, l, T = *dynamicsymbols("q u"), *sp.symbols("m l T")
world, rod, origin = ReferenceFrame("N"), ReferenceFrame("B"), Point("O")
rod.orient_axis(world, world.y, q)
rod.set_ang_vel(world, 2 * u * world.y)
origin.set_vel(world, 0)
centre = origin.locatenew("G", l / 2 * rod.z)
centre.v2pt_theory(origin, world, rod)
body = RigidBody("rod", centre, rod, m, (inertia(rod, 0, m * l**2 / 12, 0), centre))
method = KanesMethod(world, [q], [u], kd_eqs=[2 * u - q.diff()])
method.kanes_equations([body], [(centre, -m * sp.Float(9.81) * world.z), (rod, T * world.y)])
robot.mechanics(
    method, coordinates={q: angle}, speeds={u: spin}, parameters={m: mass, l: length}, inputs={T: torque}
)
robot.task(
    state_cost=(sp.pi * sp.sin(angle / 2)) ** 2 + 0.1 * angle.rate**2,
    action_cost=LogCos(0.5),
    start=dict(angle=(sp.pi, sp.sqrt(1e-3)), spin=(0.005, 5e-4)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
'''


@pytest.fixture(scope="module")
def geared(tmp_path_factory: pytest.TempPathFactory) -> CompiledRobot:
    """The robot of GEARED."""
    folder = tmp_path_factory.mktemp("geared")
    path: Path = folder / "geared.py"
    path.write_text(dedent(GEARED))
    assert modelgen_main(["build", str(path), "--generated", str(folder / "generated")]) == 0
    return modelgen.load("geared", dtype="float32", directory=folder / "generated", parallel=False)


@pytest.mark.slow
def test_geared_pendulum_moves_as_the_pendulum_does(
    geared: CompiledRobot, load: Callable[[str], CompiledRobot]
) -> None:
    pendulum = load("pendulum")
    assert geared.metadata.unrated == "angle"
    assert pendulum.metadata.unrated is None
    np.testing.assert_allclose(largest_rates(geared), largest_rates(pendulum), rtol=1e-6)
    x = torch.tensor([[3.1, 0.01], [2.0, 1.0]])
    half = torch.tensor([1.0, 0.5])

    def push(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return 1.5 * torch.sign(torch.sin(x[:, :1])), torch.zeros(len(x))

    games = Problem(geared), Problem(pendulum)
    ours, theirs = (rollouts(g, push, start, seconds=1.0) for g, start in zip(games, (x * half, x), strict=True))
    torch.testing.assert_close(ours.x, theirs.x * half, rtol=1e-3, atol=1e-3)


def test_success_depends_on_the_rate_of_the_coordinate(geared: CompiledRobot) -> None:
    x = torch.tensor([[0.0, 0.24], [0.0, 0.26], [torch.nan, 0.0]])[None]
    assert succeeded(Problem(geared), x).tolist() == [True, False, False]


@pytest.mark.slow
def test_preset_has_the_time_scale_of_the_pendulum(geared: CompiledRobot, load: Callable[[str], CompiledRobot]) -> None:
    for name in ("step_periods", "trace_decay"):
        ours, theirs = (getattr(make_settings("fast", robot), name) for robot in (geared, load("pendulum")))
        assert ours == pytest.approx(theirs)
    assert forewarnings(geared, make_settings("fast", geared)) == []


def test_mujoco_plant_rejects_a_velocity_that_is_not_a_rate(geared: CompiledRobot) -> None:
    with pytest.raises(SolverError, match=r"rate of angle .*geared.*plant nominal"):
        MuJoCoPlant(Problem(geared))
