"""Slider-crank: a crank turns a slider to and fro through a connecting rod, as in an engine."""

from sympy import cos, pi, sin

from modelgen import Quadratic, Robot

robot = Robot("slider_crank", "A crank that moves a slider through a connecting rod")

crank = robot.revolute(
    "crank", continuous=True, rate_limit=10, meaning="angle of the crank, 0 at the outer dead centre"
)
rod = robot.revolute("rod", limit=1, meaning="angle of the connecting rod")
slider = robot.prismatic("slider", limit=0.5, meaning="place of the slider")
torque = robot.input("torque", 3, "N m", meaning="on the crank")
mass = robot.parameter("mass", 0.3, "kg", tolerance=0.3, meaning="of the crank and of the rod")
damping = robot.parameter("damping", 0.5, "N s/m", tolerance=0.9, meaning="of the slider")

radius, length = 0.1, 0.3  # m
pin = (radius * cos(crank), radius * sin(crank))
robot.loop((pin[0] + length * cos(rod), pin[1] + length * sin(rod)), (slider, 0), dependent={rod: 0, slider: 0.4})
robot.body(mass, 0.002, (pin[0] / 2, pin[1] / 2), crank)
robot.body(mass, 0.002, (pin[0] + length / 2 * cos(rod), pin[1] + length / 2 * sin(rod)), rod)
robot.point_mass(2 * mass, (slider, 0))
robot.damp(slider, damping)
robot.apply(crank, torque)
robot.draw(line=[(0, 0), pin, (slider, 0)])

robot.task(
    state_cost=(pi * sin(crank / 2)) ** 2 + 0.1 * crank.rate**2,
    action_cost=Quadratic(0.1),
    start=dict(crank=(pi, 0.05)),
    horizon=3,
    weight_at_horizon=0.65,
    control_rate=100,
)
