"""Evaluation of trained runs: statistics, robustness, figures, animations."""
