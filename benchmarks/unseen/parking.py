"""A small car with wheels that hardly slip sideways: to be parked from beside its place, by going to and fro."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("parking", "A small car that is to be parked from beside its place")

x = robot.prismatic("x", limit=1, rate_limit=1, meaning="along the place")
y = robot.prismatic("y", limit=0.6, rate_limit=1, meaning="across the place")
yaw = robot.revolute("yaw", limit=1.5, rate_limit=4, meaning="heading, 0 along the place")

mass = robot.parameter("mass", 2, "kg", tolerance=0.2, meaning="of the car")
inertia = robot.parameter("inertia", 0.02, "kg m^2", tolerance=0.2, meaning="about the vertical")
grip = robot.parameter("grip", 40, "N s/m", tolerance=0.3, meaning="of the wheels, sideways")
push = robot.input("push", 4, "N", meaning="along the car")
turn = robot.input("turn", 0.2, "N m", meaning="of the wheels' difference")

robot.kinetic_energy((mass * (x.rate**2 + y.rate**2) + inertia * yaw.rate**2) / 2)
sideways = -x.rate * sin(yaw) + y.rate * cos(yaw)
robot.apply(x, push * cos(yaw) + grip * sideways * sin(yaw))
robot.apply(y, push * sin(yaw) - grip * sideways * cos(yaw))
robot.apply(yaw, turn)
robot.damp(x, 2)
robot.damp(y, 2)
robot.damp(yaw, 0.05)
robot.draw(line=[(x - 0.15 * cos(yaw), y - 0.15 * sin(yaw)), (x + 0.15 * cos(yaw), y + 0.15 * sin(yaw))])

robot.task(
    state_cost=4 * x**2 + 10 * y**2 + yaw**2 + 0.1 * (x.rate**2 + y.rate**2) + 0.02 * yaw.rate**2,
    action_cost=LogCos([0.002, 10]),
    start=dict(x=(0, 0.2), y=(0.3, 0.1), yaw=(0, 0.2)),
    horizon=8,
    weight_at_horizon=0.6,
    control_rate=50,
)
