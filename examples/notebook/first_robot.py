# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A rod that must swing up
#
# A motor is too weak to lift a rod in one swing. We state the robot, compile it, train a policy, and look at its value
# function.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sympy import cos, pi, sin

import modelgen
import solver

# %% [markdown]
# ## The robot
# Angle 0 is upright. The parameter `mass` has bounds: the policy will be robust against a wrong mass.

# %%
robot = modelgen.Robot("rod", "A rod on a motor that is too weak to lift it in one swing")
angle = robot.revolute("angle", continuous=True, rate_limit=8, meaning="0 upright")
mass = robot.parameter("mass", 1.0, "kg", tolerance=0.5)
robot.body(mass, 0.083 * mass, (0.5 * sin(angle), 0.5 * cos(angle)), angle)
robot.apply(angle, robot.input("torque", 2.5, "N m"))
robot.draw(line=[(0, 0), (sin(angle), cos(angle))])
robot.task(
    state_cost=(pi * sin(angle / 2)) ** 2 + 0.1 * angle.rate**2,
    action_cost=modelgen.LogCos(0.5),
    start=dict(angle=(pi, 0.03)),
    horizon=5,
    weight_at_horizon=0.65,
    control_rate=125,
)
compiled = modelgen.compile(robot)
compiled

# %% [markdown]
# ## The policy
# Without adversaries, in a third of the usual iterations: a minute on one core. `callback` gets the metrics of every
# iteration.

# %%
run = solver.train(
    compiled,
    adversaries=[],
    iterations=30,
    states=2048,
    out="runs/notebook",
    overwrite=True,
    preview=5,
    callback=lambda row: print(f"{row['iteration']:.0f}: {row['return_mean']:.1f}") if "return_mean" in row else None,
)
run

# %%
evaluation = run.evaluate()
print(evaluation.statistics["return_mean"], evaluation.statistics["success_rate"])

# %% [markdown]
# ## The value function
# Dark is cheap. The switching lines are where one more swing is needed.

# %%
angles, rates = np.meshgrid(np.linspace(-np.pi, np.pi, 121), np.linspace(-8, 8, 121))
x = np.stack([angles.ravel(), rates.ravel()], axis=1)
value, _ = run.value(x)
plt.pcolormesh(angles, rates, value.reshape(angles.shape), shading="gouraud")
plt.colorbar(label="V")
plt.xlabel("angle (rad)")
plt.ylabel("rate (rad/s)")
plt.show()

# %% [markdown]
# ## A page
# One file for any browser: push the rod, make it heavier, let an observer find out.

# %%
solver.page(run, out="rod.html")
