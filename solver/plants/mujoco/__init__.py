"""MuJoCo as the plant: an engine that did not make the model."""
