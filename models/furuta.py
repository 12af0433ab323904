"""Furuta pendulum (Quanser Qube-Servo 2): a motor turns an arm that carries a free pendulum at its end.

The arm turns in the horizontal plane; the pendulum, a uniform rod, turns in the vertical plane at right
angles to the arm.
"""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("furuta", "Rotary pendulum of the Qube-Servo 2, driven by a voltage")

arm = robot.revolute("arm", limit=2, rate_limit=30, meaning="angle of the arm, 0 in the middle")
pendulum = robot.revolute("pendulum", continuous=True, rate_limit=40, meaning="angle of the pendulum, 0 upright")

arm_mass = robot.parameter("arm_mass", 0.095, "kg", tolerance=0.5, meaning="mass of the arm")
arm_length = robot.parameter("arm_length", 0.085, "m", tolerance=0.5, meaning="length of the arm")
pendulum_mass = robot.parameter("pendulum_mass", 0.024, "kg", tolerance=0.5, meaning="mass of the pendulum")
pendulum_length = robot.parameter("pendulum_length", 0.129, "m", tolerance=0.5, meaning="its length")
arm_damping = robot.parameter("arm_damping", 5e-6, "N m s", tolerance=0.5, meaning="friction of its hinge")
pendulum_damping = robot.parameter("pendulum_damping", 1e-6, "N m s", tolerance=0.5, meaning="friction of its hinge")
resistance = robot.parameter("resistance", 8.4, "Ohm", tolerance=0.5, meaning="resistance of the motor")
torque_constant = robot.parameter("torque_constant", 0.042, "N m/A", tolerance=0.5, meaning="also of the back-EMF")

voltage = robot.input("voltage", 8, "V", meaning="motor voltage")

# The manufacturer prints the inertia about the centre. A rod hinged at its end would have four times this inertia.
robot.kinetic_energy(arm_mass * arm_length**2 / 12 * arm.rate**2 / 2)

# A positive angle leans the pendulum against the arm's positive direction, as in the manufacturer's figures.
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

end = (arm_length * cos(arm), arm_length * sin(arm), 0)
tip = (end[0] - 2 * sideways * sin(arm), end[1] + 2 * sideways * cos(arm), 2 * height)
robot.draw(line=[(0, 0, -arm_length), (0, 0, 0), end, tip])

robot.task(
    state_cost=arm**2 + 5 * (pi * sin(pendulum / 2)) ** 2 + 0.1 * arm.rate**2 + 0.1 * pendulum.rate**2,
    action_cost=LogCos(0.1),
    start=dict(pendulum=(pi, 0.03)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
