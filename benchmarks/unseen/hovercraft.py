"""A hovercraft on a plane: thrust along its nose and a torque; it cannot push sideways."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("hovercraft", "A hovercraft that is to park")

x = robot.prismatic("x", limit=3, rate_limit=3, meaning="along the berth")
y = robot.prismatic("y", limit=3, rate_limit=3, meaning="across the berth")
yaw = robot.revolute("yaw", continuous=True, rate_limit=5, meaning="heading")

mass = robot.parameter("mass", 2, "kg", tolerance=0.2, meaning="mass")
inertia = robot.parameter("inertia", 0.05, "kg m^2", tolerance=0.2, meaning="about its centre")
drag = robot.parameter("drag", 0.6, "N s/m", tolerance=0.5, meaning="of the air cushion")

thrust = robot.input("thrust", 4, "N", meaning="along the nose, to both sides")
turn = robot.input("turn", 0.3, "N m", meaning="of the rudders")

robot.body(mass, inertia, (x, y), yaw)
robot.apply(y, mass * 9.81 + thrust * sin(yaw))
robot.apply(x, thrust * cos(yaw))
robot.apply(yaw, turn)
robot.damp(x, drag)
robot.damp(y, drag)
robot.draw(line=[(x - 0.2 * cos(yaw), y - 0.2 * sin(yaw)), (x + 0.2 * cos(yaw), y + 0.2 * sin(yaw))])

robot.task(
    state_cost=x**2 + y**2 + 1 - cos(yaw) + 0.2 * x.rate**2 + 0.2 * y.rate**2 + 0.1 * yaw.rate**2,
    action_cost=LogCos([0.01, 0.1]),
    start=dict(x=(0, 0.7), y=(1, 0.3), yaw=(0, 0.5)),
    horizon=10,
    weight_at_horizon=0.5,
    control_rate=50,
)
