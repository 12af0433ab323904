"""Measurements and figures of trained runs."""
