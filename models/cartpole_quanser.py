"""Quanser cart-pole: a motor with a pinion drives the cart along a toothed rail; the input is a voltage."""

from sympy import cos, pi, sin, sqrt

from modelgen import LogCos, Robot

robot = Robot("cartpole_quanser", "The Quanser cart with its short pole, driven by a voltage")

cart = robot.prismatic("cart", limit=0.407, rate_limit=5, meaning="position of the cart, 0 mid-rail")
pole = robot.revolute("pole", continuous=True, rate_limit=20, meaning="angle of the pole, 0 upright")

cart_mass = robot.parameter("cart_mass", 0.38, "kg", tolerance=0.5, meaning="mass of the cart")
pole_mass = robot.parameter("pole_mass", 0.127, "kg", tolerance=0.5, meaning="mass of the pole")
pole_half_length = robot.parameter(
    "pole_half_length", 0.16825, "m", tolerance=0.5, meaning="hinge to the pole's centre"
)
cart_damping = robot.parameter("cart_damping", 5.4, "N s/m", tolerance=0.5, meaning="friction of the cart")
pole_damping = robot.parameter("pole_damping", 0.0024, "N m s", tolerance=0.5, meaning="friction of its hinge")
resistance = robot.parameter("resistance", 2.6, "Ohm", tolerance=0.5, meaning="resistance of the motor")
motor_constant = robot.parameter("motor_constant", 7.67e-3, "N m/A", tolerance=0.5, meaning="of torque and back-EMF")
motor_efficiency = robot.parameter("motor_efficiency", 0.9, "1", fixed=True)
gear_efficiency = robot.parameter("gear_efficiency", 0.9, "1", fixed=True)
gear_ratio = robot.parameter("gear_ratio", 3.71, "1", fixed=True)
pinion_radius = robot.parameter("pinion_radius", 6.35e-3, "m", fixed=True)
rotor_inertia = robot.parameter("rotor_inertia", 3.9e-7, "kg m^2", fixed=True)

voltage = robot.input("voltage", 8, "V", meaning="motor voltage")

robot.point_mass(cart_mass, (cart, 0))
pole_centre = (cart + pole_half_length * sin(pole), pole_half_length * cos(pole))
robot.body(pole_mass, pole_mass * pole_half_length**2 / 3, pole_centre, pole)

# The manufacturer's model counts the motor's efficiency twice for the voltage and once for the back-EMF.
robot.dc_motor(
    cart,
    motor_efficiency * voltage,
    resistance=resistance,
    torque_constant=motor_constant,
    gear=gear_ratio / pinion_radius,
    efficiency=motor_efficiency,
    gear_efficiency=gear_efficiency,
    rotor_inertia=rotor_inertia,
)
robot.damp(cart, cart_damping)
robot.damp(pole, pole_damping)

robot.draw(line=[(-0.5, 0), (0.5, 0)])
robot.draw(box=((cart, 0), (0.12, 0.06)))
robot.draw(line=[(cart, 0), (cart + 2 * pole_half_length * sin(pole), 2 * pole_half_length * cos(pole))])

# The motor needs some three seconds to swing the pole up. In 5 s that costs more (71) than to let it hang (50).
robot.task(
    state_cost=25 * cart**2 + (pi * sin(pole / 2)) ** 2 + 0.5 * cart.rate**2 + 0.1 * pole.rate**2,
    action_cost=LogCos(0.1),
    start=dict(cart=(0, 0.03), pole=(pi, sqrt(5e-2)), cart_rate=(0, 1e-3), pole_rate=(0, 1e-3)),
    horizon=10,
    weight_at_horizon=0.8,
    control_rate=125,
)
