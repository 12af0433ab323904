"""The Torch backend: differentiable, compilable, indifferent to the device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy
import torch

import modelgen
from modelgen.builder import build_artifact
from modelgen.errors import ModelError
from modelgen.files import CACHE
from modelgen.loader import CompiledRobot


@pytest.fixture(scope="module")
def robot(artifacts: Path) -> CompiledRobot:
    return modelgen.load("dense", backend="torch", directory=artifacts)


def test_a_module_that_an_earlier_process_compiled_is_read_and_not_written(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    x = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64)
    results = []
    for _ in range(2):
        for name in [name for name in sys.modules if name.startswith("modelgen_made_")]:
            monkeypatch.delitem(sys.modules, name)  # as in a new process
        results.append(modelgen.load("dense", backend="torch", directory=artifacts).jacobians(x))
        monkeypatch.delattr("modelgen.backends.torch.source", raising=False)
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [None, 5])
def test_gradients_of_the_dynamics_by_differences_and_once_more(
    robot: CompiledRobot, exact: Callable[[str], SimpleNamespace], rows: int | None
) -> None:
    """theta (p,) and (N, p); second derivatives go through the emitted first ones."""
    at = exact("dense")
    x, u = (torch.from_numpy(array.copy()).requires_grad_() for array in (at.x, at.u))
    theta = torch.from_numpy(at.theta[0 if rows is None else slice(rows)].copy()).requires_grad_()
    assert torch.autograd.gradcheck(robot.dynamics, (x, u, theta))
    assert torch.autograd.gradgradcheck(robot.dynamics, (x, u, theta), atol=1e-4)


@pytest.mark.parametrize("method", ["affine_dynamics", "state_cost"])
def test_gradients_of_other_functions_by_differences(
    robot: CompiledRobot, exact: Callable[[str], SimpleNamespace], method: str
) -> None:
    at = exact("dense")
    x, theta = (torch.from_numpy(array.copy()).requires_grad_() for array in (at.x, at.theta))
    assert torch.autograd.gradcheck(getattr(robot, method), (x, theta))


def test_backward_is_one_emitted_sweep(
    artifacts: Path, exact: Callable[[str], SimpleNamespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = modelgen.load("pendulum", backend="torch", directory=artifacts)
    kernels: Any = robot._kernels
    sweep, calls = kernels._module.hamiltonian_gradient, []

    def counted(*given: Any) -> Any:
        calls.append(given)
        return sweep(*given)

    monkeypatch.setattr(kernels._module, "hamiltonian_gradient", counted)
    x, u = (torch.from_numpy(array.copy()).requires_grad_() for array in (exact("pendulum").x, exact("pendulum").u))
    xdot = robot.dynamics(x, u)
    assert xdot.grad_fn is not None
    assert xdot.grad_fn.name() == "_DynamicsBackward"
    xdot.sum().backward()
    assert len(calls) == 1
    assert x.grad is not None
    assert x.grad.shape == x.shape


@pytest.mark.slow
def test_maps_over_samples_as_functorch_does(artifacts: Path, exact: Callable[[str], SimpleNamespace]) -> None:
    robot = modelgen.load("pendulum", backend="torch", directory=artifacts)
    at = exact("pendulum")
    x, u = torch.from_numpy(at.x), torch.from_numpy(at.u)
    slope = torch.func.jacrev(lambda x, u: robot.dynamics(x[None], u[None])[0])
    torch.testing.assert_close(torch.func.vmap(slope)(x, u), robot.jacobians(x)[2])  # the pendulum's B is constant


@pytest.mark.slow
def test_compiles_with_its_backward_pass_as_one_graph(artifacts: Path, exact: Callable[[str], SimpleNamespace]) -> None:
    """A step of gradient descent on the input through two Euler steps."""
    robot = modelgen.load("pendulum", backend="torch", directory=artifacts)
    at = exact("pendulum")
    x, u = torch.from_numpy(at.x), torch.from_numpy(at.u.copy()).requires_grad_()

    def loss(u: torch.Tensor) -> torch.Tensor:
        middle = x + 0.1 * robot.dynamics(x, u)
        return (middle + 0.1 * robot.dynamics(middle, u)).square().sum()

    (expected,) = torch.autograd.grad(loss(u), u)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(u), u)
    torch.testing.assert_close(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dynamics", "hamiltonian_gradient"])
def test_traces_as_one_graph_without_breaks(
    robot: CompiledRobot, exact: Callable[[str], SimpleNamespace], method: str
) -> None:
    at = exact("dense")
    arrays = [torch.from_numpy(array) for array in (at.x, at.u, at.costate)][: 2 if method == "dynamics" else 3]
    eager = getattr(robot, method)(*arrays)
    compiled = torch.compile(getattr(robot, method), fullgraph=True, backend="eager")(*arrays)
    for found, expected in zip(
        compiled if isinstance(compiled, tuple) else (compiled,),
        eager if isinstance(eager, tuple) else (eager,),
        strict=True,
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.slow
def test_torch_kernels_run_on_the_device_of_x(robot: CompiledRobot) -> None:
    x = torch.zeros(4, 6, dtype=torch.float64, device="meta")
    u = torch.zeros(4, 2, dtype=torch.float64, device="meta")
    xdot = robot.dynamics(x, u)
    assert xdot.device.type == "meta"
    assert xdot.shape == (4, 6)


def test_torch_kernels_take_an_empty_batch(robot: CompiledRobot) -> None:
    x, u = torch.zeros(0, 6, dtype=torch.float64), torch.zeros(0, 2, dtype=torch.float64)
    assert [tuple(result.shape) for result in robot.jacobians(x)][:4] == [(0, 6), (0, 6, 2), (0, 6, 6), (0, 6, 2, 6)]
    assert robot.dynamics(x, u).shape == (0, 6)


def test_torch_kernels_write_into_out(robot: CompiledRobot) -> None:
    x = torch.rand(3, 6, dtype=torch.float64)
    out = (torch.empty(3, dtype=torch.float64), torch.empty(3, 6, dtype=torch.float64))
    assert robot.state_cost(x, out=out)[0] is out[0]
    torch.testing.assert_close(out[1], robot.state_cost(x)[1])


@pytest.mark.parametrize(
    ("x", "u", "words"),
    [
        (np.zeros((3, 6)), np.zeros((3, 2)), "`x` is a ndarray; the torch backend takes Torch tensors"),
        (torch.zeros(3, 6, dtype=torch.complex64), torch.zeros(3, 2), "dtype torch.complex64"),
        (torch.zeros(3, 6, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64, device="meta"), "on meta"),
        (torch.zeros(3, 5, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64), r"shape \(3, 5\)"),
        (torch.zeros(3, 6, dtype=torch.float64), torch.zeros(4, 2, dtype=torch.float64), "`u` has 4 rows"),
    ],
)
def test_a_wrong_call_is_explained(robot: CompiledRobot, x: Any, u: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        robot.dynamics(x, u)


def test_tensors_of_another_dtype_are_converted(robot: CompiledRobot) -> None:
    x, u = torch.rand(3, 6, dtype=torch.float32), torch.ones(3, 2, dtype=torch.int64)
    found = robot.dynamics(x, u)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, robot.dynamics(x.double(), u.double()), rtol=0.0, atol=0.0)


def test_a_wrong_out_is_explained(robot: CompiledRobot) -> None:
    x, u = torch.zeros(3, 6, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
    with pytest.raises(ModelError, match=r"`out` .*1"):
        robot.dynamics(x, u, out=())
    with pytest.raises(ModelError, match=r"`out` .*xdot"):
        robot.dynamics(x, u, out=(torch.zeros(3, 5, dtype=torch.float64),))


@pytest.mark.filterwarnings("ignore::modelgen.errors.ReliabilityWarning")
def test_the_sign_of_nan_is_nan(tmp_path: Path) -> None:
    """The slope of |rate|, where a rollout has left the numbers; torch.sign would make it 0."""
    robot = modelgen.Robot("drag")
    place = robot.prismatic("place", limit=1, rate_limit=3)
    robot.kinetic_energy(place.rate**2 / 2)
    robot.apply(place, robot.input("force", 5, "N") + 0.1 * sympy.Abs(place.rate))
    task: dict[str, Any] = {"start": {}, "horizon": 3, "weight_at_horizon": 0.6, "control_rate": 100}
    robot.task(state_cost=place**2 + place.rate**2, action_cost=modelgen.Quadratic(0.1), **task)
    build_artifact(robot, tmp_path)
    compiled = modelgen.load("drag", backend="torch", directory=tmp_path)
    rates = torch.tensor([[0.0, -2.0], [0.0, 0.0], [0.0, 2.0], [0.0, torch.nan]], dtype=torch.float64)
    np.testing.assert_allclose(compiled.jacobians(rates)[2][:, 1, 1], [-0.1, 0.0, 0.1, np.nan], rtol=1e-12)
