"""A stiff little pendulum, 60 mm long, at a control rate of 1 kHz: a robot twenty times as fast as a man's arm."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("metronome", "A rod of 60 mm that a weak motor swings up and holds")

rod = robot.revolute("rod", continuous=True, rate_limit=60, meaning="angle of the rod, 0 upright")

mass = robot.parameter("mass", 0.02, "kg", tolerance=0.5, meaning="mass of the rod")
length = robot.parameter("length", 0.06, "m", tolerance=0.3, meaning="length of the rod")
damping = robot.parameter("damping", 2e-6, "N m s", tolerance=0.5, meaning="friction of the hinge")

torque = robot.input("torque", 2.5e-3, "N m", meaning="of the motor; gravity takes up to 5.9e-3")

robot.body(mass, mass * length**2 / 12, (length / 2 * sin(rod), length / 2 * cos(rod)), rod)
robot.apply(rod, torque)
robot.damp(rod, damping)
robot.draw(line=[(0, 0), (length * sin(rod), length * cos(rod))])

robot.task(
    state_cost=(pi * sin(rod / 2)) ** 2 + 1e-3 * rod.rate**2,
    action_cost=LogCos(1e3),
    start=dict(rod=(pi, 0.05)),
    horizon=2,
    weight_at_horizon=0.8,
    control_rate=1000,
)
