"""A rod that swings freely, to be identified from its decay: no input, and nothing to train."""

from sympy import cos, pi, sin

from modelgen import Robot

robot = Robot("free_rod", "A rod that swings freely, at a pivot with friction")
theta = robot.revolute("theta", continuous=True, rate_limit=25, meaning="0 upright")
reach = robot.parameter("reach", 0.08, "m", bounds=(0.05, 0.12), meaning="from the pivot to the centre of mass")
drag = robot.parameter("drag", 1e-5, "N m s", bounds=(0, 1e-4), meaning="of the pivot")
dry = robot.parameter("dry", 1e-4, "N m", bounds=(0, 1e-3), meaning="friction of the pivot")
robot.body(0.0142, 4e-5, (reach * sin(theta), reach * cos(theta)), theta)
robot.damp(theta, drag)
robot.dry_friction(theta, dry, smoothing=0.1)
robot.task(
    state_cost=(pi * cos(theta / 2)) ** 2 + 0.01 * theta.rate**2,
    target=dict(theta=pi),
    start=dict(theta=(0.5, 0.03)),
    horizon=3,
    weight_at_horizon=0.65,
    control_rate=200,
)
