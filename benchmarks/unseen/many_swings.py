"""A heavy rod on a motor of a seventh of its weight's torque: it takes several swings to get up."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("many_swings", "A heavy rod on a motor of a seventh of its weight's torque")

angle = robot.revolute("angle", continuous=True, rate_limit=14, meaning="angle of the rod, 0 upright")
mass = robot.parameter("mass", 2.0, "kg", tolerance=0.3, meaning="mass of the rod")
length = robot.parameter("length", 0.6, "m", tolerance=0.3, meaning="length of the rod")
damping = robot.parameter("damping", 0.002, "N m s", tolerance=0.5, meaning="friction of the bearing")
torque = robot.input("torque", 0.85, "N m", meaning="motor torque")

robot.body(mass, mass * length**2 / 12, (length / 2 * sin(angle), length / 2 * cos(angle)), angle)
robot.apply(angle, torque)
robot.damp(angle, damping)
robot.draw(line=[(0, 0), (length * sin(angle), length * cos(angle))])

robot.task(
    state_cost=2 * (1 - cos(angle)) + 0.02 * angle.rate**2,
    action_cost=LogCos(0.2),
    start=dict(angle=(pi, 0.1)),
    horizon=10,
    weight_at_horizon=0.5,
    control_rate=100,
)
