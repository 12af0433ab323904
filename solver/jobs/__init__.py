"""Many trainings: each in a process of its own, on this machine or on the workers of a cluster."""
