"""Other engines to compare an artifact with. Each is one file and one line in `ENGINES`.

An engine's file has two functions. `load(path, metadata) -> Engine` reads a description of the robot in the engine's
own format, finds the coordinates and inputs in it by name, and raises ModelError where the two cannot be compared.
`build(tree) -> Engine` makes the engine's mechanism from a `tree.Tree` of numbers; its inputs are generalized forces.
Neither needs SymPy; `expressions` does, which makes the tree from a model file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from modelgen.engines.engine import Array, Engine, ForcedEngine
from modelgen.metadata import Metadata

if TYPE_CHECKING:
    from modelgen.statement.robot import Robot

ENGINES = {"mujoco": "modelgen.engines.mujoco", "pinocchio": "modelgen.engines.pinocchio"}


def load(engine: str, path: Path, metadata: Metadata) -> Engine:
    """The robot as `engine` reads it from `path`. Raises ModelError where the two cannot be compared."""
    return cast(Engine, import_module(ENGINES[engine]).load(path, metadata))


def builder(engine: str, robot: Robot) -> Callable[[Array], Engine]:
    """A function of theta (p,) that makes the robot in `engine` from its links.

    Raises ModelError for a robot with bodies that the engine cannot be given.
    """
    from modelgen.engines.expressions import Expressions

    expressions, module = Expressions(robot), import_module(ENGINES[engine])
    return lambda theta: ForcedEngine(module.build(expressions.tree(theta)), expressions.forces(theta))
