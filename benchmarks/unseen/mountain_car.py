"""The mountain car: too weak for the hill, it has to swing back and forth in the valley, and to stop at the top."""

from sympy import cos

from modelgen import LogCos, Robot

robot = Robot("mountain_car", "A car that is too weak to drive straight up a hill")

place = robot.prismatic("place", limit=1.8, rate_limit=4, meaning="along the ground, 0 at the top")
mass = robot.parameter("mass", 1.0, "kg", tolerance=0.3, meaning="mass of the car")
hill = robot.parameter("hill", 0.3, "m", tolerance=0.2, meaning="half of the height from valley to top")
pull = robot.input("pull", 4.0, "N", meaning="of the wheels, along the ground")

height = hill * cos(3 * place)
robot.point_mass(mass, (place, height))
robot.apply(place, pull)
robot.damp(place, 0.05)
robot.draw(circle=((place, height), 0.05))

robot.task(
    state_cost=place**2 + 0.1 * place.rate**2,
    action_cost=LogCos(0.01),
    start=dict(place=(-1.047, 0.1)),
    horizon=8,
    weight_at_horizon=0.6,
    control_rate=50,
)
