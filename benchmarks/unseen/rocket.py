"""A rocket in a vertical plane on a gimballed engine: caught from a drift and a lean above its pad."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("rocket", "A rocket in a vertical plane on a gimballed engine")

x = robot.prismatic("x", limit=6, rate_limit=6, meaning="sideways from the pad")
z = robot.prismatic("z", limit=6, rate_limit=6, meaning="above the aim")
tilt = robot.revolute("tilt", limit=1.2, rate_limit=4, meaning="lean of the rocket")

mass = robot.parameter("mass", 50, "kg", tolerance=0.2, meaning="mass")
length = robot.parameter("length", 3, "m", tolerance=0.1, meaning="length, a uniform rod")
weight = robot.parameter("weight", 50 * 9.81, "N", fixed=True)

thrust = robot.input("thrust", 300, "N", meaning="along the rocket, beyond its nominal weight")
side = robot.input("side", 80, "N", meaning="across the rocket, at its foot")

robot.body(mass, mass * length**2 / 12, (x, z), tilt)
robot.apply(x, (weight + thrust) * sin(tilt) + side * cos(tilt))
robot.apply(z, (weight + thrust) * cos(tilt) - side * sin(tilt))
robot.apply(tilt, -side * length / 2)
half = (length / 2 * sin(tilt), length / 2 * cos(tilt))
robot.draw(line=[(x - half[0], z - half[1]), (x + half[0], z + half[1])])

robot.task(
    state_cost=x**2 + z**2 + 2 * tilt**2 + 0.5 * x.rate**2 + 0.5 * z.rate**2 + 0.5 * tilt.rate**2,
    action_cost=LogCos([1e-5, 1e-4]),
    start=dict(x=(0, 1.5), z=(2, 0.5), tilt=(0, 0.2)),
    horizon=8,
    weight_at_horizon=0.6,
    control_rate=50,
)
