"""Quadrotor in space: a floating body with four rotors that only push, from any attitude to hovering."""

from math import pi

from modelgen import LogCos, Robot

robot = Robot("quadrotor", "a rigid body in space, lifted by four rotors that only push")

mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="of the body and its rotors")
across = robot.parameter("across", 3.2e-3, "kg m^2", tolerance=0.3, meaning="inertia about the x and y axes")
upright = robot.parameter("upright", 5.5e-3, "kg m^2", tolerance=0.3, meaning="inertia about the z axis")
arm = robot.parameter("arm", 0.12, "m", tolerance=0.1, meaning="distance of a rotor from the x and y axes")
twist = robot.parameter("twist", 0.02, "m", tolerance=0.3, meaning="torque of a rotor about its axis by its thrust")
drag = robot.parameter("drag", 0.1, "N s/m", tolerance=0.5, meaning="of the air, along any axis")

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
for displacement in base.position:
    robot.damp(displacement, drag)

away = base.away()
robot.task(
    state_cost=sum(displacement**2 for displacement in base.position)
    + away.dot(away)
    + 0.1 * sum(rate**2 for rate in base.velocity)
    + 0.02 * sum(rate**2 for rate in base.rate),
    action_cost=LogCos(0.2),
    start={
        **{f"base_{axis}": (0, 0.5) for axis in "xyz"},
        "base": ((0, 0, 0), pi),
        **{f"base_turn_{axis}_rate": (0, 1.0) for axis in "xyz"},
    },
    horizon=6,
    weight_at_horizon=0.65,
    control_rate=100,
)
