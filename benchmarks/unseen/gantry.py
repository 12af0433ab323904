"""A gantry crane at a slow control rate: a trolley carries a hanging load to its place, without swing."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("gantry", "A trolley with a hanging load that is to arrive at rest")

trolley = robot.prismatic("trolley", limit=3, rate_limit=2.5, meaning="position of the trolley, 0 at its aim")
swing = robot.revolute("swing", limit=1.2, rate_limit=4, meaning="angle of the rope, 0 hanging")

trolley_mass = robot.parameter("trolley_mass", 5, "kg", tolerance=0.3, meaning="mass of the trolley")
load = robot.parameter("load", 10, "kg", tolerance=0.5, meaning="mass of the load")
rope = robot.parameter("rope", 2, "m", tolerance=0.3, meaning="length of the rope")
friction = robot.parameter("friction", 4, "N s/m", tolerance=0.5, meaning="of the trolley")

force = robot.input("force", 40, "N", meaning="on the trolley")

end = (trolley + rope * sin(swing), -rope * cos(swing))
robot.point_mass(trolley_mass, (trolley, 0))
robot.point_mass(load, end)
robot.apply(trolley, force)
robot.damp(trolley, friction)
robot.draw(line=[(-3, 0), (3, 0)])
robot.draw(box=((trolley, 0), (0.4, 0.2)))
robot.draw(line=[(trolley, 0), end])

robot.task(
    state_cost=2 * trolley**2 + 4 * swing**2 + trolley.rate**2 + swing.rate**2,
    action_cost=LogCos(0.005),
    start=dict(trolley=(-1.5, 0.4), swing=(0, 0.1)),
    horizon=10,
    weight_at_horizon=0.7,
    control_rate=40,
)
