"""Pendubot of the AI Olympics with RealAIGym: the contest's double pendulum, driven in the shoulder.

Numbers: model_1.0 of design C.1 in github.com/dfki-ric-underactuated-lab/double_pendulum, without friction. There the
inertias are about each link's own joint, the first angle is counted from hanging, and the input is held for 2 ms.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

LOWER_LENGTH = 0.3  # m, elbow to tip, for the drawing

robot = Robot("realaigym_pendubot", "The contest's double pendulum with a motor in the shoulder alone")

shoulder = robot.revolute("shoulder", continuous=True, rate_limit=20, meaning="angle of the upper link, 0 upright")
elbow = robot.revolute("elbow", continuous=True, rate_limit=30, meaning="angle between the links, 0 stretched")

upper_mass = robot.parameter("upper_mass", 0.5234602302310271, "kg", tolerance=0.25, meaning="mass of the upper link")
upper_length = robot.parameter("upper_length", 0.2, "m", tolerance=0.25, meaning="shoulder to elbow")
upper_centre = robot.parameter("upper_centre", 0.2, "m", tolerance=0.25, meaning="shoulder to its centre of mass")
upper_inertia = robot.parameter("upper_inertia", 0.010948790, "kg m^2", tolerance=0.25, meaning="about that centre")
lower_mass = robot.parameter("lower_mass", 0.6255677234174437, "kg", tolerance=0.25, meaning="mass of the lower link")
lower_centre = robot.parameter("lower_centre", 0.25569305436052964, "m", tolerance=0.25, meaning="elbow to its centre")
lower_inertia = robot.parameter("lower_inertia", 0.009970895, "kg m^2", tolerance=0.25, meaning="about that centre")

torque = robot.input("torque", 6, "N m", meaning="of the motor in the shoulder")

lower_angle = shoulder + elbow
elbow_place = (upper_length * sin(shoulder), upper_length * cos(shoulder))
robot.body(upper_mass, upper_inertia, (upper_centre * sin(shoulder), upper_centre * cos(shoulder)), shoulder)
robot.body(
    lower_mass,
    lower_inertia,
    (elbow_place[0] + lower_centre * sin(lower_angle), elbow_place[1] + lower_centre * cos(lower_angle)),
    lower_angle,
)
robot.apply(shoulder, torque)

tip = (elbow_place[0] + LOWER_LENGTH * sin(lower_angle), elbow_place[1] + LOWER_LENGTH * cos(lower_angle))
robot.draw(line=[(0, 0), elbow_place, tip])

robot.task(
    state_cost=(pi * sin(shoulder / 2)) ** 2
    + (pi * sin(elbow / 2)) ** 2
    + 0.02 * shoulder.rate**2
    + 0.02 * elbow.rate**2,
    action_cost=LogCos(0.02),
    start=dict(shoulder=(pi, 0.03), elbow=(0, 0.03)),
    horizon=5,
    weight_at_horizon=0.8,
    control_rate=250,
)
