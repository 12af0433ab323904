"""Plants by name, each in one module behind `Plant`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.plants.plant import Nominal, Plant
from solver.problem.problem import Problem

PlantName = Literal["nominal", "harsh", "mujoco"]
PLANTS = get_args(PlantName)


def all_effects(name: PlantName, effects: Sequence[str]) -> list[str]:
    """What makes a plant harsh: the effects stated, or every one where none is."""
    from solver.plants.harsh import EFFECTS

    return list(effects or EFFECTS) if name == "harsh" else []


def make_plant(
    name: PlantName, problem: Problem, theta: Tensor | None = None, effects: Sequence[str] = (), seed: int = 0
) -> Plant:
    """A plant by name, at the parameters theta (p,) or (N, p).

    effects: what makes the harsh plant harsh, as `plants.harsh.harshness` reads them; all of them when none is named.
    seed: of the harsh plant's noise. SolverError for another name, effects of another
    plant, or what the plant cannot do.
    """
    if name not in PLANTS:
        raise SolverError(f"unknown plant '{name}'.{suggestion(name, PLANTS)} Plants: {', '.join(PLANTS)}")
    if effects and name != "harsh":
        raise SolverError(f"{' '.join(effects)} are effects of the harsh plant, and this is {name}; add --plant harsh")
    if name == "harsh":
        from solver.plants.harsh import Harsh, harshness

        return Harsh(problem, harshness(effects), theta, seed)
    if name == "mujoco":
        from solver.plants.mujoco import MuJoCoPlant

        return MuJoCoPlant(problem, theta)
    return Nominal(problem, theta)
