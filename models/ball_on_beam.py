"""Ball on beam: a ball rolls in a groove along a beam that a motor tilts (Hauser, Sastry and Kokotovic, 1992)."""

from sympy import cos, sin

from modelgen import LogCos, Robot

robot = Robot("ball_on_beam", "A ball that rolls along a beam tilted by a motor")

ball = robot.prismatic("ball", limit=0.5, rate_limit=2, meaning="position of the ball along the beam, 0 at the pivot")
beam = robot.revolute("beam", limit=0.8, rate_limit=5, meaning="angle of the beam, 0 level, raises positive positions")

ball_mass = robot.parameter("ball_mass", 0.05, "kg", tolerance=0.5, meaning="mass of the ball")
ball_radius = robot.parameter("ball_radius", 0.01, "m", tolerance=0.3, meaning="distance of its centre from the groove")
ball_inertia = robot.parameter("ball_inertia", 2e-6, "kg m^2", tolerance=0.3, meaning="of the ball about its centre")
beam_inertia = robot.parameter("beam_inertia", 0.02, "kg m^2", tolerance=0.3, meaning="of the beam about its pivot")

torque = robot.input("torque", 1, "N m", meaning="on the beam")

# As in the textbook, the ball spins with ball.rate / radius; the energy of this spin has no term with the beam's rate.
robot.point_mass(ball_mass, (ball * cos(beam), ball * sin(beam)))
robot.kinetic_energy(ball_inertia * (ball.rate / ball_radius) ** 2 / 2)
robot.kinetic_energy((ball_inertia + beam_inertia) * beam.rate**2 / 2)
robot.apply(beam, torque)

# The ball is drawn three times as large as it is.
drawn, along, across = 3 * ball_radius, (cos(beam), sin(beam)), (-sin(beam), cos(beam))
robot.draw(line=[(-along[0] / 2, -along[1] / 2), (along[0] / 2, along[1] / 2)])
robot.draw(circle=([ball * along[i] + drawn * across[i] for i in (0, 1)], drawn, ball / drawn - beam))

robot.task(
    state_cost=20 * ball**2 + beam**2 + 2 * ball.rate**2 + 0.1 * beam.rate**2,
    action_cost=LogCos(0.5),
    start=dict(ball=(0, 0.12), beam=(0, 0.1)),  # a ball at the end of a tilted beam cannot be held
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
