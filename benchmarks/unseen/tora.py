"""A cart on a spring with an eccentric weight that a motor turns: the benchmark TORA (RTAC)."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("tora", "A cart on a spring, calmed by a turning weight")

cart = robot.prismatic("cart", limit=0.1, rate_limit=1.5, meaning="position of the cart, 0 where the spring rests")
arm = robot.revolute("arm", continuous=True, rate_limit=25, meaning="angle of the weight, 0 across the spring")

cart_mass = robot.parameter("cart_mass", 1.36, "kg", tolerance=0.2, meaning="mass of the cart")
weight = robot.parameter("weight", 0.096, "kg", tolerance=0.2, meaning="mass of the weight")
radius = robot.parameter("radius", 0.0592, "m", tolerance=0.1, meaning="of the weight about its axle")
inertia = robot.parameter("inertia", 2.175e-4, "kg m^2", tolerance=0.2, meaning="of the weight about its centre")
stiffness = robot.parameter("stiffness", 186.3, "N/m", tolerance=0.2, meaning="of the spring")

torque = robot.input("torque", 0.1, "N m", meaning="of the motor")

robot.point_mass(cart_mass, (cart, 0))
robot.body(weight, inertia, (cart + radius * sin(arm), 0.1), arm)
robot.apply(cart, -stiffness * cart)
robot.apply(arm, torque)
robot.draw(line=[(cart, 0), (cart + radius * sin(arm), radius * cos(arm))])

robot.task(
    state_cost=2000 * cart**2 + 0.5 * (1 - cos(arm)) + 5 * cart.rate**2 + 0.001 * arm.rate**2,
    action_cost=LogCos(5.0),
    start=dict(cart=(0.03, 0.02)),
    horizon=5,
    weight_at_horizon=0.5,
    control_rate=200,
)
