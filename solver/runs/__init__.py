"""Run folders: their files, and the table of the kinds of run."""
