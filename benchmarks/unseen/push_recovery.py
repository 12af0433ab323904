"""A standing person as two links on an ankle that can push little and a strong hip: caught after a push."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("push_recovery", "A standing person after a push, on ankle and hip")

ankle = robot.revolute("ankle", limit=0.5, rate_limit=3, meaning="lean of the legs")
hip = robot.revolute("hip", limit=1.5, rate_limit=8, meaning="angle of the trunk to the legs")

legs = robot.parameter("legs", 30, "kg", tolerance=0.2, meaning="mass of the legs")
trunk = robot.parameter("trunk", 45, "kg", tolerance=0.2, meaning="mass of the trunk")
leg = robot.parameter("leg", 0.9, "m", tolerance=0.1, meaning="length of the legs")
middle = robot.parameter("middle", 0.35, "m", tolerance=0.1, meaning="hip to the centre of the trunk")
ankle_torque = robot.input("ankle_torque", 70, "N m", meaning="what the feet can carry without tipping")
hip_torque = robot.input("hip_torque", 200, "N m", meaning="on the trunk")

at_hip = (leg * sin(ankle), leg * cos(ankle))
lean = ankle + hip
chest = (at_hip[0] + middle * sin(lean), at_hip[1] + middle * cos(lean))
robot.body(legs, legs * leg**2 / 12, (leg / 2 * sin(ankle), leg / 2 * cos(ankle)), ankle)
robot.body(trunk, trunk * middle**2 / 3, chest, lean)
robot.apply(ankle, ankle_torque)
robot.apply(hip, hip_torque)
robot.draw(line=[(0, 0), at_hip, (at_hip[0] + 2 * middle * sin(lean), at_hip[1] + 2 * middle * cos(lean))])

robot.task(
    state_cost=10000 * (5 * ankle**2 + hip**2 + 0.1 * ankle.rate**2 + 0.02 * hip.rate**2),
    action_cost=LogCos([1e-3, 2e-4]),
    start=dict(ankle=(0, 0.02), ankle_rate=(0.35, 0.08)),
    horizon=4,
    weight_at_horizon=0.6,
    control_rate=100,
)
