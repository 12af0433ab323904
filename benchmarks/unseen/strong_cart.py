"""Cart-pole of the verified controllers by Li and others (arXiv 2506.01356): no friction, 30 N for 1.1 kg."""

from sympy import cos, sin

from modelgen import Quadratic, Robot

robot = Robot("strong_cart", "A pole on a cart whose motor accelerates it with nearly 3 g")

cart = robot.prismatic("cart", limit=6, rate_limit=14)
pole = robot.revolute("pole", continuous=True, rate_limit=14, meaning="0 upright")
force = robot.input("force", 30, "N")
mass = robot.parameter("mass", 0.1, "kg", tolerance=0.05)
robot.point_mass(robot.parameter("cart_mass", 1.0, "kg", tolerance=0.05), (cart, 0))
robot.point_mass(mass, (cart + sin(pole), cos(pole)))
robot.apply(cart, force)

robot.task(
    state_cost=0.05 * cart**2 + (2 * sin(pole / 2)) ** 2 + 0.1 * cart.rate**2 + 0.1 * pole.rate**2,
    action_cost=Quadratic(0.01),
    start=dict(cart=(0, 1), pole=(0, 0.7), cart_rate=(0, 1.5), pole_rate=(0, 2)),
    horizon=15,
    weight_at_horizon=0.5,
    control_rate=50,
)
