"""Two links from hanging to upright: a motor at the shoulder, a spring at the elbow that wants it straight."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("pendubot_spring", "Two links with a motor at the shoulder and a spring at the elbow")

shoulder = robot.revolute("shoulder", continuous=True, rate_limit=15, meaning="angle of the upper link, 0 upright")
elbow = robot.revolute("elbow", limit=2.5, rate_limit=25, meaning="angle of the lower link to the upper")

upper = robot.parameter("upper", 0.6, "kg", tolerance=0.2, meaning="mass of the upper link")
lower = robot.parameter("lower", 0.4, "kg", tolerance=0.2, meaning="mass of the lower link")
length = robot.parameter("length", 0.3, "m", tolerance=0.1, meaning="of each link, a uniform rod")
stiffness = robot.parameter("stiffness", 0.3, "N m/rad", tolerance=0.2, meaning="of the spring at the elbow")
torque = robot.input("torque", 2.5, "N m", meaning="at the shoulder")

joint = (length * sin(shoulder), length * cos(shoulder))
lean = shoulder + elbow
robot.body(upper, upper * length**2 / 12, (joint[0] / 2, joint[1] / 2), shoulder)
centre = (joint[0] + length / 2 * sin(lean), joint[1] + length / 2 * cos(lean))
robot.body(lower, lower * length**2 / 12, centre, lean)
robot.apply(shoulder, torque)
robot.spring(elbow, stiffness)
robot.damp(shoulder, 0.01)
robot.damp(elbow, 0.005)
robot.draw(line=[(0, 0), joint, (joint[0] + length * sin(lean), joint[1] + length * cos(lean))])

robot.task(
    state_cost=(pi * sin(shoulder / 2)) ** 2 + elbow**2 + 0.02 * shoulder.rate**2 + 0.01 * elbow.rate**2,
    action_cost=LogCos(0.05),
    start=dict(shoulder=(pi, 0.05)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
