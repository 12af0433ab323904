"""Trained policies: loading and export."""
