"""A pole on a cart that runs on a rail of forty degrees, hung from a counterweight: to be swung up and held."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("tilted_cart", "A pole on a cart on a steep rail")

cart = robot.prismatic("cart", limit=0.6, rate_limit=4, meaning="position along the rail")
pole = robot.revolute("pole", continuous=True, rate_limit=15, meaning="angle of the pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 0.8, "kg", tolerance=0.2, meaning="mass of the cart")
pole_mass = robot.parameter("pole_mass", 0.2, "kg", tolerance=0.2, meaning="mass of the pole")
length = robot.parameter("length", 0.5, "m", tolerance=0.1, meaning="length of the pole")
slope = robot.parameter("slope", 0.7, "rad", fixed=True, meaning="of the rail")
trim = robot.parameter("trim", 9.81 * 1.0, "N", fixed=True, meaning="of the counterweight, times the slope's sine")
force = robot.input("force", 12, "N", meaning="along the rail")

at = (cart * cos(slope), cart * sin(slope))
centre = (at[0] + length / 2 * sin(pole), at[1] + length / 2 * cos(pole))
robot.point_mass(cart_mass, at)
robot.body(pole_mass, pole_mass * length**2 / 12, centre, pole)
robot.apply(cart, force + trim * sin(slope))
robot.damp(cart, 0.5)
robot.damp(pole, 0.001)
robot.draw(line=[at, (at[0] + length * sin(pole), at[1] + length * cos(pole))])

robot.task(
    state_cost=5 * cart**2 + (pi * sin(pole / 2)) ** 2 + 0.1 * cart.rate**2 + 0.02 * pole.rate**2,
    action_cost=LogCos(0.002),
    start=dict(cart=(0, 0.1), pole=(pi, 0.1)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=60,
)
