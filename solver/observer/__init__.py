"""The state of a robot from what it measures, positions and perhaps rates, and from the inputs that were sent to it."""
