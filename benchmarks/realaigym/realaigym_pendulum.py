"""The real pendulum of RealAIGym: a weight on a rod, with friction, and a motor that may not use its whole torque.

Numbers: hardware/testbench_description.md in github.com/dfki-ric-underactuated-lab/torque_limited_simple_pendulum. Mass
and length cannot be told apart by motion, so the parameters are the moment and the inertia. Its angle counts from
hanging, here from upright. Its motor has 12 N m; the controllers of its recordings that swing up again and again keep
to 1.5 N m at most.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

LENGTH = 0.5  # m, of the drawing

robot = Robot("realaigym_pendulum", "The pendulum of RealAIGym as it stands in the laboratory")

angle = robot.revolute("angle", continuous=True, rate_limit=15, meaning="angle of the rod, 0 upright")
inertia = robot.parameter("inertia", 0.15, "kg m^2", bounds=(0.05, 0.4), meaning="of rod, weight and rotor")
moment = robot.parameter("moment", 0.305, "kg m", bounds=(0.15, 0.5), meaning="mass times the distance of its centre")
damping = robot.parameter("damping", 0.05, "N m s", bounds=(0.0, 0.3))
friction = robot.parameter("friction", 0.1, "N m", bounds=(0.0, 0.4))
torque = robot.input("torque", 1.5, "N m", meaning="motor torque")

robot.kinetic_energy(inertia * angle.rate**2 / 2)
gravity = robot.parameter("gravity", 9.81, "m/s^2", fixed=True)
robot.potential_energy(gravity * moment * cos(angle))
robot.damp(angle, damping)
robot.dry_friction(angle, friction, smoothing=0.1)
robot.apply(angle, torque)

robot.draw(line=[(0, 0), (LENGTH * sin(angle), LENGTH * cos(angle))])

robot.task(
    state_cost=(pi * sin(angle / 2)) ** 2 + 0.05 * angle.rate**2,
    action_cost=LogCos(0.5),
    start=dict(angle=(pi, 0.03)),
    horizon=6,
    weight_at_horizon=0.7,
    control_rate=100,
)
