"""Cart with a double pendulum: two uniform rods, one on the other, on a cart that a force drives along a rail."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("cart_double_pendulum", "Two rods, one on the other, on a cart driven along a rail")

cart = robot.prismatic("cart", limit=1, rate_limit=8, meaning="position of the cart, 0 mid-rail")
lower = robot.revolute("lower", continuous=True, rate_limit=20, meaning="angle of the rod on the cart, 0 upright")
upper = robot.revolute("upper", continuous=True, rate_limit=25, meaning="angle between the rods, 0 stretched")

cart_mass = robot.parameter("cart_mass", 0.8, "kg", tolerance=0.3, meaning="mass of the cart")
lower_mass = robot.parameter("lower_mass", 0.2, "kg", tolerance=0.3, meaning="mass of the lower rod")
lower_length = robot.parameter("lower_length", 0.3, "m", tolerance=0.3, meaning="length of the lower rod")
upper_mass = robot.parameter("upper_mass", 0.2, "kg", tolerance=0.3, meaning="mass of the upper rod")
upper_length = robot.parameter("upper_length", 0.4, "m", tolerance=0.3, meaning="length of the upper rod")
cart_damping = robot.parameter("cart_damping", 0.5, "N s/m", tolerance=0.5, meaning="friction of the cart")
hinge_damping = robot.parameter("hinge_damping", 1e-3, "N m s", tolerance=0.5, meaning="friction of either hinge")

force = robot.input("force", 20, "N", meaning="horizontal force on the cart")

upper_angle = lower + upper
joint = (cart + lower_length * sin(lower), lower_length * cos(lower))
robot.point_mass(cart_mass, (cart, 0))
robot.body(
    lower_mass,
    lower_mass * lower_length**2 / 12,
    (cart + lower_length / 2 * sin(lower), lower_length / 2 * cos(lower)),
    lower,
)
robot.body(
    upper_mass,
    upper_mass * upper_length**2 / 12,
    (joint[0] + upper_length / 2 * sin(upper_angle), joint[1] + upper_length / 2 * cos(upper_angle)),
    upper_angle,
)
robot.apply(cart, force)
robot.damp(cart, cart_damping)
robot.damp(lower, hinge_damping)
robot.damp(upper, hinge_damping)

robot.draw(line=[(-1.2, 0), (1.2, 0)])
robot.draw(box=((cart, 0), (0.2, 0.1)))
end = (joint[0] + upper_length * sin(upper_angle), joint[1] + upper_length * cos(upper_angle))
robot.draw(line=[(cart, 0), joint, end])

robot.task(
    state_cost=10 * cart**2
    + (pi * sin(lower / 2)) ** 2
    + (pi * sin(upper_angle / 2)) ** 2
    + 0.2 * cart.rate**2
    + 0.02 * lower.rate**2
    + 0.02 * (lower.rate + upper.rate) ** 2,
    action_cost=LogCos(0.01),
    start=dict(cart=(0, 0.03), lower=(pi, 0.03), upper=(0, 0.03)),
    horizon=5,
    weight_at_horizon=0.8,
    control_rate=125,
)
