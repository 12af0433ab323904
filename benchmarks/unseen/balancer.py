"""A two-wheeled balancer: its motors drive the wheels and push the body back. Caught from a lean, held at its place."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("balancer", "A body on two wheels that must stay upright and at its place")

place = robot.prismatic("place", limit=1, rate_limit=3, meaning="position of the axle along the floor")
lean = robot.revolute("lean", limit=0.8, rate_limit=8, meaning="angle of the body, 0 upright")

wheel_mass = robot.parameter("wheel_mass", 0.2, "kg", tolerance=0.3, meaning="mass of both wheels")
wheel_inertia = robot.parameter("wheel_inertia", 1.5e-4, "kg m^2", tolerance=0.3, meaning="of both about the axle")
wheel_radius = robot.parameter("wheel_radius", 0.04, "m", tolerance=0.1, meaning="axle to the floor")
body_mass = robot.parameter("body_mass", 0.9, "kg", tolerance=0.3, meaning="mass of the body")
body_centre = robot.parameter("body_centre", 0.09, "m", tolerance=0.3, meaning="axle to the body's centre of mass")
body_inertia = robot.parameter("body_inertia", 3e-3, "kg m^2", tolerance=0.3, meaning="about that centre")
damping = robot.parameter("damping", 1e-3, "N m s", tolerance=0.5, meaning="friction of the axle")

torque = robot.input("torque", 0.25, "N m", meaning="of the body on the wheels")

roll = place / wheel_radius
robot.body(wheel_mass, wheel_inertia, (place, 0), roll)
robot.body(body_mass, body_inertia, (place + body_centre * sin(lean), body_centre * cos(lean)), lean)
robot.apply(roll - lean, torque)
robot.damp(roll - lean, damping)

top = (place + 2 * body_centre * sin(lean), wheel_radius + 2 * body_centre * cos(lean))
robot.draw(line=[(-1.2, 0), (1.2, 0)])
robot.draw(circle=((place, wheel_radius), wheel_radius, roll))
robot.draw(line=[(place, wheel_radius), top])

robot.task(
    state_cost=5 * place**2 + 4 * lean**2 + 0.2 * place.rate**2 + 0.05 * lean.rate**2,
    action_cost=LogCos(2),
    start=dict(place=(0, 0.2), lean=(0, 0.12)),
    horizon=5,
    weight_at_horizon=0.7,
    control_rate=200,
)
