"""Observer, compared with a linear Kalman filter, with true states, and with its own covariance."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.observer import FOUND, PUSH, Observer, make_sensing, usual_counts
from solver.plants.harsh import Harsh, Harshness
from solver.plants.outcome import rollouts
from solver.plants.plant import Nominal, Plant
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.problem.robots import load_robot
from tests.solver.observer.linear_filter import LinearFilter

Load = Callable[[str], CompiledRobot]


def pushes(problem: Problem, size: int, periods: int, share: float = 0.3) -> list[Tensor]:
    """Inputs (size, m) of each period, which change every ten periods. share: of the input limits."""
    generator = torch.Generator().manual_seed(4)
    held = torch.rand(1 + periods // 10, size, len(problem.input_limits), generator=generator)
    return [share * problem.input_limits * (2.0 * held[k // 10] - 1.0) for k in range(periods)]


def followed(problem: Problem, plant: Plant, x: Tensor, inputs: list[Tensor]) -> tuple[Tensor, Tensor, Observer]:
    """True states and estimates (T, N, n), and the observer. An estimate is for the time when the next input acts."""
    simulation, observer = plant.begin(x), Observer(problem, plant.sensing)
    true, estimates = [], []
    for u in inputs:
        true.append(simulation.x)
        estimates.append(observer.estimate(simulation.measured[:, : len(plant.sensing.deviation)]))
        observer.sent(u)
        simulation.step(u)
    return torch.stack(true), torch.stack(estimates), observer


def difference(problem: Problem, a: Tensor, b: Tensor) -> Tensor:
    """a - b, with continuous angles in [-pi, pi)."""
    turned = torch.remainder(a - b + math.pi, 2.0 * math.pi) - math.pi
    return torch.where(problem.clipped, a - b, turned)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [[], [0.05]])
def test_observer_of_a_linear_robot_is_the_linear_kalman_filter(rates: list[float], slider: str) -> None:
    """rates: deviation of the error of the velocity, if it is measured."""
    problem = Problem(load_robot("slider", "cpu", slider))
    sensing = make_sensing(problem, counts=torch.tensor([2e-3]), rates=torch.tensor(rates) if rates else None)
    observer, theirs = Observer(problem, sensing), LinearFilter(problem.robot, [2e-3 / math.sqrt(12.0), *rates])
    generator = np.random.default_rng(0)
    measured = [0.2 + 0.3 * np.cumsum(generator.normal(size=60)) * 0.01]
    inputs = generator.uniform(-10.0, 10.0, 60)
    measured += [generator.normal(size=60) * 0.1 for _ in rates]
    first, *others = np.stack(measured, 1)
    observer.estimate(torch.from_numpy(first[None]).float())
    x, gains = np.array([*first, 0.0, 0.0])[:3], []
    for u, y in zip(inputs[:-1], others, strict=True):
        observer.sent(torch.tensor([[u]], dtype=torch.float32))
        estimates = observer.estimate(torch.from_numpy(y[None]).float())[0]
        x, innovation = theirs.step(x, u, y)
        np.testing.assert_allclose(estimates.numpy(), x[:2], rtol=1e-4, atol=1e-5)
        assert float(observer.disturbance[0, 0]) == pytest.approx(x[2], rel=1e-3, abs=1e-4)
        np.testing.assert_allclose(observer.covariance[0].numpy(), theirs.P, rtol=1e-3, atol=1e-9)
        assert float(observer.normalised_innovation[0]) == pytest.approx(innovation, rel=1e-2, abs=1e-4)
        gains.append(theirs.P[0, 0] / theirs.R[0, 0])
    assert min(gains) < 0.8  # it uses the model, and not only the last position
    assert max(gains[5:]) > 0.05


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "double_pendulum", "planar_quadrotor"])
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.slow
def test_two_exact_positions_give_the_true_state(name: str, delay: int, load: Load) -> None:
    problem = Problem(load(name))
    x = 0.5 * problem.sample_domain(50, torch.Generator().manual_seed(1))
    true, estimates, _ = followed(problem, Harsh(problem, Harshness(delay=delay)), x, pushes(problem, 50, 20))
    inside = (true.abs() < 0.95 * problem.bound).all(-1).cumprod(0).bool()
    share = difference(problem, estimates[: 20 - delay], true[delay:]) / problem.state_limits
    velocities = slice(x.shape[1] // 2, None)
    assert float(share[0, :, velocities].abs().max()) > 0.2
    known = torch.where(inside[delay:, :, None], share, 0.0)[1:]  # from the second measurement on
    assert float(known.abs().max()) < 2e-3


@pytest.mark.parametrize("rates", [False, True])
@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta"])
@pytest.mark.slow
def test_errors_have_the_covariance_of_the_observer(name: str, rates: bool, load: Load) -> None:
    """The robot has the errors that the observer assumes. The sums of the normalised squares of innovations, and of
    errors of state and disturbance, are chi-square distributed."""
    problem, size, periods = Problem(load(name)), 300, 34
    n, generator = len(problem.target), torch.Generator().manual_seed(2)
    q = n // 2
    velocities = 0.01 * problem.state_limits[q:]
    sensing = make_sensing(problem, noise=usual_counts(problem), rates=velocities if rates else None)
    k = len(sensing.deviation)
    #: Narrow bounds, within which the dynamics are linear in the parameters, as the observer assumes.
    problem.theta_bounds = problem.theta[:, None] * torch.tensor([0.9, 1.1])
    observer, (low, high) = Observer(problem, sensing), problem.theta_bounds.T
    m, largest = len(problem.input_limits), observer.largest
    step = largest * ((1.0 - math.exp(-2.0 * problem.control_step / FOUND)) / 3.0) ** 0.5
    disturbance = largest * (2.0 * torch.rand(size, m, generator=generator) - 1.0)
    x = 0.3 * problem.sample_domain(size, generator)
    x[:, q:] = 0.1 * problem.state_limits[q:] * (2.0 * torch.rand(size, q, generator=generator) - 1.0)
    innovations, errors = [], []
    for u in pushes(problem, size, periods, share=0.1):
        noise = sensing.deviation * torch.randn(size, k, generator=generator)
        estimates = observer.estimate(problem.confine(torch.cat([x[:, :k] + noise, x[:, k:]], 1))[:, :k])
        error = torch.cat([difference(problem, x, estimates), disturbance - observer.disturbance], 1).double()
        errors.append((error[:, None] @ torch.linalg.inv(observer.covariance) @ error[:, :, None]).flatten())
        innovations.append(observer.normalised_innovation)
        observer.sent(u)
        theta = low + (high - low) * torch.rand(size, len(low), generator=generator)
        x = integrate_period(problem, x, u + disturbance, theta).x
        fresh = torch.randn(size, m, generator=generator)
        walked = disturbance + step * fresh
        disturbance = torch.where(walked.abs() > largest, 2.0 * largest * walked.sign() - walked, walked)  # reflected
        x[:, q:] += (
            PUSH * problem.control_step**0.5 * problem.state_limits[q:] * torch.randn(size, q, generator=generator)
        )
    for squares, degrees in ((innovations[10:], k), (errors[10:], n + m)):
        means = torch.stack(squares).mean(1).numpy()
        lower, upper = chi2.ppf([0.01, 0.99], degrees * size) / size
        # The variance of a walk between bounds is not exact: a tenth more is allowed.
        assert ((means > lower) & (means < 1.1 * upper)).mean() > 0.9, (degrees, means)


def test_rate_is_estimated_as_well_as_by_a_line_through_the_counts(load: Load) -> None:
    """A cart moves freely at a constant rate. After k periods, the error of a least-squares line is known."""
    problem = Problem(load("cartpole"))
    x = torch.zeros(200, 4)
    x[:, 2] = torch.linspace(-4.0, 4.0, 200)
    plant = Harsh(problem, Harshness(encoder=4.0))
    true, estimates, _ = followed(problem, plant, x, [torch.zeros(200, 1)] * 6)
    for k in range(1, 6):
        line = float(plant.sensing.deviation[0]) / problem.control_step * math.sqrt(12.0 / (k * (k + 1) * (k + 2)))
        error = float((estimates - true)[k, :, 2].square().mean().sqrt())
        assert error < 2.0 * line + 0.02, k  # 0.02 m/s for the prediction
    assert float((estimates - true)[0, :, 2].abs().max()) == 4.0


def test_measured_rates_are_used_at_once_and_soon_improved(load: Load) -> None:
    problem = Problem(load("cartpole"))
    plant, x = Harsh(problem, Harshness(noise=4.0)), torch.zeros(400, 4)
    x[:, 2] = torch.linspace(-4.0, 4.0, 400)
    true, estimates, _ = followed(problem, plant, x, [torch.zeros(400, 1)] * 8)
    errors = (estimates - true)[:, :, 2].square().mean(1).sqrt() / plant.sensing.deviation[2]
    assert float(errors[0]) == pytest.approx(1.0, rel=0.1)
    assert float(errors[7]) < 0.5


@pytest.mark.slow
def test_covariance_of_an_unstable_robot_stays_symmetric_and_positive(load: Load) -> None:
    """Four seconds upright. A rounding difference between P and P^T would grow by exp(16 t), to negative variances."""
    problem = Problem(load("furuta"))
    observer = Observer(problem, make_sensing(problem, usual_counts(problem)))
    noise = observer.measured.sqrt().float() * torch.randn(500, 1, 2, generator=torch.Generator().manual_seed(0))
    for positions in noise:
        observer.estimate(positions)
        observer.sent(torch.zeros(1, 1))
    assert torch.equal(observer.covariance, observer.covariance.mT)
    assert float(torch.linalg.eigvalsh(observer.covariance).min()) > 0.0


@pytest.mark.slow
def test_controller_with_the_observer_balances_with_two_periods_of_delay(load: Load) -> None:
    """Without the observer, the same controller swings from limit to limit."""
    problem = Problem(load("cartpole"))
    gain = torch.tensor([[-40.0, -180.0, -60.0, -26.0]])

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = torch.clamp(-(x @ gain.T), -problem.input_limits, problem.input_limits)
        return u, torch.zeros_like(u[:, 0])

    starts = torch.tensor([[0.0, 0.05, 0.0, 0.0], [0.05, -0.1, 0.0, 0.2]])
    for level in (Harshness(delay=2.0), Harshness(delay=2.0, encoder=1.0, noise=1.0)):
        results = [
            rollouts(problem, act, starts, Harsh(problem, level), seconds=1.6, observed=observed)
            for observed in (False, True)
        ]
        swings = [result.x[125:, :, 1].square().mean().sqrt() for result in results]
        assert float(swings[1]) < 0.1 * float(swings[0])


@pytest.mark.slow
def test_estimates_do_not_depend_on_the_batch_nor_on_earlier_rollouts(load: Load) -> None:
    problem = Problem(load("furuta"))
    x, plant = 0.5 * problem.sample_domain(4, torch.Generator().manual_seed(3)), Nominal(problem)
    inputs = pushes(problem, 4, 15)
    _, together, observer = followed(problem, plant, x, inputs)
    for i in range(4):
        _, alone, _ = followed(problem, plant, x[i : i + 1], [u[i : i + 1] for u in inputs])
        torch.testing.assert_close(alone[:, 0], together[:, i], rtol=1e-4, atol=1e-4)
    observer.reset()
    torch.testing.assert_close(observer.estimate(x[:, :2]), torch.cat([x[:, :2], torch.zeros(4, 2)], 1))


def test_sensing_of_the_harsh_plant_has_the_deviation_of_its_measurements(load: Load) -> None:
    """Rates are measured if there are no encoders."""
    problem = Problem(load("cartpole"))
    x, u = problem.sample_starts(300, torch.Generator().manual_seed(0)), torch.full((300, 1), 2.0)
    for level in (Harshness(encoder=3.0), Harshness(noise=2.0), Harshness(encoder=1.0, noise=1.0)):
        plant = Harsh(problem, level)
        simulation = plant.begin(x)
        errors, entries = [], len(plant.sensing.deviation)
        assert entries == (2 if level.encoder else 4)
        for _ in range(40):
            simulation.step(u)
            errors.append(difference(problem, simulation.measured, simulation.x)[:, :entries])
        deviation = torch.stack(errors).double().std((0, 1))
        np.testing.assert_allclose(deviation, plant.sensing.deviation, rtol=0.05)
