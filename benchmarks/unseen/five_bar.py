"""Five-bar linkage: two motors on the ground move one tip in a vertical plane (Cervantes-Sanchez et al., 2000)."""

from sympy import cos, sin, sqrt

from modelgen import LogCos, Robot

robot = Robot("five_bar", "Two motors on the ground that carry a tip by a closed linkage")

left = robot.revolute("left", limit=0.5, rate_limit=8, meaning="angle of the left upper arm, 0 upright")
right = robot.revolute("right", limit=0.5, rate_limit=8, meaning="angle of the right upper arm, 0 upright")
left_elbow = robot.revolute("left_elbow", limit=3, meaning="angle of the left forearm to its upper arm")
right_elbow = robot.revolute("right_elbow", limit=3, meaning="angle of the right forearm to its upper arm")

arm_mass = robot.parameter("arm_mass", 0.2, "kg", tolerance=0.3, meaning="mass of each upper arm")
forearm_mass = robot.parameter("forearm_mass", 0.15, "kg", tolerance=0.3, meaning="mass of each forearm")
load = robot.parameter("load", 0.3, "kg", tolerance=0.5, meaning="mass at the tip")
friction = robot.parameter("friction", 0.02, "N m s", tolerance=0.9, meaning="viscous friction of each motor")

left_torque = robot.input("left_torque", 4, "N m", meaning="motor of the left upper arm")
right_torque = robot.input("right_torque", 4, "N m", meaning="motor of the right upper arm")

base, upper, lower = 0.15, 0.25, 0.35  # m: half of the distance between the motors, lengths of the arms
ends = []
for side, shoulder, elbow, place in (("left", left, left_elbow, -base), ("right", right, right_elbow, base)):
    arm = robot.link(
        f"{side}_arm",
        shoulder,
        at=(place, 0, 0),
        mass=arm_mass,
        centre=(0, 0, upper / 2),
        inertia=arm_mass * upper**2 / 12,
    )
    forearm = robot.link(
        f"{side}_forearm",
        elbow,
        on=arm,
        at=(0, 0, upper),
        mass=forearm_mass,
        centre=(0, 0, lower / 2),
        inertia=forearm_mass * lower**2 / 12,
    )
    ends.append(robot.point(f"{side}_tip", (0, 0, lower), on=forearm))
robot.loop(*ends, dependent={left_elbow: 0.45, right_elbow: -0.45})
x = -base + upper * sin(left) + lower * sin(left + left_elbow)
height = upper * cos(left) + lower * cos(left + left_elbow)
robot.point_mass(load, (x, height))
robot.damp(left, friction)
robot.damp(right, friction)
robot.apply(left, left_torque)
robot.apply(right, right_torque)

robot.task(
    state_cost=100 * (x**2 + (height - upper - sqrt(lower**2 - base**2)) ** 2) + 0.02 * (left.rate**2 + right.rate**2),
    action_cost=LogCos(0.02),
    start=dict(left=(0.4, 0.05), right=(0.4, 0.05)),
    horizon=2,
    weight_at_horizon=0.7,
    control_rate=200,
)
