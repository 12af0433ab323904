"""Small robots with references, a motor, a limited rotation, and one whose inputs command velocities."""

from __future__ import annotations

from functools import cache

from sympy import Symbol, cos, pi, sin

import modelgen
from modelgen import Quadratic, Robot
from modelgen.loader import CompiledRobot


def slide(horizon: float = 4, rate: int = 50) -> CompiledRobot:
    """A mass on a rail without friction. The reference `goal` is where it is to stand; all the rest is quadratic."""
    return _slide("slide", horizon, rate, (0, 0.2))


def standing() -> CompiledRobot:
    """`slide`, which starts where it is to stand."""
    return _slide("standing", 4, 50)


@cache
def _slide(name: str, horizon: float, rate: int, start: tuple[float, float] | None = None) -> CompiledRobot:
    robot = Robot(name)
    goal = robot.reference("goal", limit=1, unit="m")
    s = robot.prismatic("s", limit=2, rate_limit=4)
    mass = robot.parameter("mass", 1.3, "kg", bounds=(1, 2))
    force = robot.input("force", 12, "N")
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.task(
        state_cost=2 * (s - goal) ** 2 + 0.3 * s.rate**2,
        action_cost=Quadratic(0.05),
        target=dict(s=goal),
        horizon=horizon,
        start={} if start is None else dict(s=start),
        weight_at_horizon=0.5,
        control_rate=rate,
    )
    return modelgen.compile(robot, dtype="float32")


@cache
def lean(torque: float = 12, limit: float = 0.6) -> CompiledRobot:
    """`leaning_robot`, compiled."""
    return modelgen.compile(leaning_robot(torque, limit), dtype="float32")


def leaning_robot(torque: float = 12, limit: float = 0.6) -> Robot:
    """A pendulum that leans where the reference `lean` says, against its weight."""
    robot = Robot("lean")
    angle = robot.revolute("angle", continuous=True, rate_limit=10)
    mass = robot.parameter("mass", 1.0, "kg", tolerance=0.5)
    goal: Symbol = robot.reference("lean", limit=limit, unit="rad")
    motor = robot.input("motor", torque, "N m")
    robot.point_mass(mass, (sin(angle), cos(angle)))
    robot.apply(angle, motor)
    robot.damp(angle, robot.parameter("damping", 0.1, "N m s", fixed=True))
    robot.draw(line=[(0, 0), (sin(angle), cos(angle))])
    robot.task(
        state_cost=(pi * sin((angle - goal) / 2)) ** 2 + 0.1 * angle.rate**2,
        action_cost=Quadratic(0.02),
        target=dict(angle=goal),
        start=dict(angle=(pi, 0.1)),
        horizon=4,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    return robot


def motor_arm(lean: bool = False) -> CompiledRobot:
    """An arm that the current of its motor holds out, whose voltage is the input: 9.81 A for 1 kg at 0.5 m.

    lean: the reference `lean` says where.
    """
    robot = Robot("motor_arm")
    arm = robot.revolute("arm", limit=1.5, rate_limit=8)
    mass = robot.parameter("mass", 1.0, "kg", tolerance=0.3)
    length = robot.parameter("length", 0.5, "m", tolerance=0.3)
    voltage = robot.input("voltage", 24, "V")
    current = robot.state("current", limit=20, unit="A")
    robot.flow(current, (voltage - 0.5 * current - 0.5 * arm.rate) / 0.05)
    robot.point_mass(mass, (length * cos(arm), length * sin(arm)))
    robot.apply(arm, 0.5 * current)
    held = robot.reference("lean", limit=0.8, unit="rad") if lean else 0
    robot.task(
        state_cost=(arm - held) ** 2 + 0.1 * arm.rate**2,
        action_cost=Quadratic(0.01),
        target=dict(arm=held),
        start=dict(arm=(0, 0.5)),
        horizon=3,
        weight_at_horizon=0.6,
        control_rate=100,
    )
    return modelgen.compile(robot, dtype="float32")


@cache
def limited_body(deviation: float = 0.2) -> CompiledRobot:
    """A body that turns by 0.5 rad at most. deviation: of its starts (rad)."""
    robot = Robot("limited_body")
    attitude = robot.ball("attitude", limit=0.5, rate_limit=2.0)
    robot.link("body", attitude, inertia=(1.0, 1.4, 0.8))
    for axis, turn in zip("xyz", attitude.turn, strict=True):
        robot.apply(turn, robot.input(f"torque_{axis}", 0.5, "N m"))
    robot.task(
        state_cost=attitude.away().dot(attitude.away()) + sum(rate**2 for rate in attitude.rate),
        action_cost=Quadratic(1.0),
        start=dict(attitude=((0, 0, 0), deviation)),
        horizon=1,
        weight_at_horizon=0.65,
        control_rate=20,
    )
    return modelgen.compile(robot, dtype="float32")


@cache
def windy_crane() -> CompiledRobot:
    """A load on a rope that turns without end and hangs at pi, where wind makes it lean by 0.39 rad at most."""
    robot = Robot("windy_crane")
    trolley = robot.prismatic("trolley", limit=1, rate_limit=2)
    rope = robot.revolute("rope", continuous=True, rate_limit=3)
    load = (trolley + sin(rope), cos(rope))
    robot.point_mass(2, (trolley, 0))
    robot.point_mass(1, load)
    robot.apply(trolley, robot.input("drive", 10, "N"))
    robot.apply(load[0], robot.parameter("wind", 0, "N", bounds=(-4, 4)))
    robot.damp(rope, 0.1)
    robot.draw(line=[(trolley, 0), load])
    robot.task(
        state_cost=trolley**2 + 4 * cos(rope / 2) ** 2 + trolley.rate**2 + rope.rate**2,
        action_cost=Quadratic(0.1),
        target=dict(rope=pi),
        start=dict(trolley=(0.5, 0.1), rope=(pi, 0.1)),
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    return modelgen.compile(robot, dtype="float32")


@cache
def unicycle() -> CompiledRobot:
    """Wheels whose speed and turning are the inputs: a robot without a speed in its state. `kept` of the speed acts."""
    robot = Robot("unicycle")
    x, y = robot.prismatic("x", limit=3), robot.prismatic("y", limit=3)
    yaw = robot.revolute("yaw", continuous=True)
    speed, turn = robot.input("speed", 1.0, "m/s"), robot.input("turn", 2.0, "rad/s")
    kept = robot.parameter("kept", 1.0, "1", tolerance=0.5)
    robot.flow(x, kept * speed * cos(yaw))
    robot.flow(y, kept * speed * sin(yaw))
    robot.flow(yaw, turn)
    robot.draw(line=[(x, y), (x + 0.3 * cos(yaw), y + 0.3 * sin(yaw))])
    robot.task(
        state_cost=x**2 + 4 * y**2 + 1 - cos(yaw),
        action_cost=Quadratic(0.1),
        start=dict(x=(-2, 0.2), y=(1, 0.3), yaw=(0, 1)),
        horizon=6,
        weight_at_horizon=0.6,
        control_rate=20,
    )
    return modelgen.compile(robot, dtype="float32")
