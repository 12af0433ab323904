"""The gallery compared with the equations in textbooks, written again in NumPy.

`test_engines.py` holds the same robots against MuJoCo and Pinocchio as well, planar_arm2 alone excepted: the rotor in
its elbow is no joint of an engine. Here it is held against Pinocchio's two links with the rotors added by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen import load
from modelgen.artifact import folder as artifact
from modelgen.derivation.model_file import SHIPPED
from modelgen.derivation.model_file import load as model
from modelgen.derivation.numeric import samples

g = 9.81


@pytest.fixture(scope="module")
def sampled() -> Callable[[str], tuple[np.ndarray, ...]]:
    """A function sampled(name): x, u, theta by column, and the accelerations of the artifact."""

    def of(name: str) -> tuple[np.ndarray, ...]:
        robot = model(str(SHIPPED / f"{name}.py"))
        kernels = load(name, backend="casadi", directory=artifact.SHIPPED)
        x, theta = samples(robot, 40, seed=5)
        limits = np.array([drive.limit for drive in robot.inputs])
        u = np.random.default_rng(5).uniform(-limits, limits, (len(x), len(limits)))
        return x.T, u.T, theta.T, np.asarray(kernels.dynamics(x, u, theta))[:, kernels.metadata.nq :]

    return of


def solved(M: Any, right: Any) -> np.ndarray:
    """Accelerations (N, n_q) from the entries of M and of the right-hand side."""
    size = len(right)
    rows = [[np.broadcast_to(M[max(i, j)][min(i, j)], right[0].shape) for j in range(size)] for i in range(size)]
    return np.linalg.solve(np.moveaxis(np.array(rows), 2, 0), np.stack(right, axis=1)[..., None])[..., 0]


def close(vdot: np.ndarray, printed: np.ndarray) -> None:
    np.testing.assert_allclose(vdot, printed, rtol=1e-9, atol=1e-9 * np.abs(printed).max())


def test_acrobot(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Spong, 1995: angles from the horizontal there, from the vertical here."""
    (q1, q2, v1, v2), (torque,), (m1, l1, lc1, I1, m2, lc2, I2), vdot = sampled("acrobot")
    d11 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * np.cos(q2)) + I1 + I2
    d12 = m2 * (lc2**2 + l1 * lc2 * np.cos(q2)) + I2
    d22 = m2 * lc2**2 + I2
    h1 = -m2 * l1 * lc2 * np.sin(q2) * (v2**2 + 2 * v2 * v1)
    h2 = m2 * l1 * lc2 * np.sin(q2) * v1**2
    phi1 = -(m1 * lc1 + m2 * l1) * g * np.sin(q1) - m2 * lc2 * g * np.sin(q1 + q2)
    phi2 = -m2 * lc2 * g * np.sin(q1 + q2)
    close(vdot, solved([[d11], [d12, d22]], [-h1 - phi1, torque - h2 - phi2]))


@pytest.mark.parametrize(("name", "driven"), [("realaigym_acrobot", 1), ("realaigym_pendubot", 0)])
def test_realaigym(sampled: Callable[[str], tuple[np.ndarray, ...]], name: str, driven: int) -> None:
    """The contest's matrices: inertias about the joints, the first angle from hanging, gravity in both rows."""
    (q1, q2, v1, v2), (torque,), (m1, l1, r1, c1, m2, r2, c2), vdot = sampled(name)
    q1, I1, I2 = q1 - np.pi, c1 + m1 * r1**2, c2 + m2 * r2**2
    m11 = I1 + I2 + m2 * l1**2 + 2 * m2 * l1 * r2 * np.cos(q2)
    m12 = I2 + m2 * l1 * r2 * np.cos(q2)
    coriolis = m2 * l1 * r2 * np.sin(q2)
    right1 = 2 * coriolis * v2 * v1 + coriolis * v2**2 - g * (m1 * r1 + m2 * l1) * np.sin(q1)
    right1 = right1 - m2 * g * r2 * np.sin(q1 + q2)
    right2 = -coriolis * v1**2 - m2 * g * r2 * np.sin(q1 + q2)
    inputs = [torque * (driven == 0), torque * (driven == 1)]
    close(vdot, solved([[m11], [m12, I2 + 0.0 * q2]], [right1 + inputs[0], right2 + inputs[1]]))


def test_the_contest_s_inertias_are_those_of_its_file() -> None:
    """model_1.0 of design C.1 has 0.031887199591513114 and 0.05086984812807257 kg m^2 about the joints."""
    for name in ("realaigym_acrobot", "realaigym_pendubot"):
        m1, _, r1, c1, m2, r2, c2 = load(name, backend="casadi", directory=artifact.SHIPPED).nominal_parameters
        assert c1 + m1 * r1**2 == pytest.approx(0.031887199591513114, rel=1e-7)
        assert c2 + m2 * r2**2 == pytest.approx(0.05086984812807257, rel=1e-7)


def test_ball_on_beam(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Hauser, Sastry and Kokotovic, 1992, eq. 2."""
    (r, beam, r_rate, rate), (torque,), (m, R, Jb, J), vdot = sampled("ball_on_beam")
    ball = m * (r * rate**2 - g * np.sin(beam)) / (Jb / R**2 + m)
    tilt = (torque - 2 * m * r * r_rate * rate - m * g * r * np.cos(beam)) / (m * r**2 + J + Jb)
    close(vdot, np.stack([ball, tilt], axis=1))


def test_cart_double_pendulum(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """The usual equations in absolute angles, carried over to the angle between the rods."""
    (_, q1, q2, v, v1, v2), (force,), (m0, m1, l1, m2, l2, d0, d), vdot = sampled("cart_double_pendulum")
    a1, a2, w1, w2 = q1, q1 + q2, v1, v1 + v2
    P1, P2 = (m1 / 2 + m2) * l1, m2 * l2 / 2
    M = [
        [m0 + m1 + m2],
        [P1 * np.cos(a1), (m1 / 3 + m2) * l1**2],
        [P2 * np.cos(a2), P2 * l1 * np.cos(a1 - a2), m2 * l2**2 / 3],
    ]
    between = d * v2  # the upper hinge's friction
    right = [
        force + P1 * np.sin(a1) * w1**2 + P2 * np.sin(a2) * w2**2 - d0 * v,
        -P2 * l1 * np.sin(a1 - a2) * w2**2 + P1 * g * np.sin(a1) - d * v1 + between,
        P2 * l1 * np.sin(a1 - a2) * w1**2 + P2 * g * np.sin(a2) - between,
    ]
    absolute = solved(M, right)
    close(vdot, np.stack([absolute[:, 0], absolute[:, 1], absolute[:, 2] - absolute[:, 1]], axis=1))


def test_planar_arm2(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Siciliano, Sciavicco, Villani and Oriolo, 2009, section 7.3.2, with the text's names."""
    (q1, q2, v1, v2), (t1, t2), (ml1, ml2, Il1, Il2, l1, l2), vdot = sampled("planar_arm2")
    a1, mm2, Im1, Im2, kr1, kr2 = 1.0, 5.0, 0.01, 0.01, 100.0, 100.0
    s2, c2 = np.sin(q2), np.cos(q2)
    b11 = Il1 + ml1 * l1**2 + kr1**2 * Im1 + Il2 + ml2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2) + Im2 + mm2 * a1**2
    b12 = Il2 + ml2 * (l2**2 + a1 * l2 * c2) + kr2 * Im2
    b22 = Il2 + ml2 * l2**2 + kr2**2 * Im2
    h = -ml2 * a1 * l2 * s2
    g2 = ml2 * l2 * g * np.cos(q1 + q2)
    g1 = (ml1 * l1 + mm2 * a1 + ml2 * a1) * g * np.cos(q1) + g2
    right = [t1 - h * v2 * v1 - h * (v1 + v2) * v2 - g1, t2 + h * v1 * v1 - g2]
    close(vdot, solved([[b11], [b12, b22]], right))


def test_planar_arm2_in_pinocchio(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """The links and the motor's mass by Pinocchio; the rotors turn at 100 v1 and at v1 + 100 v2."""
    pin = pytest.importorskip("pinocchio")
    x, torques, theta, vdot = sampled("planar_arm2")
    q, v, rotors = x[:2], x[2:], 0.01 * np.array([[100**2 + 1, 100], [100, 100**2]])
    for k, (m1, m2, I1, I2, l1, l2) in enumerate(theta.T):
        model, joint = pin.Model(), 0
        for number, bodies in enumerate((((m1, l1, I1), (5.0, 1.0, 0.0)), ((m2, l2, I2),))):
            place = pin.SE3(np.eye(3), np.array([float(number), 0, 0]))
            joint = model.addJoint(joint, pin.JointModelRevoluteUnaligned(0, -1, 0), place, f"joint{number}")
            for mass, centre, inertia in bodies:
                body = pin.Inertia(mass, np.array([centre, 0, 0]), np.diag([0, inertia, 0]))
                model.appendBodyToJoint(joint, body, pin.SE3.Identity())
        data = model.createData()
        upper = np.triu(pin.crba(model, data, q[:, k]))
        M = upper + np.triu(upper, 1).T + rotors
        expected = np.linalg.solve(M, torques[:, k] - pin.nonLinearEffects(model, data, q[:, k], v[:, k]))
        close(vdot[k], expected)


def test_planar_arm3(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Newton's second law and Euler's for each link, in absolute angles: 9 unknowns, no energy anywhere.

    A motor's torque turns its rotor too.
    """
    x, torques, theta, vdot = sampled("planar_arm3")
    q, v, masses, lengths, damping, rotors = x[:3], x[3:], theta[:3], theta[3:6], theta[6], theta[7:]
    for sample in range(vdot.shape[0]):
        angles, rates = np.cumsum(q[:, sample]), np.cumsum(v[:, sample])
        accelerations = np.cumsum(vdot[sample])
        joint, links = np.zeros(2), []
        forces = []
        for k in range(3):
            l, c, s = lengths[k, sample], np.cos(angles[k]), np.sin(angles[k])
            along, across = np.array([s, c]), np.array([c, -s])
            bend = accelerations[k] * across - rates[k] ** 2 * along
            forces.append(masses[k, sample] * (joint + l / 2 * bend + [0, g]))
            links.append((l * along, masses[k, sample] * l**2 / 12 * accelerations[k]))
            joint = joint + l * bend
        moment, pull = 0.0, np.zeros(2)  # what the next link does to this one at their joint
        for k in reversed(range(3)):
            link, inertial = links[k]
            pull = pull + forces[k]
            # Moments about the joint below, clockwise positive as the angles are: (x, z) gives z F_x - x F_z.
            beyond = pull - forces[k]
            moment += inertial + (link[1] * forces[k][0] - link[0] * forces[k][1]) / 2
            moment += link[1] * beyond[0] - link[0] * beyond[1]
            expected = torques[k, sample] - damping[sample] * v[k, sample] - rotors[k, sample] * vdot[sample, k]
            assert moment == pytest.approx(expected, rel=1e-9, abs=1e-8)


def test_planar_quadrotor(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    (_, _, pitch, across_rate, height_rate, _), (right, left), (m, J, arm, drag), vdot = sampled("planar_quadrotor")
    lift = right + left
    across = (lift * np.sin(pitch) - drag * across_rate) / m
    height = (lift * np.cos(pitch) - drag * height_rate) / m - g
    close(vdot, np.stack([across, height, arm * (left - right) / J], axis=1))


def test_satellite(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Euler's equations about the principal axes."""
    (*_, a, b, c), (tx, ty, tz), (I1, I2, I3), vdot = sampled("satellite")
    close(
        vdot, np.stack([(tx - (I3 - I2) * b * c) / I1, (ty - (I1 - I3) * a * c) / I2, (tz - (I2 - I1) * a * b) / I3], 1)
    )


def test_quadrotor(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Thrust along the body's axis, drag, and Euler's equations with the torques of the four rotors."""
    x, (fl, fr, rl, rr), (mass, across, upright, arm, twist, drag), vdot = sampled("quadrotor")
    (qw, qx, qy, qz), velocity, (a, b, c) = x[3:7], x[7:10], x[10:13]
    lift = fl + fr + rl + rr
    axis = np.array([2 * (qx * qz + qw * qy), 2 * (qy * qz - qw * qx), 1 - 2 * (qx**2 + qy**2)])
    linear = (lift * axis - drag * velocity) / mass - np.array([0, 0, g])[:, None]
    roll, pitch, yaw = arm * (fl - fr + rl - rr), arm * (rl + rr - fl - fr), twist * (fl - fr - rl + rr)
    coupled = (upright - across) * c
    turning = [(roll - coupled * b) / across, (pitch + coupled * a) / across, yaw / upright]
    close(vdot, np.concatenate([linear, turning]).T)


def test_reaction_wheel(sampled: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    """Spong, Corke and Lozano, 2001: in absolute angles the inertias do not couple."""
    (q, _, _, spin), (torque,), (m1, m2, l1, lc1, J1, J2, d), vdot = sampled("reaction_wheel")
    push = torque - d * spin
    pendulum = ((m1 * lc1 + m2 * l1) * g * np.sin(q) - push) / (m1 * lc1**2 + m2 * l1**2 + J1)
    close(vdot, np.stack([pendulum, push / J2 - pendulum], axis=1))


def test_the_gallery_lists_every_robot_and_how_it_is_held() -> None:
    """Two ways each: a test here or in test_models named after it, and an engine."""
    tests = Path(__file__).parent
    text = (SHIPPED.parent / "docs" / "reference" / "gallery.md").read_text().partition("## What is proven")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    shipped = {path.stem for path in SHIPPED.glob("*.py") if not path.stem.startswith("_")} | {"arm7"}
    assert rows.keys() == shipped
    for name, ways in rows.items():
        held = re.findall(r"`(test_\w+)`", ways)
        sources = [
            (tests / f"{file}.py").read_text()
            for file in ("test_models", "test_gallery", "engines/test_engines", "derivation/test_newton_euler")
        ]
        assert held, name
        assert all(any(f"def {test}(" in source for source in sources) for test in held), name
        engines = [engine for engine in ("MuJoCo", "Pinocchio") if engine in ways]
        assert len(held) + len(engines) >= 2, name
        if engines and name not in ("planar_arm2", "arm7", "satellite", "quadrotor"):  # the others have links
            assert (SHIPPED / "assets" / f"{name}.xml").is_file(), name
