"""Run folders: their files, and the table of what can start, resume and load a run."""
