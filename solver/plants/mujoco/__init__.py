"""MuJoCo as a plant: an engine that is independent of the model file."""
