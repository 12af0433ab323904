"""Write a model file from a URDF."""
