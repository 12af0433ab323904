"""What the solver imports of modelgen: a new name is added to this list on purpose."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

import modelgen
import solver

SOLVER = Path(__file__).parents[2] / "solver"

#: Modules of modelgen that need no SymPy, and that an artifact alone satisfies.
ALLOWED = {
    "modelgen",
    "modelgen.arrays",
    "modelgen.artifact",
    "modelgen.artifact.folder",
    "modelgen.artifact.manifest",
    "modelgen.backends",
    "modelgen.backends.fmu.archive",
    "modelgen.backends.llvm",
    "modelgen.backends.llvm.vectors",
    "modelgen.commandline",
    "modelgen.commandline.program",
    "modelgen.engines.mujoco",
    "modelgen.errors",
    "modelgen.files",
    "modelgen.style.gif",
    "modelgen.identification",
    "modelgen.identification.confidence",
    "modelgen.linear",
    "modelgen.loader",
    "modelgen.metadata",
    "modelgen.program.differentiate",
    "modelgen.program.graph",
    "modelgen.proof.intervals",
    "modelgen.style",
    "modelgen.tangent",
}


@pytest.mark.slow
def test_the_solver_imports_these_modules_of_modelgen_and_no_others() -> None:
    found = set()
    for path in SOLVER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            found |= {name for name in names if name.partition(".")[0] == "modelgen"}
    assert found == ALLOWED


@pytest.mark.parametrize("package", [modelgen, solver])
def test_every_public_name_is_there(package: ModuleType) -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
