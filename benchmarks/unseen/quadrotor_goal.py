"""Planar quadrotor with a set-point: it hovers wherever two references say."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("quadrotor_goal", "A planar quadrotor that hovers where two references say")

goal_across = robot.reference("goal_across", limit=1.5, unit="m", meaning="where to hover, across")
goal_height = robot.reference("goal_height", limit=1.5, unit="m", meaning="where to hover, height")

across = robot.prismatic("across", limit=2, rate_limit=5, meaning="horizontal position")
height = robot.prismatic("height", limit=2, rate_limit=5, meaning="height")
pitch = robot.revolute("pitch", continuous=True, rate_limit=15, meaning="angle of the body, 0 level, lowers the right")

mass = robot.parameter("mass", 0.486, "kg", tolerance=0.3, meaning="of the body and its rotors")
inertia = robot.parameter("inertia", 3.83e-3, "kg m^2", tolerance=0.3, meaning="about the centre of mass")
arm = robot.parameter("arm", 0.25, "m", tolerance=0.1, meaning="centre to rotor")
drag = robot.parameter("drag", 0.1, "N s/m", tolerance=0.5, meaning="of the air, along either axis")
pull = robot.parameter("pull", 0.0, "N", bounds=(-0.62, 0.62), meaning="force that nobody knows, upwards")

right = robot.input("right", (0, 4.7), "N", meaning="thrust of the right rotor, which only pushes")
left = robot.input("left", (0, 4.7), "N", meaning="thrust of the left rotor, which only pushes")

robot.body(mass, inertia, (across, height), pitch)

thrust = right + left
robot.apply(across, thrust * sin(pitch))
robot.apply(height, thrust * cos(pitch) + pull)
robot.apply(pitch, arm * (left - right))
robot.damp(across, drag)
robot.damp(height, drag)

robot.draw(
    line=[
        (across - arm * cos(pitch), height + arm * sin(pitch)),
        (across + arm * cos(pitch), height - arm * sin(pitch)),
    ]
)
robot.draw(circle=((goal_across, goal_height), 0.05))

robot.task(
    state_cost=(across - goal_across) ** 2
    + (height - goal_height) ** 2
    + 0.5 * (pi * sin(pitch / 2)) ** 2
    + 0.1 * across.rate**2
    + 0.1 * height.rate**2
    + 0.02 * pitch.rate**2,
    action_cost=LogCos([0.2, 0.2]),
    target=dict(across=goal_across, height=goal_height),
    start=dict(across=(0, 0.7), height=(0, 0.7), pitch=(0, 1)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
