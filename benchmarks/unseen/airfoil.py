"""A wing section that flutters: plunge and pitch above the flutter speed, calmed by a flap."""

from sympy import cos

from modelgen import LogCos, Robot

robot = Robot("airfoil", "A wing section above its flutter speed, calmed by a flap")

plunge = robot.prismatic("plunge", limit=0.1, rate_limit=2, meaning="of the elastic axis, downwards")
pitch = robot.revolute("pitch", limit=0.6, rate_limit=12, meaning="of the section")

mass = robot.parameter("mass", 12.4, "kg", tolerance=0.1, meaning="of section and carriage")
inertia = robot.parameter("inertia", 0.065, "kg m^2", tolerance=0.1, meaning="about the elastic axis")
static = robot.parameter("static", 0.25, "kg m", tolerance=0.2, meaning="mass times distance of the centre")
stiffness = robot.parameter("stiffness", 2844.0, "N/m", tolerance=0.1, meaning="of the plunge")
twist = robot.parameter("twist", 2.8, "N m/rad", tolerance=0.2, meaning="of the pitch spring")
hard = robot.parameter("hard", 62.0, "N m/rad^3", tolerance=0.3, meaning="hardening of the pitch spring")
lift = robot.parameter("lift", 250.0, "N/rad", tolerance=0.2, meaning="of the section by its angle")
arm = robot.parameter("arm", 0.03, "m", tolerance=0.2, meaning="from lift to axis")
wind = robot.parameter("wind", 18.0, "m/s", bounds=(16, 20), meaning="speed of the air")

flap = robot.input("flap", 0.35, "rad", meaning="angle of the flap")

robot.kinetic_energy(
    mass * plunge.rate**2 / 2 + inertia * pitch.rate**2 / 2 + static * cos(pitch) * plunge.rate * pitch.rate
)
robot.potential_energy(stiffness * plunge**2 / 2 + twist * pitch**2 / 2 + hard * pitch**4 / 4)
angle = pitch + plunge.rate / wind
robot.apply(plunge, -lift * (angle + 0.5 * flap))
robot.apply(pitch, lift * arm * angle - lift * 0.02 * flap)
robot.damp(plunge, robot.parameter("losses", 27.0, "N s/m", tolerance=0.3, meaning="of the carriage"))
robot.damp(pitch, 0.18)

robot.task(
    state_cost=1000 * plunge**2 + 10 * pitch**2 + 2 * plunge.rate**2 + 0.05 * pitch.rate**2,
    action_cost=LogCos(1.0),
    start=dict(plunge=(0.02, 0.01), pitch=(0.1, 0.05)),
    horizon=3,
    weight_at_horizon=0.5,
    control_rate=200,
)
