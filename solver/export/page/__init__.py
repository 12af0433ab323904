"""A page that holds robots in closed loop: `solver page`."""
