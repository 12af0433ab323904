"""Artifacts: the folder `generated/NAME`, its manifest and its files."""
