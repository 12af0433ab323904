"""A pole on a cart that a stepper moves: its acceleration is the input."""

from sympy import cos, pi, sin

from modelgen import Quadratic, Robot

robot = Robot("stepper_cart", "A pole on a cart whose acceleration is the command")
cart = robot.prismatic("cart", limit=0.5, rate_limit=2)
pole = robot.revolute("pole", continuous=True, rate_limit=15, meaning="0 upright")
length = robot.parameter("length", 0.3, "m", tolerance=0.3, meaning="of the pole")
friction = robot.parameter("friction", 0.001, "N m s", tolerance=0.5, meaning="of the pole's bearing")
push = robot.input("push", 20, "m/s^2", meaning="acceleration of the cart")
robot.accelerate(cart, push)
robot.point_mass(0.5, (cart, 0))
robot.point_mass(0.1, (cart + length * sin(pole), length * cos(pole)))
robot.damp(pole, friction)
robot.task(
    state_cost=10 * cart**2 + (pi * sin(pole / 2)) ** 2 + 0.05 * pole.rate**2,
    action_cost=Quadratic(0.001),
    start=dict(pole=(pi, 0.05)),
    horizon=4,
    weight_at_horizon=0.65,
    control_rate=100,
)
