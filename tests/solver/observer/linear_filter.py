"""Textbook Kalman filter for a mass on a rail with friction, with matrices in double precision."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import expm

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.observer import FOUND, PARAMETERS_CHANGE, PUSH
from solver.observer.rest import DRIVE


class LinearFilter:
    """Filter of x = (position, velocity, disturbance d of the input) with m dv/dt = u + d - b v.

    d is a random walk whose variance is bounded. The errors of m and b are independent in every period.
    """

    def __init__(self, robot: CompiledRobot, deviation: list[float]) -> None:
        """deviation: of the error of the position, and of the velocity if it is measured."""
        self.parameters = robot.metadata.parameters
        (self.mass, self.friction), self.rate = (
            [parameter.value for parameter in self.parameters],
            robot.metadata.states[1].limit,
        )
        self.period, self.limit = 1.0 / robot.metadata.task.control_rate, robot.metadata.inputs[0].limit
        self.R = np.diag(deviation) ** 2
        self.drive = (DRIVE * self.limit) ** 2 / 3.0
        self.P = np.diag([deviation[0] ** 2, [*deviation, self.rate / math.sqrt(3.0)][1] ** 2, self.drive])

    def step(self, x: Array, u: float, y: Array) -> tuple[Array, float]:
        """State (3,) after a period, corrected by the measurement y (k,), and the squared normalised innovation."""
        m, b = self.mass, self.friction
        drift = np.zeros((4, 4))  # of position, velocity, acceleration by u, and one unused row
        drift[0, 1], drift[1, 1], drift[1, 2] = 1.0, -b / m, 1.0 / m
        flow = expm(drift * self.period)
        F, G = np.zeros((3, 3)), np.array([*flow[:2, 2], 0.0])
        F[:2, :2], F[:, 2] = flow[:2, :2], G
        F[2, 2] = 1.0
        by_mass, by_friction = (self._by_parameter(x[:2], u + x[2], i) for i in range(2))
        spread = [(parameter.upper - parameter.lower) / math.sqrt(12.0) for parameter in self.parameters]
        noise = np.stack([spread[0] * by_mass, spread[1] * by_friction], 1)
        added = (self.drive - self.P[2, 2]) * (1.0 - math.exp(-2.0 * self.period / FOUND))
        Q = np.diag([0.0, PUSH**2 * self.period * self.rate**2, added])
        Q[:2, :2] += noise @ noise.T
        x, P, C = F @ x + G * u, F @ self.P @ F.T + Q, np.eye(3)[: len(self.R)]
        S = C @ P @ C.T + self.R
        K = P @ C.T @ np.linalg.inv(S)
        error = y - C @ x
        keep = np.eye(3) - K @ C
        self.P = keep @ P @ keep.T + K @ self.R @ K.T
        corrected = x + K @ error
        corrected[2] = np.clip(corrected[2], -DRIVE * self.limit, DRIVE * self.limit)
        return corrected, float(error @ np.linalg.inv(S) @ error)

    def _by_parameter(self, x: Array, u: float, which: int) -> Array:
        """Derivative of the state after a period with respect to mass or friction, by differences."""

        def after(change: float) -> Array:
            m, b = (value + change * (i == which) for i, value in enumerate((self.mass, self.friction)))
            flow = expm(np.array([[0.0, 1.0, 0.0], [0.0, -b / m, 1.0 / m], [0.0, 0.0, 0.0]]) * self.period)
            return flow[:2] @ np.array([*x, u])

        return (after(1e-5) - after(-1e-5)) / 2e-5


class ParameterFilter:
    """Extended filter of z = (position, velocity, disturbance, mass, friction) of the same robot, whose mass and
    friction wander between their bounds. Its derivatives are differences."""

    def __init__(self, robot: CompiledRobot, deviation: float) -> None:
        state, parameters = robot.metadata.states[1], robot.metadata.parameters
        self.period, limit = 1.0 / robot.metadata.task.control_rate, robot.metadata.inputs[0].limit
        self.lower = np.array([-DRIVE * limit, *(parameter.lower for parameter in parameters)])
        self.upper = np.array([DRIVE * limit, *(parameter.upper for parameter in parameters)])
        self.R, self.push = deviation**2, PUSH**2 * self.period * state.limit**2
        slow = (self.upper - self.lower) ** 2 / 12.0
        self.prior = np.array([self.R, state.limit**2 / 3.0, *slow])
        times = np.array([FOUND, PARAMETERS_CHANGE, PARAMETERS_CHANGE])
        self.walk = slow * (1.0 - np.exp(-2.0 * self.period / times))
        self.P = np.diag(self.prior)
        self.z = np.array([0.0, 0.0, 0.0, *(parameter.value for parameter in parameters)])

    def step(self, u: float, y: float) -> float:
        """Advance `z` by a period with the input u, correct it by the position y, and return the innovation squared."""

        def after(z: Array) -> Array:
            _, _, d, m, b = z
            flow = expm(np.array([[0.0, 1.0, 0.0], [0.0, -b / m, 1.0 / m], [0.0, 0.0, 0.0]]) * self.period)
            return np.array([*(flow[:2] @ np.array([z[0], z[1], u + d])), *z[2:]])

        steps = 1e-5 * np.eye(5)
        F = np.stack([(after(self.z + step) - after(self.z - step)) / 2e-5 for step in steps], 1)
        added = self.walk * (1.0 - np.diag(self.P)[2:] / self.prior[2:])
        P, z = F @ self.P @ F.T + np.diag([0.0, self.push, *added]), after(self.z)
        S, error = P[0, 0] + self.R, y - z[0]
        K = P[:, 0] / S
        keep = np.eye(5) - np.outer(K, np.eye(5)[0])
        self.P, self.z = keep @ P @ keep.T + self.R * np.outer(K, K), z + K * error
        self.z[2:] = np.clip(self.z[2:], self.lower, self.upper)
        return float(error**2 / S)
