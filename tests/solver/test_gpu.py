"""Everything that a training does on a GPU: on one where Torch sees one, else on a pretended one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from solver.fvi import fit as fit_module
from solver.fvi.fit import FitPlan, fit_ensemble
from solver.fvi.targets import Lookahead, chunk_targets
from solver.game import Game, policies
from solver.game.adversaries import ActionAdversary, Modulation, make_adversaries
from solver.game.policies import Hold
from solver.parallel import Replayed
from solver.plants.outcome import controller, rollouts
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.training.lifecycle import load_rollout_policy, resume
from solver.training.settings import Settings
from solver.training.solution import load_run_checkpoint, make_ensemble
from solver.value.fitting import Adam, Optimiser, Soap
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble, Factor
from tests.solver.pretended_gpu import pretended_gpu
from tests.solver.small_trainings import shortened, start, unjudged

pytestmark = pytest.mark.slow

ROBOTS = ("pendulum", "double_pendulum")  # one input, and two
ORDER = torch.randperm(50, generator=torch.Generator().manual_seed(2))

gpu = nullcontext if torch.cuda.is_available() else pretended_gpu


@pytest.fixture(scope="module", autouse=True)
def on_gpu() -> Iterator[None]:
    with gpu():
        yield


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Artifacts of two robots whose horizons are five periods: a pretended GPU is slow."""
    return shortened(tmp_path_factory.mktemp("brief"), ROBOTS, 0.04, 125)


def test_targets_and_rollouts_are_those_of_the_cpu(
    brief: str, tiny: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "_negligible", lambda *_: False)
    settings = tiny(algorithm="rfvi", modulation="stationary", reaction_periods=1.0)
    found = {}
    for device in ("cpu", "cuda"):
        problem = Problem(load_robot("double_pendulum", device, brief), device, "euler")
        ensemble = make_ensemble(problem.robot, settings).to(device)
        limits = problem.state_limits
        x = torch.linspace(-0.9, 0.9, 7 * len(limits)).reshape(7, -1).to(device) * limits
        ensemble.set_metric(torch.diag(1.0 / limits**2), 10.0)
        value, game = FrozenValue(ensemble), Game(problem, make_adversaries(settings.adversaries), 1.0)
        with torch.no_grad():
            targets = chunk_targets(game, value, x, Lookahead(0.8, 0.1, 2, Hold(1.0)), 0)
            rolled = rollouts(problem, controller(problem, value, Hold(1.0)), x)
        found[device] = [each.cpu() for each in (targets, rolled.x, rolled.u, rolled.returns)]
    for here, there in zip(*found.values(), strict=True):
        torch.testing.assert_close(there, here, rtol=1e-3, atol=1e-4)


def test_a_run_trains_and_goes_on_and_is_loaded_on_the_cpu(
    brief: str, tiny: Callable[..., Settings], tmp_path: Path
) -> None:
    changes: dict[str, Any] = {
        "algorithm": "rfvi",
        "sampling": "mixture",
        "basin": True,
        "authors": False,
        "modulation": "stationary",
    }
    settings = tiny(**changes, reaction_periods=1.0, device="cuda", iterations=2, evaluate_every=2)
    rows: list[dict[str, float]] = []

    def interrupted(row: dict[str, float]) -> None:
        rows.append(row)
        if len(rows) == 1:
            raise KeyboardInterrupt

    with unjudged():
        with pytest.raises(KeyboardInterrupt):
            start("pendulum", "fast", settings, tmp_path / "run", brief, interrupted)
        resume(tmp_path / "run", rows.append)
    assert [row["iteration"] for row in rows] == [0, 1]
    problem, act, _ = load_rollout_policy(tmp_path / "run")
    assert act(problem.target[None])[0].device.type == "cpu"
    assert load_run_checkpoint(tmp_path / "run")["iteration"] == 2


@pytest.mark.parametrize(
    ("make", "tolerance"), [(lambda m: Adam(m, 1e-3, 1e-4, True), 1e-4), (lambda m: Soap(m, 1e-3, 1e-4), 0.1)]
)
def test_a_fit_takes_the_steps_of_the_cpu(make: Callable[[Factor], Optimiser], tolerance: float) -> None:
    """Of all three kinds that SOAP has, on full and shorter minibatches, with another learning rate in each epoch.

    SOAP amplifies rounding, so that it is compared with a launch for each operation too, on the same device.
    """
    losses, weights = {}, {}
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(1))
    for how, device in (("cpu", "cpu"), ("launched", "cuda"), ("replayed", "cuda")):
        ensemble = Ensemble([True, False, False], [0.0] * 3, [1.0, 0.5, 0.7], 2, 2, 8, torch.Generator().manual_seed(0))
        ensemble = ensemble.to(device)
        optimisers = [make(member) for member in ensemble.factors]
        states = x.to(device)
        target, fit = -(states**2).sum(1), FitPlan(3, (1e-2, 1e-3, 1e-4))
        with (
            ThreadPoolExecutor(1) as workers,
            mock.patch("torch.randperm", return_value=ORDER.to(device)),
            mock.patch.object(fit_module, "Replayed", Replayed if how == "replayed" else lambda function: function),
        ):
            losses[how] = fit_ensemble(ensemble, optimisers, states, target, fit, 0, workers)
        weights[how] = torch.cat([each.cpu().flatten() for each in ensemble.state_dict().values()])
    assert losses["replayed"] == pytest.approx(losses["launched"], rel=1e-5)
    torch.testing.assert_close(weights["replayed"], weights["launched"], rtol=1e-4, atol=1e-6)
    assert losses["replayed"] == pytest.approx(losses["cpu"], rel=tolerance)
    torch.testing.assert_close(weights["replayed"], weights["cpu"], rtol=0.0, atol=tolerance)


def test_random_radii_are_drawn_anew_in_every_replay() -> None:
    """The walk goes on from the first step, which is no graph, and its variance grows in proportion to time."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    modulation = Modulation("wiener", 0.1, generator)
    adversary, shape = ActionAdversary(1.96), torch.Size((2000, 2))
    draw = Replayed(lambda x: (torch.as_tensor(modulation.radius(adversary, shape)) + x,), generator)
    zero = torch.zeros(1).to("cuda")
    radii = [draw(zero)[0].cpu() for _ in range(5)]
    for k, radius in enumerate(radii):
        assert float((radius**2).mean()) == pytest.approx(2 * 0.1 * (k + 1), rel=0.1)


def test_a_replayed_function_reads_its_arguments_anew() -> None:
    scale = torch.full((1,), 2.0, device="cuda")
    double = Replayed(lambda x: (x * scale, x.sum()))
    for size in (5, 3, 5, 3):
        x = torch.rand(size).to("cuda")
        first, second = double(x)
        torch.testing.assert_close(first.cpu(), 2.0 * x.cpu())
        torch.testing.assert_close(second.cpu(), x.cpu().sum())
    kept = first.cpu()
    double(torch.zeros(3).to("cuda"))
    torch.testing.assert_close(first.cpu(), kept)
