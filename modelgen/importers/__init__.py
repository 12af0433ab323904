"""Robots of other file formats as model files. Readers of URDF and MJCF make a `Mechanism`; `writer` writes it."""
