"""URDF files as model files."""
