"""A pendulum of which only mass times length is seen, beside the shipped robots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sympy import cos, sin

import modelgen
from modelgen import LogCos, Robot
from modelgen.builder import build_artifact
from modelgen.identification.identify import Identified, identify
from modelgen.identification.model import Model
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import recordings, silent


@pytest.fixture(scope="session")
def pendulum() -> CompiledRobot:
    return modelgen.load("pendulum", parallel=False)


@pytest.fixture(scope="session")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> CompiledRobot:
    """(mass length) g sin(angle) = torque beside a known inertia: the motion depends on the product alone."""
    robot = Robot("hanging")
    angle = robot.revolute("angle", continuous=True, rate_limit=20)
    mass = robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2))
    length = robot.parameter("length", 0.5, "m", bounds=(0.25, 1))
    damping = robot.parameter("damping", 0.1, "N m s", bounds=(0.05, 0.2))
    robot.kinetic_energy(robot.parameter("inertia", 0.3, "kg m^2", fixed=True) * angle.rate**2 / 2)
    gravity = robot.parameter("gravity", 9.81, "m/s^2", fixed=True)
    robot.potential_energy(gravity * mass * length * cos(angle))
    robot.damp(angle, damping)
    robot.apply(angle, robot.input("torque", 3, "N m"))
    robot.task(
        state_cost=sin(angle / 2) ** 2 + angle.rate**2 / 10,
        action_cost=LogCos(0.5),
        start=dict(angle=(3, 0.1)),
        horizon=5,
        weight_at_horizon=0.65,
        control_rate=125,
    )
    folder: Path = tmp_path_factory.mktemp("hanging")
    build_artifact(robot, folder)
    return modelgen.load("hanging", directory=folder, parallel=False)


@pytest.fixture(scope="session")
def found(hanging: CompiledRobot, tmp_path_factory: pytest.TempPathFactory) -> Identified:
    """Of two recordings of `hanging`, whose product of mass and length is 0.72 kg m."""
    logs = recordings(hanging, tmp_path_factory.mktemp("logs"), np.array([1.2, 0.6, 0.12]), 2, 1e-3)
    return identify(Model(hanging), logs, 0.5, silent)
