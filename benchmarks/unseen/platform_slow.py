"""A heavy platform on ropes that a small engine moves: five commands a second, minutes for a swing."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("platform_slow", "A heavy weight on a rope of 60 m, with a small engine")

swing = robot.revolute("swing", limit=0.4, rate_limit=0.2, meaning="angle of the rope from hanging")
mass = robot.parameter("mass", 3000, "kg", tolerance=0.2, meaning="mass")
length = robot.parameter("length", 60, "m", tolerance=0.1, meaning="of the rope")
force = robot.input("force", 500, "N", meaning="of the engine, across the rope")
robot.point_mass(mass, (length * sin(swing), -length * cos(swing)))
robot.apply(swing, force * length)
robot.damp(swing, 1e5)
robot.draw(line=[(0, 0), (length * sin(swing), -length * cos(swing))])
robot.task(
    state_cost=100 * swing**2 + 600 * swing.rate**2,
    action_cost=LogCos(1e-7),
    start=dict(swing=(0.2, 0.05), swing_rate=(0, 0.02)),
    horizon=120,
    weight_at_horizon=0.5,
    control_rate=5,
)
