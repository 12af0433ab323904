"""What is known near the target: linearisation, time scale, regulator, basin."""
