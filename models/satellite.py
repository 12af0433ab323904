"""A satellite that turns itself by three torques, from any attitude to rest at the target."""

from math import pi

from modelgen import Quadratic, Robot

robot = Robot("satellite", "rigid body in space, turned by three torques")

torques = [robot.input(f"torque_{axis}", 0.5, "N m", meaning=f"torque about the body's {axis} axis") for axis in "xyz"]
inertias = [
    robot.parameter(f"inertia_{axis}", value, "kg m^2", tolerance=0.3, meaning=f"inertia about the {axis} axis")
    for axis, value in zip("xyz", (1.0, 1.4, 0.8), strict=True)
]

attitude = robot.ball("attitude", rate_limit=2.0)
robot.link("body", attitude, inertia=inertias)
for turn, torque in zip(attitude.turn, torques, strict=True):
    robot.apply(turn, torque)

away = attitude.away()
robot.task(
    state_cost=2.0 * away.dot(away) + 0.5 * sum(rate**2 for rate in attitude.rate),
    action_cost=Quadratic(1.0),
    start=dict(attitude=((0, 0, 0), pi)),
    horizon=15.0,
    weight_at_horizon=0.65,
    control_rate=20,
)
