"""Double pendulum: two uniform rods, a motor in the shoulder and one in the elbow, turning without end."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("double_pendulum", "Two uniform rods with a motor in each joint")

shoulder = robot.revolute("shoulder", continuous=True, rate_limit=10, meaning="angle of the upper rod, 0 upright")
elbow = robot.revolute("elbow", continuous=True, rate_limit=20, meaning="angle between the rods, 0 stretched")

upper_mass = robot.parameter("upper_mass", 1.0, "kg", tolerance=0.5, meaning="mass of the upper rod")
upper_length = robot.parameter("upper_length", 0.5, "m", tolerance=0.5, meaning="length of the upper rod")
lower_mass = robot.parameter("lower_mass", 0.6, "kg", tolerance=0.5, meaning="mass of the lower rod")
lower_length = robot.parameter("lower_length", 0.4, "m", tolerance=0.5, meaning="length of the lower rod")
shoulder_damping = robot.parameter("shoulder_damping", 0.02, "N m s", tolerance=0.5, meaning="joint friction")
elbow_damping = robot.parameter("elbow_damping", 0.01, "N m s", tolerance=0.5, meaning="joint friction")

shoulder_torque = robot.input("shoulder_torque", 4, "N m", meaning="between ground and upper rod")
elbow_torque = robot.input("elbow_torque", 2, "N m", meaning="between the rods")


def along(length, angle):
    """The vector of a length that points up at angle 0."""
    return length * sin(angle), length * cos(angle)


def plus(a, b):
    """Sum of two vectors."""
    return a[0] + b[0], a[1] + b[1]


lower_angle = shoulder + elbow
upper_centre = along(upper_length / 2, shoulder)
lower_centre = plus(along(upper_length, shoulder), along(lower_length / 2, lower_angle))
robot.body(upper_mass, upper_mass * upper_length**2 / 12, upper_centre, shoulder)
robot.body(lower_mass, lower_mass * lower_length**2 / 12, lower_centre, lower_angle)

robot.apply(shoulder, shoulder_torque)
robot.apply(elbow, elbow_torque)
robot.damp(shoulder, shoulder_damping)
robot.damp(elbow, elbow_damping)

elbow_place = along(upper_length, shoulder)
robot.draw(line=[(0, 0), elbow_place, plus(elbow_place, along(lower_length, lower_angle))])

robot.task(
    state_cost=(pi * sin(shoulder / 2)) ** 2
    + (pi * sin(elbow / 2)) ** 2
    + 0.1 * shoulder.rate**2
    + 0.1 * elbow.rate**2,
    action_cost=LogCos([0.1, 0.2]),
    start=dict(shoulder=(pi, 0.03), elbow=(0, 0.03)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
