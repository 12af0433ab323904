"""Policies of robots with two limits and a trim, in C, ONNX and JavaScript, beside Torch's."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
import solver
from modelgen.cli import main as modelgen_main
from solver.cli import main
from solver.export.js_export import numbers
from solver.export.page_export import engine
from solver.game.policies import Hold
from solver.plants.harsh import Harsh, Harshness
from solver.plants.outcome import controller, rollouts
from solver.problem import Problem
from solver.training.settings import Settings
from solver.training.solution import load_solution
from solver.value.frozen import FrozenValue
from tests.solver.export.test_c_export import called, compiled, needs_compiler
from tests.solver.export.test_page_export import LOOP
from tests.solver.small_trainings import start, unjudged

pytestmark = pytest.mark.slow

MODEL = '''
"""A body that rotors lift, and a rail."""
from modelgen import {cost}, Robot

robot = Robot("{name}")
height = robot.prismatic("height", limit=2, rate_limit=4)
mass = robot.parameter("mass", 1.0, "kg", tolerance=0.2)
robot.point_mass(mass, (0, height))
for k in range({rotors}):
    robot.apply(height, (k + 1) * robot.input(f"rotor_{{k}}", (0, 12), "N"))
robot.task(
    state_cost=height**2 + 0.3 * height.rate**2,
    action_cost={cost}({weight}),
    start=dict(height=(0.5, 0.1)),
    horizon=1,
    weight_at_horizon=0.5,
    control_rate=25,
)
'''


@pytest.fixture(scope="module", params=[("one_rotor", 1, "Quadratic", 0.003), ("two_rotors", 2, "LogCos", 0.003)])
def run(
    request: pytest.FixtureRequest, tiny: Callable[..., Settings], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    name, rotors, cost, weight = request.param
    folder = tmp_path_factory.mktemp(name)
    model = folder / f"{name}.py"
    model.write_text(MODEL.format(name=name, rotors=rotors, cost=cost, weight=weight))
    assert modelgen_main(["build", str(model), "--generated", str(folder / "generated")]) == 0
    with unjudged():
        settings = tiny(iterations=2, algorithm="cfvi", reaction_periods=1.0)
        start(name, "fast", settings, folder / "run", str(folder / "generated"))
    return folder / "run"


def states(run: Path) -> np.ndarray[Any, Any]:
    """States (200, 2) of the domain."""
    return 0.8 * load_solution(run).problem.sample_domain(200, torch.Generator().manual_seed(1)).numpy()


@pytest.mark.parametrize("periods", [0.0, 2.0])
def test_the_policy_at_the_target_is_the_trim(run: Path, periods: float) -> None:
    problem = load_solution(run).problem
    policy = solver.load_policy(run, reaction_periods=periods)
    np.testing.assert_allclose(policy(problem.target.numpy()), problem.trim, rtol=1e-3)
    u = policy(states(run))
    assert u.min() >= -1e-5
    assert u.max() <= 12 + 1e-5
    assert np.ptp(u) > 6


@needs_compiler
@pytest.mark.parametrize("periods", [0.0, 2.0])
def test_in_c(run: Path, periods: float, tmp_path: Path) -> None:
    driver = compiled(run, load_solution(run).problem.robot.name, tmp_path, "--reaction-periods", str(periods))
    u = solver.load_policy(run, reaction_periods=periods)(states(run))
    off = np.abs(called(driver, states(run))[:, : u.shape[1]] - u) / 6
    assert np.median(off) < 1e-4
    assert off.max() < 0.02


@pytest.mark.parametrize("periods", [0.0, 2.0])
def test_in_onnx(run: Path, periods: float, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    file = tmp_path / "policy.onnx"
    assert main(["export", str(run), "--onnx", str(file), "--reaction-periods", str(periods)]) == 0
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    u = solver.load_policy(run, reaction_periods=periods)(states(run))
    np.testing.assert_allclose(session.run(None, {"x": states(run)})[0], u, atol=6e-3)


@pytest.mark.parametrize("periods", [0.0, 2.0])
def test_in_javascript(run: Path, periods: float) -> None:
    """A rollout with another mass and a delay, in double precision; before the first input acts, the trim does."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution(run, None, periods)
    robot = modelgen.load(solution.problem.robot.name, directory=run.parent / "generated", parallel=False)
    problem, value = Problem(robot), FrozenValue(copy.deepcopy(solution.ensemble).double())
    for name, entry in list(vars(problem).items()):
        if isinstance(entry, torch.Tensor) and entry.is_floating_point():
            setattr(problem, name, entry.double())
    script = racer.MiniRacer()
    loop = LOOP.replace("delay: 0", "delay: 1")
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(numbers(solution))};\n{loop}")
    theta = problem.robot.nominal_parameters * 1.1
    x = torch.tensor([[0.4, -0.2]], dtype=torch.float64)
    plant = Harsh(problem, Harshness(delay=1.0), torch.as_tensor(theta))
    with torch.no_grad():
        expected = rollouts(problem, controller(problem, value, Hold(periods)), x, plant, seconds=1.0)
    rolled = json.loads(script.eval(f"roll({x[0].tolist()}, {theta.tolist()}, 25, 0)"))
    np.testing.assert_allclose(rolled["states"], expected.x[1:, 0].numpy(), atol=1e-5)
