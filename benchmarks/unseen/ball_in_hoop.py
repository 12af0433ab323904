"""A ball that rolls inside a hoop which a motor turns: to be swung up to the top of the hoop and held there.

The ball runs between two rails, so that it stays on the hoop at the top too.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("ball_in_hoop", "A ball in a hoop that a motor turns")

ball = robot.revolute("ball", continuous=True, rate_limit=20, meaning="where the ball is on the hoop, 0 at the top")
hoop = robot.revolute("hoop", continuous=True, rate_limit=60, meaning="angle of the hoop")

mass = robot.parameter("mass", 0.05, "kg", tolerance=0.3, meaning="of the ball")
path = robot.parameter("path", 0.15, "m", tolerance=0.1, meaning="radius of the path of the ball's centre")
radius = robot.parameter("radius", 0.012, "m", tolerance=0.1, meaning="of the ball where it rolls")
inertia = robot.parameter("inertia", 4.5e-6, "kg m^2", tolerance=0.3, meaning="of the ball")
hoop_inertia = robot.parameter("hoop_inertia", 1e-3, "kg m^2", tolerance=0.3, meaning="of the hoop and its motor")
torque = robot.input("torque", 0.1, "N m", meaning="of the motor")

# It rolls without slipping on the inside of the hoop, at the radius path + radius.
spin = ((path + radius) * hoop.rate - path * ball.rate) / radius
robot.point_mass(mass, (path * sin(ball), path * cos(ball)))
robot.kinetic_energy((inertia * spin**2 + hoop_inertia * hoop.rate**2) / 2)
robot.apply(hoop, torque)
robot.damp(hoop, 1e-4)
robot.damp(ball, 2e-5)
robot.draw(circle=((0, 0), path + radius, hoop))
robot.draw(circle=((path * sin(ball), path * cos(ball)), radius))

robot.task(
    state_cost=(pi * sin(ball / 2)) ** 2 + 0.02 * ball.rate**2 + 1e-3 * hoop.rate**2,
    action_cost=LogCos(100),
    start=dict(ball=(pi, 0.05)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=100,
    free=["hoop"],
)
