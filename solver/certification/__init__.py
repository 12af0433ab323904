"""Certificates: failure probability of a policy over a declared distribution, its worst case, and a safe level set."""
