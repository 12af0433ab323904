"""Two links on a rotating arm, up from hanging."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("furuta_double", "A double pendulum on a rotating arm")

arm = robot.revolute("arm", limit=2, rate_limit=15, meaning="angle of the arm, 0 in front")
first = robot.revolute("first", continuous=True, rate_limit=25, meaning="lower link, 0 upright")
second = robot.revolute("second", continuous=True, rate_limit=40, meaning="upper link, 0 upright")

arm_inertia = robot.parameter("arm_inertia", 2e-3, "kg m^2", tolerance=0.2, meaning="of the arm")
first_mass = robot.parameter("first_mass", 0.05, "kg", tolerance=0.2, meaning="of the lower link")
second_mass = robot.parameter("second_mass", 0.04, "kg", tolerance=0.2, meaning="of the upper link")

torque = robot.input("torque", 0.3, "N m", meaning="of the motor")

r, l1, l2 = 0.2, 0.2, 0.25

beside_1, height_1 = l1 * sin(first), l1 * cos(first)
beside_2, height_2 = beside_1 + l2 * sin(second), height_1 + l2 * cos(second)
robot.point_mass(arm_inertia / r**2, (r * cos(arm), r * sin(arm), 0))
for mass, beside, height in ((first_mass, beside_1, height_1), (second_mass, beside_2, height_2)):
    robot.point_mass(mass, (r * cos(arm) - beside * sin(arm), r * sin(arm) + beside * cos(arm), height))
robot.apply(arm, torque)
robot.damp(arm, 1e-3)
robot.damp(first, 1e-4)
robot.damp(second, 1e-4)

robot.task(
    state_cost=4 * arm**2
    + 5 * (1 - cos(first))
    + 5 * (1 - cos(second))
    + 0.02 * arm.rate**2
    + 0.01 * first.rate**2
    + 0.01 * second.rate**2,
    action_cost=LogCos(0.5),
    start=dict(first=(pi, 0.05), second=(pi, 0.05)),
    horizon=6,
    weight_at_horizon=0.7,
    control_rate=200,
)
