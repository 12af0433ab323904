"""Three sliders in a row on springs, pulled at the first one only."""

from itertools import pairwise

from modelgen import LogCos, Robot

robot = Robot("chain", "Three sliders in a row on springs, pulled at the first one only")

names = ("first", "second", "third")
places = [robot.prismatic(name, limit=0.5, rate_limit=3, meaning=f"place of the {name} slider") for name in names]
mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3, meaning="mass of each slider")
stiffness = robot.parameter("stiffness", 20, "N/m", tolerance=0.3, meaning="of each spring between two sliders")
force = robot.input("force", 5, "N", meaning="on the first slider")

for k, place in enumerate(places):
    robot.point_mass(mass, (place + k, 0))
    robot.damp(place, 0.05)
for left, right in pairwise(places):
    robot.spring(left - right, stiffness)
robot.apply(places[0], force)
robot.draw(line=[(places[0], 0), (places[2] + 2, 0)])

robot.task(
    state_cost=sum(20 * place**2 + 0.2 * place.rate**2 for place in places),
    action_cost=LogCos(0.001),
    start=dict(first=(0, 0.1), second=(0, 0.1), third=(0.2, 0.1)),
    horizon=8,
    weight_at_horizon=0.6,
    control_rate=100,
)
