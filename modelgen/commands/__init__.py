"""Commands of `modelgen` that have a file of their own: `add` declares one, `run` runs it."""
