"""The real double pendulum of RealAIGym (design C.1): both motors, friction, the nine combinations that motion shows.

Numbers: model_1.0 of design C.1 in github.com/dfki-ric-underactuated-lab/double_pendulum. Single masses cannot be told
apart by motion, so the parameters are the base parameters, written such that all values within the bounds are those of
some two rigid bodies. There the first angle is counted from hanging and friction
is cf atan(100 rate), whose largest torque is cf pi/2; here it is a torque with tanh(rate / 0.1).
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

UPPER_LENGTH, LOWER_LENGTH = 0.2, 0.3  # m
GEAR = 6


def double_pendulum(name: str, title: str, shoulder_limit: float, elbow_limit: float) -> Robot:
    """The robot whose motors may do so much, in N m."""
    robot = Robot(name, title)

    shoulder = robot.revolute("shoulder", continuous=True, rate_limit=20, meaning="angle of the upper link, 0 upright")
    elbow = robot.revolute("elbow", continuous=True, rate_limit=30, meaning="angle between the links, 0 stretched")

    upper_own = robot.parameter(
        "upper_own", 0.0368, "kg m^2", bounds=(0.005, 0.08), meaning="I1 + m2 l1^2 less (l1 m2 r2)^2 / I2"
    )
    lower_inertia = robot.parameter(
        "lower_inertia", 0.0509, "kg m^2", bounds=(0.02, 0.1), meaning="I2, about the elbow"
    )
    lower_moment = robot.parameter("lower_moment", 0.16, "kg m", bounds=(0.05, 0.25), meaning="m2 r2")
    upper_moment = robot.parameter("upper_moment", 0.23, "kg m", bounds=(0.08, 0.4), meaning="m1 r1 + m2 l1")
    rotor = robot.parameter("rotor", 6.29e-5, "kg m^2", bounds=(1e-6, 4e-4), meaning="inertia of a motor")
    shoulder_damping = robot.parameter("shoulder_damping", 0.005, "N m s", bounds=(0.0, 0.1))
    elbow_damping = robot.parameter("elbow_damping", 0.005, "N m s", bounds=(0.0, 0.1))
    shoulder_friction = robot.parameter("shoulder_friction", 0.25, "N m", bounds=(0.0, 0.6))
    elbow_friction = robot.parameter("elbow_friction", 0.15, "N m", bounds=(0.0, 0.4))

    shoulder_torque = robot.input("shoulder_torque", shoulder_limit, "N m")
    elbow_torque = robot.input("elbow_torque", elbow_limit, "N m")

    upper_inertia = upper_own + (UPPER_LENGTH * lower_moment) ** 2 / lower_inertia  # I1 + m2 l1^2: never less than this
    both = shoulder.rate + elbow.rate
    robot.kinetic_energy(
        upper_inertia * shoulder.rate**2 / 2
        + lower_inertia * both**2 / 2
        + UPPER_LENGTH * lower_moment * cos(elbow) * shoulder.rate * both
        + rotor * (shoulder.rate**2 + GEAR**2 * shoulder.rate**2 + GEAR**2 * elbow.rate**2) / 2
        - rotor * GEAR * shoulder.rate * elbow.rate
    )
    gravity = robot.parameter("gravity", 9.81, "m/s^2", fixed=True)
    robot.potential_energy(gravity * (upper_moment * cos(shoulder) + lower_moment * cos(shoulder + elbow)))
    robot.damp(shoulder, shoulder_damping)
    robot.damp(elbow, elbow_damping)
    robot.dry_friction(shoulder, shoulder_friction, smoothing=0.1)
    robot.dry_friction(elbow, elbow_friction, smoothing=0.1)
    robot.apply(shoulder, shoulder_torque)
    robot.apply(elbow, elbow_torque)

    elbow_place = (UPPER_LENGTH * sin(shoulder), UPPER_LENGTH * cos(shoulder))
    tip = (
        elbow_place[0] + LOWER_LENGTH * sin(shoulder + elbow),
        elbow_place[1] + LOWER_LENGTH * cos(shoulder + elbow),
    )
    robot.draw(line=[(0, 0), elbow_place, tip])

    robot.task(
        state_cost=(pi * sin(shoulder / 2)) ** 2
        + (pi * sin(elbow / 2)) ** 2
        + 0.02 * shoulder.rate**2
        + 0.02 * elbow.rate**2,
        action_cost=LogCos(0.02),
        start=dict(shoulder=(pi, 0.03), elbow=(0, 0.03)),
        horizon=5,
        weight_at_horizon=0.8,
        control_rate=250,
    )
    return robot


robot = double_pendulum(
    "realaigym_real", "The contest's double pendulum as it stands in the laboratory", shoulder_limit=6, elbow_limit=6
)
