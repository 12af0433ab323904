"""A bicycle at four metres a second that a motor on the handlebar keeps upright and straight."""

from sympy import cos, sin, tan

from modelgen import LogCos, Robot

robot = Robot("bicycle", "A bicycle at constant speed, steered by a torque on the handlebar")

lean = robot.revolute("lean", limit=0.7, rate_limit=4, meaning="of the frame, 0 upright")
steer = robot.revolute("steer", limit=0.8, rate_limit=8, meaning="of the handlebar")

mass = robot.parameter("mass", 30.0, "kg", tolerance=0.2, meaning="of frame and load")
height = robot.parameter("height", 0.8, "m", tolerance=0.1, meaning="of its centre")
speed = robot.parameter("speed", 4.0, "m/s", bounds=(3, 5), meaning="of the ride")
wheelbase = robot.parameter("wheelbase", 1.0, "m", tolerance=0.05, meaning="between the wheels")
bar = robot.parameter("bar", 0.15, "kg m^2", tolerance=0.2, meaning="inertia of fork and handlebar")
trail = robot.parameter("trail", 3.0, "N m/rad", tolerance=0.3, meaning="torque that turns the fork into a lean")

torque = robot.input("torque", 6.0, "N m", meaning="on the handlebar")

robot.body(mass, mass * height**2 / 12, (height * sin(lean), height * cos(lean)), lean)
robot.kinetic_energy(bar * steer.rate**2 / 2)
robot.apply(lean, -mass * height * speed**2 / wheelbase * tan(steer) * cos(lean))
robot.apply(steer, torque + trail * sin(lean) - trail * steer)
robot.damp(steer, robot.parameter("damper", 0.8, "N m s", tolerance=0.5, meaning="of the handlebar"))
robot.draw(line=[(0, 0), (height * sin(lean), height * cos(lean))])

robot.task(
    state_cost=15 * lean**2 + 2 * steer**2 + lean.rate**2 + 0.1 * steer.rate**2,
    action_cost=LogCos(0.02),
    start=dict(lean=(0.2, 0.05), steer=(0, 0.05)),
    horizon=5,
    weight_at_horizon=0.5,
    control_rate=100,
)
