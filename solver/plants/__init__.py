"""Plants by name. To add one, write its module and one line in PLANTS."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from modelgen.errors import suggestion
from solver.errors import SolverError

#: The module of every plant, with what `PlantModule` names; imported when the plant is asked for.
PLANTS = {
    "nominal": "solver.plants.nominal",
    "euler": "solver.plants.euler",
    "harsh": "solver.plants.harsh.plant",
    "mujoco": "solver.plants.mujoco.plant",
}

if TYPE_CHECKING:
    from torch import Tensor

    from solver.plants.plant import Plant, PlantModule, Seeds
    from solver.problem.problem import Problem

    PlantName = str
else:
    PlantName = Literal[tuple(PLANTS)]  # the choices on the command line


def _module(name: str) -> PlantModule:
    if name not in PLANTS:
        raise SolverError(f"unknown plant '{name}'.{suggestion(name, PLANTS)} Plants: {', '.join(PLANTS)}")
    return cast("PlantModule", import_module(PLANTS[name]))


def all_effects(name: PlantName, effects: Sequence[str]) -> list[str]:
    """The effects that a plant has: those stated, or all of them when none is stated."""
    return list(effects or _module(name).EFFECTS)


def make_plant(
    name: PlantName, problem: Problem, theta: Tensor | None = None, effects: Sequence[str] = (), seed: Seeds = 0
) -> Plant:
    """A plant by name; the arguments are those of `PlantModule.make`.

    Raises SolverError for an unknown plant, for effects of another plant, and where the plant's module does.
    """
    module = _module(name)
    if effects and not module.EFFECTS:
        raise SolverError(
            f"the {name} plant has no effects such as {' '.join(effects)}; "
            'add --plant harsh, or plant = "harsh" in a specification'
        )
    return module.make(problem, theta, effects, seed)
