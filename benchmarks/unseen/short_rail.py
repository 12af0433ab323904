"""A long pole on a cart with a short rail and a weak motor: several swings between the ends."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("short_rail", "A long pole on a cart with a short rail and a weak motor")

cart = robot.prismatic("cart", limit=0.35, rate_limit=2, meaning="position of the cart, 0 mid-rail")
pole = robot.revolute("pole", continuous=True, rate_limit=15, meaning="angle of the pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 0.8, "kg", tolerance=0.3, meaning="mass of the cart")
pole_mass = robot.parameter("pole_mass", 0.2, "kg", tolerance=0.3, meaning="mass of the pole")
pole_length = robot.parameter("pole_length", 0.6, "m", tolerance=0.3, meaning="length of the pole, a uniform rod")
cart_damping = robot.parameter("cart_damping", 2.0, "N s/m", tolerance=0.5, meaning="friction of the cart")

force = robot.input("force", 5, "N", meaning="on the cart")

robot.point_mass(cart_mass, (cart, 0))
centre = (cart + pole_length / 2 * sin(pole), pole_length / 2 * cos(pole))
robot.body(pole_mass, pole_mass * pole_length**2 / 12, centre, pole)
robot.apply(cart, force)
robot.damp(cart, cart_damping)
robot.draw(line=[(-0.35, 0), (0.35, 0)])
robot.draw(line=[(cart, 0), (cart + pole_length * sin(pole), pole_length * cos(pole))])

robot.task(
    state_cost=5 * cart**2 + 4 * (1 - cos(pole)) + 0.1 * cart.rate**2 + 0.05 * pole.rate**2,
    action_cost=LogCos(0.01),
    start=dict(cart=(0, 0.05), pole=(pi, 0.1)),
    horizon=8,
    weight_at_horizon=0.7,
    control_rate=100,
)
