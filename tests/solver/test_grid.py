"""The grid oracle against analytic differences, the Riccati solution and brute force, and trained values against it."""
