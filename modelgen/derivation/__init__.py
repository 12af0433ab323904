"""From a robot's statement to its equations of motion, and from these to the expression graph."""
