"""Comparison of an artifact with other engines. To add an engine, add a file and a line in `ENGINES`.

The file of an engine has two functions. `load(path, metadata) -> Engine` reads a robot in the engine's own format and
finds its coordinates and inputs by name. It raises ModelError if the robot cannot be compared. `build(tree) -> Engine`
makes a mechanism from a `Tree` of numbers; its inputs are generalized forces. Neither needs SymPy. `expressions` makes
the tree from a model file, with SymPy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from modelgen.arrays import Array
from modelgen.engines.engine import Engine, ForcedEngine
from modelgen.metadata import Metadata

if TYPE_CHECKING:
    from modelgen.statement.robot import Robot

ENGINES = {"mujoco": "modelgen.engines.mujoco", "pinocchio": "modelgen.engines.pinocchio"}


def load(engine: str, path: Path, metadata: Metadata) -> Engine:
    """The robot of the file `path` in an engine. Raises ModelError if it cannot be compared."""
    return cast(Engine, import_module(ENGINES[engine]).load(path, metadata))


def builder(engine: str, robot: Robot) -> Callable[[Array], Engine]:
    """A function of theta (p,) that makes the robot in an engine from its links.

    Raises ModelError for a robot with bodies that the engine cannot represent.
    """
    from modelgen.engines.expressions import Expressions

    expressions, module = Expressions(robot), import_module(ENGINES[engine])
    return lambda theta: ForcedEngine(module.build(expressions.tree(theta)), expressions.forces(theta))
