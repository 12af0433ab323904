"""A cube that a reaction wheel raises from its face onto its edge: it begins beside the wall of its own face."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("cube_edge", "A cube on its edge, moved by a wheel")

lean = robot.revolute("lean", limit=0.785, rate_limit=10, meaning="of the cube; at the limit it lies on a face")
wheel = robot.revolute("wheel", continuous=True, rate_limit=600, meaning="angle of the wheel to the cube")

mass = robot.parameter("mass", 0.9, "kg", tolerance=0.2, meaning="of the cube and the wheel")
height = robot.parameter("height", 0.106, "m", tolerance=0.1, meaning="edge to the centre of mass")
inertia = robot.parameter("inertia", 2e-3, "kg m^2", tolerance=0.2, meaning="of the cube about its centre")
wheel_inertia = robot.parameter("wheel_inertia", 6e-4, "kg m^2", tolerance=0.2, meaning="about its axle")
torque = robot.input("torque", 0.8, "N m", meaning="of the cube on the wheel")

robot.body(mass, inertia, (height * sin(lean), height * cos(lean)), lean)
robot.kinetic_energy(wheel_inertia * (lean.rate + wheel.rate) ** 2 / 2)
robot.apply(wheel, torque)
robot.damp(wheel, 2e-5)
robot.draw(line=[(0, 0), (height * sin(lean), height * cos(lean))])
robot.ignore(wheel)  # its rate counts, its angle does not
robot.task(
    state_cost=20 * lean**2 + 0.2 * lean.rate**2 + 1e-5 * wheel.rate**2,
    action_cost=LogCos(1.0),
    start=dict(lean=(0.7, 0.02)),
    horizon=4,
    weight_at_horizon=0.6,
    control_rate=200,
)
