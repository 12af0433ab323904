"""Another processor's rounding, for `pytest -p tests.rounding`."""

from tests.rounding import sitecustomize as sitecustomize
