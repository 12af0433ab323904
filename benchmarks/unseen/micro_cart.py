"""A cart-pole the size of a matchbox: grams, centimetres and a few millinewtons."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("micro_cart", "A cart-pole the size of a matchbox")

cart = robot.prismatic("cart", limit=0.04, rate_limit=1, meaning="position of the cart")
pole = robot.revolute("pole", continuous=True, rate_limit=60, meaning="angle of the pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 0.004, "kg", tolerance=0.3, meaning="mass of the cart")
pole_mass = robot.parameter("pole_mass", 0.001, "kg", tolerance=0.3, meaning="mass of the pole")
pole_length = robot.parameter("pole_length", 0.04, "m", tolerance=0.3, meaning="length of the pole, a uniform rod")

force = robot.input("force", 0.05, "N", meaning="on the cart")

robot.point_mass(cart_mass, (cart, 0))
centre = (cart + pole_length / 2 * sin(pole), pole_length / 2 * cos(pole))
robot.body(pole_mass, pole_mass * pole_length**2 / 12, centre, pole)
robot.apply(cart, force)
robot.damp(cart, 0.005)
robot.damp(pole, 1e-8)
robot.draw(line=[(cart, 0), (cart + pole_length * sin(pole), pole_length * cos(pole))])

robot.task(
    state_cost=600 * cart**2 + 4 * (1 - cos(pole)) + 0.3 * cart.rate**2 + 0.003 * pole.rate**2,
    action_cost=LogCos(5000),
    start=dict(cart=(0, 0.003), pole=(pi, 0.1)),
    horizon=3,
    weight_at_horizon=0.6,
    control_rate=500,
)
