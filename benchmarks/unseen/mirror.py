"""A mirror on a galvanometer: two kilohertz, steps in ten milliseconds."""

from modelgen import LogCos, Robot

robot = Robot("mirror", "A mirror on a galvanometer")
angle = robot.revolute("angle", limit=0.4, rate_limit=200, meaning="of the mirror")
inertia = robot.parameter("inertia", 2e-8, "kg m^2", tolerance=0.3, meaning="of mirror and rotor")
spring = robot.parameter("spring", 5e-4, "N m/rad", tolerance=0.3, meaning="of the flexure")
torque = robot.input("torque", 5e-4, "N m", meaning="of the coil")
robot.kinetic_energy(inertia * angle.rate**2 / 2)
robot.apply(angle, torque - spring * angle)
robot.damp(angle, 1e-7)
robot.task(
    state_cost=100 * angle**2 + 1e-5 * angle.rate**2,
    action_cost=LogCos(1e7),
    start=dict(angle=(0, 0.15)),
    horizon=0.1,
    weight_at_horizon=0.5,
    control_rate=2000,
)
