"""The robots shipped with modelgen, one file each."""
