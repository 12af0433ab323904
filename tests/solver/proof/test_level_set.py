"""Level sets from which every trajectory enters the basin: SciPy's integrator and Torch's V lie within the bounds."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modelgen.arrays import Array
from solver.cli import main
from solver.proof import EMPTY, HELD, Tree, write
from solver.proof.affine import Linear
from solver.proof.basin import prove_basin
from solver.proof.checker import check
from solver.proof.held_loop import HeldLoop
from solver.proof.level_set import LevelSearch, Rise, Samples
from solver.proof.motion import HeldPolicy, Step
from solver.proof.quadratic import Quadratic, least
from solver.proof.slope import Noisy, _tanh
from solver.training.solution import Solution, load_solution
from tests.solver.proof.test_held_loop import after, commanded

COUNT = 24


@cache
def loaded(name: str, share: float = 0.0) -> tuple[Solution, Rise, Samples]:
    """A policy, and the rise of V in y of its basin, whose half is proven."""
    solution = load_solution(name)
    loop = HeldLoop(solution)
    step = Step(
        HeldPolicy(solution, loop, patched=False), [(1.0, share)] * len(loop.nominal), 1e-5 * float(loop.limit[0])
    )
    back, shape = np.linalg.cholesky(np.linalg.inv(loop.cost / loop.level)), 2.0 * loop.cost / loop.level
    return solution, Rise(step, shape, back, np.full(len(back), 3.0)), Samples(solution, loop, shape, back)


def cells(n: int, half: float) -> tuple[Array, Array, Array]:
    """Cells of y about the basin, and a point of each."""
    generator = np.random.default_rng(0)
    y, sides = generator.uniform(-1.5, 1.5, (COUNT, n)), np.full((COUNT, n), half)
    return y, sides, y + sides * generator.uniform(-1, 1, (COUNT, n))


def value(samples: Samples, x: Array) -> Array:
    """V (N,) of the networks, by Torch in float64."""
    with torch.no_grad():
        return np.asarray(copy.deepcopy(samples.networks).double()(torch.as_tensor(x)).numpy())


@pytest.mark.parametrize(("name", "half"), [("pendulum-rfvi", 0.05), ("cartpole-rfvi", 0.05)])
@pytest.mark.slow
def test_the_rise_of_a_wrong_robot_lies_within_its_bounds(name: str, half: float) -> None:
    solution, rise, samples = loaded(name, 0.02)
    y, sides, at = cells(len(rise.back), half)
    low, high, _, _ = rise.rises(y, sides)
    x, loop = rise.loop.target + at @ rise.back.T, rise.loop
    robot, generator = solution.problem.robot.with_kernels(), np.random.default_rng(1)
    theta = loop.nominal * (1 + 0.02 * generator.choice([-1, 1], (COUNT, len(loop.nominal))))
    u = commanded(solution, x)
    ends = np.array([after(robot, x[k], u[k], theta[k], loop.step) for k in range(COUNT)])
    rises = value(samples, ends) - value(samples, x)
    known = ~np.isnan(low)
    assert known.mean() > 0.8
    assert (low[known] <= rises[known] + 1e-9).all()
    assert (rises[known] <= high[known] + 1e-9).all()
    width = (high - low)[known]
    assert np.median(width / np.abs(rises[known])) < 3.0


@pytest.mark.slow
def test_rests_that_are_symbols_are_smaller_and_hold_v_and_its_slope() -> None:
    _, rise, samples = loaded("cartpole-rfvi")
    y, sides, at = cells(4, 0.05)
    cell, t = rise.states(y, sides), (at - y) / sides
    found, plain = rise.slope.model(cell), _without_symbols(rise, cell)
    x = torch.as_tensor(rise.loop.target + at @ rise.back.T).requires_grad_()
    V = copy.deepcopy(samples.networks).double()(x)
    (slopes,) = torch.autograd.grad(V.sum(), x)
    for number, exact in ((found, slopes.numpy()), (rise.slope.value(cell), V.detach().numpy()[:, None])):
        missed = np.abs(exact - _at(number, t))
        assert (missed <= number.rest + 1e-9).all()
        assert (missed.max(0) > 1e-3 * number.rest.min(0)).all()  # the rest is no wild guess
    assert (found.rest < 0.1 * plain.rest).all()


def _without_symbols(rise: Rise, cell: Linear) -> Quadratic:
    before, rise.slope.number = rise.slope.number, lambda known: known
    try:
        return rise.slope.model(cell)
    finally:
        rise.slope.number = before


def _at(number: Quadratic, t: Array) -> Array:
    """Values (N, k) of the polynomials at symbols (N, d)."""
    first, second = np.triu_indices(t.shape[1])
    powers = np.concatenate([np.ones((1, len(t))), t.T, (t[:, first] * t[:, second]).T])
    return np.asarray((number.terms * powers[..., None]).sum(0))


def test_noise_cancels_where_the_same_rest_is_subtracted() -> None:
    whole = Noisy.of(Quadratic(np.ones((3, 2, 1)), np.full((2, 1), 0.5)))
    assert (whole - whole).bend.max() < 1e-12
    assert (whole + whole).spread == pytest.approx(1.0)
    other = Noisy.of(Quadratic(np.ones((3, 2, 1)), np.full((2, 1), 0.5)))
    assert (whole - other).spread == pytest.approx(1.0)  # other rests are other symbols
    product = (whole * other).whole
    assert (product.middle - product.bend <= 0.25).all()


@pytest.mark.parametrize("width", [0.05, 0.3, 1.0])
def test_functions_of_noisy_numbers_hold_their_values(width: float) -> None:
    """Over the symbol of the set, at both ends of the noise."""
    terms, t = np.zeros((3, 41, 1)), np.linspace(-1, 1, 101)
    terms[0, :, 0], terms[1] = np.linspace(-3, 3, 41), width
    number = Noisy.of(Quadratic(terms, np.full((41, 1), 0.5 * width)))
    (name,) = number.noise
    powers = np.stack([np.ones_like(t), t, t * t])
    functions: list[Any] = [np.tanh, lambda a: np.cosh(a) ** -2.0]
    for found, exact in zip(_tanh(number), functions, strict=True):
        for noise in (-1.0, 0.0, 1.0):
            a = terms[0] + width * t + 0.5 * width * noise
            at = np.einsum("kt,kn->nt", powers, found.known.terms[..., 0]) + noise * found.noise[name][0]
            assert (np.abs(exact(a) - at) <= found.known.rest + 1e-12).all()
        if width == 0.05:
            assert found.known.rest.max() < 5e-3


@pytest.mark.slow
def test_the_least_value_of_a_polynomial_is_that_of_a_fine_grid() -> None:
    generator = np.random.default_rng(0)
    number = Quadratic(generator.normal(size=(6, 50, 1)), np.full((50, 1), 0.1))
    number.terms[4] = 0.0  # of both symbols, whose sign is not used
    ticks = np.linspace(-1, 1, 201)
    t = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2)
    grid = np.array([_at(number, np.tile(point, (50, 1))) for point in t[::7]]).min(0) - 0.1
    assert (least(number) <= grid + 1e-12).all()
    assert (grid - least(number)).max() < 0.1


class Opposite(HeldPolicy):
    """The policy with the other sign."""

    def ways(self, x: Linear) -> Any:
        for at, u in super().ways(x):
            yield at, -u


@pytest.mark.slow
def test_no_level_is_proven_of_a_policy_that_pushes_the_wrong_way() -> None:
    solution, rise, samples = loaded("pendulum-rfvi")
    loop = rise.loop
    step = Step(Opposite(solution, loop, patched=False), [(1.0, 0.0)] * len(loop.nominal), 0.0)
    search = LevelSearch(Rise(step, rise.shape, rise.back, np.full(2, 1.5)))
    search.run(3.0)
    y = np.random.default_rng(0).uniform(-1.5, 1.5, (4000, 2))
    V, inside = samples.values(y)
    assert not ((-search.level <= V) & ~inside & (V < -0.02)).any()  # what is claimed is in the ellipsoid


@pytest.mark.slow
def test_a_level_set_is_proven_checked_and_goes_on(tmp_path: Path) -> None:
    path, more = tmp_path / "proof.json", tmp_path / "more.json"
    first = prove_basin("pendulum-rfvi", spread=0.0, seconds=2.0, level_set=5.0)
    first.write(path)
    found = first.levels[0]
    assert found is not None
    assert first.nominal is not None
    assert found.share > first.nominal.share > 0.9
    assert all(part.holds for part in check(path, one_in=20))
    _, _, samples = loaded("pendulum-rfvi")
    y = np.random.default_rng(1).uniform(-1, 1, (20000, 2)) * found.half
    V, _ = samples.values(y)
    y = y[-found.level <= V]
    for _ in range(400):  # 3.2 s
        y = samples.after(y)
    e = y @ found.back.T
    assert len(y) > 100
    assert (np.einsum("ni,ij,nj->n", e, first.nominal.shape, e) < 1).all()
    arguments = ["pendulum-rfvi", "--spread", "0", "--level-set", "3", "--jobs", "2", "--resume", str(path)]
    assert main(["prove", *arguments, "--out", str(more)]) == 0
    claim = json.loads(more.read_text())["claims"][0]["level_set"]
    assert claim["level"] > found.level * (1 - 1e-6)
    assert len(claim["tree"]) >= len(found.tree)
    assert all(part.holds for part in check(more, one_in=40))
    assert claim["tree"].count(HELD) >= found.cells


def test_a_tree_that_is_grown_again_is_the_same() -> None:
    tree = Tree()
    halves = tree.decide(np.array([0]), np.array([1]))
    others = tree.decide(halves, np.array([HELD, 0]))
    again, nodes = Tree.grown(tree.walk())
    assert again.walk() == tree.walk() == [1, HELD, 0, EMPTY, EMPTY]
    assert len(others) == len(nodes) == 2
    again.decide(nodes[:1], np.array([1]))
    assert again.walk() == [1, HELD, 0, 1, EMPTY, EMPTY, EMPTY]


@pytest.mark.slow
def test_a_box_that_is_proven_as_a_whole_has_a_finite_level() -> None:
    _, rise, samples = loaded("pendulum-rfvi")
    half = np.full(2, 0.8)  # beyond the ellipsoid, and within the basin
    search = LevelSearch(Rise(rise.step, rise.shape, rise.back, half))
    assert not search.run(60.0)
    assert search.held > 0
    level, share, widths = samples.level_set(search.level, half)
    assert 0.1 < level < 2.0
    assert share == pytest.approx(1.6**2 / np.pi)
    assert widths == pytest.approx(np.abs(rise.back) @ half, rel=0.05)


@pytest.mark.slow
def test_a_search_goes_on_from_its_cells_and_level() -> None:
    _, rise, _ = loaded("pendulum-rfvi")
    whole = Rise(rise.step, rise.shape, rise.back, np.full(2, 1.2))
    first = LevelSearch(whole)
    for _ in range(20):  # a search ends after the batch in which its time does
        first.run(0.1)
        if first.held:
            break
    assert first.level > 0
    going = LevelSearch(whole, first.tree.walk(), first.level)
    assert going.level == pytest.approx(first.level)
    assert going.held == first.held
    going.run(4.0)
    assert going.held > first.held
    assert going.level > 1.01 * first.level


@pytest.mark.slow
def test_a_part_that_would_be_lost_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "proof.json"
    proof = prove_basin("pendulum-rfvi", spread=0.0, seconds=1.0)
    assert proof.nominal is not None
    claim = proof.nominal.claim([0.0] * len(proof.spread)) | {"reach": {"first": 512, "seconds": 1.0, "slices": [[]]}}
    write(path, proof.about | {"claims": [claim]})
    assert main(["prove", "pendulum-rfvi", "--spread", "0", "--level-set", "1", "--resume", str(path)]) == 2
    assert "has a part of --reach" in capsys.readouterr().err


def test_robots_of_more_inputs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "planar_arm2-rfvi", "--spread", "0", "--seconds", "1", "--level-set", "1"]) == 2
    assert "one input" in capsys.readouterr().err
