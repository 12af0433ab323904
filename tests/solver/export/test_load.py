"""Policies and value functions from Python: shapes, bad input, another artifact, no SymPy."""

from __future__ import annotations

import copy
import json
import math
import pickle
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
import solver
from modelgen.errors import ModelError
from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT
from solver.training.solution import RUN, load_solution


def test_policy_and_value_map_arrays_to_float32_arrays(finished_run: Path) -> None:
    policy, value = solver.load_policy(finished_run), solver.load_value(str(finished_run))
    x = np.random.default_rng(0).uniform(-3.0, 3.0, (7, 2))
    u, (v, dv_dx) = policy(x), value(x)
    assert (u.shape, v.shape, dv_dx.shape) == ((7, 1), (7,), (7, 2))
    assert {u.dtype, v.dtype, dv_dx.dtype} == {np.dtype(np.float32)}
    assert np.abs(u).max() <= 2.5
    assert (v < 0.0).all()
    for i in range(7):
        np.testing.assert_allclose(policy(x[i : i + 1])[0], u[i], rtol=1e-4, atol=1e-5)


def test_angles_keep_their_digits_over_many_turns() -> None:
    """Float32 has steps of 4 mrad after ten thousand turns."""
    policy, value = solver.load_policy("pendulum-rfvi"), solver.load_value("pendulum-rfvi")
    here, there = ([[angle + turns, 0.5] for angle in (-3.0, 0.1, 2.0)] for turns in (0.0, 2e4 * np.pi))
    np.testing.assert_allclose(policy(there), policy(here), atol=1e-5)
    np.testing.assert_allclose(value(there)[0], value(here)[0], rtol=1e-5)
    controllers = [solver.load_controller("pendulum-rfvi") for _ in range(2)]
    for angle in (0.1, 0.11, 0.13):
        first, second = (act([angle + turns]) for act, turns in zip(controllers, (0.0, 2e4 * np.pi), strict=True))
        np.testing.assert_allclose(first, second, atol=1e-3)


def test_gradient_of_the_value_equals_finite_differences(finished_run: Path) -> None:
    value = solver.load_value(finished_run)
    x, h = np.array([[2.0, -1.0], [0.3, 0.5]]), 1e-2
    _, dv_dx = value(x)
    for i in range(2):
        step = h * np.eye(2)[i]
        slope = (value(x + step)[0] - value(x - step)[0]) / (2.0 * h)
        np.testing.assert_allclose(dv_dx[:, i], slope, rtol=2e-2, atol=1e-2)


def test_policy_equals_the_closed_form_of_the_value(finished_run: Path) -> None:
    """u = 2a/pi atan(B dV/drate / beta) with B = 3/(m L^2)."""
    x = np.random.default_rng(1).uniform(-3.0, 3.0, (20, 2))
    _, dv_dx = solver.load_value(finished_run)(x)
    beta = 4.0 * 2.5**2 * 0.5 / math.pi
    expected = 2.0 * 2.501 / math.pi * np.arctan(3.0 * dv_dx[:, 1] / beta)
    np.testing.assert_allclose(solver.load_policy(finished_run)(x)[:, 0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("error")
def test_lists_tensors_and_other_dtypes_are_accepted(finished_run: Path) -> None:
    policy = solver.load_policy(finished_run)
    x = np.array([[0.5, 1.0], [1.0, -2.0]])
    u = policy(x)
    frozen = x.astype(np.float32)
    frozen.flags.writeable = False
    tensor = torch.tensor(x, requires_grad=True)
    assert np.array_equal(policy(tensor).detach(), u)
    for same in (x.tolist(), x.astype(np.float32), np.asfortranarray(x), x[::-1][::-1], frozen):
        assert np.array_equal(policy(same), u)
    half = torch.tensor(x, dtype=torch.bfloat16)  # holds these numbers
    assert np.array_equal(policy(half), u)
    by_name = {"angle_rate": x[:, 1], "angle": x[:, 0], "torque": u[:, 0]}
    assert np.array_equal(policy(by_name), u)
    before = x.copy()
    policy(x)
    assert np.array_equal(x, before)


def test_tables_are_read_by_their_columns(finished_run: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    policy = solver.load_policy(finished_run)
    table = pandas.DataFrame({"angle_rate": [1.0, -2.0], "angle": [0.5, 1.0]})
    assert np.array_equal(policy(table), policy([[0.5, 1.0], [1.0, -2.0]]))
    assert np.array_equal(policy(table.iloc[0]), policy([0.5, 1.0]))
    assert np.array_equal(policy(pandas.DataFrame(table.to_numpy())), policy(table.to_numpy()))
    with pytest.raises(SolverError, match="x has the columns q, v, and no angle"):
        policy(pandas.DataFrame({"q": [0.5], "v": [1.0]}))


def test_tensors_give_tensors(finished_run: Path) -> None:
    policy, value = solver.load_policy(finished_run), solver.load_value(finished_run)
    x = torch.tensor([[0.5, 1.0], [1.0, -2.0]])
    assert torch.equal(policy(x), torch.from_numpy(policy(x.numpy())))
    assert torch.equal(policy(x[0]), policy(x[:1])[0])
    for found, expected in zip(value(x), value(x.numpy()), strict=True):
        assert torch.equal(found, torch.from_numpy(expected))
    with pytest.raises(SolverError, match=r"give x\.detach\(\)"):  # its gradient would be lost without a word
        value(x.requires_grad_())


def test_a_run_its_policy_and_its_robot_go_to_other_processes(finished_run: Path) -> None:
    """A pickle works also after the first calls, which compile."""
    run, x = solver.load(finished_run), np.array([0.5, 1.0])
    u, xdot = run.policy(x), run.robot.dynamics(x, np.array([0.1]))
    motion = run.simulate(x, 0.1)
    for copied in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert np.array_equal(copied.policy(x), u)
    assert np.array_equal(pickle.loads(pickle.dumps(run.policy))(x), u)
    assert pickle.loads(pickle.dumps(run.value))(x)[0] == run.value(x)[0]
    assert np.array_equal(pickle.loads(pickle.dumps(run.robot)).dynamics(x, np.array([0.1])), xdot)
    assert np.array_equal(pickle.loads(pickle.dumps(motion)).x, motion.x)


def test_a_copied_controller_begins_anew(finished_run: Path) -> None:
    """It keeps its delay and its encoder, and forgets what was measured."""
    controller = solver.load_controller(finished_run, counts={"angle": 0.01}, delay=2)
    first, later = controller([0.5]), [controller([angle]) for angle in (0.6, 0.8)]
    for copied in (pickle.loads(pickle.dumps(controller)), copy.deepcopy(controller)):
        assert copied.delay == 2
        assert np.array_equal(copied([0.5]), first)
        assert all(np.array_equal(copied([angle]), u) for angle, u in zip((0.6, 0.8), later, strict=True))


def test_a_run_brings_its_folder_of_artifacts(run_copy: Path, tmp_path: Path) -> None:
    """A function that takes a run looks where the run was opened, unless it is told another folder."""
    (tmp_path / "empty").mkdir()
    lost = solver.Run(run_copy, generated=str(tmp_path / "empty"))
    for load in (solver.load_policy, solver.load_value, solver.load_controller):
        with pytest.raises(ModelError, match="'pendulum'"):
            load(lost)
        load(lost, generated=lost.description.generated)
    assert solver.load(lost).generated == lost.generated


def test_a_run_stands_for_its_folder(finished_run: Path) -> None:
    run = solver.load(finished_run)
    assert solver.load(run).folder == run.folder
    controller = solver.load_controller(run)
    assert controller([0.5]).shape == (1,)
    assert repr(controller) == "<controller of pendulum: (angle) -> torque, 25 Hz>"
    assert np.array_equal(solver.load_policy(run)([0.5, 1.0]), run.policy([0.5, 1.0]))


def test_a_robot_that_is_not_compiled_is_no_robot_to_train() -> None:
    with pytest.raises(SolverError, match=r"modelgen\.compile\(robot\)"):
        solver.train(modelgen.Robot("rod", "A rod"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_jax_arrays_give_jax_arrays_under_transformations(finished_run: Path) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    policy, value = solver.load_policy(finished_run), solver.load_value(finished_run)
    x = jax.numpy.array([[0.5, 1.0], [1.0, -2.0]])
    u = jax.jit(policy)(x)
    assert isinstance(u, jax.Array)
    np.testing.assert_allclose(u, policy(np.asarray(x)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.vmap(policy)(x), u, rtol=1e-5, atol=1e-6)
    for found, expected in zip(value(x), value(np.asarray(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_jax_arrays_of_a_policy_without_a_form_in_jax(finished_run: Path) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    whole = solver.load_policy(finished_run)
    policy = solver.Policy(whole._act, whole.robot, "sac")
    x = np.array([0.5, 1.0], np.float32)
    assert np.array_equal(policy(jax.numpy.asarray(x)), whole(x))
    with pytest.raises(SolverError, match="jit, vmap and grad"):
        jax.jit(policy)(x)


def test_policies_that_ship_and_the_version() -> None:
    assert "pendulum-rfvi" in solver.policies()
    assert solver.__version__ == modelgen.__version__ == version("robust-value-iteration")


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 1), (1, 2, 2), ()])
def test_wrong_shape_is_an_error_with_the_right_one(finished_run: Path, shape: tuple[int, ...]) -> None:
    for call in (solver.load_policy(finished_run), solver.load_value(finished_run)):
        with pytest.raises(SolverError, match=r"\(N, 2\).*angle, angle_rate"):
            call(np.zeros(shape))


@pytest.mark.parametrize(
    "x", ["abc", [["a", "b"]], [[1j, 0.0]], None, [[0.0], [0.0, 1.0]], torch.empty(2, device="meta")], ids=repr
)
def test_object_that_is_no_array_of_numbers_is_an_error(finished_run: Path, x: Any) -> None:
    with pytest.raises(SolverError, match="give 2: angle, angle_rate"):
        solver.load_policy(finished_run)(x)


def test_nan_state_gives_nan_input(finished_run: Path) -> None:
    x = np.array([[math.nan, 0.0], [0.5, 0.1]])
    u = solver.load_policy(finished_run)(x)
    v, dv_dx = solver.load_value(finished_run)(x)
    assert np.isnan(u[0]).all()
    assert np.isnan(v[0])
    assert np.isnan(dv_dx[0]).all()
    assert np.isfinite(u[1]).all()
    assert np.isfinite(v[1])


def test_run_of_another_artifact_is_an_error(run_copy: Path) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["artifact_hash"] = "ab" * 32
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match="artifact_hash is abababababab"):
        solver.load_policy(run_copy)


def test_missing_artifact_is_an_error(run_copy: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'pendulum'"):
        solver.load_policy(run_copy, generated=str(tmp_path))


def test_edited_number_of_layers_is_an_error(run_copy: Path) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["settings"]["layers"] = 3
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match="layers is 3 "):
        load_solution(run_copy)


def test_checkpoint_of_another_robot_is_an_error(run_copy: Path) -> None:
    """Of as many states and inputs, so that its networks fit."""
    path = run_copy / CHECKPOINT
    content = torch.load(path, weights_only=True)
    torch.save(content | {"run": content["run"] | {"artifact_hash": "another"}}, path)
    with pytest.raises(SolverError, match="artifact_hash"):
        load_solution(run_copy)


def test_damaged_checkpoint_is_an_error(run_copy: Path) -> None:
    (run_copy / CHECKPOINT).write_bytes(b"")
    with pytest.raises(SolverError, match=CHECKPOINT):
        solver.load_value(run_copy)


def test_loading_keeps_torchs_random_state(finished_run: Path) -> None:
    before = torch.get_rng_state()
    solver.load_policy(finished_run)
    assert torch.equal(torch.get_rng_state(), before)
