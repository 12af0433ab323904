"""From what a model file states to the equations of motion, and from these to the graph of the program."""
