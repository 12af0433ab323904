"""A planar quadrotor with a hanging load: eight states, two inputs, to be brought to hover from half a metre away."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("quadrotor_load", "A quadrotor in a vertical plane that carries a load on a rod")

across = robot.prismatic("across", limit=2, rate_limit=5, meaning="horizontal position of the body")
height = robot.prismatic("height", limit=2, rate_limit=5, meaning="height above the place to hover at")
pitch = robot.revolute("pitch", limit=1.2, rate_limit=10, meaning="angle of the body, 0 level, lowers the right")
swing = robot.revolute("swing", limit=1.2, rate_limit=10, meaning="angle of the rod, 0 hanging")

mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="of the body and its rotors")
inertia = robot.parameter("inertia", 4e-3, "kg m^2", tolerance=0.3, meaning="about the centre of mass")
arm = robot.parameter("arm", 0.25, "m", tolerance=0.1, meaning="centre to rotor")
load = robot.parameter("load", 0.1, "kg", tolerance=0.5, meaning="mass of the load")
rod = robot.parameter("rod", 0.4, "m", tolerance=0.3, meaning="length of the rod")
drag = robot.parameter("drag", 0.1, "N s/m", tolerance=0.5, meaning="of the air on the body, along either axis")
trim = robot.parameter("trim", 0.6 * 9.81 / 2, "N", fixed=True)

right = robot.input("right", 2.8, "N", meaning="thrust of the right rotor above its trim")
left = robot.input("left", 2.8, "N", meaning="thrust of the left rotor above its trim")

robot.body(mass, inertia, (across, height), pitch)
robot.point_mass(load, (across + rod * sin(swing), height - rod * cos(swing)))

thrust = 2 * trim + right + left
robot.apply(across, thrust * sin(pitch))
robot.apply(height, thrust * cos(pitch))
robot.apply(pitch, arm * (left - right))
robot.damp(across, drag)
robot.damp(height, drag)

ends = [(across + side * arm * cos(pitch), height - side * arm * sin(pitch)) for side in (1, -1)]
robot.draw(line=ends)
robot.draw(line=[(across, height), (across + rod * sin(swing), height - rod * cos(swing))])

robot.task(
    state_cost=across**2
    + height**2
    + 0.5 * (pi * sin(pitch / 2)) ** 2
    + 0.5 * (pi * sin(swing / 2)) ** 2
    + 0.1 * across.rate**2
    + 0.1 * height.rate**2
    + 0.02 * pitch.rate**2
    + 0.02 * swing.rate**2,
    action_cost=LogCos([0.2, 0.2]),
    start=dict(across=(0, 0.5), height=(0, 0.5), pitch=(0, 0.2), swing=(0, 0.2)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
