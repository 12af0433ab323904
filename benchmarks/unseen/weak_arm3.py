"""Three links in a vertical plane, a weak motor in every joint: from hanging to upright."""

from sympy import pi, sin

from modelgen import LogCos, Robot

robot = Robot("weak_arm3", "Three links whose motors cannot hold them stretched out")

names = ("shoulder", "elbow", "wrist")
joints = [robot.revolute(name, continuous=True, rate_limit=12, meaning=f"angle of the {name}") for name in names]
mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="of each link")
length = robot.parameter("length", 0.3, "m", tolerance=0.1, meaning="of each link")
torques = [robot.input(f"{name}_torque", limit, "N m") for name, limit in zip(names, (3.0, 1.5, 0.5), strict=True)]

carrier, at = None, (0, 0, 0)
for name, joint, torque in zip(names, joints, torques, strict=True):
    carrier = robot.link(
        f"{name}_link", joint, on=carrier, at=at, mass=mass, centre=(0, 0, length / 2), inertia=mass * length**2 / 12
    )
    at = (0, 0, length)
    robot.apply(joint, torque)
    robot.damp(joint, 0.02)

robot.task(
    state_cost=sum((pi * sin(joint / 2)) ** 2 + 0.05 * joint.rate**2 for joint in joints),
    action_cost=LogCos([0.1, 0.2, 0.5]),
    start=dict(shoulder=(pi, 0.05), elbow=(0, 0.05), wrist=(0, 0.05)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=100,
)
