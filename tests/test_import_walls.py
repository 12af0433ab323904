"""Which packages each room imports: a new one is added to these lists on purpose. `make lint` keeps the rooms' order.

Imports within functions, under TYPE_CHECKING and by name (`import_module("casadi")`) count like any other. MuJoCo and
Pinocchio are imported through the table `modelgen.engines.PACKAGES`; Numba and Torch by emitted code.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"modelgen", "models", "solver"}

#: Folder, or file at the top -> the packages that it imports. A room that is not listed has the standard library only.
MODELGEN = {
    "arrays.py": {"numpy"},
    "backends": {"casadi", "jax", "llvmlite", "numpy", "py_mini_racer"},
    "commandline": {"tyro"},
    "commands": {"numpy", "tyro"},
    "derivation": {"numpy", "scipy", "sympy"},
    "engines": {"numpy", "sympy"},
    "identification": {"cma", "matplotlib", "numba", "numpy", "scipy"},
    "importers": {"lxml", "numpy", "scipy", "yourdfpy"},
    "linear.py": {"numpy", "scipy"},
    "style": {"PIL", "matplotlib", "numpy"},
    "tangent.py": {"numpy"},
    "loader.py": {"jax", "numpy", "torch"},  # for type checkers
    "proof": {"numpy", "scipy", "sympy"},
    "report": {"PIL", "matplotlib", "numpy", "sympy"},
    "statement": {"mpmath", "sympy"},
    "verification": {"mpmath", "numpy", "sympy"},
}
SOLVER = {
    "casadi",
    "cma",
    "distributed",
    "gymnasium",
    "jax",
    "matplotlib",
    "mujoco",
    "numba",
    "numpy",
    "onnx",
    "pandas",
    "rich",
    "scipy",
    "stable_baselines3",
    "torch",
    "tyro",
}


def called(function: ast.expr) -> str:
    """The last name of a function that is called, `find_spec` of importlib.util.find_spec."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def imported(path: Path) -> Iterator[str]:
    """Top-level names of the packages that a file imports, our own and the standard library's left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [str(node.module)]
        elif isinstance(node, ast.Call) and called(node.func) in ("import_module", "find_spec"):
            names = [str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant)]
        for name in names:
            top = name.partition(".")[0]
            if top and top not in OURS and top not in sys.stdlib_module_names:
                yield top


def rooms(package: str) -> dict[str, set[str]]:
    """Folder, or file at the top of the package -> the packages it imports."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        room = path.relative_to(ROOT / package).parts[0]
        found.setdefault(room, set()).update(imported(path))
    return {room: packages for room, packages in found.items() if packages}


@pytest.mark.slow
def test_rooms_of_modelgen() -> None:
    assert rooms("modelgen") == MODELGEN


@pytest.mark.slow
def test_solver_and_models() -> None:
    assert set().union(*rooms("solver").values()) == SOLVER
    assert set().union(*rooms("models").values()) == {"sympy"}


def test_one_file_of_the_engines_needs_sympy() -> None:
    users = {path.name for path in (ROOT / "modelgen" / "engines").glob("*.py") if "sympy" in imported(path)}
    assert users == {"expressions.py"}


def test_every_kind_of_import_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        "import json, first.inner\nfrom second.inner import x\nfrom modelgen import load\nfrom . import sibling\n"
        "if TYPE_CHECKING:\n    import third\ndef f():\n    import fourth as g\n"
        "    import_module('fifth.inner')\n    importlib.util.find_spec('sixth')\n"
    )
    assert set(imported(path)) == {"first", "second", "third", "fourth", "fifth", "sixth"}
