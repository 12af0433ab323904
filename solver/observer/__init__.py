"""The state of a robot from what it measures: positions, and the inputs that were sent to it."""
