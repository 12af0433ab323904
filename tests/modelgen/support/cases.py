"""How many cases a fuzzer tries of a kind: a few in the tests, many in `make fuzz`."""

import os

CASES = 1000 if "FUZZ" in os.environ else 30
