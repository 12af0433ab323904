"""The harsh plant: the robot of the model, behind a drive and sensors as small laboratory robots have them.

From the policy to the robot: delay, saturation, backlash, stiction. From the robot to the policy: noise, encoders.
Magnitudes are typical of small laboratory robots, and one number scales each: docs/reference/plants.md.
"""
