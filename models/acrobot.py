"""Acrobot: two links in a vertical plane, a motor in the elbow and none in the shoulder (Spong, 1995)."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("acrobot", "Two links that a motor in the elbow alone must swing up")

shoulder = robot.revolute("shoulder", continuous=True, rate_limit=10, meaning="angle of the upper link, 0 upright")
elbow = robot.revolute("elbow", continuous=True, rate_limit=15, meaning="angle between the links, 0 stretched")

upper_mass = robot.parameter("upper_mass", 1.0, "kg", tolerance=0.3, meaning="mass of the upper link")
upper_length = robot.parameter("upper_length", 1.0, "m", tolerance=0.3, meaning="shoulder to elbow")
upper_centre = robot.parameter("upper_centre", 0.5, "m", tolerance=0.3, meaning="shoulder to its centre of mass")
upper_inertia = robot.parameter("upper_inertia", 0.083, "kg m^2", tolerance=0.3, meaning="about its centre of mass")
lower_mass = robot.parameter("lower_mass", 1.0, "kg", tolerance=0.3, meaning="mass of the lower link")
lower_centre = robot.parameter("lower_centre", 1.0, "m", tolerance=0.3, meaning="elbow to its centre of mass")
lower_inertia = robot.parameter("lower_inertia", 0.33, "kg m^2", tolerance=0.3, meaning="about its centre of mass")

torque = robot.input("torque", 20, "N m", meaning="between the links")

lower_angle = shoulder + elbow
robot.body(upper_mass, upper_inertia, (upper_centre * sin(shoulder), upper_centre * cos(shoulder)), shoulder)
robot.body(
    lower_mass,
    lower_inertia,
    (
        upper_length * sin(shoulder) + lower_centre * sin(lower_angle),
        upper_length * cos(shoulder) + lower_centre * cos(lower_angle),
    ),
    lower_angle,
)
robot.apply(elbow, torque)

elbow_place = (upper_length * sin(shoulder), upper_length * cos(shoulder))
reach = 2 * lower_centre
robot.draw(line=[(0, 0), elbow_place])
robot.draw(line=[elbow_place, (elbow_place[0] + reach * sin(lower_angle), elbow_place[1] + reach * cos(lower_angle))])

robot.task(
    state_cost=(pi * sin(shoulder / 2)) ** 2
    + (pi * sin(elbow / 2)) ** 2
    + 0.1 * shoulder.rate**2
    + 0.1 * elbow.rate**2,
    action_cost=LogCos(0.002),
    start=dict(shoulder=(pi, 0.03), elbow=(0, 0.03)),
    horizon=5,
    weight_at_horizon=0.8,
    control_rate=125,
)
