"""The two players of the Hamilton-Jacobi-Isaacs game: the policy and its adversaries."""
