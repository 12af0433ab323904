"""A steel ball below an electromagnet, which can only pull: two kilohertz, six millimetres of room."""

from modelgen import LogCos, Robot

robot = Robot("levitator", "A steel ball below an electromagnet")

fall = robot.prismatic("fall", limit=0.003, rate_limit=0.5, meaning="how far the ball is below its aim")
mass = robot.parameter("mass", 0.05, "kg", tolerance=0.2, meaning="of the ball")
gap = robot.parameter("gap", 0.008, "m", tolerance=0.1, meaning="from the magnet to the aim")
weight = robot.parameter("weight", 0.05 * 9.81, "N", fixed=True)  # of the nominal ball, carried by a constant current
pull = robot.input("pull", 0.05 * 9.81, "N", meaning="at the aim, beyond the weight: the current's square, from 0 to 2")

robot.point_mass(mass, (0, -fall))
robot.apply(fall, -(weight + pull) * (gap / (gap + fall)) ** 2)
robot.task(
    state_cost=(fall / 0.001) ** 2 + 100 * fall.rate**2,
    action_cost=LogCos(1.0),
    start=dict(fall=(0.001, 0.0003)),
    horizon=0.5,
    weight_at_horizon=0.5,
    control_rate=2000,
)
