"""The Torch backend: differentiable, compilable, indifferent to the device."""

import numpy as np
import pytest
import torch

import modelgen
from modelgen.errors import ModelError


@pytest.fixture(scope="module")
def robot(artifacts):
    return modelgen.load("dense", backend="torch", directory=artifacts)


def test_automatic_gradients_are_the_emitted_ones(robot, exact):
    at = exact("dense")
    x, u, theta = (torch.from_numpy(array.copy()).requires_grad_() for array in (at.x, at.u, at.theta))
    costate = torch.from_numpy(at.costate)
    hamiltonian = (costate * robot.dynamics(x, u, theta)).sum()
    automatic = torch.autograd.grad(hamiltonian, (x, u, theta))
    emitted = robot.hamiltonian_gradient(x, u, costate, theta)
    for found, expected in zip(automatic, emitted, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-10)


def test_one_theta_collects_the_gradient_of_all_samples(robot, exact):
    at = exact("dense")
    x, u, costate = (torch.from_numpy(array) for array in (at.x, at.u, at.costate))
    theta = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (automatic,) = torch.autograd.grad((costate * robot.dynamics(x, u, theta)).sum(), theta)
    emitted = robot.hamiltonian_gradient(x, u, costate, theta.detach())[2].sum(0)
    np.testing.assert_allclose(automatic.numpy(), emitted.numpy(), rtol=1e-9)


@pytest.mark.parametrize("method", ["dynamics", "hamiltonian_gradient"])
def test_traces_as_one_graph_without_breaks(robot, exact, method):
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


def test_runs_where_x_is(robot):
    x = torch.zeros(4, 6, dtype=torch.float64, device="meta")
    u = torch.zeros(4, 2, dtype=torch.float64, device="meta")
    xdot = robot.dynamics(x, u)
    assert xdot.device.type == "meta"
    assert xdot.shape == (4, 6)


def test_no_samples(robot):
    x, u = torch.zeros(0, 6, dtype=torch.float64), torch.zeros(0, 2, dtype=torch.float64)
    assert [tuple(result.shape) for result in robot.jacobians(x)][:4] == [(0, 6), (0, 6, 2), (0, 6, 6), (0, 6, 2, 6)]
    assert robot.dynamics(x, u).shape == (0, 6)


def test_out(robot):
    x = torch.rand(3, 6, dtype=torch.float64)
    out = (torch.empty(3, dtype=torch.float64), torch.empty(3, 6, dtype=torch.float64))
    assert robot.state_cost(x, out=out)[0] is out[0]
    torch.testing.assert_close(out[1], robot.state_cost(x)[1])


@pytest.mark.parametrize(
    ("x", "u", "words"),
    [
        (np.zeros((3, 6)), np.zeros((3, 2)), "`x` is a ndarray; the torch backend takes Torch tensors"),
        (torch.zeros(3, 6), torch.zeros(3, 2), "dtype torch.float32"),
        (torch.zeros(3, 6, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64, device="meta"), "on meta"),
        (torch.zeros(3, 5, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64), r"shape \(3, 5\)"),
        (torch.zeros(3, 6, dtype=torch.float64), torch.zeros(4, 2, dtype=torch.float64), "`u` has 4 rows"),
    ],
)
def test_a_wrong_call_is_explained(robot, x, u, words):
    with pytest.raises(ModelError, match=words):
        robot.dynamics(x, u)


def test_a_wrong_out_is_explained(robot):
    x, u = torch.zeros(3, 6, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
    with pytest.raises(ModelError, match="must be a tuple of 1"):
        robot.dynamics(x, u, out=())
    with pytest.raises(ModelError, match="`out` for xdot"):
        robot.dynamics(x, u, out=(torch.zeros(3, 5, dtype=torch.float64),))
