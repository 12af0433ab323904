"""The head of a disk drive: a seek of a third of the platter in some milliseconds, at ten kilohertz."""

from modelgen import LogCos, Robot

robot = Robot("disk_head", "The arm of a disk drive on its voice coil")

arm = robot.revolute("arm", limit=0.5, rate_limit=100, meaning="angle of the arm from the track")
inertia = robot.parameter("inertia", 5e-6, "kg m^2", tolerance=0.2, meaning="of arm and coil")
damping = robot.parameter("damping", 1e-5, "N m s", tolerance=0.5, meaning="of the bearing")
torque = robot.input("torque", 0.05, "N m", meaning="of the coil")

robot.kinetic_energy(inertia * arm.rate**2 / 2)
robot.apply(arm, torque)
robot.damp(arm, damping)
robot.task(
    state_cost=1e4 * arm**2 + 1e-2 * arm.rate**2,
    action_cost=LogCos(1e4),
    start=dict(arm=(0.3, 0.05)),
    horizon=0.05,
    weight_at_horizon=0.5,
    control_rate=10000,
)
