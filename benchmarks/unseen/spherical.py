"""A rod on a universal joint with two weak motors, from hanging to upright."""

from sympy import cos, pi

from modelgen import LogCos, Robot

robot = Robot("spherical", "A rod that leans any way, on two motors too weak to lift it")

lean = robot.revolute("lean", continuous=True, rate_limit=12, meaning="about x, 0 upright")
tilt = robot.revolute("tilt", limit=1.4, rate_limit=12, meaning="about the turned y, 0 upright")
mass = robot.parameter("mass", 0.4, "kg", tolerance=0.3, meaning="of the rod")
length = robot.parameter("length", 0.6, "m", tolerance=0.1, meaning="of the rod")
roll = robot.input("roll", 0.5, "N m", meaning="torque about x")
pitch = robot.input("pitch", 0.5, "N m", meaning="torque about the turned y")

inertia = mass * length**2 / 12
cross = robot.link("cross", lean, axis="x", mass=0.02, inertia=1e-5)
robot.link("rod", tilt, on=cross, axis="y", mass=mass, centre=(0, 0, length / 2), inertia=(inertia, inertia, 0))
robot.apply(lean, roll)
robot.apply(tilt, pitch)
robot.damp(lean, 0.005)
robot.damp(tilt, 0.005)

robot.task(
    state_cost=pi**2 * (1 - cos(lean) * cos(tilt)) / 2 + 0.3 * tilt**2 + 0.05 * lean.rate**2 + 0.05 * tilt.rate**2,
    action_cost=LogCos([0.5, 0.5]),
    start=dict(lean=(pi, 0.05), tilt=(0, 0.05)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=125,
)
