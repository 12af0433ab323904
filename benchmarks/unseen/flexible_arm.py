"""An arm in the vertical plane whose joint is a spring: the motor turns a hub, the hub bends the joint of the arm."""

from sympy import cos, pi, sin

from modelgen import LogCos, Robot

robot = Robot("flexible_arm", "A link behind an elastic joint, to be swung up and held by a weak motor")

hub = robot.revolute("hub", continuous=True, rate_limit=25, meaning="angle of the motor's shaft, 0 upright")
bend = robot.revolute("bend", limit=1, rate_limit=25, meaning="angle of the link to the shaft")

hub_inertia = robot.parameter("hub_inertia", 4e-3, "kg m^2", tolerance=0.3, meaning="of the motor behind its gear")
link_mass = robot.parameter("link_mass", 0.3, "kg", tolerance=0.3, meaning="mass of the link")
link_length = robot.parameter("link_length", 0.4, "m", tolerance=0.2, meaning="length of the link")
stiffness = robot.parameter("stiffness", 5, "N m", tolerance=0.3, meaning="of the elastic joint, for a radian")
joint_damping = robot.parameter("joint_damping", 5e-3, "N m s", tolerance=0.5, meaning="of the elastic joint")
motor_damping = robot.parameter("motor_damping", 5e-3, "N m s", tolerance=0.5, meaning="of the motor")

torque = robot.input("torque", 0.45, "N m", meaning="of the motor; gravity takes up to 0.59")

angle = hub + bend
robot.kinetic_energy(hub_inertia * hub.rate**2 / 2)
robot.body(
    link_mass,
    link_mass * link_length**2 / 12,
    (link_length / 2 * sin(angle), link_length / 2 * cos(angle)),
    angle,
)
robot.spring(bend, stiffness)
robot.damp(bend, joint_damping)
robot.damp(hub, motor_damping)
robot.apply(hub, torque)
robot.draw(line=[(0, 0), (link_length * sin(angle), link_length * cos(angle))])
robot.draw(line=[(0, 0), (0.08 * sin(hub), 0.08 * cos(hub))])

robot.task(
    state_cost=(pi * sin(angle / 2)) ** 2 + bend**2 + 0.02 * hub.rate**2 + 0.02 * (hub.rate + bend.rate) ** 2,
    action_cost=LogCos(2),
    start=dict(hub=(pi, 0.05)),
    horizon=5,
    weight_at_horizon=0.8,
    control_rate=250,
)
