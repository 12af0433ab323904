"""Planar quadrotor: a rigid body in a vertical plane with the thrusts of two rotors as inputs."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("planar_quadrotor", "A rigid body in a vertical plane, lifted by a rotor on either side")

across = robot.prismatic("across", limit=2, rate_limit=5, meaning="horizontal position")
height = robot.prismatic("height", limit=2, rate_limit=5, meaning="height above the place to hover at")
pitch = robot.revolute("pitch", continuous=True, rate_limit=15, meaning="angle of the body, 0 level, lowers the right")

mass = robot.parameter("mass", 0.486, "kg", tolerance=0.3, meaning="of the body and its rotors")
inertia = robot.parameter("inertia", 3.83e-3, "kg m^2", tolerance=0.3, meaning="about the centre of mass")
arm = robot.parameter("arm", 0.25, "m", tolerance=0.1, meaning="centre to rotor")
drag = robot.parameter("drag", 0.1, "N s/m", tolerance=0.5, meaning="of the air, along either axis")

right = robot.input("right", (0, 4.7), "N", meaning="thrust of the right rotor, which only pushes")
left = robot.input("left", (0, 4.7), "N", meaning="thrust of the left rotor, which only pushes")

robot.body(mass, inertia, (across, height), pitch)

thrust = right + left
robot.apply(across, thrust * sin(pitch))
robot.apply(height, thrust * cos(pitch))
robot.apply(pitch, arm * (left - right))
robot.damp(across, drag)
robot.damp(height, drag)

right_end = (across + arm * cos(pitch), height - arm * sin(pitch))
left_end = (across - arm * cos(pitch), height + arm * sin(pitch))
robot.draw(line=[left_end, right_end])
for end in (left_end, right_end):
    robot.draw(box=((end[0] + arm / 5 * sin(pitch), end[1] + arm / 5 * cos(pitch)), (arm / 2, arm / 20), pitch))

robot.task(
    state_cost=across**2
    + height**2
    + 0.5 * (pi * sin(pitch / 2)) ** 2
    + 0.1 * across.rate**2
    + 0.1 * height.rate**2
    + 0.02 * pitch.rate**2,
    action_cost=LogCos([0.2, 0.2]),
    start=dict(across=(0, 0.7), height=(0, 0.7), pitch=(0, 1)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
