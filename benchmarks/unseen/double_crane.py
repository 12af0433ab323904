"""A trolley with a hook and a load below it: two pendulums that hang."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("double_crane", "A trolley with a hook and a load below it")

trolley = robot.prismatic("trolley", limit=1, rate_limit=2, meaning="position of the trolley")
hook = robot.revolute("hook", limit=1.2, rate_limit=6, meaning="angle of the rope from hanging")
load = robot.revolute("load", limit=1.2, rate_limit=6, meaning="angle of the sling from hanging")

trolley_mass = robot.parameter("trolley_mass", 5, "kg", tolerance=0.2, meaning="mass of the trolley")
hook_mass = robot.parameter("hook_mass", 1, "kg", tolerance=0.2, meaning="mass of the hook")
load_mass = robot.parameter("load_mass", 2, "kg", tolerance=0.3, meaning="mass of the load")

drive = robot.input("drive", 20, "N", meaning="on the trolley")

at_hook = (trolley + sin(hook), -cos(hook))
at_load = (at_hook[0] + 0.4 * sin(load), at_hook[1] - 0.4 * cos(load))
robot.point_mass(trolley_mass, (trolley, 0))
robot.point_mass(hook_mass, at_hook)
robot.point_mass(load_mass, at_load)
robot.apply(trolley, drive)
robot.damp(trolley, 2)
robot.damp(hook, 0.05)
robot.damp(load, 0.05)
robot.draw(line=[(trolley, 0), at_hook, at_load])

robot.task(
    state_cost=5 * trolley**2 + 5 * hook**2 + 5 * load**2 + trolley.rate**2 + hook.rate**2 + load.rate**2,
    action_cost=LogCos(1e-3),
    start=dict(trolley=(0.6, 0.1), hook=(0, 0.1), load=(0, 0.1)),
    horizon=10,
    weight_at_horizon=0.5,
    control_rate=50,
)
