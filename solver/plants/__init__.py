"""Table of the plants. To add one, write a module with the contents of `PlantModule`, and a line in PLANTS."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from modelgen.errors import suggestion
from solver.errors import SolverError

#: Module, or module:class, of every plant. It is imported when the plant is first made.
PLANTS = {
    "nominal": "solver.plants.plant",
    "euler": "solver.plants.plant:EulerPlant",
    "harsh": "solver.plants.harsh",
    "mujoco": "solver.plants.mujoco",
}

if TYPE_CHECKING:
    from torch import Tensor

    from solver.plants.plant import Plant, PlantModule, Seeds
    from solver.problem import Problem

    PlantName = str
else:
    PlantName = Literal[tuple(PLANTS)]  # tyro reads the choices of the command line from it


def _module(name: str) -> PlantModule:
    if str(name) not in PLANTS:
        raise SolverError(f"unknown plant '{name}'.{suggestion(str(name), PLANTS)} Plants: {', '.join(PLANTS)}")
    module, _, kind = PLANTS[name].partition(":")
    found = import_module(module)
    return cast("PlantModule", getattr(found, kind) if kind else found)


def all_effects(name: PlantName, effects: Sequence[str]) -> list[str]:
    """Effects that are switched on: `effects`, or all effects of the plant if it is empty.

    Raises SolverError for an unknown name, and for effects of a plant without effects.
    """
    known = _module(name).EFFECTS
    if effects and not known:
        raise SolverError(
            f"the {name} plant has no effects, but {' '.join(effects)} was given; "
            'add --plant harsh, or plant = "harsh" in a specification'
        )
    return list(effects or known)


def make_plant(
    name: PlantName, problem: Problem, theta: Tensor | None = None, effects: Sequence[str] = (), seed: Seeds = 0
) -> Plant:
    """Plant with a name of PLANTS. The other arguments are explained at `PlantModule.make`.

    Raises SolverError as `all_effects`, and if the plant's module does.
    """
    all_effects(name, effects)
    return _module(name).make(problem, theta, effects, seed)
