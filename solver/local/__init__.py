"""What is known beside the target: linearisation, time scale, regulator, basin."""
