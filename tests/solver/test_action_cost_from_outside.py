"""An action cost is one file: a user's own, beside the model file, in every place that an action cost enters.

g(u) = beta (a - sqrt(a^2 - u^2)) with a = 2 limit, whose optimal input is a w/sqrt(beta^2 + w^2), within the limits.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_are
from scipy.optimize import minimize_scalar

import modelgen
import solver
from modelgen.cli import main as modelgen_main
from modelgen.report.linearization import linearize
from solver.cli import main as solver_main
from solver.oracles.search import straight
from solver.oracles.trajectory import NonlinearProgram
from solver.training.settings import Settings
from solver.training.solution import load_solution
from tests.solver.conftest import SLIDER
from tests.solver.export.test_c_export import COMPILER, STRICT
from tests.solver.small_trainings import start

LIMIT, BETA = 10.0, 3.0
REACH = 2 * LIMIT

COST = '''
"""A cost whose graph is an arc of an ellipse."""

from sympy import Max, Min, sqrt

from modelgen import ActionCost


class Arc(ActionCost):
    def cost(self, u, limit, weight):
        a = 2 * limit
        return weight * u**2 / (a + sqrt(a**2 - u**2))

    def optimal_input(self, w, limit, weight):
        return Max(Min(2 * limit * w / sqrt(weight**2 + w**2), limit), -limit)

    def optimal_input_cost(self, w, limit, weight):
        root = sqrt(weight**2 + w**2)
        return weight * 2 * limit * w**2 / (root * (root + weight))
'''


def g(u: np.ndarray | float) -> np.ndarray:
    """The cost by its definition, for one input."""
    return BETA * (REACH - np.sqrt(REACH**2 - np.square(u)))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The slider of the other tests with the cost of this file."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "arc_cost.py").write_text(COST)
    imports = "from modelgen import Robot\n\nfrom arc_cost import Arc"
    text = SLIDER.replace("from modelgen import Quadratic, Robot", imports).replace("Quadratic(0.3)", f"Arc({BETA})")
    (folder / "slider.py").write_text(text)
    assert modelgen_main(["build", str(folder / "slider.py"), "--generated", str(folder / "generated")]) == 0
    return str(folder / "generated")


@pytest.mark.parametrize("backend", ["llvm", "numba", "torch", "casadi"])
def test_every_backend_has_it(generated: str, backend: str) -> None:
    robot = modelgen.load("slider", backend=backend, directory=generated, parallel=False)
    assert robot.metadata.task.action_cost.name == "arc"
    u, w = np.linspace(-9.99, 9.99, 41)[:, None], np.linspace(-9.0, 9.0, 41)[:, None]
    take = torch.from_numpy if backend == "torch" else np.asarray
    np.testing.assert_allclose(np.asarray(robot.action_cost(take(u))[0]), g(u)[:, 0], rtol=1e-9)
    best = [minimize_scalar(lambda u, w=w: g(u) - w * u, bounds=(-LIMIT, LIMIT), method="bounded").x for w in w[:, 0]]
    np.testing.assert_allclose(np.asarray(robot.optimal_input(take(w)))[:, 0], best, atol=1e-3)


@pytest.mark.slow
def test_training_plays_it_and_c_computes_it(generated: str, tiny: Callable[..., Settings], tmp_path: Path) -> None:
    """The policy is the maximiser of the Hamiltonian by search, and the exported C code agrees with it."""
    run = tmp_path / "run"
    start("slider", "fast", tiny(iterations=3, adversary_ramp=(0.0, 0.0)), run, generated)
    solution = load_solution(run)
    x = 0.8 * solution.problem.sample_domain(60, torch.Generator().manual_seed(1))
    u = solver.load_policy(run)(x.numpy())[:, 0]
    slope = (solution.problem.robot.affine_dynamics(x)[1][:, :, 0] * solution.value(x)[1]).sum(1).double().numpy()
    best = [minimize_scalar(lambda u, w=w: g(u) - w * u, bounds=(-LIMIT, LIMIT), method="bounded").x for w in slope]
    np.testing.assert_allclose(u, best, atol=2e-3)
    assert np.ptp(u) > 1e-2  # the training has given V a slope
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    assert solver_main(["export", str(run), "--c", str(tmp_path)]) == 0
    assert modelgen_main(["export", str(Path(generated).parent / "slider.py"), "--c", str(tmp_path)]) == 0
    sources = [str(tmp_path / f"slider{end}.c") for end in ("", "_policy", "_policy_driver")]
    subprocess.run([str(COMPILER), *STRICT, *sources, "-lm", "-o", str(tmp_path / "driver")], check=True)
    text = "\n".join(" ".join(map(repr, row)) for row in x.double().tolist())
    found = subprocess.run([tmp_path / "driver"], input=text, capture_output=True, text=True, check=True)
    in_c = np.array([line.split()[0] for line in found.stdout.splitlines()], float)
    np.testing.assert_allclose(in_c, u, atol=1e-3)


def test_the_trajectory_optimiser_pays_it(generated: str) -> None:
    robot = modelgen.load("slider", backend="casadi", directory=generated)
    program = NonlinearProgram(robot)
    start = np.array(robot.metadata.task.start_mean)
    found = program.solve(start, straight(program, start))
    assert found is not None
    state_cost = np.asarray(robot.state_cost(found.x)[0])  # its integral by the trapezoidal rule
    cost = (state_cost[:-1] + state_cost[1:]) / 2.0 + g(found.u[:, 0])
    assert found.reward == pytest.approx(-cost.sum() / robot.metadata.task.control_rate, rel=1e-4)
    assert np.abs(found.u).max() > 0.3


def test_the_linearisation_has_its_curvature(generated: str) -> None:
    """g is beta/(2 a) u^2 near u = 0."""
    found = linearize(modelgen.load("slider", backend="casadi", directory=generated), {})
    r = np.array([[BETA / (2 * REACH)]])
    p = solve_continuous_are(found.A, found.B, np.diag([2.0, 0.3]), r)
    assert found.gain is not None
    np.testing.assert_allclose(found.gain, np.linalg.solve(r, found.B.T @ p), rtol=1e-6)
