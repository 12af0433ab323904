"""A barge of 3 000 tonnes on two tunnel thrusters and a screw, to be held at its berth."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("barge", "A barge on a screw and two thrusters")

north = robot.prismatic("north", limit=100, rate_limit=2, meaning="from the berth")
east = robot.prismatic("east", limit=100, rate_limit=2, meaning="from the berth")
yaw = robot.revolute("yaw", limit=1.2, rate_limit=0.05, meaning="heading from that at the berth")

mass = robot.parameter("mass", 3e6, "kg", tolerance=0.2, meaning="of the barge and the water that it moves")
inertia = robot.parameter("inertia", 8e8, "kg m^2", tolerance=0.2, meaning="of both about the vertical")
drag = robot.parameter("drag", 5e4, "N s/m", tolerance=0.3, meaning="of the hull")

screw = robot.input("screw", 2e5, "N", meaning="along the hull")
bow = robot.input("bow", 6e4, "N", meaning="across the hull, 30 m before the middle")
stern = robot.input("stern", 6e4, "N", meaning="across the hull, 30 m behind the middle")

robot.kinetic_energy((mass * (north.rate**2 + east.rate**2) + inertia * yaw.rate**2) / 2)
robot.apply(north, screw * cos(yaw) - (bow + stern) * sin(yaw))
robot.apply(east, screw * sin(yaw) + (bow + stern) * cos(yaw))
robot.apply(yaw, 30.0 * (bow - stern))
robot.damp(north, drag)
robot.damp(east, drag)
robot.damp(yaw, 3e7)
robot.task(
    state_cost=0.001 * (north**2 + east**2) + 2 * yaw**2 + north.rate**2 + east.rate**2 + 500 * yaw.rate**2,
    action_cost=LogCos([1e-16, 1e-15, 1e-15]),
    start=dict(north=(-30, 10), east=(20, 10), yaw=(0.3, 0.2)),
    horizon=400,
    weight_at_horizon=0.5,
    control_rate=5,
)
