"""A policy in one small network, for a microcontroller: regression, cost on the chip, loss, and C source."""
