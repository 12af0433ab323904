"""Two poles of unequal length side by side on one cart, both to be swung up from hanging: six states, one input."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("dual_swing", "A cart that swings up a long and a short pole at once")

cart = robot.prismatic("cart", limit=1.5, rate_limit=8, meaning="position of the cart, 0 mid-rail")
long = robot.revolute("long", continuous=True, rate_limit=15, meaning="angle of the long pole, 0 upright")
short = robot.revolute("short", continuous=True, rate_limit=25, meaning="angle of the short pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 0.5, "kg", tolerance=0.2, meaning="mass of the cart")
long_mass = robot.parameter("long_mass", 0.15, "kg", tolerance=0.2, meaning="mass of the long pole")
long_length = robot.parameter("long_length", 0.8, "m", tolerance=0.1, meaning="length of the long pole")
short_mass = robot.parameter("short_mass", 0.06, "kg", tolerance=0.2, meaning="mass of the short pole")
short_length = robot.parameter("short_length", 0.35, "m", tolerance=0.1, meaning="length of the short pole")

force = robot.input("force", 15, "N", meaning="horizontal force on the cart")

robot.point_mass(cart_mass, (cart, 0))
for mass, length, angle in ((long_mass, long_length, long), (short_mass, short_length, short)):
    centre = (cart + length / 2 * sin(angle), length / 2 * cos(angle))
    robot.body(mass, mass * length**2 / 12, centre, angle)
    robot.damp(angle, 1e-3)
    robot.draw(line=[(cart, 0), (cart + length * sin(angle), length * cos(angle))])
robot.apply(cart, force)
robot.damp(cart, 0.2)
robot.draw(line=[(-1.5, 0), (1.5, 0)])
robot.draw(box=((cart, 0), (0.2, 0.1)))

robot.task(
    state_cost=cart**2
    + (pi * sin(long / 2)) ** 2
    + (pi * sin(short / 2)) ** 2
    + 0.02 * cart.rate**2
    + 0.005 * long.rate**2
    + 0.005 * short.rate**2,
    action_cost=LogCos(0.002),
    start=dict(cart=(0, 0.02), long=(pi, 0.02), short=(pi, 0.02)),
    horizon=8,
    weight_at_horizon=0.6,
    control_rate=100,
)
