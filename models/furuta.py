"""Furuta pendulum (Quanser Qube-Servo 2): a motor turns an arm that carries a free pendulum at its end.

The rods are uniform. The arm is hinged at its end and turns in the horizontal plane; the pendulum turns in the
vertical plane at right angles to the arm.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("furuta", "Rotary pendulum of the Qube-Servo 2, driven by a voltage")

arm = robot.revolute("arm", limit=2, rate_limit=30, meaning="angle of the arm, 0 in the middle")
pendulum = robot.revolute("pendulum", continuous=True, rate_limit=40, meaning="angle of the pendulum, 0 upright")

arm_mass = robot.parameter("arm_mass", 0.095, "kg", bounds=(0.0475, 0.1425), meaning="mass of the arm")
arm_length = robot.parameter("arm_length", 0.085, "m", bounds=(0.0425, 0.1275), meaning="length of the arm")
pendulum_mass = robot.parameter("pendulum_mass", 0.024, "kg", bounds=(0.012, 0.036), meaning="mass of the pendulum")
pendulum_length = robot.parameter("pendulum_length", 0.129, "m", bounds=(0.0645, 0.1935), meaning="its length")
arm_damping = robot.parameter("arm_damping", 5e-6, "N m s", bounds=(2.5e-6, 7.5e-6), meaning="friction of the arm")
pendulum_damping = robot.parameter("pendulum_damping", 1e-6, "N m s", bounds=(5e-7, 1.5e-6), meaning="and of the pendulum")
resistance = robot.parameter("resistance", 8.4, "Ohm", bounds=(4.2, 12.6), meaning="resistance of the motor")
torque_constant = robot.parameter("torque_constant", 0.042, "N m/A", bounds=(0.021, 0.063), meaning="and back-EMF")

voltage = robot.input("voltage", 8, "V", meaning="motor voltage")

# The arm's inertia is taken about its centre, as the manufacturer prints it; a rod hinged at its end has four times that.
robot.kinetic_energy(arm_mass * arm_length**2 / 12 * arm.rate**2 / 2)

# A positive angle leans the upright pendulum against the arm's positive sense, as the printed figures have it.
sideways, height = -pendulum_length / 2 * sin(pendulum), pendulum_length / 2 * cos(pendulum)
centre = (
    arm_length * cos(arm) - sideways * sin(arm),
    arm_length * sin(arm) + sideways * cos(arm),
    height,
)
robot.point_mass(pendulum_mass, centre)
robot.kinetic_energy(pendulum_mass * pendulum_length**2 / 12 * pendulum.rate**2 / 2)

robot.dc_motor(arm, voltage, resistance=resistance, torque_constant=torque_constant)
robot.damp(arm, arm_damping)
robot.damp(pendulum, pendulum_damping)

robot.task(
    state_cost=arm**2 + 5 * (pi * sin(pendulum / 2)) ** 2 + 0.1 * arm.rate**2 + 0.1 * pendulum.rate**2,
    action_cost=LogCos(0.1),
    start=dict(pendulum=(pi, 0.03)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
