"""Reaction-wheel pendulum: a motor at the tip spins a wheel and is pushed back (Spong, Corke and Lozano, 2001)."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("reaction_wheel", "A pendulum moved only by the wheel that a motor at its tip spins")

pendulum = robot.revolute("pendulum", continuous=True, rate_limit=20, meaning="angle of the pendulum, 0 upright")
wheel = robot.revolute("wheel", continuous=True, rate_limit=1000, meaning="angle of the wheel to the pendulum")

pendulum_mass = robot.parameter("pendulum_mass", 0.02, "kg", tolerance=0.3, meaning="mass of the pendulum")
wheel_mass = robot.parameter("wheel_mass", 0.3, "kg", tolerance=0.3, meaning="mass of the wheel and its motor")
length = robot.parameter("length", 0.125, "m", tolerance=0.2, meaning="hinge to the wheel's axle")
centre = robot.parameter("centre", 0.063, "m", tolerance=0.2, meaning="hinge to the pendulum's centre of mass")
pendulum_inertia = robot.parameter("pendulum_inertia", 4.7e-5, "kg m^2", tolerance=0.3, meaning="about that centre")
wheel_inertia = robot.parameter("wheel_inertia", 3.2e-5, "kg m^2", tolerance=0.3, meaning="about its axle")
wheel_damping = robot.parameter("wheel_damping", 1e-6, "N m s", tolerance=0.5, meaning="friction of the axle")

torque = robot.input("torque", 0.1, "N m", meaning="of the pendulum on the wheel")

robot.body(pendulum_mass, pendulum_inertia, (centre * sin(pendulum), centre * cos(pendulum)), pendulum)
robot.body(wheel_mass, wheel_inertia, (length * sin(pendulum), length * cos(pendulum)), pendulum + wheel)
robot.apply(wheel, torque)
robot.damp(wheel, wheel_damping)

tip = (length * sin(pendulum), length * cos(pendulum))
robot.draw(line=[(0, 0), tip])
robot.draw(circle=(tip, length / 4, pendulum + wheel))

# The cost does not depend on the wheel's angle, and only a little on its rate.
robot.task(
    state_cost=(pi * sin(pendulum / 2)) ** 2 + 0.05 * pendulum.rate**2 + 2e-6 * wheel.rate**2,
    action_cost=LogCos(100),
    start=dict(pendulum=(pi, 0.03)),
    horizon=5,
    weight_at_horizon=0.8,
    control_rate=125,
    free=["wheel"],
)
