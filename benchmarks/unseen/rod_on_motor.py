"""Pendulum whose torque is 2 % above gravity's, of the verified controllers by Li and others (arXiv 2506.01356)."""

from sympy import cos, sin

from modelgen import Quadratic, Robot

robot = Robot("rod_on_motor", "A pendulum whose motor just holds it")

angle = robot.revolute("angle", continuous=True, rate_limit=65, meaning="0 upright")
torque = robot.input("torque", 0.75, "N m")
mass = robot.parameter("mass", 0.15, "kg", tolerance=0.05)
length = robot.parameter("length", 0.5, "m", fixed=True)
robot.point_mass(mass, (length * sin(angle), length * cos(angle)))
robot.damp(angle, robot.parameter("damping", 0.1, "N m s", fixed=True))
robot.apply(angle, torque)

robot.task(
    state_cost=(2 * sin(angle / 2)) ** 2 + 0.002 * angle.rate**2,
    action_cost=Quadratic(0.5),
    start=dict(angle=(3.1, 0.5), angle_rate=(0, 15)),
    horizon=5,
    weight_at_horizon=0.5,
    control_rate=100,
)
