"""The commands of `solver` that are more than a few lines, one module each."""
