"""The check of level sets: V by Torch, the policy and its motion lie within; a cell where V falls is refused."""

from __future__ import annotations

import copy
import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.proof import EMPTY, HELD, Tree, write
from solver.proof.basin import _about, prove_basin
from solver.proof.checker import _require_same, check
from solver.proof.held_loop import HeldLoop
from solver.proof.level_check import LevelSet, larger, level_check
from solver.proof.noise import Noisy, Tilted, shorter, sine, softplus, tanh
from solver.proof.taylor import Dual, Model
from solver.runs.shipped import run_folder
from solver.training.solution import load_solution
from tests.solver.proof.test_held_loop import commanded

NAME = "pendulum-rfvi"
CHECKPOINT = run_folder(NAME) / "checkpoint.pt"
SHARE, LEVEL = 0.5, 0.5  # of the basin's level that the ellipsoid has; and the level of V
COUNT, TIMES = 40, 500

kept = cache(load_solution)


@cache
def claimed() -> dict[str, Any]:
    """A claim of an ellipsoid in the basin, which nobody proved, and of a level set without cells."""
    loop = HeldLoop(kept(NAME))
    about, scale = _about(NAME, loop, 1e-5 * loop.limit), SHARE * loop.level
    back = (np.linalg.inv(np.linalg.cholesky(loop.cost)).T * scale**0.5).tolist()
    level_set = {"level": LEVEL, "half": [1.4, 1.4], "back": back, "tree": [EMPTY], "seconds": 0.0}
    claim = {"spread": [0.0, 0.0], "shape": (loop.cost / scale).tolist(), "back": back, "basis": np.eye(2).tolist()}
    return about | {"claims": [claim | {"rate": 1e-3, "core": 0.1, "tree": [HELD], "level_set": level_set}]}


def loaded(proof: dict[str, Any]) -> LevelSet:
    return LevelSet(proof, _require_same(proof, None), CHECKPOINT, proof["claims"][0])


def verified(proof: dict[str, Any]) -> int:
    """How many cells are wrong."""
    return level_check(proof, _require_same(proof, None), CHECKPOINT, proof["claims"][0], 1, 0).wrong


@cache
def grown() -> dict[str, Any]:
    """The claim with cells that the check itself finds."""
    proof, tree = copy.deepcopy(claimed()), Tree()
    found, nodes = loaded(proof), np.zeros(1, np.int64)
    low, high = -found.half[None], found.half[None]
    while len(nodes):
        shown, side = found.shown(low, high, np.ones(len(low), bool))
        nodes, side, rows = tree.decide(nodes, np.where(shown, HELD, side)), side[~shown], np.arange((~shown).sum())
        low, high = low[~shown], high[~shown]
        below, above = high.copy(), low.copy()
        below[rows, side] = above[rows, side] = 0.5 * (low + high)[rows, side]
        low, high = np.concatenate([low, above]), np.concatenate([below, high])
        assert len(low) < 2000
    proof["claims"][0]["level_set"]["tree"] = tree.walk()
    return proof


def polynomial(number: Model, t: Array) -> Array:
    """Values (S, N) of the terms at symbols t (S, N, k), without the rest."""
    i, j = np.triu_indices(t.shape[-1])
    powers = np.concatenate([np.ones((*t.shape[:2], 1)), t, t[..., i] * t[..., j]], -1)
    found: Array = np.einsum("snk,kn->sn", powers[..., : len(number.terms)], number.terms)
    return found


def driven(robot: CompiledRobot, x: Array, u: Array, theta: Array, seconds: float) -> Array:
    """States (N, n) after a period, by Runge and Kutta's method."""
    h = seconds / 4
    for _ in range(4):
        a = robot.dynamics(x, u, theta)
        b = robot.dynamics(x + h / 2 * a, u, theta)
        c = robot.dynamics(x + h / 2 * b, u, theta)
        x = x + h / 6 * (a + 2 * b + 2 * c + robot.dynamics(x + h * c, u, theta))
    return x


def valued(x: Array) -> tuple[Array, Array]:
    """V (N,) of the networks and its slopes (N, n) in double precision."""
    ensemble, states = copy.deepcopy(kept(NAME).ensemble).double(), torch.tensor(x, requires_grad=True)
    z = ensemble.features(states)
    V = torch.stack([member(z, ensemble.features.error(z)) for member in ensemble.factors]).mean(0)
    V.sum().backward()
    assert states.grad is not None
    return V.detach().numpy().reshape(len(x)), states.grad.numpy()


def sampled(found: LevelSet, y: Array) -> tuple[Array, ...]:
    """V (N,) at states y (N, n), its slope along B, inputs, the states (N, n) after a period, and V there."""
    states, robot = y @ found.back.T + found.target, kept(NAME).problem.robot.with_kernels()
    u, theta = commanded(kept(NAME), states), np.tile(found.loop.nominal, (len(y), 1))
    still, pushed = (robot.dynamics(states, np.full_like(u, level), theta) for level in (0.0, 1.0))
    after = driven(robot, states, u, theta, found.loop.step)
    (V, slope), (later, _) = valued(states), valued(after)
    return V, (slope * (pushed - still)).sum(1), u[:, 0], after, later


@pytest.mark.parametrize("side", [0.2, 0.02])
@np.errstate(all="ignore")
def test_sampled_values_lie_within(side: float) -> None:
    """V, its slope along B, the input, the state after a period, and how much V falls, at 20 000 states."""
    generator, found = np.random.default_rng(0), loaded(claimed() | {"input_error": [2e-4]})  # of float32
    middle, t = generator.uniform(-2, 2, (COUNT, 2)), np.zeros((TIMES, COUNT, found.symbols))
    x = found.states(found.errors(middle - side / 2, middle + side / 2))
    b = found.control(x)
    value, w = found.value(x, b, found.symbols)
    t[..., :2] = generator.uniform(-1, 1, (TIMES, COUNT, 2))
    V, steep, answer, after, later = (
        part.reshape(TIMES, COUNT, *part.shape[1:])
        for part in sampled(found, (middle + side / 2 * t[..., :2]).reshape(-1, 2))
    )
    for truth, model, spare in ((V, value, 1e-6), (steep, w, 1e-4)):  # its features are rounded to float32
        assert (np.abs(truth - polynomial(model, t)) <= model.rest + spare)[:, np.isfinite(model.bend)].all()
    answered, rests = np.zeros((TIMES, COUNT), bool), []
    for rows, u in found.inputs(x, b, w):
        states, s = [e.rows(rows) for e in x], t[:, rows]
        end, _, moved = found.loop.moved(
            [Dual.of(e, []) for e in states], [Dual.of(u, [])], found.parameters(len(rows))
        )
        falls, _ = found.fallen(states, u, value.rows(rows))
        open_u = u.terms * (np.arange(len(u.terms)) != found.symbols)[:, None]  # without the symbol of what is open
        missed = answer[:, rows] - polynomial(Model(open_u, u.rest), s)
        here = np.abs(missed) <= u.terms[found.symbols]  # else the policy has another way there
        s[..., -1] = np.where(here, missed / u.terms[found.symbols], 0.0)
        for truth, model, spare in [
            ((V - later)[:, rows], falls, 1e-6),
            *((after[:, rows, i], entry.value.first, 1e-9) for i, entry in enumerate(end)),
        ]:
            fine = np.abs(truth - polynomial(model, s)) <= model.rest + spare
            assert (fine | ~here)[:, np.isfinite(model.bend)].all()
        answered[:, rows] |= here
        rests += falls.rest.tolist()
        assert moved.all()
    assert answered.all()
    if side < 0.1:
        assert np.median(value.rest) < 2e-4
        assert np.median(w.rest) < 2e-3
        assert np.median(rests) < 4e-4


def test_cells_are_shown_where_v_grows_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.proof.level_check.DEEPEST", 2)
    proof = copy.deepcopy(claimed())
    proof["claims"][0]["level_set"] |= {"level": 50.0, "half": [6.0, 6.0]}
    y, found = np.random.default_rng(0).uniform(-3, 3, (60, 2)), loaded(proof)
    V, _, _, after, later = sampled(found, y)
    stays = (np.abs(after) < found.bound).all(1) & (np.abs(y @ found.back.T) < found.bound).all(1)
    outside = (y**2).sum(1) > 1.01
    grows, falls = outside & stays & (later > V + 1e-3), outside & stays & (later < V - 1e-6)
    low, high, each = y - 1e-3, y + 1e-3, np.ones(len(y), bool)
    shown, _ = found.shown(low, high, each)
    assert grows.sum() > 5
    assert falls.sum() > 3
    assert shown[grows].all()
    assert not shown[falls].any()
    assert not found.shown(low, high, ~each)[0][grows].any()  # what is empty has to be outside, or in the ellipsoid
    assert not found.holds(low[falls][:1], high[falls][:1], each[:1]).any()
    assert found.shown(0.3 * low[grows], 0.3 * high[grows], ~each[grows])[0].any()
    leaves = grows & (np.abs((after - found.target) @ np.linalg.inv(found.back).T) > np.abs(y) + 3e-3).any(1)
    found.half = np.abs(y[leaves][0]) + 2e-3  # of a first cell that trajectories leave
    assert not found.shown(low[leaves][:1], high[leaves][:1], each[:1])[0].any()
    found.level = 1e-3
    assert found.shown(low[outside], high[outside], ~each[outside])[0].all()


@pytest.mark.parametrize("function", [tanh, softplus, shorter, sine(0.0)])
def test_functions_and_products_hold_their_values(function: Any) -> None:
    generator, symbols = np.random.default_rng(0), 2
    exact: Any = {tanh: np.tanh, softplus: lambda a: np.logaddexp(0, a), shorter: lambda a: a**-0.5}.get(
        function, np.sin
    )
    for width in (1e-3, 0.05, 0.4):
        terms = width * generator.uniform(-1, 1, (6, 50, 3))
        terms[0] = np.abs(generator.normal(2.0, 1.0, (50, 3))) + 1 + 12 * width
        noise, rest = width * generator.uniform(-1, 1, (2, 50, 3)), width * generator.uniform(0, 1, (50, 3))
        number, way = Noisy(terms, {-1: noise}, rest), Noisy(terms[:, :, ::-1], {-1: noise}, 0 * rest)
        result = Tilted(number, way).through(function)
        assert result.slope is not None
        for _ in range(50):
            t, s, r = (generator.choice([-1, 1], size) * generator.random() for size in (symbols, 2, (50, 3)))
            powers = np.array([1.0, *t, *(t[i] * t[j] for i, j in zip(*np.triu_indices(symbols), strict=True))])

            def at(of: Noisy, share: Array | float, powers: Array = powers, s: Array = s) -> Array:
                return (
                    np.einsum("k,knr->nr", powers, of.terms) + np.einsum("k,knr->nr", s, of.noise[-1]) + share * of.rest
                )

            a, direction, h = at(number, r), at(way, 0.0), 1e-5
            assert (np.abs(exact(a) - at(result.value, 0.0)) <= result.value.rest).all()
            steep = (exact(a + h) - exact(a - h)) / (2 * h)
            assert (np.abs(steep * direction - at(result.slope, 0.0)) <= result.slope.rest + 1e-9).all()


def test_the_larger_number_lies_within() -> None:
    generator = np.random.default_rng(0)
    number = Model(generator.normal(size=(6, 500)), generator.uniform(0, 0.5, 500))
    found = larger(number, 0.3)
    for t in itertools.product((-1.0, -0.2, 0.6, 1.0), repeat=2):
        at = np.broadcast_to(np.array(t), (1, 500, 2))
        for share in (-1, 0, 1):
            truth = np.maximum(polynomial(number, at)[0] + share * number.rest, 0.3)
            assert (np.abs(truth - polynomial(found, at)[0]) <= found.rest + 1e-12).all()
    assert (found.bend < number.bend + 1e-9).all()


@pytest.mark.slow
def test_proven_cells_are_shown_and_false_ones_are_not() -> None:
    proof = copy.deepcopy(grown())
    level_set = proof["claims"][0]["level_set"]
    assert len(level_set["tree"]) > 100
    assert verified(proof) == 0
    level_set["tree"] = [EMPTY if mark == HELD else mark for mark in level_set["tree"]]
    assert verified(proof) > 0


@pytest.mark.parametrize(
    "change",
    [
        {"half": [1.0, 0.0]},
        {"half": [1.0, float("inf")]},
        {"half": [1.0]},
        {"back": [[1.0, 0.0]]},
        {"level": -0.1},
        {"level": float("nan")},
        {"tree": [0, HELD]},
        {"tree": [HELD, HELD]},
        {"tree": [2, HELD, HELD]},
        {"tree": [True, HELD, HELD]},
    ],
)
def test_a_set_that_is_none_is_refused(change: dict[str, Any]) -> None:
    proof = copy.deepcopy(claimed())
    proof["claims"][0]["level_set"] |= change
    with pytest.raises(SolverError, match="the proof is wrong"):
        verified(proof)


@pytest.mark.slow
def test_a_file_with_a_level_set_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proven = prove_basin(NAME, spread=0.0, seconds=10.0)
    assert proven.nominal is not None
    claim, level_set = proven.nominal.claim(proven.spread), copy.deepcopy(grown()["claims"][0]["level_set"])
    proof, path = proven.about | {"claims": [claim | {"level_set": level_set}]}, tmp_path / "proof.json"
    write(path, proof)
    main(["check", str(path), "--jobs", "1"])
    assert "a level set of V" in capsys.readouterr().out
    empty = [EMPTY if side == HELD else side for side in level_set["tree"]]
    level_set |= {"level": 50.0, "half": [3.0, 3.0], "tree": empty}
    write(path, proof)
    assert main(["check", str(path), "--all", "--jobs", "1"]) == 1
    assert "does NOT surely enter the set: a cell is not shown" in capsys.readouterr().out
    del level_set["half"]
    write(path, proof)
    with pytest.raises(SolverError, match="a claim is not one"):
        check(path)
