"""What a model file declares, and the checks of each of its lines."""
