"""How many cases a fuzzer tries of a kind, FUZZ of the environment or 6, and how long one may take."""

import os

from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ", "6"))
SECONDS = 20

#: Decorates a fuzzer: a few cases in the tests, many in `make fuzz`; a case that takes longer than SECONDS fails.
fuzzed = settings(max_examples=CASES, deadline=1000 * SECONDS, suppress_health_check=[HealthCheck.too_slow])
