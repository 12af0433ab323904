"""The commands of `modelgen`, one file each: its options as a dataclass, and `run`. cli.py lists them."""
