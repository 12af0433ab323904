"""From a model file to its equations of motion, and from these to the graph of the program."""
