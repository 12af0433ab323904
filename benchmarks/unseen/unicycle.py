"""Unicycle: a cart on two driven wheels that roll without slip, to be parked from beside its place."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("unicycle", "A cart on two wheels without slip that is to be parked from beside its place")

x = robot.prismatic("x", limit=1, meaning="along the place")
y = robot.prismatic("y", limit=0.6, meaning="across the place")
yaw = robot.revolute("yaw", limit=1.5, rate_limit=4, meaning="heading, 0 along the place")
speed = robot.speed("speed", limit=1, unit="m/s", meaning="along the cart")
robot.roll({x: speed * cos(yaw), y: speed * sin(yaw)})

mass = robot.parameter("mass", 2, "kg", tolerance=0.2, meaning="of the cart")
inertia = robot.parameter("inertia", 0.02, "kg m^2", tolerance=0.2, meaning="about the middle of the axle")
offset = robot.parameter("offset", 0.05, "m", tolerance=0.5, meaning="of the centre of mass before the axle")
push = robot.input("push", 4, "N", meaning="of both wheels together")
turn = robot.input("turn", 0.2, "N m", meaning="of the wheels' difference")

centre = (x + offset * cos(yaw), y + offset * sin(yaw), 0)
robot.gravity(0)
robot.point_mass(mass, centre)
robot.kinetic_energy(inertia * yaw.rate**2 / 2)
robot.apply(x, (push - 2 * speed) * cos(yaw))
robot.apply(y, (push - 2 * speed) * sin(yaw))
robot.apply(yaw, turn)
robot.damp(yaw, 0.05)
robot.draw(line=[(x - 0.15 * cos(yaw), y - 0.15 * sin(yaw)), (x + 0.15 * cos(yaw), y + 0.15 * sin(yaw))])

robot.task(
    state_cost=4 * x**2 + 10 * y**2 + yaw**2 + 0.1 * speed**2 + 0.02 * yaw.rate**2,
    action_cost=LogCos([0.002, 10]),
    start=dict(x=(0, 0.2), y=(0.3, 0.1), yaw=(0, 0.2)),
    horizon=8,
    weight_at_horizon=0.6,
    control_rate=50,
)
