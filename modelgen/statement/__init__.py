"""What a model file writes, recorded and checked."""
