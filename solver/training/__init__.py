"""Trainings: settings, presets, schedule, choice of V, polish, checkpoints, and runs on disk."""
