"""Planar arm of three uniform links in a vertical plane, with a motor in every joint."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("planar_arm3", "Three links in a vertical plane with a motor in each joint")

shoulder = robot.revolute("shoulder", limit=2.6, rate_limit=6, meaning="angle of the upper arm, 0 upright")
elbow = robot.revolute("elbow", limit=2.6, rate_limit=8, meaning="angle of the forearm to the upper arm, 0 stretched")
wrist = robot.revolute("wrist", limit=2, rate_limit=12, meaning="angle of the hand to the forearm, 0 stretched")

upper_mass = robot.parameter("upper_mass", 2.0, "kg", tolerance=0.3, meaning="mass of the upper arm")
fore_mass = robot.parameter("fore_mass", 1.2, "kg", tolerance=0.3, meaning="mass of the forearm")
hand_mass = robot.parameter("hand_mass", 0.5, "kg", tolerance=0.5, meaning="mass of the hand, with its load")
upper_length = robot.parameter("upper_length", 0.35, "m", tolerance=0.2, meaning="length of the upper arm")
fore_length = robot.parameter("fore_length", 0.3, "m", tolerance=0.2, meaning="length of the forearm")
hand_length = robot.parameter("hand_length", 0.15, "m", tolerance=0.2, meaning="length of the hand")
damping = robot.parameter("damping", 0.05, "N m s", tolerance=0.5, meaning="friction of every joint")

# Geared motors: a rotor turns many times as fast as its joint. Without its inertia, full torques would bring every
# joint from rest to its rate limit within two control periods.
shoulder_rotor = robot.parameter("shoulder_rotor", 0.2, "kg m^2", tolerance=0.3, meaning="of the rotor, at the joint")
elbow_rotor = robot.parameter("elbow_rotor", 0.06, "kg m^2", tolerance=0.3, meaning="of the rotor, at the joint")
wrist_rotor = robot.parameter("wrist_rotor", 0.008, "kg m^2", tolerance=0.3, meaning="of the rotor, at the joint")
for joint, rotor in ((shoulder, shoulder_rotor), (elbow, elbow_rotor), (wrist, wrist_rotor)):
    robot.kinetic_energy(rotor * joint.rate**2 / 2)

links = (
    (shoulder, upper_mass, upper_length, robot.input("shoulder_torque", 25, "N m", meaning="on the upper arm")),
    (elbow, fore_mass, fore_length, robot.input("elbow_torque", 10, "N m", meaning="between upper arm and forearm")),
    (wrist, hand_mass, hand_length, robot.input("wrist_torque", 2, "N m", meaning="between forearm and hand")),
)
x = height = angle = 0
drawn = [(0, 0)]
for joint, mass, length, torque in links:
    angle += joint
    centre = (x + length / 2 * sin(angle), height + length / 2 * cos(angle))
    robot.body(mass, mass * length**2 / 12, centre, angle)
    x, height = x + length * sin(angle), height + length * cos(angle)
    drawn.append((x, height))
    robot.apply(joint, torque)
    robot.damp(joint, damping)
robot.draw(line=drawn)

robot.task(
    state_cost=4 * shoulder**2
    + 4 * elbow**2
    + 2 * wrist**2
    + 0.1 * shoulder.rate**2
    + 0.1 * elbow.rate**2
    + 0.05 * wrist.rate**2,
    action_cost=LogCos([0.001, 0.005, 0.05]),
    start=dict(shoulder=(1.5, 0.3), elbow=(0.5, 0.3), wrist=(0, 0.3)),
    horizon=3,
    weight_at_horizon=0.65,
    control_rate=125,
)
