"""Two carts joined by a soft spring; a motor pushes the first: a benchmark of the American Control Conference."""

from modelgen import LogCos, Robot

robot = Robot("two_masses", "Two carts joined by a soft spring; the second is to be put in place")

first = robot.prismatic("first", limit=3, rate_limit=6, meaning="position of the pushed cart")
second = robot.prismatic("second", limit=3, rate_limit=6, meaning="position of the other cart")

near = robot.parameter("near", 1.0, "kg", tolerance=0.3, meaning="mass of the pushed cart")
far = robot.parameter("far", 1.0, "kg", tolerance=0.3, meaning="mass of the other cart")
stiffness = robot.parameter("stiffness", 1.0, "N/m", bounds=(0.5, 2), meaning="of the spring")

force = robot.input("force", 1.0, "N", meaning="of the motor")

robot.point_mass(near, (first, 0))
robot.point_mass(far, (second, 0))
robot.potential_energy(stiffness * (second - first) ** 2 / 2)
robot.apply(first, force)

robot.task(
    state_cost=second**2 + 0.2 * first**2 + 0.1 * first.rate**2 + 0.1 * second.rate**2,
    action_cost=LogCos(0.3),
    start=dict(first=(-1.0, 0.3), second=(-1.0, 0.3), second_rate=(0, 0.3)),
    horizon=20,
    weight_at_horizon=0.5,
    control_rate=20,
)
