"""A pendulum in thick oil, to be lifted upright by a motor that gravity nearly overcomes: no swing helps."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("oil_pendulum", "A pendulum in thick oil")
angle = robot.revolute("angle", continuous=True, rate_limit=4, meaning="angle of the rod, 0 upright")
mass = robot.parameter("mass", 0.8, "kg", tolerance=0.3, meaning="mass of the rod")
length = robot.parameter("length", 0.5, "m", tolerance=0.2, meaning="length of the rod")
oil = robot.parameter("oil", 1.5, "N m s", tolerance=0.5, meaning="drag of the oil")
torque = robot.input("torque", 2.4, "N m", meaning="motor torque")
robot.body(mass, mass * length**2 / 12, (length / 2 * sin(angle), length / 2 * cos(angle)), angle)
robot.apply(angle, torque)
robot.damp(angle, oil)
robot.task(
    state_cost=0.001 * (pi * sin(angle / 2)) ** 2 + 1e-4 * angle.rate**2,
    action_cost=LogCos(0.0001),
    start=dict(angle=(pi, 1.0)),
    horizon=20,
    weight_at_horizon=0.5,
    control_rate=20,
)
