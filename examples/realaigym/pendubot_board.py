"""The contest's double pendulum in the parameters of its robustness board, driven in the shoulder.

Numbers as in the gallery's model. The board changes moments, inertias about the joints and friction one at a time, also
to values that no rigid bodies have, and a friction may be negative: then it is a force along the motion.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

UPPER_LENGTH, LOWER_LENGTH = 0.2, 0.3  # m

robot = Robot("pendubot_board", "The contest's double pendulum, told what its robustness board changes")

shoulder = robot.revolute("shoulder", continuous=True, rate_limit=20, meaning="angle of the upper link, 0 upright")
elbow = robot.revolute("elbow", continuous=True, rate_limit=30, meaning="angle between the links, 0 stretched")

upper_moment = robot.parameter("upper_moment", 0.22980559, "kg m", tolerance=0.25, meaning="m1 r1 + m2 l1")
upper_inertia = robot.parameter("upper_inertia", 0.05690991, "kg m^2", tolerance=0.25, meaning="I1 + m2 l1^2")
lower_moment = robot.parameter("lower_moment", 0.15995332, "kg m", tolerance=0.25, meaning="m2 r2")
lower_inertia = robot.parameter("lower_inertia", 0.05086985, "kg m^2", tolerance=0.25, meaning="I2, about the elbow")
damping = robot.parameter("damping", 0, "N m s", bounds=(-0.1, 0.1), meaning="of the joint without a motor")

torque = robot.input("torque", 6, "N m", meaning="of the motor")

both = shoulder.rate + elbow.rate
robot.kinetic_energy(
    upper_inertia * shoulder.rate**2 / 2
    + lower_inertia * both**2 / 2
    + UPPER_LENGTH * lower_moment * cos(elbow) * shoulder.rate * both
)
gravity = robot.parameter("gravity", 9.81, "m/s^2", fixed=True)
robot.potential_energy(gravity * (upper_moment * cos(shoulder) + lower_moment * cos(shoulder + elbow)))
robot.apply(elbow, -damping * elbow.rate)
robot.apply(shoulder, torque)

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
