"""Two driven wheels, whose speeds their own controllers hold: it parks, and cannot move sideways."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("diff_drive", "Two wheels whose speeds are the inputs, to be parked")

x = robot.prismatic("x", limit=3, meaning="ahead of the place")
y = robot.prismatic("y", limit=3, meaning="to its left")
yaw = robot.revolute("yaw", continuous=True, meaning="heading")
radius = robot.parameter("radius", 0.1, "m", tolerance=0.1, meaning="of the wheels")
track = robot.parameter("track", 0.4, "m", tolerance=0.1, meaning="between the wheels")
left = robot.input("left", 10, "rad/s", meaning="speed of the left wheel")
right = robot.input("right", 10, "rad/s", meaning="speed of the right wheel")

speed = radius * (left + right) / 2
robot.flow(x, speed * cos(yaw))
robot.flow(y, speed * sin(yaw))
robot.flow(yaw, radius * (right - left) / track)
robot.draw(line=[(x, y), (x + 0.3 * cos(yaw), y + 0.3 * sin(yaw))])

robot.task(
    state_cost=x**2 + 4 * y**2 + 1 - cos(yaw),
    action_cost=LogCos(5e-4),
    start=dict(x=(-2, 0.2), y=(1, 0.3), yaw=(0, 1)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=20,
)
