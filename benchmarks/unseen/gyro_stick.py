"""A stick that a tilting flywheel keeps upright: a control moment gyroscope on an inverted pendulum."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("gyro_stick", "A stick kept upright by a flywheel whose axle a motor tilts")

lean = robot.revolute("lean", limit=0.8, rate_limit=5, meaning="of the stick, 0 upright")
tilt = robot.revolute("tilt", limit=1.4, rate_limit=15, meaning="of the flywheel's axle")

mass = robot.parameter("mass", 2.0, "kg", tolerance=0.2, meaning="of the stick")
height = robot.parameter("height", 0.3, "m", tolerance=0.1, meaning="of its centre")
inertia = robot.parameter("inertia", 2e-3, "kg m^2", tolerance=0.2, meaning="of the cage about its axle")
spin = robot.parameter("spin", 1.2, "kg m^2/s", tolerance=0.2, meaning="angular momentum of the flywheel")

motor = robot.input("motor", 1.5, "N m", meaning="of the cage's motor")

robot.body(mass, mass * height**2 / 3, (height * sin(lean), height * cos(lean)), lean)
robot.kinetic_energy(inertia * tilt.rate**2 / 2)
robot.apply(lean, spin * cos(tilt) * tilt.rate)
robot.apply(tilt, -spin * cos(tilt) * lean.rate + motor)
robot.damp(tilt, robot.parameter("friction", 0.02, "N m s", tolerance=0.5, meaning="of the cage"))
robot.draw(line=[(0, 0), (2 * height * sin(lean), 2 * height * cos(lean))])

robot.task(
    state_cost=20 * lean**2 + tilt**2 + 0.5 * lean.rate**2 + 0.02 * tilt.rate**2,
    action_cost=LogCos(0.1),
    start=dict(lean=(0.15, 0.05)),
    horizon=4,
    weight_at_horizon=0.5,
    control_rate=200,
)
