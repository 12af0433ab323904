"""Two poles of unequal length side by side on one cart, to be caught from a lean: six states, one input."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("two_poles", "A cart that balances a long and a short pole at once")

cart = robot.prismatic("cart", limit=1.5, rate_limit=5, meaning="position of the cart, 0 mid-rail")
long = robot.revolute("long", limit=0.6, rate_limit=5, meaning="angle of the long pole, 0 upright")
short = robot.revolute("short", limit=0.6, rate_limit=8, meaning="angle of the short pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 1, "kg", tolerance=0.3, meaning="mass of the cart")
long_mass = robot.parameter("long_mass", 0.2, "kg", tolerance=0.3, meaning="mass of the long pole")
long_length = robot.parameter("long_length", 1, "m", tolerance=0.2, meaning="length of the long pole")
short_mass = robot.parameter("short_mass", 0.05, "kg", tolerance=0.3, meaning="mass of the short pole")
short_length = robot.parameter("short_length", 0.3, "m", tolerance=0.2, meaning="length of the short pole")
damping = robot.parameter("damping", 0.5, "N s/m", tolerance=0.5, meaning="friction of the cart")

force = robot.input("force", 20, "N", meaning="horizontal force on the cart")

robot.point_mass(cart_mass, (cart, 0))
for mass, length, angle in ((long_mass, long_length, long), (short_mass, short_length, short)):
    centre = (cart + length / 2 * sin(angle), length / 2 * cos(angle))
    robot.body(mass, mass * length**2 / 12, centre, angle)
    robot.draw(line=[(cart, 0), (cart + length * sin(angle), length * cos(angle))])
robot.apply(cart, force)
robot.damp(cart, damping)
robot.draw(line=[(-1.5, 0), (1.5, 0)])
robot.draw(box=((cart, 0), (0.2, 0.1)))

robot.task(
    state_cost=2 * cart**2
    + 10 * long**2
    + 10 * short**2
    + 0.2 * cart.rate**2
    + 0.1 * long.rate**2
    + 0.1 * short.rate**2,
    action_cost=LogCos(0.02),
    start=dict(cart=(0, 0.1), long=(0, 0.04), short=(0, 0.03)),
    horizon=5,
    weight_at_horizon=0.7,
    control_rate=100,
)
