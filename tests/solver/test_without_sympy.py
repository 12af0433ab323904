"""Artifacts and finished runs where SymPy is not installed: on a robot, or on a GPU box."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from modelgen.backends import MODULES

pytestmark = pytest.mark.slow

STEPS = {
    **{
        f"load with {backend}": f"modelgen.load('pendulum', backend={backend!r}).affine_dynamics(x{given})"
        for backend, given in zip(MODULES, (".numpy()" if name == "jax" else "" for name in MODULES), strict=True)
    },
    "load_policy": "solver.load_policy(run)(x.numpy())",
    "train": (
        "command('train', 'pendulum', '--iterations', '1', '--states', '64', '--generated', generated, "
        "'--out', folder + '/run')"
    ),
    "evaluate": "command('evaluate', run, '--episodes', '2')",
    "evaluate on the harsh plant": "command('evaluate', run, '--episodes', '2', '--plant', 'harsh')",
    "evaluate in MuJoCo": "command('evaluate', run, '--episodes', '2', '--plant', 'mujoco')",
    "robustness": (
        "command('robustness', run, '--episodes', '2', '--parameter', 'mass', '--from', '0.9x', '--to', '1.1x', "
        "'--points', '2', '--out', folder + '/study')"
    ),
    "export to C": "command('export', run, '--c', folder + '/c')",
}

REFUSING = """
import json, sys, traceback

class NoSymPy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sympy":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, NoSymPy())
sys.modules.pop("sympy", None)

import torch
import modelgen, solver
from solver.cli import main

x = torch.zeros(1, 2, dtype=torch.float64)
run, generated, folder, steps = *sys.argv[1:4], json.loads(sys.argv[4])

def command(*words):
    code = main(list(words))
    assert not code, f"exit status {code}"

failures = {}
for name, step in steps.items():
    try:
        exec(step)
    except BaseException:
        failures[name] = traceback.format_exc()
assert "sympy" not in sys.modules
with open(folder + "/failures.json", "w") as file:
    json.dump(failures, file)
"""


@pytest.fixture(scope="module")
def failures(finished_run: Path, short: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The traceback of every step that failed, in one process that cannot import SymPy."""
    folder = tmp_path_factory.mktemp("no_sympy")
    arguments = [sys.executable, "-c", REFUSING, str(finished_run), short, str(folder), json.dumps(STEPS)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads((folder / "failures.json").read_text())
    return {name: text + done.stderr for name, text in found.items()}


@pytest.mark.parametrize("step", STEPS)
def test_works_without_sympy(failures: dict[str, str], step: str) -> None:
    if step.endswith("MuJoCo"):
        pytest.importorskip("mujoco")
    assert step not in failures, failures[step]


def test_sympy_is_refused_indeed(finished_run: Path, tmp_path: Path) -> None:
    """A step that needs SymPy fails in that process, so the others prove something."""
    steps = json.dumps({"model file": "import modelgen.statement.robot"})
    arguments = [sys.executable, "-c", REFUSING, str(finished_run), "", str(tmp_path), steps]
    subprocess.run(arguments, capture_output=True, check=True)
    found = json.loads((tmp_path / "failures.json").read_text())
    assert "No module named 'sympy" in found["model file"]
