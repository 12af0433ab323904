"""A small satellite turned to its target attitude by three weak torques: yaw, pitch and roll."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("satellite", "A satellite with torques about its own three axes")
robot.gravity(0)

yaw = robot.revolute("yaw", continuous=True, rate_limit=0.3)
pitch = robot.revolute("pitch", limit=1.2, rate_limit=0.3)
roll = robot.revolute("roll", continuous=True, rate_limit=0.3)
xx = robot.parameter("xx", 4.0, "kg m^2", tolerance=0.3, meaning="inertia about the roll axis")
yy = robot.parameter("yy", 6.0, "kg m^2", tolerance=0.3, meaning="inertia about the pitch axis")
zz = robot.parameter("zz", 7.0, "kg m^2", tolerance=0.3, meaning="inertia about the yaw axis")
tx = robot.input("tx", 0.05, "N m")
ty = robot.input("ty", 0.05, "N m")
tz = robot.input("tz", 0.05, "N m")

frame = robot.link("frame", yaw, axis="z")
gimbal = robot.link("gimbal", pitch, on=frame, axis="y")
robot.link("body", roll, on=gimbal, axis="x", mass=50, centre=(0, 0, 0), inertia=(xx, yy, zz))
robot.apply(roll, tx)
robot.apply(pitch, cos(roll) * ty - sin(roll) * tz)
robot.apply(yaw, -sin(pitch) * tx + cos(pitch) * sin(roll) * ty + cos(pitch) * cos(roll) * tz)

robot.task(
    state_cost=4 * sin(yaw / 2) ** 2 + pitch**2 + 4 * sin(roll / 2) ** 2
    + 10 * (yaw.rate**2 + pitch.rate**2 + roll.rate**2),
    action_cost=LogCos([10, 10, 10]),
    start=dict(yaw=(1.5, 0.5), pitch=(0.5, 0.2), roll=(-1.5, 0.5)),
    horizon=120,
    weight_at_horizon=0.5,
    control_rate=2,
)  # fmt: skip
