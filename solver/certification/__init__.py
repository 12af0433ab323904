"""Certificates: how often a policy fails over a declared distribution, the worst that it does, and from where."""
