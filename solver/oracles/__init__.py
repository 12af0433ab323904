"""Independent solutions for comparison with trained policies: on a grid, and by trajectory optimisation."""
