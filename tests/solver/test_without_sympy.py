"""Artifacts and finished runs where SymPy is not installed: on a robot, or on a GPU box."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from modelgen.backends import MODULES

pytestmark = pytest.mark.slow

STEPS = {
    "load_policy": "solver.load_policy(run)(x.numpy()); assert not {'casadi', 'models'} & set(sys.modules)",
    **{
        f"load with {backend}": f"modelgen.load('pendulum', backend={backend!r}).affine_dynamics(x{given})"
        for backend, given in zip(MODULES, (".numpy()" if name == "jax" else "" for name in MODULES), strict=True)
    },
    "train": (
        "command('train', 'pendulum', '--iterations', '1', '--states', '64', '--preview', '1', "
        "'--generated', generated, '--out', folder + '/run')"
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


def test_all_but_model_files_work_without_sympy(finished_run: Path, short: str, tmp_path: Path) -> None:
    """In one process that cannot import SymPy, which a model file shows: the others prove something."""
    steps = STEPS | {"model file": "import modelgen.statement.robot"}
    if importlib.util.find_spec("mujoco") is None:
        del steps["evaluate in MuJoCo"]
    arguments = [sys.executable, "-c", REFUSING, str(finished_run), short, str(tmp_path), json.dumps(steps)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failures: dict[str, str] = json.loads((tmp_path / "failures.json").read_text())
    assert "No module named 'sympy" in failures.pop("model file")
    assert not failures, "\n".join(failures.values()) + done.stderr
