"""The check of boxes that enter a basin: V's slope by Torch, trajectories by SciPy, and changed boxes and models."""

from __future__ import annotations

import copy
import pickle
import re
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solver.cli import main
from solver.errors import SolverError
from solver.proof import Equations, entering, sha256, slices, write
from solver.proof.balls import Array, Balls
from solver.proof.basin import prove_basin
from solver.proof.checker import _require_same, check
from solver.proof.entering import ClaimedBoxes
from solver.proof.held_loop import HeldLoop
from solver.proof.jets import Powers, Sloped
from solver.proof.motion import HeldPolicy, Step
from solver.proof.networks import Networks
from solver.proof.reach import GRID, Grid, Reach, Search, within
from solver.proof.sampled_loop import SampledLoop
from solver.runs.shipped import run_folder
from solver.training.solution import load_solution
from tests.solver.proof.test_held_loop import after, commanded

NAME = "pendulum-rfvi"
CHECKPOINT = run_folder(NAME) / "checkpoint.pt"
COUNT = 24
UPPER, AROUND = np.array([np.pi, 8.0]), np.array([True, False])


@cache
def proven(spread: float = 0.0) -> dict[str, Any]:
    """A proof with the boxes of the pendulums within a spread of the mass that one or two periods find."""
    proof, solution = prove_basin(NAME, spread=spread, seconds=10.0, parameters=["mass"]), load_solution(NAME)
    ball, shares = (proof.wrong, proof.spread) if spread else (proof.nominal, proof.spread)
    assert ball is not None
    loop, found = HeldLoop(solution), []
    policy = HeldPolicy(solution, loop, patched=True)
    upper = np.array([np.pi, loop.bound[1]])
    for robots in slices(shares):
        step = Step(policy, robots, 1e-5 * float(loop.limit[0]))
        start = within(-upper, upper, loop.target, ball.shape, GRID)
        search = Search(step, Grid(-upper, upper, np.array([True, False]), start))
        for _ in range(1 if spread else 2):
            search.round()
            search.sweep()
        found.append(search.found)
    reach = Reach(-upper, upper, search.grid.proven, 0.0, GRID, found)
    return proof.about | {"claims": [ball.claim(shares) | {"reach": reach.claim()}]}


def boxes(proof: dict[str, Any], equations: Equations | None = None, checkpoint: Path = CHECKPOINT) -> ClaimedBoxes:
    """The boxes of a proof of the nominal robot, of this model and these networks."""
    claim = proof["claims"][0]
    about = proof | {"checkpoint": sha256(checkpoint)}
    loop = SampledLoop(about, equations or _require_same(proof, None), checkpoint, slices([0.0, 0.0])[0])
    return ClaimedBoxes(loop, claim["shape"], claim["reach"]["first"], claim["reach"]["slices"][0])


@np.errstate(all="ignore")
def shown(found: ClaimedBoxes, step: int = 40) -> bool:
    """Whether some of the boxes, the last one among them, are shown."""
    return found.verify(found.rows[::-step])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "proof.json"
    write(path, proven())
    return path


def sets(centre: Array, radius: Array) -> list[Sloped]:
    """Boxes centre +- radius (N, n)."""
    n = centre.shape[1]
    return [Sloped(centre[:, i], np.eye(n)[i][:, None] * radius[:, i], np.zeros(len(centre))) for i in range(n)]


def states(generator: np.random.Generator, bound: Array) -> Array:
    centre: Array = generator.uniform(-1, 1, (COUNT, 2)) * bound * 0.95
    centre[::4] *= 0.1  # the policy changes at the basin's edge
    return centre


@pytest.mark.parametrize("share", [1e-6, 1 / 512])
def test_slopes_of_the_networks_lie_within(share: float) -> None:
    solution, generator = load_solution(NAME), np.random.default_rng(0)
    loop, ensemble = HeldLoop(solution), solution.ensemble.double()
    centre = states(generator, loop.bound)
    t = generator.uniform(-1, 1, centre.shape)
    networks = Networks(CHECKPOINT, loop.target, -UPPER, UPPER, AROUND)
    found = networks.slopes(sets(centre, np.tile(share * loop.bound, (COUNT, 1))))
    x = torch.tensor(centre + share * loop.bound * t, requires_grad=True)
    features = ensemble.features
    z = features(x)
    error = features.error(z)
    torch.stack([member(z, error) for member in ensemble.factors]).mean(0).sum().backward()
    assert x.grad is not None
    for i, slope in enumerate(found):
        missed = np.abs(x.grad[:, i].numpy() - slope.middle - (slope.slopes * t.T).sum(0))
        assert (missed <= slope.rest + 1e-6).all()  # features at the target are rounded to float32
        assert np.median(slope.rest) < 2e-2  # by tiles of twice this width


def test_third_derivatives_at_points_are_below_the_bounds_of_a_tile() -> None:
    networks, generator = Networks(CHECKPOINT, np.zeros(2), -UPPER, UPPER, AROUND), np.random.default_rng(0)
    centre, half = states(generator, UPPER), UPPER / 256
    most = networks._third([Balls(centre[:, i], np.full(COUNT, half[i])) for i in range(2)])
    for _ in range(20):
        x = centre + half * generator.choice([-1, 1], centre.shape) * generator.uniform(0, 1, (COUNT, 1)) ** 0.1
        at = networks._value([Balls.of(x[:, i]) for i in range(2)], Powers.up_to(2, 3), [])
        assert (most * (1 + 1e-9) >= np.abs(at.middle[-4:]).T).all()


@pytest.mark.slow
def test_inputs_lie_within_and_follow_their_states() -> None:
    """A set whose input knew no slopes would grow in every period, so that true boxes would be refused."""
    solution, generator, proof = load_solution(NAME), np.random.default_rng(0), proven()
    about = proof | {"checkpoint": sha256(CHECKPOINT)}
    loop = SampledLoop(about, _require_same(proof, None), CHECKPOINT, slices([0.0, 0.0])[0])
    centre, half = states(generator, loop.bound), loop.bound / 512
    t = generator.uniform(-1, 1, centre.shape)
    u = loop.inputs(sets(centre, np.tile(half, (COUNT, 1))))
    missed = np.abs(commanded(solution, centre + half * t)[:, 0] - u.middle - (u.slopes * t.T).sum(0))
    assert (missed <= u.rest + 1e-4).all()  # the policy computes in float32
    assert u.slopes.any(0).mean() > 0.7


@pytest.mark.parametrize(("share", "spread"), [(1 / 512, 0.15), (1e-8, 0.0)])
@pytest.mark.slow
def test_trajectories_of_wrong_robots_lie_within_one_period(share: float, spread: float) -> None:
    solution, generator = load_solution(NAME), np.random.default_rng(0)
    robots = slices([spread, spread])[-1]  # the farthest ones
    loop, proof = HeldLoop(solution), proven() | ({} if spread else {"input_error": [0.0]})
    centre = states(generator, loop.bound)
    t = generator.uniform(-1, 1, centre.shape)
    equations = _require_same(proof, None)
    with np.errstate(all="ignore"):
        ends, inside = SampledLoop(proof, equations, CHECKPOINT, robots).after(
            sets(centre, np.tile(share * loop.bound, (COUNT, 1)))
        )
    assert inside.mean() > 0.9
    x, robot = centre + share * loop.bound * t, solution.problem.robot.with_kernels()
    middle, half = np.array(robots).T
    u, theta = commanded(solution, x), loop.nominal * (middle + half * generator.choice([-1, 1], (COUNT, 2)))
    truth = np.array([after(robot, x[k], u[k], theta[k], loop.step) for k in range(COUNT)])
    for i, end in enumerate(ends):
        missed = np.abs(truth[:, i] - end.middle - (end.slopes[:2] * t.T).sum(0))
        assert (missed <= end.rest + 1e-7)[inside].all()  # the policy computes its input in float32
    # 0.0055 without pieces of the slice; 4e-7 with four terms of the motion in time
    assert np.median(ends[1].rest[inside]) < (0.0042 if spread else 1e-7)


@pytest.mark.slow
def test_a_file_with_boxes_is_checked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for words in ([], ["--one-in", "100"]):
        assert main(["check", str(file), *words]) == 0
        printed = re.search(r"of the domain enters the set \((\d+) of (\d+) boxes", capsys.readouterr().out)
        assert printed is not None
        counts.append(int(printed[1]) / int(printed[2]))
    assert 0.05 < counts[0] < 0.15
    assert counts[1] < 0.03
    assert main(["check", str(file), "--all", "--one-in", "2"]) == 2


@pytest.mark.slow
def test_wrong_robots_are_checked_slice_by_slice(tmp_path: Path) -> None:
    proof, path = copy.deepcopy(proven(0.05)), tmp_path / "proof.json"
    reach = proof["claims"][0]["reach"]
    write(path, proof)
    (shown,) = check(path, 100, seed=1)
    assert shown.holds
    assert shown.entering is not None
    assert shown.entering.boxes == sum((len(group) - 1) // 3 for found in reach["slices"] for group in found)
    reach["slices"].pop()
    write(path, proof)
    with pytest.raises(SolverError, match="is wrong"):
        check(path)


@pytest.mark.slow
def test_proven_boxes_are_shown() -> None:
    found = boxes(proven())
    assert len(found.rows) > 100
    assert shown(found, 10)


@pytest.mark.parametrize("kind", ["far", "order", "gap"])
@pytest.mark.slow
def test_changed_boxes_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box far from the others instead of one, an order in which boxes come before those that they enter, a gap."""
    monkeypatch.setattr(entering, "DEEPEST", 1)  # halves do not make it true
    proof = copy.deepcopy(proven())
    groups = proof["claims"][0]["reach"]["slices"][0]
    if kind == "far":
        groups[-1][-2] = (groups[-1][-2] + GRID // 4) % GRID
    elif kind == "order":
        groups.insert(0, groups.pop())
    else:
        del groups[0]
    found = boxes(proof)
    first = found.rows[:40:4]
    with np.errstate(all="ignore"):
        assert not (shown(found, len(found.rows)) if kind == "far" else found.verify(first))


@pytest.mark.slow
def test_boxes_of_another_model_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes would be right: a wrong sign of gravity."""
    monkeypatch.setattr(entering, "DEEPEST", 1)
    content = copy.deepcopy(vars(_require_same(proven(), None)))
    nodes = content["nodes"]
    nodes[nodes.index(4.905)] *= -1
    assert not shown(boxes(proven(), Equations(content)), 16)


@pytest.mark.slow
def test_networks_of_another_policy_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes would be right: the entries of the metric are in another order."""
    monkeypatch.setattr(entering, "DEEPEST", 1)
    changed = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(CHECKPOINT) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("data/6"):  # the metric of the error
                content = np.roll(np.frombuffer(content, "<f4"), 1).tobytes()
            new.writestr(name, content)
    assert not shown(boxes(proven(), checkpoint=changed))


@pytest.mark.slow
def test_a_box_outside_the_domain_is_refused() -> None:
    proof = copy.deepcopy(proven())
    proof["claims"][0]["reach"]["slices"][0][0][2] = GRID
    with pytest.raises(SolverError, match="outside the domain"):
        boxes(proof)


def test_a_checkpoint_of_other_things_is_refused(tmp_path: Path) -> None:
    """An unpickler runs what a file names, so that ours knows tensors only."""
    with zipfile.ZipFile(tmp_path / "checkpoint.pt", "w") as stored:
        stored.writestr("checkpoint/data.pkl", pickle.dumps(Path("x")))
        stored.writestr("checkpoint/byteorder", "little")
    with pytest.raises(SolverError, match="does not know"):
        boxes(proven(), checkpoint=tmp_path / "checkpoint.pt")


@pytest.mark.slow
def test_networks_that_are_told_parameters_are_refused(trained_family: Callable[[str], Path]) -> None:
    with pytest.raises(SolverError, match="told parameters"):
        Networks(trained_family("pendulum") / "checkpoint.pt", np.zeros(2), -UPPER, UPPER, AROUND)
