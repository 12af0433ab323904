"""RealAIGym's real double pendulum (design C.1) with motors that cannot lift it: it must swing.

The weight of both links takes 3.8 N m of the shoulder, that of the lower link 1.6 N m of the elbow.
"""

from realaigym_real import double_pendulum

robot = double_pendulum(
    "realaigym_real_weak", "The contest's double pendulum with weak motors", shoulder_limit=1.5, elbow_limit=1
)
