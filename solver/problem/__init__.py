"""A robot and its task as tensors on one device: domain, costs, time steps, integration schemes."""
