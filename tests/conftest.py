"""Hypothesis: untimed, since a loaded machine is no failure, and the same examples every time but for `make fuzz`."""

import os

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize="FUZZ" not in os.environ)
settings.load_profile("repeatable")
