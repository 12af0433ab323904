"""Record and check the lines of a model file."""
