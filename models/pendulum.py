"""Pendulum: a uniform rod on a motor too weak to lift it in one swing."""

from sympy import cos, pi, sin, sqrt

from modelgen import LogCos, Robot

robot = Robot("pendulum", "A uniform rod on a motor too weak to lift it in one swing")

angle = robot.revolute("angle", continuous=True, rate_limit=8, meaning="angle of the rod, 0 upright")
mass = robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2), meaning="mass of the rod")
length = robot.parameter("length", 1.0, "m", bounds=(0.5, 2), meaning="length of the rod")
torque = robot.input("torque", 2.5, "N m", meaning="motor torque")

centre = (length / 2 * sin(angle), length / 2 * cos(angle))
robot.body(mass, mass * length**2 / 12, centre, angle)
robot.apply(angle, torque)

robot.draw(line=[(0, 0), (length * sin(angle), length * cos(angle))])

robot.task(
    state_cost=(pi * sin(angle / 2)) ** 2 + 0.1 * angle.rate**2,
    action_cost=LogCos(0.5),
    start=dict(angle=(pi, sqrt(1e-3)), angle_rate=(0.01, 1e-3)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
