"""A crane that moves its trolley and winds its rope, with a swinging load."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("hoist", "A crane with a trolley and a winch")

trolley = robot.prismatic("trolley", limit=4, rate_limit=3, meaning="position of the trolley")
rope = robot.prismatic("rope", limit=2, rate_limit=2, meaning="length of the rope beyond 4 m")
sway = robot.revolute("sway", limit=1.2, rate_limit=3, meaning="angle of the rope from hanging")

trolley_mass = robot.parameter("trolley_mass", 200, "kg", tolerance=0.1, meaning="mass of the trolley")
load = robot.parameter("load", 100, "kg", tolerance=0.3, meaning="mass of the load")
weight = robot.parameter("weight", 100 * 9.81, "N", fixed=True)

drive = robot.input("drive", 400, "N", meaning="on the trolley")
winch = robot.input("winch", 300, "N", meaning="on the rope, beyond the nominal weight of the load")

length = 4 + rope
robot.point_mass(trolley_mass, (trolley, 0))
robot.point_mass(load, (trolley + length * sin(sway), -length * cos(sway)))
robot.apply(trolley, drive)
robot.apply(rope, winch - weight)
robot.damp(trolley, 40)
robot.damp(sway, 20)
robot.draw(line=[(trolley, 0), (trolley + length * sin(sway), -length * cos(sway))])

robot.task(
    state_cost=trolley**2 + rope**2 + 10 * sway**2 + trolley.rate**2 + rope.rate**2 + 5 * sway.rate**2,
    action_cost=LogCos([1e-5, 1e-5]),
    start=dict(trolley=(2, 0.5), rope=(1, 0.3)),
    horizon=15,
    weight_at_horizon=0.5,
    control_rate=25,
)
