"""A pendulum on a motor with inductance: the current is a state, and needs 20 ms to follow the voltage."""

from sympy import cos, pi, sin

from modelgen import Quadratic, Robot

robot = Robot("motor_current", "A pendulum on a motor whose current needs 20 ms")
angle = robot.revolute("angle", continuous=True, rate_limit=12, meaning="0 upright")
mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="at the end of the rod")
length = robot.parameter("length", 0.3, "m", fixed=True, meaning="of the rod")
inductance = robot.parameter("inductance", 0.02, "H", tolerance=0.3)
resistance = robot.parameter("resistance", 1.0, "Ohm", fixed=True)
k = robot.parameter("k", 0.15, "N m/A", fixed=True, meaning="torque constant")
voltage = robot.input("voltage", 10, "V", meaning="of the motor")
current = robot.state("current", limit=10, unit="A", meaning="of the motor")
robot.flow(current, (voltage - resistance * current - k * angle.rate) / inductance)
robot.point_mass(mass, (length * sin(angle), length * cos(angle)))
robot.damp(angle, 0.005)
robot.apply(angle, k * current)
robot.task(
    state_cost=(pi * sin(angle / 2)) ** 2 + 0.05 * angle.rate**2,
    action_cost=Quadratic(0.001),
    start=dict(angle=(pi, 0.05)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=100,
)
