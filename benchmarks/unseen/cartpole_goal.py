"""Cart-pole with a set-point: the pole is swung up, and the cart stands wherever the reference says."""

from sympy import cos, pi, sin, sqrt

from modelgen import LogCos, Robot

robot = Robot("cartpole_goal", "A cart-pole whose cart stands where a reference says")

goal = robot.reference("goal", limit=0.3, unit="m", meaning="where the cart is to stand")

cart = robot.prismatic("cart", limit=0.5, rate_limit=5, meaning="position of the cart, 0 mid-rail")
pole = robot.revolute("pole", continuous=True, rate_limit=20, meaning="angle of the pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 0.57, "kg", tolerance=0.5, meaning="mass of the cart")
pole_mass = robot.parameter("pole_mass", 0.127, "kg", bounds=(0.0635, 0.254), meaning="mass at the pole's centre")
pole_half_length = robot.parameter(
    "pole_half_length", 0.3365 / 2, "m", bounds=(0.3365 / 4, 0.3365), meaning="hinge to the pole's centre"
)
cart_damping = robot.parameter("cart_damping", 0.1, "N s/m", tolerance=0.5, meaning="friction of the cart")
pole_damping = robot.parameter("pole_damping", 1e-3, "N m s", tolerance=0.5, meaning="friction of the hinge")

force = robot.input("force", 12, "N", meaning="horizontal force on the cart")

robot.point_mass(cart_mass, (cart, 0))
robot.point_mass(pole_mass, (cart + pole_half_length * sin(pole), pole_half_length * cos(pole)))
robot.apply(cart, force)
robot.damp(cart, cart_damping)
robot.damp(pole, pole_damping)
robot.draw(line=[(-0.6, 0), (0.6, 0)])
robot.draw(line=[(goal, -0.06), (goal, 0)])
robot.draw(box=((cart, 0), (0.12, 0.06)))
robot.draw(line=[(cart, 0), (cart + 2 * pole_half_length * sin(pole), 2 * pole_half_length * cos(pole))])

robot.task(
    state_cost=25 * (cart - goal) ** 2 + (pi * sin(pole / 2)) ** 2 + 0.5 * cart.rate**2 + 0.1 * pole.rate**2,
    action_cost=LogCos(0.1),
    target=dict(cart=goal),
    start=dict(cart=(0, sqrt(1e-3)), pole=(pi, sqrt(5e-2)), cart_rate=(0, 1e-3), pole_rate=(0, 1e-3)),
    horizon=5,
    weight_at_horizon=0.8,
    control_rate=125,
)
