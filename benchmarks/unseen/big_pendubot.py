"""A double pendulum of three metres, driven in the shoulder, at a slow control rate."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("big_pendubot", "A double pendulum of three metres, driven in the shoulder")

upper = robot.revolute("upper", continuous=True, rate_limit=8, meaning="angle of the upper link, 0 upright")
lower = robot.revolute("lower", continuous=True, rate_limit=12, meaning="angle between the links")

upper_mass = robot.parameter("upper_mass", 20, "kg", tolerance=0.2, meaning="mass of the upper link")
lower_mass = robot.parameter("lower_mass", 12, "kg", tolerance=0.2, meaning="mass of the lower link")
upper_length = robot.parameter("upper_length", 1.4, "m", tolerance=0.1, meaning="length of the upper link")
lower_length = robot.parameter("lower_length", 1.6, "m", tolerance=0.1, meaning="length of the lower link")

torque = robot.input("torque", 450, "N m", meaning="of the motor in the shoulder")

both = upper + lower
elbow = (upper_length * sin(upper), upper_length * cos(upper))
robot.body(upper_mass, upper_mass * upper_length**2 / 12, (elbow[0] / 2, elbow[1] / 2), upper)
centre = (elbow[0] + lower_length / 2 * sin(both), elbow[1] + lower_length / 2 * cos(both))
robot.body(lower_mass, lower_mass * lower_length**2 / 12, centre, both)
robot.apply(upper, torque)
robot.damp(upper, 0.5)
robot.damp(lower, 0.5)
robot.draw(line=[(0, 0), elbow, (elbow[0] + lower_length * sin(both), elbow[1] + lower_length * cos(both))])

robot.task(
    state_cost=4 * (1 - cos(upper)) + 4 * (1 - cos(both)) + 0.1 * upper.rate**2 + 0.1 * lower.rate**2,
    action_cost=LogCos(1e-7),
    start=dict(upper=(pi, 0.05), lower=(0, 0.05)),
    horizon=10,
    weight_at_horizon=0.7,
    control_rate=50,
)
