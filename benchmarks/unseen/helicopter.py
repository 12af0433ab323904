"""A helicopter on a stand: pitch and yaw by two propellers, each of which turns the other axis, too."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("helicopter", "A helicopter of two degrees of freedom on a stand")

pitch = robot.revolute("pitch", limit=1.0, rate_limit=5, meaning="of the body, 0 level")
yaw = robot.revolute("yaw", continuous=True, rate_limit=5, meaning="about the stand")

inertia_pitch = robot.parameter("inertia_pitch", 0.0219, "kg m^2", tolerance=0.2, meaning="about the pitch axis")
inertia_yaw = robot.parameter("inertia_yaw", 0.0220, "kg m^2", tolerance=0.2, meaning="about the stand, level")
weight = robot.parameter("weight", 0.25, "N m", tolerance=0.2, meaning="stiffness by the centre of mass below the axis")
drag_pitch = robot.parameter("drag_pitch", 0.0071, "N m s", tolerance=0.5, meaning="of pitch")
drag_yaw = robot.parameter("drag_yaw", 0.0220, "N m s", tolerance=0.5, meaning="of yaw")
across = robot.parameter("across", 0.25, "1", tolerance=0.4, meaning="share of a torque about the other axis")

front = robot.input("front", 0.25, "N m", meaning="torque of the front propeller about the pitch axis")
back = robot.input("back", 0.2, "N m", meaning="torque of the back propeller about the stand")

robot.kinetic_energy(inertia_pitch * pitch.rate**2 / 2 + inertia_yaw * cos(pitch) ** 2 * yaw.rate**2 / 2)
robot.potential_energy(weight * (1 - cos(pitch)))
robot.apply(pitch, front + across * back)
robot.apply(yaw, cos(pitch) * (back + across * front))
robot.damp(pitch, drag_pitch)
robot.damp(yaw, drag_yaw)
robot.draw(line=[(0, -1), (0, 0), (cos(pitch) * sin(yaw), sin(pitch))])

robot.task(
    state_cost=2 * pitch**2 + 4 * sin(yaw / 2) ** 2 + 0.05 * pitch.rate**2 + 0.05 * yaw.rate**2,
    action_cost=LogCos([2.0, 2.0]),
    start=dict(pitch=(-0.6, 0.1), yaw=(pi, 0.5)),
    horizon=6,
    weight_at_horizon=0.5,
    control_rate=100,
)
