"""Gymnasium environments of the robots."""
