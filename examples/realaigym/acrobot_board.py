"""The contest's double pendulum in the parameters of its robustness board, driven in the elbow.

Numbers as in the gallery's model. The motor in the elbow loses control of a motion where both links alone would fall
equally fast, which is `margin = 1`. The board changes one number at a time: moments and inertias of the lower link lie
on a cross, within the square of their sum and difference. A box of these and of the margin, above one, is safe.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

UPPER_LENGTH, LOWER_LENGTH = 0.2, 0.3  # m
LOWER_MOMENT, LOWER_INERTIA = 0.15995332, 0.05086985  # kg m, kg m^2: m2 r2 and I2, about the elbow

robot = Robot("acrobot_board", "The contest's double pendulum, told what its robustness board changes")

shoulder = robot.revolute("shoulder", continuous=True, rate_limit=20, meaning="angle of the upper link, 0 upright")
elbow = robot.revolute("elbow", continuous=True, rate_limit=30, meaning="angle between the links, 0 stretched")

upper_inertia = robot.parameter("upper_inertia", 0.05690991, "kg m^2", tolerance=0.15, meaning="I1 + m2 l1^2")
lower_sum = robot.parameter("lower_sum", 0, "", bounds=(-0.25, 0.25), meaning="shares that moment and inertia gain")
lower_difference = robot.parameter(
    "lower_difference", 0, "", bounds=(-0.25, 0.25), meaning="share that the moment gains, less the inertia's"
)
margin = robot.parameter(
    "margin", 1.339092, "", bounds=(1.05, 1.8), meaning="moment by inertia of the upper link, by that of the lower one"
)
damping = robot.parameter("damping", 0, "N m s", bounds=(-0.1, 0.1), meaning="of the joint without a motor")

torque = robot.input("torque", 6, "N m", meaning="of the motor")

lower_moment = LOWER_MOMENT * (1 + (lower_sum + lower_difference) / 2)
lower_inertia = LOWER_INERTIA * (1 + (lower_sum - lower_difference) / 2)
coupling = UPPER_LENGTH * lower_moment
upper_moment = margin * lower_moment * (upper_inertia + coupling) / (lower_inertia + coupling)  # m1 r1 + m2 l1

both = shoulder.rate + elbow.rate
robot.kinetic_energy(
    upper_inertia * shoulder.rate**2 / 2 + lower_inertia * both**2 / 2 + coupling * cos(elbow) * shoulder.rate * both
)
gravity = robot.parameter("gravity", 9.81, "m/s^2", fixed=True)
robot.potential_energy(gravity * (upper_moment * cos(shoulder) + lower_moment * cos(shoulder + elbow)))
robot.apply(shoulder, -damping * shoulder.rate)
robot.apply(elbow, torque)

elbow_place = (UPPER_LENGTH * sin(shoulder), UPPER_LENGTH * cos(shoulder))
tip = (elbow_place[0] + LOWER_LENGTH * sin(shoulder + elbow), elbow_place[1] + LOWER_LENGTH * cos(shoulder + elbow))
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
