"""A robot near its target: the quadratic cost there, and the regulator that minimises it."""
