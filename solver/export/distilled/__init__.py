"""Distillation of a policy into one small network for a microcontroller: regression, cost, comparison, C source."""
