"""Independent solutions that trained policies are compared with."""
