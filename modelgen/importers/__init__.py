"""Robots of other file formats as model files. One format so far: URDF."""
