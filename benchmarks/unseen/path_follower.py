"""Car that follows a circle of 10 m at 2 m/s, of the verified controllers by Li and others (arXiv 2506.01356)."""

from sympy import cos, sin

from modelgen import Quadratic, Robot

robot = Robot("path_follower", "A car that follows a circle of 10 m at 2 m/s")

away = robot.prismatic("away", limit=10, meaning="from the path")
yaw = robot.revolute("yaw", continuous=True, meaning="from the path's direction")
steer = robot.input("steer", 0.5, "1", meaning="tangent of the steering angle")

# The published equations, in which the speed (2.0 m/s) stands for the distance from the path too.
robot.flow(away, 2.0 * sin(yaw))
robot.flow(yaw, 2.0 * steer - 1.0 * cos(yaw) / (5.0 - 1.0 * sin(yaw)))
robot.draw(line=[(0, away), (0.6 * cos(yaw), away + 0.6 * sin(yaw))])

robot.task(
    state_cost=0.1 * away**2 + (2 * sin(yaw / 2)) ** 2,
    action_cost=Quadratic(3),
    start=dict(away=(0, 2), yaw=(0, 1)),
    horizon=10,
    weight_at_horizon=0.5,
    control_rate=20,
)
