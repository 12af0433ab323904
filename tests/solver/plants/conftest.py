"""Nominal games, for the tests of plants."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from modelgen.loader import CompiledRobot
from solver.game.game import NO_ADVERSARY, Game

Load = Callable[[str], CompiledRobot]


@pytest.fixture
def game(load: Load) -> Callable[[str], Game]:
    return lambda name: Game(load(name), NO_ADVERSARY)
