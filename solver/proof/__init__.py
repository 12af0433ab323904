"""Proofs about the closed loop of a robot and its policy, by interval arithmetic."""
