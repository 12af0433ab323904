"""Four-bar linkage by its crank: the coupler and the rocker follow (Grashof crank-rocker)."""

from sympy import cos, pi, sin

from modelgen import Quadratic, Robot

robot = Robot("four_bar", "A four-bar linkage that a motor turns by its crank")

crank = robot.revolute("crank", continuous=True, rate_limit=10, meaning="angle of the crank, 0 along the ground")
coupler = robot.revolute("coupler", limit=pi, meaning="angle of the coupler")
rocker = robot.revolute("rocker", limit=pi, meaning="angle of the rocker")
torque = robot.input("torque", 3, "N m", meaning="on the crank")
mass = robot.parameter("mass", 0.3, "kg", tolerance=0.3, meaning="of each bar")

a, b, c, ground = 0.2, 0.5, 0.4, 0.5  # m: crank, coupler, rocker, distance of the bearings
pin = (a * cos(crank), a * sin(crank))
tip = (pin[0] + b * cos(coupler), pin[1] + b * sin(coupler))
end = (ground + c * cos(rocker), c * sin(rocker))
robot.loop(tip, end, dependent={coupler: 0.9, rocker: 1.6})
robot.body(mass, 0.002, (pin[0] / 2, pin[1] / 2), crank)
robot.body(mass, 0.002, ((pin[0] + tip[0]) / 2, (pin[1] + tip[1]) / 2), coupler)
robot.body(mass, 0.002, ((ground + end[0]) / 2, end[1] / 2), rocker)
robot.apply(crank, torque)
robot.draw(line=[(0, 0), pin, tip, (ground, 0)])

robot.task(
    state_cost=(pi * sin(crank / 2)) ** 2 + 0.1 * crank.rate**2,
    action_cost=Quadratic(0.1),
    start=dict(crank=(pi, 0.05)),
    horizon=3,
    weight_at_horizon=0.65,
    control_rate=100,
)
