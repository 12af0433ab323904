"""States that enter the basin: SciPy's integrator lies within one period's bounds, a known set is found, no more is."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.arrays import Array
from solver.cli import main
from solver.errors import SolverError
from solver.jobs.engines import Here
from solver.proof import SLICE, slices
from solver.proof.affine import Linear, Mask
from solver.proof.held_loop import HeldLoop
from solver.proof.motion import HeldPolicy, Images, Step
from solver.proof.quadratic import Quadratic, beside
from solver.proof.reach import Grid, Search, searched, within
from solver.proof.slope import Patches, Slope
from solver.training.solution import load_solution
from tests.solver.proof.test_held_loop import after, commanded

COUNT = 40


@pytest.mark.parametrize("share", [1 / 128, 1 / 1024])
@pytest.mark.slow
def test_trajectories_of_wrong_robots_lie_within_one_period(share: float) -> None:
    solution, generator = load_solution("pendulum-rfvi"), np.random.default_rng(0)
    loop = HeldLoop(solution)
    robot, robots = solution.problem.robot.with_kernels(), slices([0.15, 0.15])[-1]  # the farthest ones
    step = Step(HeldPolicy(solution, loop, patched=True), robots, 1e-5 * float(loop.limit[0]))
    centre = generator.uniform(-1, 1, (COUNT, 2)) * loop.bound * 0.95
    centre[::4] *= 0.1
    form, level = solution.ensemble.basin.cost.double().numpy(), float(solution.ensemble.basin.level)
    edge = centre[1::4]  # where the policy changes
    edge *= np.sqrt(level / np.einsum("ni,ij,nj->n", edge, form, edge))[:, None]
    radius, t = share * loop.bound, generator.uniform(-1, 1, (COUNT, 2))
    slopes = np.zeros((2, COUNT, 2))
    slopes[0, :, 0], slopes[1, :, 1] = radius
    x = centre + radius * t
    middle, half = np.array(robots).T
    u, theta = commanded(solution, x), loop.nominal * (middle + half * generator.choice([-1, 1], (COUNT, 2)))
    ends = np.array([after(robot, x[k], u[k], theta[k], loop.step) for k in range(COUNT)])
    held, unknown, rests = np.zeros(COUNT, bool), np.zeros(COUNT, bool), list[float]()
    for at, found, known in step(Linear(centre, slopes, np.zeros((COUNT, 2)))):
        missed = np.abs(ends[at] - found.middle - np.einsum("dni,nd->ni", found.slopes, t[at]))
        held[at] |= (missed <= found.rest + 1e-12).all(1)
        unknown[at] |= ~known
        rests.extend(found.rest[known])
    assert unknown.mean() < 0.1
    assert (held | unknown).all()
    assert np.median(rests) < 0.2 * share


def cycle(sign: float, x: Linear) -> list[Images]:
    """r + h sign r (r^2 - 1): with sign 1, all states within the limit cycle r = 1 go to 0, and no other."""
    square = (x * x).to(np.ones((2, 2)))
    count = len(x.middle)
    return [(np.arange(count), x + (x * square.plus(-1.0)).times(0.2 * sign), np.ones(count, bool))]


def proven(step: Callable[[Linear], list[Images]], around: bool) -> tuple[Mask, Array]:
    lower, upper = np.full(2, -1.5), np.full(2, 1.5)
    start = within(lower, upper, np.zeros(2), np.eye(2) / 0.2**2, 128)
    grid = Grid(lower, upper, np.full(2, around), start)
    search = Search(step, grid)
    while search.round():
        search.sweep()
    middle = (np.arange(128) + 0.5) / 128 * 3 - 1.5
    return grid.proven, np.hypot(*np.meshgrid(middle, middle, indexing="ij"))


def test_all_within_a_limit_cycle_is_proven_and_no_state_beyond_it() -> None:
    found, radius = proven(partial(cycle, 1.0), around=False)
    assert not found[radius > 1.0].any()
    assert found[radius < 0.9].all()


def test_nothing_more_is_proven_where_the_target_is_left() -> None:
    found, radius = proven(partial(cycle, -1.0), around=True)
    assert not found[radius > 0.2].any()


def test_boxes_without_any_input_are_lost() -> None:
    found, radius = proven(lambda _: [], around=False)
    assert not found[radius > 0.2].any()


@pytest.mark.parametrize(("other", "all_arrive"), [(0.5, True), (-1.0, False)])
@pytest.mark.slow
def test_a_box_with_two_images_is_proven_if_both_are(other: float, all_arrive: bool) -> None:
    found, radius = proven(lambda x: cycle(1.0, x) + cycle(other, x), around=False)
    assert found[radius < 0.9].all() == all_arrive
    assert not found[radius > (1.0 if all_arrive else 0.2)].any()


def test_a_set_within_proven_boxes_counts_though_it_has_several_images_itself() -> None:
    """The box at 2.5 goes to 1.9 and 0.9, the one at 3.5 to 2.1 and then both to 1.5 and to 7.5; 0 to 2 is proven."""

    def step(x: Linear) -> list[Images]:
        at = x.middle[:, 0].round(1)
        goal = np.select([at == 2.5, at == 3.5, at == 1.9, at == 2.1], [1.9, 2.1, 0.9, 1.5], 7.5)
        both = np.flatnonzero(at == 2.1)
        moved = x.plus((goal - at)[:, None]), x.rows(both).plus(5.4)
        return [
            (rows, one, np.ones(len(rows), bool)) for rows, one in zip((np.arange(len(at)), both), moved, strict=True)
        ]

    grid = Grid(np.zeros(1), np.full(1, 8.0), np.zeros(1, bool), np.arange(8) < 2)
    search = Search(step, grid)
    while search.round():
        search.sweep()
    assert grid.proven.tolist() == [True] * 4 + [False] * 4


@given(spread=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=2), seed=st.integers(0, 1000))
def test_every_robot_of_a_spread_is_in_a_narrow_slice(spread: list[float], seed: int) -> None:
    middle, half = np.moveaxis(np.array(slices(spread)), 2, 0)  # (slices, parameters)
    robot = 1 + np.array(spread) * np.random.default_rng(seed).uniform(-1, 1, len(spread))
    assert (np.abs(robot - middle) <= half + 1e-12).all(1).any()
    assert half.max() <= SLICE * (1 + 1e-6)
    assert (np.abs(middle - 1) + half <= np.array(spread) + 1e-12).all()


def waves(x: Linear) -> Quadratic:
    """sin(3 a) cos(b), and b tanh(30 sin a), whose patches have unlike parts."""
    a, b = (Quadratic.of(x)[[k]] for k in range(2))
    wave, slow = (a.times(factor).function("sin") for factor in (3.0, 1.0))
    return beside([wave * b.function("cos"), slow.times(30.0).function("tanh") * b])


@pytest.mark.parametrize("cells", [0.6, 1.5, 7.0])
def test_a_function_lies_within_its_patches(cells: float) -> None:
    generator, bound = np.random.default_rng(0), np.array([np.pi, 2.0])
    patches = Patches(waves, np.array([True, False]), -bound, bound)
    centre = generator.uniform(-1, 1, (COUNT, 2)) * bound
    centre[::4, 0] += 2 * np.pi  # the first state is an angle
    centre[1::4, 0] *= 0.02  # where the hyperbolic tangent bends
    slopes = generator.uniform(-1, 1, (2, COUNT, 2)) * cells / 4 * patches.width
    found, rest = patches(Linear(centre, slopes, np.zeros((COUNT, 2))))
    for _ in range(100):
        t = np.sign(generator.uniform(-1, 1, (COUNT, 2))) * generator.uniform(0, 1, (COUNT, 1)) ** 0.2
        a, b = (centre + np.einsum("dnk,nd->nk", slopes, t)).T
        missed = np.stack([np.sin(3 * a) * np.cos(b), np.tanh(30 * np.sin(a)) * b], 1) - found.middle
        missed -= np.einsum("dnk,nd->nk", found.slopes, t)
        assert (np.abs(missed) <= found.rest + 1e-13).all()
    assert np.isfinite(rest).all()
    assert (rest[:, 0] < 4 * (2 * cells * patches.width[0]) ** 3).all()


@pytest.mark.parametrize("level", range(4))
def test_a_patch_holds_all_of_its_cells(level: int) -> None:
    generator, bound = np.random.default_rng(0), np.array([np.pi, 2.0])
    patches = Patches(waves, np.array([True, False]), -bound, bound)
    middle = generator.uniform(-0.05, 0.05, (COUNT, 2))
    place = np.round((middle - patches.lower) / patches.width / 2**level).astype(np.int64)
    terms, rest = patches._made(level, place)
    for _ in range(200):
        t = generator.uniform(-1, 1, (COUNT, 2))
        a, b = (patches.lower + (place + t) * patches.width * 2**level).T
        truth = np.stack([np.sin(3 * a) * np.cos(b), np.tanh(30 * np.sin(a)) * b], 1)
        found = np.einsum("nr,nrk->nk", patches._powers(t), terms)
        assert (np.abs(truth - found) <= rest + 1e-13).all()


def test_there_is_no_patch_of_a_wide_box_or_far_beyond_a_limit() -> None:
    patches = Patches(waves, np.array([True, False]), -np.ones(2) * np.pi, np.ones(2) * np.pi)
    wide = Linear(np.zeros((1, 2)), 20 * patches.width * np.eye(2)[:, None], np.zeros((1, 2)))
    far = Linear(np.array([[0.0, 5.0]]), 1e-3 * np.eye(2)[:, None], np.zeros((1, 2)))
    assert np.isinf([patches(x)[1] for x in (wide, far)]).all()


@pytest.mark.parametrize("unknown", [np.inf, np.nan])
@pytest.mark.slow
def test_nothing_is_known_where_the_networks_are_not(unknown: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the edge of the basin, where the image by the form alone would be narrow."""
    solution = load_solution("pendulum-rfvi")
    loop = HeldLoop(solution)
    monkeypatch.setattr(
        Slope, "networks", lambda _, x, *__: Linear(0 * x.middle, 0 * x.slopes, np.full_like(x.rest, unknown))[[0]]
    )
    step = Step(HeldPolicy(solution, loop, patched=True), [(1.0, 0.0)] * 2, 0.0)
    edge = np.random.default_rng(0).normal(size=(COUNT, 2))
    edge *= np.sqrt(loop.level / np.einsum("ni,ij,nj->n", edge, loop.cost, edge))[:, None]
    box = Linear(edge, 1e-3 * np.ones((1, COUNT, 2)), np.zeros((COUNT, 2)))
    if np.isnan(unknown):
        sure = np.ones(COUNT, bool)
        for at, _, known in step(box):
            sure[at] &= known
        assert not sure.any()
    else:  # w may be any number, and the input any one within its limits
        ends = np.zeros((2, COUNT))
        with np.errstate(all="ignore"):
            for at, u in step.policy.ways(box):
                ends[0][at] = np.minimum(ends[0][at], u.ends[0][:, 0])
                ends[1][at] = np.maximum(ends[1][at], u.ends[1][:, 0])
        assert (ends[0] <= -loop.limit[0]).all()
        assert (ends[1] >= loop.limit[0]).all()


WAY = ["prove", "pendulum-rfvi", "--spread", "0.05", "--parameters", "mass", "--seconds", "10"]
ONCE = ["--reach", "1e-9"]  # every slice follows its boxes for one period


@pytest.fixture(scope="module")
def balls(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of the sets around the target, whose sizes depend on the time that a search took."""
    path = str(tmp_path_factory.mktemp("balls") / "proof.json")
    assert main([*WAY, "--out", path]) == 0
    return path


@pytest.mark.slow
def test_the_parameters_that_may_differ_are_named(balls: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WAY, *ONCE, "--jobs", "1", "--resume", balls]) == 0
    assert "\nmass +-5 %  proven, " in capsys.readouterr().out


def slices_of(path: Path) -> list[list[list[int]]]:
    found: list[list[list[int]]] = json.loads(path.read_text())["claims"][1]["reach"]["slices"]
    return found


@pytest.mark.slow
def test_one_process_and_two_give_the_same_slices(
    balls: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (tmp_path / f"{jobs}.json" for jobs in "12")
    for jobs, out in (("1", one), ("2", two)):
        assert main([*WAY, *ONCE, "--jobs", jobs, "--resume", balls, "--out", str(out)]) == 0
    assert capsys.readouterr().out.count("every trajectory enters that set") == 4
    assert slices_of(one) == slices_of(two)
    assert [len(groups) > 0 for groups in slices_of(two)] == [True, True]


@pytest.mark.slow
def test_a_broken_search_keeps_finished_slices(balls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, whole, submit = tmp_path / "broken.json", tmp_path / "whole.json", Here.submit

    def breaking(place: Here, call: Callable[..., Any], /, *args: Any) -> Future[Any]:
        if args[2] == slices([0.05, 0.0])[1]:
            raise KeyboardInterrupt
        return submit(place, call, *args)

    monkeypatch.setattr(Here, "submit", breaking)
    assert main([*WAY, *ONCE, "--jobs", "1", "--resume", balls, "--out", str(broken)]) == 130
    monkeypatch.undo()
    assert [len(groups) > 0 for groups in slices_of(broken)] == [True, False]
    assert main([*WAY, *ONCE, "--jobs", "1", "--out", str(whole), "--resume", str(broken)]) == 0
    assert all(slices_of(whole))
    assert slices_of(whole)[0][: len(slices_of(broken)[0])] == slices_of(broken)[0]


@pytest.mark.slow
def test_a_run_that_changes_under_a_search_is_refused() -> None:
    with pytest.raises(SolverError, match="changed while"):
        searched(("pendulum-rfvi", None, "0" * 64, "0" * 64), np.eye(2), [(1.0, 0.0)] * 2, 0.0, [], 1.0)
