"""Harsh plant: the robot of the model with the drives and sensors of a small laboratory robot.

From the policy to the robot: delay, saturation, backlash, stiction. From the robot to the policy: noise, encoders.
Every effect has a typical magnitude, which one factor scales: docs/reference/plants.md.
"""
