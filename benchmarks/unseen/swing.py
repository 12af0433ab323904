"""A child on a swing comes to rest by standing up and sitting down: a weight moved along the rope, and no torque."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("swing", "A weight that is moved along a rope calms the swing")

angle = robot.revolute("angle", limit=1.5, rate_limit=5, meaning="of the rope, 0 hanging")
body = robot.prismatic("body", limit=0.4, rate_limit=2, meaning="of the weight along the rope, upwards")

mass = robot.parameter("mass", 30.0, "kg", tolerance=0.2, meaning="of the child")
length = robot.parameter("length", 2.0, "m", tolerance=0.1, meaning="of the rope")
gravity = 9.81

push = robot.input("push", 300.0, "N", meaning="of the legs, beside the weight at rest")

radius = length - body
robot.point_mass(mass, (radius * sin(angle), -radius * cos(angle)))
robot.apply(body, push + 30.0 * gravity)
robot.damp(body, robot.parameter("legs", 20.0, "N s/m", tolerance=0.5, meaning="damping of the legs"))

robot.task(
    state_cost=3 * angle**2 + 1.0 * body**2 + 0.5 * angle.rate**2 + 0.1 * body.rate**2,
    action_cost=LogCos(1e-5),
    start=dict(angle=(0.8, 0.1)),
    horizon=20,
    weight_at_horizon=0.5,
    control_rate=25,
)
