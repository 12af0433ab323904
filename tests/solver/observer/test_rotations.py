"""Observer of rotations, compared with an error-state filter on SciPy's rotations, and with its own covariance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from scipy.stats import chi2
from torch import Tensor

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.observer import PUSH, Observer, make_sensing
from solver.observer.observability import make_observer
from solver.plants.harsh import Harsh, Harshness
from solver.plants.outcome import rollouts, without_input
from solver.problem import Problem

pytestmark = pytest.mark.slow

Load = Callable[[str], CompiledRobot]
INERTIA = np.array([1.0, 1.4, 0.8])  # of the satellite
TURN, GYRO = 3e-3, 0.02  # rad and rad/s, deviations of the sensors


class SatelliteFilter:
    """Multiplicative filter of a satellite with known parameters: a rotation, and errors (turn, rate, disturbance).

    Euler's equations are integrated in small steps, and all derivatives are central differences.
    """

    def __init__(self, observer: Observer, rates: bool) -> None:
        self.period = 0.05
        self.R = np.diag([TURN**2] * 3 + [GYRO**2] * 3 * rates)
        self.largest = observer.largest.double().numpy()
        self.prior = np.diag([*np.diag(self.R), *[2.0**2 / 3.0] * (3 - 3 * rates), *(self.largest**2 / 3.0)])
        self.walk = observer.added[6:].numpy()
        self.pushes = PUSH**2 * self.period * 2.0**2
        self.P, self.disturbance = self.prior, np.zeros(3)

    def begin(self, turned: Rotation, rate: Array) -> None:
        self.turned, self.rate = turned, rate

    def after(self, error: Array, u: Array) -> tuple[Rotation, Array]:
        """Rotation and rate after a period, from the errors (9,) before it."""
        turned, rate = self.turned * Rotation.from_rotvec(error[:3]), self.rate + error[3:6]
        u, steps = u + self.disturbance + error[6:], 20
        for _ in range(steps):
            h = self.period / steps
            middle = rate + 0.5 * h * (u - np.cross(rate, INERTIA * rate)) / INERTIA
            turned = turned * Rotation.from_rotvec(h * middle)
            rate = rate + h * (u - np.cross(middle, INERTIA * middle)) / INERTIA
        return turned, rate

    def step(self, u: Array, turned: Rotation, rate: Array | None) -> float:
        """Advance by a period with the input u, correct by the measurements, and return the innovation squared."""
        at, moved = self.after(np.zeros(9), u)

        def apart(error: Array) -> Array:
            end, end_rate = self.after(error, u)
            return np.concatenate([(at.inv() * end).as_rotvec(), end_rate - moved, self.disturbance + error[6:]])

        F = np.stack([(apart(e) - apart(-e)) / 2e-4 for e in 1e-4 * np.eye(9)], 1)
        share = np.diag(self.P)[6:] / np.diag(self.prior)[6:]
        P = F @ self.P @ F.T + np.diag([*[0.0] * 3, *[self.pushes] * 3, *(self.walk * (1.0 - share))])
        C = np.eye(9)[: len(self.R)]
        error = (at.inv() * turned).as_rotvec()
        if rate is not None:
            error = np.concatenate([error, rate - moved])
        S = C @ P @ C.T + self.R
        change = P @ C.T @ np.linalg.solve(S, error)
        self.P = P - P @ C.T @ np.linalg.solve(S, C @ P)
        self.turned, self.rate = at * Rotation.from_rotvec(change[:3]), moved + change[3:6]
        self.disturbance = np.clip(self.disturbance + change[6:], -self.largest, self.largest)
        return float(error @ np.linalg.solve(S, error))


def quaternion(turned: Rotation) -> Array:
    """Quaternion (w, x, y, z) with an arbitrary sign: that of SciPy."""
    return np.roll(turned.as_quat(), 1)


@pytest.mark.parametrize("rates", [True, False])
def test_observer_of_a_satellite_is_the_error_state_filter(rates: bool, load: Load) -> None:
    """A fast turn through many attitudes, whose measured quaternion changes its sign."""
    problem = Problem(load("satellite"))
    problem.theta_bounds = problem.theta[:, None].repeat(1, 2)  # the filter of the test knows the parameters
    noise, gyro = torch.full((3,), TURN), torch.full((3,), GYRO)
    observer = Observer(problem, make_sensing(problem, noise=noise, rates=gyro if rates else None))
    theirs, draw = SatelliteFilter(observer, rates), np.random.default_rng(5)
    true, rate = Rotation.from_rotvec([1.0, -2.0, 0.4]), np.array([0.9, -0.5, 0.7])
    u = np.zeros(3)
    for k in range(24):
        turned = true * Rotation.from_rotvec(TURN * draw.normal(size=3))
        measured = rate + GYRO * draw.normal(size=3)
        y = np.concatenate([quaternion(turned) * draw.choice([-1, 1]), measured if rates else []])
        estimate = observer.estimate(torch.from_numpy(y[None]).float())[0].double().numpy()
        if k == 0:
            theirs.begin(turned, measured if rates else np.zeros(3))
        else:
            innovation = theirs.step(u, turned, measured if rates else None)
            if k == 1 and not rates:  # the observer linearises the first period about the mean rate
                theirs.turned, theirs.rate = Rotation.from_quat(np.roll(estimate[:4], -1)), estimate[4:]
                theirs.P, theirs.disturbance = observer.covariance[0].numpy(), observer.disturbance[0].double().numpy()
                innovation = float(observer.normalised_innovation[0])
            between = theirs.turned.inv() * Rotation.from_quat(np.roll(estimate[:4], -1))
            assert between.magnitude() < 2e-5
            np.testing.assert_allclose(estimate[4:], theirs.rate, atol=1e-4)
            np.testing.assert_allclose(observer.disturbance[0], theirs.disturbance, atol=1e-4)
            deviation = np.sqrt(np.diag(theirs.P))
            scale = np.outer(deviation, deviation)
            np.testing.assert_allclose(observer.covariance[0].numpy() / scale, theirs.P / scale, atol=5e-3)
            assert float(observer.normalised_innovation[0]) == pytest.approx(innovation, rel=2e-2, abs=1e-2)
        assert np.linalg.norm(estimate[:4]) == pytest.approx(1.0, abs=1e-6)
        u = 0.2 * draw.uniform(-1.0, 1.0, 3)
        observer.sent(torch.from_numpy(u[None]).float())
        theirs_before = theirs.turned, theirs.rate, theirs.disturbance
        theirs.turned, theirs.rate, theirs.disturbance = true, rate, np.zeros(3)
        true, rate = theirs.after(np.zeros(9), u)
        theirs.turned, theirs.rate, theirs.disturbance = theirs_before


@pytest.mark.parametrize("name", ["satellite", "quadrotor"])
def test_innovations_of_rotations_have_their_covariance(name: str, load: Load) -> None:
    """Mean normalised innovations of 300 robots with known parameters, from any attitude."""
    problem, generator, size = Problem(load(name)), torch.Generator().manual_seed(2), 300
    problem.theta_bounds = problem.theta[:, None].repeat(1, 2)
    plant = Harsh(problem, Harshness(noise=1.0))
    x = 0.3 * problem.sample_domain(size, generator)
    problem.geometry.normalise(x)
    observer, simulation = Observer(problem, plant.sensing), plant.begin(x)
    means, k = [], len(plant.sensing.deviation)
    for i in range(30):
        observer.estimate(simulation.measured)
        if i > 1:
            means.append(float(observer.normalised_innovation.mean()))
        u = problem.trim + 0.1 * problem.input_limits * (
            2.0 * torch.rand(size, len(problem.trim), generator=generator) - 1
        )
        observer.sent(u)
        simulation.step(u)
    upper = chi2.ppf(0.99, k * size) / size
    # The robot lacks the pushes and disturbances that the observer expects: the innovations are smaller, not larger.
    assert max(means) < upper
    assert min(means) > 0.5 * k


def test_encoders_of_a_rotation_round_its_vector_and_differences_are_its_rates(load: Load) -> None:
    problem = Problem(load("satellite"))
    plant = Harsh(problem, Harshness(encoder=8.0))
    x = problem.sample_domain(200, torch.Generator().manual_seed(0))
    x[:, 4:] = torch.tensor([0.8, -0.4, 0.0])
    simulation = plant.begin(x)
    for _ in range(20):
        simulation.step(torch.zeros(200, 3))
    turned = Rotation.from_quat(np.roll(simulation.x[:, :4].numpy(), -1, 1))
    measured = Rotation.from_quat(np.roll(simulation.measured[:, :4].numpy(), -1, 1))
    counts = measured.as_rotvec() / (2.0 * np.pi / 256)
    np.testing.assert_allclose(counts, np.round(counts), atol=2e-3)
    assert (turned.inv() * measured).magnitude().max() < 2.0 * np.pi / 256
    error = simulation.measured[:, 4:] - simulation.x[:, 4:]
    assert float(error.abs().max()) < 0.5 * np.pi / 2  # a count in a period is 0.49 rad/s, and more about a turn by pi
    assert float(error.mean(0).abs().max()) < 0.03
    with pytest.raises(SolverError, match="stiction"):
        Harsh(Problem(load("quadrotor")), Harshness(stiction=1.0))


def test_a_mass_wrong_by_ten_per_cent_is_found_in_flight(load: Load) -> None:
    problem = Problem(load("quadrotor"))
    theta = problem.theta.clone()
    theta[0] *= 1.1
    plant = Harsh(problem, Harshness(encoder=1.0, delay=1.0), theta)
    x = problem.target.repeat(20, 1)
    observer, simulation = make_observer(problem, plant.sensing, estimate=["mass"]), plant.begin(x)
    generator = torch.Generator().manual_seed(1)
    for k in range(150):
        state = observer.estimate(simulation.measured[:, : plant.sensing.entries])
        if k % 10 == 0:
            lift = 0.2 * (2.0 * torch.rand(20, 1, generator=generator) - 1.0)
        u = observer.compensate(problem.trim + lift - 0.2 * state[:, 2:3])
        observer.sent(u)
        simulation.step(u)
    assert observer.parameters is not None
    torch.testing.assert_close(observer.parameters[:, 0].mean(), theta[0], rtol=0.02, atol=0.0)


def test_a_satellite_with_a_linear_regulator_rests_with_observer_delay_and_noise(load: Load) -> None:
    problem = Problem(load("satellite"))

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        e = problem.geometry.error(x, problem.target)
        u = torch.clamp(-0.5 * e[:, :3] - 1.2 * e[:, 3:], -problem.input_limits, problem.input_limits)
        return u, torch.zeros_like(u[:, 0])

    starts = problem.sample_starts(50, torch.Generator().manual_seed(0))
    plant = Harsh(problem, Harshness(noise=1.0, delay=2.0, encoder=1.0))
    result = rollouts(problem, act, starts, plant, seconds=20.0, observed=True)
    assert float(result.success.float().mean()) == 1.0
    lengths = torch.linalg.vector_norm(result.x[..., :4], dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0.0, atol=1e-6)


def test_the_mean_innovation_counts_three_errors_of_a_rotation(load: Load) -> None:
    """And not the four entries of its quaternion: it is 1 where the model is right."""
    problem, expected = Problem(load("satellite")), torch.zeros(4).double()
    plant = Harsh(problem, Harshness(encoder=1.0))
    starts = problem.confine(0.3 * problem.sample_domain(4, torch.Generator().manual_seed(0)))
    result = rollouts(problem, without_input(problem), starts, plant, seconds=0.5, observed=True)
    observer, simulation = Observer(problem, plant.sensing), plant.begin(starts)
    for _ in range(len(result.u)):
        u = without_input(problem)(observer.estimate(simulation.measured[:, :4]))[0]
        expected = expected + observer.normalised_innovation / (3 * len(result.u))
        observer.sent(u := observer.compensate(u))
        simulation.step(u)
    torch.testing.assert_close(result.innovation, expected.float(), rtol=1e-3, atol=0.0)
