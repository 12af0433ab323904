"""A rod that a strong motor is to hold at sixty degrees from upright."""

from sympy import cos, pi, sin

from modelgen import Quadratic, Robot

robot = Robot("holding", "A rod that a strong motor is to hold at sixty degrees from upright")

angle = robot.revolute("angle", continuous=True, rate_limit=10, meaning="angle of the rod, 0 upright")
mass = robot.parameter("mass", 1.0, "kg", tolerance=0.3, meaning="mass of the rod")
length = robot.parameter("length", 0.5, "m", tolerance=0.3, meaning="length of the rod")
torque = robot.input("torque", (-3.9, 0), "N m", meaning="of the motor, against gravity")

robot.body(mass, mass * length**2 / 12, (length / 2 * sin(angle), length / 2 * cos(angle)), angle)
robot.apply(angle, torque)
robot.draw(line=[(0, 0), (length * sin(angle), length * cos(angle))])

robot.task(
    state_cost=2 * (1 - cos(angle - pi / 3)) + 0.02 * angle.rate**2,
    action_cost=Quadratic(0.01),
    target=dict(angle=pi / 3),
    start=dict(angle=(pi, 0.1)),
    horizon=5,
    weight_at_horizon=0.5,
    control_rate=100,
)
