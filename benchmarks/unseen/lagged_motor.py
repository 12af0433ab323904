"""A pendulum that is held at half a radian by a motor with a lag of 10 to 30 ms."""

from sympy import cos, pi, sin

from modelgen import Quadratic, Robot

robot = Robot("lagged_motor", "A pendulum on a motor with a first-order lag")
angle = robot.revolute("angle", continuous=True, rate_limit=12, meaning="0 upright")
mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="at the end of the rod")
delay = robot.parameter("delay", 0.02, "s", bounds=(0.01, 0.03), meaning="time constant of the torque")
torque = robot.input("torque", 2.0, "N m", meaning="command to the motor")
robot.lag(torque, seconds=delay)
robot.point_mass(mass, (0.3 * sin(angle), 0.3 * cos(angle)))
robot.motor(angle, torque)
robot.task(
    state_cost=(pi * sin((angle - 0.5) / 2)) ** 2 + 0.05 * angle.rate**2,
    action_cost=Quadratic(0.1),
    target=dict(angle=0.5),
    start=dict(angle=(pi, 0.05)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=100,
)
