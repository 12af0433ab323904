"""Robots x settings x seeds, from a file."""
