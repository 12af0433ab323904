"""A quadrotor in a vertical plane with a rod balanced on its top, caught from a lean: eight states, two inputs."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("rod_on_quadrotor", "A planar quadrotor that balances a rod")

x = robot.prismatic("x", limit=3, rate_limit=5, meaning="sideways")
z = robot.prismatic("z", limit=3, rate_limit=5, meaning="up")
roll = robot.revolute("roll", limit=1.0, rate_limit=10, meaning="of the body, 0 level")
lean = robot.revolute("lean", limit=0.8, rate_limit=6, meaning="of the rod, 0 upright")

mass = robot.parameter("mass", 0.5, "kg", tolerance=0.15, meaning="of the quadrotor")
inertia = robot.parameter("inertia", 0.004, "kg m^2", tolerance=0.2, meaning="of the quadrotor")
rod_mass = robot.parameter("rod_mass", 0.05, "kg", tolerance=0.3, meaning="of the rod")
rod_length = robot.parameter("rod_length", 1.0, "m", tolerance=0.1, meaning="of the rod")
hover = robot.parameter("hover", 0.55 * 9.81, "N", fixed=True)

thrust = robot.input("thrust", 4, "N", meaning="beyond what hovers")
torque = robot.input("torque", 0.4, "N m", meaning="about the body")

robot.body(mass, inertia, (x, z), roll)
robot.body(
    rod_mass, rod_mass * rod_length**2 / 12, (x + rod_length / 2 * sin(lean), z + rod_length / 2 * cos(lean)), lean
)
robot.apply(x, (hover + thrust) * sin(roll))
robot.apply(z, (hover + thrust) * cos(roll))
robot.apply(roll, torque)
robot.draw(line=[(x - 0.2 * cos(roll), z + 0.2 * sin(roll)), (x + 0.2 * cos(roll), z - 0.2 * sin(roll))])
robot.draw(line=[(x, z), (x + rod_length * sin(lean), z + rod_length * cos(lean))])

robot.task(
    state_cost=x**2
    + z**2
    + roll**2
    + 5 * lean**2
    + 0.2 * (x.rate**2 + z.rate**2)
    + 0.05 * roll.rate**2
    + 0.2 * lean.rate**2,
    action_cost=LogCos([0.02, 1.0]),
    start=dict(x=(0, 0.3), z=(0, 0.3), roll=(0, 0.1), lean=(0, 0.06)),
    horizon=5,
    weight_at_horizon=0.6,
    control_rate=125,
)
