"""Planar arm of two links with geared motors in the joints, with their rotors' inertia (Siciliano and others, 2009).

The figures are the textbook's. Angles are measured from the horizontal, so that gravity pulls at the stretched arm.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("planar_arm2", "Two heavy links in a vertical plane, with a geared motor in each joint")

shoulder = robot.revolute("shoulder", limit=pi, rate_limit=4, meaning="angle of the upper link, 0 horizontal")
elbow = robot.revolute("elbow", limit=2.6, rate_limit=4, meaning="angle between the links, 0 stretched")

upper_mass = robot.parameter("upper_mass", 50, "kg", tolerance=0.2, meaning="mass of the upper link")
lower_mass = robot.parameter("lower_mass", 50, "kg", tolerance=0.2, meaning="mass of the lower link, with its load")
upper_inertia = robot.parameter("upper_inertia", 10, "kg m^2", tolerance=0.2, meaning="about its centre of mass")
lower_inertia = robot.parameter("lower_inertia", 10, "kg m^2", tolerance=0.2, meaning="about its centre of mass")
upper_centre = robot.parameter("upper_centre", 0.5, "m", tolerance=0.1, meaning="shoulder to its centre of mass")
lower_centre = robot.parameter("lower_centre", 0.5, "m", tolerance=0.1, meaning="elbow to its centre of mass")
upper_length = robot.parameter("upper_length", 1, "m", fixed=True, meaning="shoulder to elbow")
motor_mass = robot.parameter("motor_mass", 5, "kg", fixed=True, meaning="of the elbow's motor, in the elbow")
rotor_inertia = robot.parameter("rotor_inertia", 0.01, "kg m^2", fixed=True, meaning="of either motor")
gear = robot.parameter("gear", 100, "1", fixed=True, meaning="turns of either motor per turn of its joint")

shoulder_torque = robot.input("shoulder_torque", 2000, "N m", meaning="behind the gear, on the upper link")
elbow_torque = robot.input("elbow_torque", 700, "N m", meaning="behind the gear, between the links")


def along(length, angle):
    """The vector of a length that points forward at angle 0."""
    return length * cos(angle), length * sin(angle)


joint = along(upper_length, shoulder)
lower_offset = along(lower_centre, shoulder + elbow)
robot.body(upper_mass, upper_inertia, along(upper_centre, shoulder), shoulder)
robot.body(lower_mass, lower_inertia, (joint[0] + lower_offset[0], joint[1] + lower_offset[1]), shoulder + elbow)

# The upper link carries the elbow's motor. Its rotor turns with that link and, faster, with the joint.
robot.kinetic_energy(rotor_inertia * (gear * shoulder.rate) ** 2 / 2)
robot.body(motor_mass, rotor_inertia, joint, shoulder + gear * elbow)

robot.apply(shoulder, shoulder_torque)
robot.apply(elbow, elbow_torque)

hand = along(2 * lower_centre, shoulder + elbow)
robot.draw(line=[(0, 0), joint, (joint[0] + hand[0], joint[1] + hand[1])])
robot.draw(circle=(joint, 0.08))

robot.task(
    state_cost=4 * (shoulder - pi / 2) ** 2 + 4 * elbow**2 + 0.5 * shoulder.rate**2 + 0.5 * elbow.rate**2,
    action_cost=LogCos([2.5e-9, 2.5e-8]),
    target=dict(shoulder=pi / 2),
    start=dict(shoulder=(0, 0.3), elbow=(0, 0.3)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
