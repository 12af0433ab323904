"""A pendulum on a joint that cannot turn without end: its cable allows one turn and a half to each side, and every
whole turn from upright is upright."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("tower_pendulum", "A pendulum on a cable that allows one turn and a half")
angle = robot.revolute("angle", limit=9.5, rate_limit=12, meaning="angle of the rod, 0 upright")
mass = robot.parameter("mass", 0.4, "kg", tolerance=0.3, meaning="mass of the rod")
length = robot.parameter("length", 0.4, "m", tolerance=0.2, meaning="length of the rod")
torque = robot.input("torque", 0.35, "N m", meaning="motor torque")
robot.body(mass, mass * length**2 / 12, (length / 2 * sin(angle), length / 2 * cos(angle)), angle)
robot.apply(angle, torque)
robot.damp(angle, 2e-3)
robot.draw(line=[(0, 0), (length * sin(angle), length * cos(angle))])
robot.task(
    state_cost=(pi * sin(angle / 2)) ** 2 + 0.05 * angle.rate**2,
    action_cost=LogCos(10),
    start=dict(angle=(pi, 0.1)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=100,
)
