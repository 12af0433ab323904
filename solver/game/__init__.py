"""The players of the Hamilton-Jacobi-Isaacs game."""
