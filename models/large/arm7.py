"""Seven-joint arm with the size, limits and torques of the KUKA LBR iiwa 14, as its data sheet prints them.

The masses of the links add up to the printed 29.9 kg; how they are shared, and the inertias of the links, are
estimates: tubes of equal density along the line of the joints.
"""

from sympy import pi

from modelgen import LogCos, Robot

robot = Robot("arm7", "Seven-joint arm, as large, heavy and strong as the KUKA LBR iiwa 14; straight up at zero")

# axis, height above the joint before, limit (degrees), rate limit (degrees/s), torque, mass, length, radius
TABLE = (
    ("z", 0.1575, 170, 85, 320, 5.2, 0.2025, 0.075),
    ("y", 0.2025, 120, 85, 320, 5.6, 0.2045, 0.075),
    ("z", 0.2045, 170, 100, 176, 4.4, 0.2155, 0.070),
    ("-y", 0.2155, 120, 75, 176, 4.0, 0.1845, 0.070),
    ("z", 0.1845, 170, 130, 110, 3.6, 0.2155, 0.060),
    ("y", 0.2155, 120, 135, 40, 4.5, 0.0810, 0.060),
    ("z", 0.0810, 175, 135, 40, 2.6, 0.0450, 0.045),
)
DEGREE = pi / 180

link = None
joints = []
for number, (axis, height, limit, rate, torque, kilograms, length, radius) in enumerate(TABLE, start=1):
    joint = robot.revolute(f"joint{number}", limit=limit * DEGREE, rate_limit=rate * DEGREE)
    mass = robot.parameter(f"mass{number}", kilograms, "kg", tolerance=0.3, meaning=f"mass of link {number}")
    across = mass * (3 * radius**2 + length**2) / 12
    link = robot.link(
        f"link{number}",
        joint,
        on=link,
        at=(0, 0, height),
        axis=axis,
        mass=mass,
        centre=(0, 0, length / 2),
        inertia=(across, across, mass * radius**2 / 2),
    )
    robot.apply(joint, robot.input(f"torque{number}", torque, "N m"))
    robot.damp(joint, 0.5)
    joints.append(joint)

robot.task(
    state_cost=sum(joint**2 + 0.1 * joint.rate**2 for joint in joints),
    action_cost=LogCos([1e-3] * len(joints)),
    start=dict(joint2=(1.5, 0.2), joint4=(1.0, 0.2)),
    horizon=4,
    weight_at_horizon=0.7,
    control_rate=250,
)
