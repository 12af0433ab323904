"""RealAIGym's real double pendulum (design C.1) as a pendubot: the elbow's motor may do little beyond its friction.

Friction of the elbow takes 0.1 N m of the 0.5, and the weight of the lower link up to 1.5 N m.
"""

from realaigym_real import double_pendulum

robot = double_pendulum(
    "realaigym_real_pendubot",
    "The contest's double pendulum, driven in the shoulder",
    shoulder_limit=6,
    elbow_limit=0.5,
)
