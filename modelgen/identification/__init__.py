"""From recordings to parameters with a confidence set: recordings, windows, fit, identifiability, confidence, file."""
