"""A pendulum on the end of an arm of two links in a horizontal plane, swung up from hanging: six states, two inputs."""

from sympy import pi, sin

from modelgen import LogCos, Robot

robot = Robot("scara_pendulum", "A two-link arm that swings a pendulum up and balances it")

shoulder = robot.revolute("shoulder", limit=2.0, rate_limit=10, meaning="first joint of the arm")
elbow = robot.revolute("elbow", limit=2.0, rate_limit=15, meaning="second joint of the arm")
swing = robot.revolute(
    "swing", continuous=True, rate_limit=20, meaning="of the pendulum about the second link, 0 upright"
)

arm_mass = robot.parameter("arm_mass", 0.3, "kg", tolerance=0.2, meaning="of each link")
rod_mass = robot.parameter("rod_mass", 0.08, "kg", tolerance=0.2, meaning="of the pendulum")
rod_length = robot.parameter("rod_length", 0.3, "m", tolerance=0.1, meaning="of the pendulum")
first = robot.input("first", 1.5, "N m", meaning="torque of the shoulder")
second = robot.input("second", 0.8, "N m", meaning="torque of the elbow")

upper = robot.link("upper", shoulder, axis="z", mass=arm_mass, centre=(0.1, 0, 0), inertia=1e-3)
lower = robot.link("lower", elbow, on=upper, at=(0.2, 0, 0), axis="z", mass=arm_mass, centre=(0.1, 0, 0), inertia=1e-3)
robot.link(
    "rod", swing, on=lower, at=(0.2, 0, 0), axis="x", mass=rod_mass,
    centre=(0, 0, rod_length / 2), inertia=(rod_mass * rod_length**2 / 12, rod_mass * rod_length**2 / 12, 0),
)  # fmt: skip
robot.apply(shoulder, first)
robot.apply(elbow, second)
robot.damp(shoulder, 0.01)
robot.damp(elbow, 0.01)
robot.damp(swing, 5e-4)

robot.task(
    state_cost=shoulder**2 + elbow**2 + (pi * sin(swing / 2)) ** 2 + 0.01 * shoulder.rate**2
    + 0.01 * elbow.rate**2 + 0.01 * swing.rate**2,
    action_cost=LogCos([0.3, 0.3]),
    start=dict(swing=(pi, 0.03), shoulder=(0, 0.02), elbow=(0, 0.02)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=125,
)  # fmt: skip
