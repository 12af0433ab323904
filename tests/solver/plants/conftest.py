"""Problems for the tests of plants."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from modelgen.loader import CompiledRobot
from solver.problem import Problem

Load = Callable[[str], CompiledRobot]


@pytest.fixture
def problem(load: Load) -> Callable[[str], Problem]:
    """Problem of a shipped robot, by its name."""
    return lambda name: Problem(load(name))
