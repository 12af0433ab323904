"""Enclosures of functions that jump or have a kink: no value of a box is outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from modelgen.backends.casadi import compiled
from modelgen.program.enclosure import affine
from modelgen.program.functions import Program
from modelgen.program.graph import Graph, Node

FUNCTIONS: dict[str, tuple[Callable[[Graph, Node, Node], Node], Callable[..., np.ndarray]]] = {
    "a jump": (lambda g, x, y: g.add(g.call("sign", x), y), lambda x, y: np.sign(x) + y),
    "a jump times a factor": (lambda g, x, y: g.mul(y, g.call("sign", g.add(x, y))), lambda x, y: y * np.sign(x + y)),
    "a kink": (lambda g, x, y: g.call("maximum", x, g.mul(x, y)), lambda x, y: np.maximum(x, x * y)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_value_of_a_box_is_outside(name: str) -> None:
    graph, (made, function) = Graph(), FUNCTIONS[name]
    x, y = graph.input("x"), graph.input("y")
    program = affine(Program(graph, (), digest=name), [made(graph, x, y)], [x, y])
    enclosure = compiled(program.graph, program.functions[0], "boxes")
    random = np.random.default_rng(0)
    for _ in range(50):
        middle, radius = random.uniform(-1, 1, 2), 10.0 ** random.uniform(-3, 0, 2)
        value, slopes, rest = (np.asarray(part).ravel() for part in enclosure(middle, radius))
        moved = random.uniform(-1, 1, (400, 2)) * radius
        missed = np.abs(function(*(middle + moved).T) - value - moved @ slopes)
        assert missed.max() <= rest[0] + 1e-14  # of the rounding here
