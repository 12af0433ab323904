"""Shared by the solver's tests: compiled robots, tiny settings, and one tiny trained run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import modelgen
from modelgen.cli import main as modelgen_main
from modelgen.loader import CompiledRobot
from solver.training.settings import Settings
from tests.solver.small_trainings import shortened, start, start_family, start_unjudged

TINY: dict[str, Any] = {
    "iterations": 5,
    "states": 192,
    "sampling": "uniform",
    "authors": True,
    "limit_cost": 0.0,
    "reaction_periods": 0.0,
    "basin": False,
    "modulation": "wiener",
    "adversaries": {"state": 0.025, "action": 0.1, "observation": 0.025, "parameters": 0.15},
    "epochs": 2,
    "minibatch": 50,
    "trace_decay": 0.8,
    "trace_floor": 0.1,
    "step_periods": (2, 1),
    "members": 2,
    "layers": 2,
    "width": 8,
    "evaluate_every": 3,
    "episodes": 3,
    "threads": 1,
}

SOLVER = "import sys; from solver.cli import main; sys.exit(main())"

SLIDER = '''
"""A slider whose task is linear-quadratic."""
from modelgen import Quadratic, Robot

robot = Robot("slider", "A mass on a rail with friction, driven by a force")
s = robot.prismatic("s", limit=1, rate_limit=3, meaning="position")
mass = robot.parameter("mass", 1.3, "kg", bounds=(0.5, 2), meaning="mass")
damping = robot.parameter("damping", 0.4, "N s/m", bounds=(0.1, 1), meaning="friction")
force = robot.input("force", 10, "N", meaning="drive")
robot.point_mass(mass, (s, 0))
robot.damp(s, damping)
robot.apply(s, force)
robot.task(
    state_cost=2 * s**2 + 0.3 * s.rate**2,
    action_cost=Quadratic(0.3),
    start=dict(s=(0.5, 0.1)),
    horizon=3,
    weight_at_horizon=0.5,
    control_rate=250,
    simulation_rate=500,
)
'''


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """The suite shares its machine; subprocesses inherit the limit.

    Of every test, since the kernels of Numba set the number of OpenMP's threads for Torch too.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


@cache
def _load(name: str, dtype: str) -> CompiledRobot:
    return modelgen.load(name, backend="llvm", dtype=dtype, parallel=False)


@pytest.fixture(scope="session")
def load() -> Callable[[str], CompiledRobot]:
    """Serial float32 LLVM kernels, as the solver uses them."""
    return lambda name: _load(name, "float32")


@pytest.fixture(scope="session")
def load64() -> Callable[[str], CompiledRobot]:
    """Serial float64 LLVM kernels, for references."""
    return lambda name: _load(name, "float64")


@pytest.fixture(scope="session")
def slider(made_once: Callable[..., Path]) -> str:
    """The generated/ folder of `slider`, whose optimum the Riccati equation knows."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "slider.py").write_text(SLIDER)
        assert modelgen_main(["build", str(folder / "slider.py"), "--generated", str(folder / "generated")]) == 0

    return str(made_once("slider", make) / "generated")


@pytest.fixture(scope="session")
def short(made_once: Callable[..., Path]) -> str:
    """Artifacts of the pendulum and of the cart-pole with a task of 1 s at 25 Hz, for rollouts of 25 periods."""
    return str(made_once("short", lambda folder: shortened(folder, ("pendulum", "cartpole"), 1, 25)) / "generated")


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Settings]:
    """Settings of a run that takes well under a second; algorithm="cfvi" takes the adversaries out."""

    def settings(algorithm: str = "rfvi", **changes: Any) -> Settings:
        nominal: dict[str, Any] = {"adversaries": {}} if algorithm == "cfvi" else {}
        return Settings(**{**TINY, **nominal, **changes})

    return settings


def heeding_ctrl_c(words: list[str], program: str = SOLVER) -> list[str]:
    """Command of a program in Python with arguments, which heeds Ctrl-C also where a shell has made it ignore it.

    A shell does so to jobs in its background, such as a CI's. The new process mends it: `preexec_fn` would fork this
    one, which may have the threads of JAX.
    """
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    return [sys.executable, "-c", heed + program, *words]


def words_of(name: str, value: Any) -> list[str]:
    """A setting on the command line."""
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if isinstance(value, dict):
        return [flag, *(f"{key}={number}" for key, number in value.items())]
    return [flag, *map(str, value if isinstance(value, tuple) else (value,))]


@pytest.fixture(scope="session")
def tiny_options(short: str) -> list[str]:
    """The same settings, and the short pendulum, as words on the command line."""
    words = ["--generated", short, "--preview", "0", "--convergence", "0"]
    for name, value in TINY.items():
        words += words_of(name, value)
    return words


@pytest.fixture(scope="session")
def train_tiny(tiny: Callable[..., Settings], short: str) -> Callable[..., None]:
    """Train a tiny run of the short pendulum in a folder."""

    def train(folder: Path, report: Callable[[dict[str, float]], None] = lambda _: None, **changes: Any) -> None:
        start("pendulum", "fast", tiny(**changes), folder, short, report)

    return train


@pytest.fixture(scope="session")
def gallery_run(tiny: Callable[..., Settings], made_once: Callable[..., Path]) -> Path:
    """A finished tiny run of the gallery's pendulum, whose artifact ships and whose rollouts have 625 periods."""
    settings = tiny(evaluate_every=5)
    return made_once("gallery", lambda folder: start("pendulum", "fast", settings, folder))


@pytest.fixture(scope="session")
def begun(tiny: Callable[..., Settings], made_once: Callable[..., Path]) -> Callable[..., Path]:
    """begun(robot, drift=False): a run trained a little, so that V has a shape; tests must not change it."""

    def of(name: str, drift: bool = False) -> Path:
        settings = tiny("cfvi", iterations=2, drift=drift)
        return made_once(f"begun_{name}_{drift}", lambda folder: start_unjudged(name, settings, folder))

    return of


@pytest.fixture(scope="session")
def trained_family(tiny: Callable[..., Settings], made_once: Callable[..., Path]) -> Callable[[str], Path]:
    """trained_family(robot): a run of one of FAMILIES with the basins of all contexts, trained a little."""
    changes = {"iterations": 1, "states": 32, "epochs": 1, "episodes": 2, "basin": True}
    settings = tiny("cfvi", **changes, reaction_periods=1.0)
    return lambda name: made_once(f"family_{name}", lambda folder: start_family(name, settings, folder))


@pytest.fixture(scope="session")
def finished_run(train_tiny: Callable[..., None], made_once: Callable[..., Path]) -> Path:
    """A finished tiny pendulum run; tests must not change it."""
    return made_once("finished", train_tiny)


@pytest.fixture
def run_copy(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of the tiny run that a test may damage."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture(scope="session")
def runs(train_tiny: Callable[..., None], made_once: Callable[..., Path]) -> list[Path]:
    """Three seeds of rfvi and one run of cfvi; tests must not change them."""

    def make(parent: Path) -> None:
        for seed, name in enumerate("abcd"):
            changes: dict[str, Any] = {"algorithm": "cfvi"} if name == "d" else {"seed": seed}
            train_tiny(parent / name, iterations=1, step_periods=(1,), **changes)

    return [made_once("robustness", make) / name for name in "abcd"]
