"""A cart on a seesaw: it balances the beam that it drives on, and nothing else holds the beam."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("seesaw", "A driven cart that balances the seesaw below it")

cart = robot.prismatic("cart", limit=0.35, rate_limit=2, meaning="along the beam, 0 above the pivot")
tilt = robot.revolute("tilt", limit=0.3, rate_limit=2, meaning="of the beam, 0 level")

cart_mass = robot.parameter("cart_mass", 0.57, "kg", tolerance=0.2, meaning="mass of the cart")
beam_mass = robot.parameter("beam_mass", 3.6, "kg", tolerance=0.1, meaning="mass of the beam")
inertia = robot.parameter("inertia", 0.395, "kg m^2", tolerance=0.2, meaning="of the beam about its pivot")
height = robot.parameter("height", 0.058, "m", tolerance=0.1, meaning="of the beam's centre of mass above its pivot")
rail = robot.parameter("rail", 0.125, "m", tolerance=0.1, meaning="height of the rail above the pivot")
damping = robot.parameter("damping", 5.4, "N s/m", tolerance=0.3, meaning="friction of the cart with its motor")

force = robot.input("force", 12, "N", meaning="of the cart's motor along the beam")

robot.point_mass(cart_mass, (cart * cos(tilt) - rail * sin(tilt), cart * sin(tilt) + rail * cos(tilt)))
robot.body(beam_mass, inertia - beam_mass * height**2, (-height * sin(tilt), height * cos(tilt)), tilt)
robot.apply(cart, force)
robot.damp(cart, damping)
left, right = ((side * cos(tilt) - rail * sin(tilt), side * sin(tilt) + rail * cos(tilt)) for side in (-0.4, 0.4))
robot.draw(line=[left, right])
robot.draw(circle=((cart * cos(tilt) - rail * sin(tilt), cart * sin(tilt) + rail * cos(tilt)), 0.04))

robot.task(
    state_cost=20 * cart**2 + 50 * tilt**2 + 0.5 * cart.rate**2 + 2 * tilt.rate**2,
    action_cost=LogCos(0.01),
    start=dict(cart=(0, 0.05), tilt=(0, 0.04)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=100,
)
