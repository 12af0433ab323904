"""Car whose wheels roll without slip (kinematic bicycle with inertia), to change its lane at speed."""

from sympy import cos, sin, sqrt, tan

from modelgen import LogCos, Robot

robot = Robot("rolling_car", "A car without slip that changes its lane and comes to rest")

x = robot.prismatic("x", limit=3, meaning="of the rear axle along the lane")
y = robot.prismatic("y", limit=1.5, meaning="of the rear axle across the lane")
yaw = robot.revolute("yaw", limit=1, meaning="heading, 0 along the lane")
steer = robot.revolute("steer", limit=0.5, rate_limit=3, meaning="angle of the front wheels")
speed = robot.speed("speed", limit=2, unit="m/s", meaning="of the rear axle")

wheelbase = robot.parameter("wheelbase", 0.3, "m", tolerance=0.1, meaning="between the axles")
mass = robot.parameter("mass", 3, "kg", tolerance=0.3, meaning="of the car, halfway between the axles")
drag = robot.parameter("drag", 1, "N s/m", tolerance=0.5, meaning="along the car")
drive = robot.input("drive", 6, "N", meaning="of the rear wheels")
servo = robot.input("servo", 0.1, "N m", meaning="that turns the front wheels")
robot.roll({x: speed * cos(yaw), y: speed * sin(yaw), yaw: speed * tan(steer) / wheelbase})

robot.gravity(0)
robot.point_mass(mass, (x + wheelbase / 2 * cos(yaw), y + wheelbase / 2 * sin(yaw), 0))
robot.kinetic_energy(0.03 * yaw.rate**2 / 2 + 0.002 * (yaw.rate + steer.rate) ** 2 / 2)
robot.apply(x, (drive - drag * speed) * cos(yaw))
robot.apply(y, (drive - drag * speed) * sin(yaw))
robot.apply(steer, servo)
robot.damp(steer, 0.03)
robot.draw(line=[(x, y), (x + 0.3 * cos(yaw), y + 0.3 * sin(yaw))])

# Only manoeuvres reach y and the heading. Below a quadratic cost of y, or a large one of the heading, they do not pay.
lane, heading = 12 * (sqrt(y**2 + 0.03**2) - 0.03), 1.5 * (sqrt(yaw**2 + 0.04**2) - 0.04)
robot.task(
    state_cost=x**2 + lane + heading + steer**2 + 0.1 * speed**2 + 0.02 * steer.rate**2,
    action_cost=LogCos([0.005, 20]),
    start=dict(x=(-2, 0.2), y=(0.4, 0.1)),
    horizon=6,
    weight_at_horizon=0.6,
    control_rate=50,
)
