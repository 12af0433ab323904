"""Quadrotor in space with a set-point: it hovers wherever three references say, in a wind that nobody knows."""

from math import pi

from modelgen import LogCos, Robot

robot = Robot("quadrotor_space_goal", "A quadrotor in space that hovers where three references say")

goals = [
    robot.reference(f"goal_{axis}", limit=1.5, unit="m", meaning=f"where to hover, along {axis}") for axis in "xyz"
]

mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="of the body and its rotors")
across = robot.parameter("across", 3.2e-3, "kg m^2", tolerance=0.3, meaning="inertia about the x and y axes")
upright = robot.parameter("upright", 5.5e-3, "kg m^2", tolerance=0.3, meaning="inertia about the z axis")
arm = robot.parameter("arm", 0.12, "m", tolerance=0.1, meaning="distance of a rotor from the x and y axes")
twist = robot.parameter("twist", 0.02, "m", tolerance=0.3, meaning="torque of a rotor about its axis by its thrust")
drag = robot.parameter("drag", 0.1, "N s/m", tolerance=0.5, meaning="of the air, along any axis")
pulls = [
    robot.parameter(f"pull_{axis}", 0.0, "N", bounds=(-0.64, 0.64), meaning=f"force that nobody knows, along {axis}")
    for axis in "xyz"
]

base = robot.floating("base", limit=3.0, rate_limit=6.0, turn_rate_limit=(10.0, 10.0, 6.0))
body = robot.link("body", base, mass=mass, inertia=(across, across, upright))
R, reach = base.rotation, 0.12
for side in (1, -1):
    ends = [
        [p + R[i, 0] * x * reach + R[i, 1] * side * x * reach for i, p in enumerate(base.position)] for x in (-1, 1)
    ]
    robot.draw(line=ends)

corners = {"front_left": (1, 1), "front_right": (1, -1), "rear_left": (-1, 1), "rear_right": (-1, -1)}
for name, (x, y) in corners.items():
    thrust = robot.input(name, (0, 2.8), "N", meaning=f"thrust of the rotor {name.replace('_', ' ')}")
    # Rotors beside each other turn in opposite directions.
    robot.push(body, (0, 0, thrust), at=(x * arm, y * arm, 0), torque=(0, 0, x * y * twist * thrust))
for displacement, pull in zip(base.position, pulls, strict=True):
    robot.apply(displacement, pull)
    robot.damp(displacement, drag)

away = base.away()
robot.task(
    state_cost=sum((displacement - goal) ** 2 for displacement, goal in zip(base.position, goals, strict=True))
    + away.dot(away)
    + 0.1 * sum(rate**2 for rate in base.velocity)
    + 0.02 * sum(rate**2 for rate in base.rate),
    action_cost=LogCos(0.2),
    target={f"base_{axis}": goal for axis, goal in zip("xyz", goals, strict=True)},
    start={
        **{f"base_{axis}": (0, 0.5) for axis in "xyz"},
        "base": ((0, 0, 0), pi),
        **{f"base_turn_{axis}_rate": (0, 1.0) for axis in "xyz"},
    },
    horizon=6,
    weight_at_horizon=0.65,
    control_rate=100,
)
