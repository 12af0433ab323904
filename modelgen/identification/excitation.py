"""Design of an experiment: an input that shows parameters, D-optimal within the limits, and its file.

The information matrix of a motion is the sum of J' J over its samples, with J the derivative of the measured states by
the parameters, in standard deviations. J is taken in windows with free starts, as `modelgen identify` fits them. The
larger its determinant, the smaller the confidence set (V. V. Fedorov, Theory of Optimal Experiments, 1972). Sums of
sines follow J. Swevers et al., "Optimal robot excitation and identification", IEEE Trans. Robotics and Automation 13,
1997. The search is CMA-ES (N. Hansen).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cma
import numpy as np
from scipy.special import chdtri

from modelgen.arrays import Array, on_sphere, runge_kutta_step
from modelgen.errors import ModelError
from modelgen.files import replacing
from modelgen.identification.confidence import LEVEL, in_words
from modelgen.identification.experiment import Task, sought
from modelgen.identification.fit import Progress, eliminated
from modelgen.identification.model import Motion, safe_step, simulate
from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot
from modelgen.metadata import TIME
from modelgen.tangent import Tangent, turn_between

SINES = 8  # frequencies of every input
TAPER = 0.1  # share of the motion over which the input grows from zero, and falls to it
ROOM = 0.9  # share of a state's limit that the predicted motion may take
ROBOTS = 4  # from the boundary of the set, which must stay within the limits as well
REST = 20.0  # nats that ending with the speed of the limit costs
SETTLING = 0.2  # s over which an acceleration at the end counts as a speed
OUTSIDE = 1e4  # nats that leaving the limits costs, and more the farther outside, so that the search returns
POPULATION = 12
FIRST = 0.3  # the search's first step, of an input's limit


@dataclass(frozen=True)
class Excitation:
    """The input, its predicted motion, and the set that is expected from it."""

    time: Array  # (K,) s
    inputs: Array  # (K, m), held; the trim at the end
    states: Array  # (K, n) at the centre
    information: Array  # (p, p) in the parameters' units
    shape: Array  # (p, p) of the set after it


def excite(robot: CompiledRobot, task: Task, generations: int, progress: Progress) -> Excitation:
    """The input with the smallest expected set. The same arguments give the same input.

    Raises ModelError where the robot leaves its limits without an input, or with all inputs that were tried.
    """
    rate = robot.metadata.task.control_rate
    count = max(round(task.seconds * rate), 1)
    thetas = _robots(robot, task)
    still = np.tile(robot.trim, (count, 1, 1))
    if not _violation(robot, _motions(robot, task, still, thetas))[0] <= 0:
        raise ModelError(
            f"`{robot.name}` leaves its limits without an input from where it starts, with some parameters of the set. "
            "Give a --start at which it rests, fewer --seconds, or a smaller set by --identified."
        )
    basis = _basis(task, count, rate)
    options = {"seed": 1, "popsize": POPULATION, "verbose": -9, "maxiter": generations}
    search = cma.CMAEvolutionStrategy(np.zeros(basis.shape[1] * len(robot.input_names)), FIRST, options)
    best, lowest = still, np.inf
    for generation in range(generations):
        asked = search.ask()
        tried = _inputs(robot, task, basis, np.array(asked))
        values = _costs(robot, task, tried, thetas)
        search.tell(asked, values.tolist())
        if values.min() < lowest:
            lowest, best = float(values.min()), tried[:, [int(values.argmin())]]
        if (generation + 1) % 10 == 0:
            progress(f"search {generation + 1} of {generations}")
    if lowest >= OUTSIDE:
        raise ModelError(
            f"no input was found that keeps `{robot.name}` within {100 * ROOM:.0f} % of its limits, for the parameters "
            f"of the set. Write a smaller --share, fewer --seconds, or another --start."
        )
    states = _motions(robot, task, best, task.centre[None])[:, 0, 0]
    information = informations(robot, task, best, states[:, None])[0]
    inputs = np.concatenate([best[:, 0], still[0]])
    return Excitation(
        np.arange(count + 1) / rate, inputs, states, information, _after(robot, task, information[None])[0]
    )


def informations(robot: CompiledRobot, task: Task, inputs: Array, states: Array) -> Array:
    """Information matrices (C, p, p), in the parameters' units, of C inputs (K, C, m).

    states: their motions (K + 1, C, n) with the parameters at the centre.
    """
    rate, (count, many, m), tangent = robot.metadata.task.control_rate, inputs.shape, Tangent(robot.metadata)
    size = min(count, max(1, round(task.window * rate)))
    parts = count // size
    held = inputs[: parts * size].reshape(parts, size, many, m).swapaxes(0, 1).reshape(size, -1, m)
    starts = states[: parts * size : size].reshape(parts * many, -1)
    nothing = np.zeros(len(starts))
    measured = np.zeros((size + 1, len(starts), tangent.size))
    windows = Windows(
        np.full((size, len(starts)), 1 / rate),
        held,
        measured,
        starts,
        np.zeros(len(starts), np.intp),
        nothing,
        task.window,
        1 / rate,
    )
    weigh = np.broadcast_to(np.where(np.isnan(task.deviations), 0.0, 1 / task.deviations), measured.shape)
    motion = simulate(robot, windows, starts, task.centre)
    if tangent.rotations:
        inward = tangent.projection(motion.x)
        motion = Motion(motion.x, *(inward @ D for D in motion[1:]))
    J = eliminated(motion, starts, measured, weigh, robust=False).sensitivity
    J = J.reshape(size + 1, parts, many, tangent.size, -1)
    return task.weight * np.asarray(np.einsum("kwcia,kwcib->cab", J, J, optimize=True))


def _after(robot: CompiledRobot, task: Task, informations: Array) -> Array:
    """Expected sets (C, p, p): the known one combined with new information."""
    size = float(chdtri(len(sought(robot)), 1 - LEVEL))
    root = np.linalg.cholesky(task.shape)
    seen = root.T @ informations @ root / size
    inverse = np.linalg.inv(np.eye(len(root)) + (seen + seen.swapaxes(1, 2)) / 2)
    return np.asarray(root @ inverse @ root.T)


def _costs(robot: CompiledRobot, task: Task, inputs: Array, thetas: Array) -> Array:
    """Costs (C,): logarithm of the squared volume of the set, plus penalties of the limits and of speed at the end."""
    motions = _motions(robot, task, inputs, thetas)
    outside = _violation(robot, motions)
    costs = OUTSIDE * (1 + np.nan_to_num(outside, nan=1e6, posinf=1e6))
    inside = outside <= 0
    if inside.any():
        states = motions[:, inside, 0]
        volume = np.linalg.slogdet(_after(robot, task, informations(robot, task, inputs[:, inside], states)))[1]
        costs[inside] = volume + REST * _unrest(robot, task, states[-1])
    return np.asarray(costs)


def _unrest(robot: CompiledRobot, task: Task, states: Array) -> Array:
    """How far states (C, n) are from rest under the trim, (C,): squared speeds and accelerations, by the limits."""
    v = robot.metadata.velocities
    limits = np.asarray(robot.state_limits)[v]
    still = np.tile(robot.trim, (len(states), 1))
    gained = SETTLING * np.asarray(robot.dynamics(np.ascontiguousarray(states), still, task.centre))[:, v]
    return np.asarray(((states[:, v] / limits) ** 2 + (gained / limits) ** 2).sum(axis=1))


def _robots(robot: CompiledRobot, task: Task) -> Array:
    """The centre, and parameters from the boundary of the known set, within the declared bounds: (1 + ROBOTS, p)."""
    directions = np.random.default_rng(0).normal(size=(ROBOTS, len(task.centre)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lower, upper = np.asarray(robot.parameter_bounds).T
    others = np.clip(task.centre + directions @ np.linalg.cholesky(task.shape).T, lower, upper)
    return np.concatenate([task.centre[None], others])


def _basis(task: Task, count: int, rate: int) -> Array:
    """Sines and cosines that begin and end at zero, (K, 2 f), at multiples of 1 / seconds up to the highest.

    Slow ones are smaller: the same force moves a mass by the square of the period.
    """
    most = max(1, int(task.highest * task.seconds))
    harmonics = np.unique(np.round(np.geomspace(1, most, SINES)))
    time = np.arange(count) / rate
    edge = np.minimum(time, task.seconds - time) / (TAPER * task.seconds)
    taper = np.sin(np.pi / 2 * np.clip(edge, 0, 1)) ** 2
    phase = 2 * np.pi * harmonics * time[:, None] / task.seconds
    size = taper[:, None] * harmonics / harmonics[-1]
    return np.asarray(np.hstack([size * np.sin(phase), size * np.cos(phase)]))


def _inputs(robot: CompiledRobot, task: Task, basis: Array, points: Array) -> Array:
    """Points (C, 2 f m) as inputs (K, C, m): about the trim, scaled as a whole where one would leave a limit."""
    sums = np.einsum("kf,cfm->kcm", basis, points.reshape(len(points), basis.shape[1], -1))
    scaled = sums / np.maximum(1.0, np.abs(sums).max(axis=0))
    limits, away = np.asarray(robot.input_limits), np.asarray(robot.trim) - robot.input_middle
    room = np.where(scaled > 0, limits - away, limits + away)
    return np.asarray(robot.trim + task.share * room * scaled)


def _motions(robot: CompiledRobot, task: Task, inputs: Array, thetas: Array) -> Array:
    """States (K + 1, C, R, n) of C inputs (K, C, m) on R robots, by Runge-Kutta; infinite where it ends so."""
    many, robots = inputs.shape[1], len(thetas)
    parameters = np.tile(thetas, (many, 1))
    h = safe_step(robot)
    steps = round(1 / (robot.metadata.task.control_rate * h))
    x, quaternions = np.tile(task.start, (many * robots, 1)), [each.quaternion for each in robot.metadata.rotations]
    states = [x]
    with np.errstate(all="ignore"):
        for u in np.repeat(inputs, robots, axis=1):

            def rate(at: Array, _: float, u: Array = u) -> Array:
                return robot.dynamics(at, u, parameters)

            for _ in range(steps):
                x = runge_kutta_step(rate, x, 0.0, h)
                on_sphere(x, quaternions)
            states.append(x)
    return np.stack(states).reshape(len(states), many, robots, -1)


def _violation(robot: CompiledRobot, motions: Array) -> Array:
    """The largest share of a limit beyond ROOM that any robot reaches, (C,); at most zero where all stay inside."""
    metadata, tangent = robot.metadata, Tangent(robot.metadata)
    bounded = [i for i in tangent.plain[0] if not metadata.states[i].continuous]
    with np.errstate(all="ignore"):
        shares = [np.abs(motions[..., bounded]) / np.asarray(robot.state_limits)[bounded]]
        for rotation in metadata.rotations:
            if rotation.limit < np.pi:
                target = np.array(metadata.task.target)[rotation.quaternion]
                shares.append(_angle(target, motions[..., rotation.quaternion])[..., None] / rotation.limit)
        reached = np.concatenate(shares, axis=-1)
    return np.asarray(np.nan_to_num(reached, nan=1e6, posinf=1e6).max(axis=(0, 2, 3)) - ROOM)


def _angle(p: Array, q: Array) -> Array:
    """Angles (...) in rad between the rotations p (4,) and q (..., 4)."""
    return np.asarray(2 * np.arcsin(np.minimum(np.linalg.norm(turn_between(p, q)[0], axis=-1) / 2, 1.0)))


HIDDEN = 1.05  # a combination whose half width shrinks by a smaller factor stays as it was


def text(robot: CompiledRobot, task: Task, excitation: Excitation) -> str:
    """Half widths of the set before and after, combinations from the one that shrinks most, and the motion's extent."""
    before, after = (np.sqrt(np.diag(shape)) for shape in (task.shape, excitation.shape))
    own, wide = sought(robot), max(len(name) for name in robot.parameter_names)
    lines = [f"{'half width of':<{wide + 2}}  {'before':>10}  {'expected':>10}"]
    for i in own:
        parameter = robot.metadata.parameters[i]
        lines.append(f"  {parameter.name:<{wide}}  {before[i]:>10.3g}  {after[i]:>10.3g} {parameter.unit}")
    for factor, change in combinations(*(shape[np.ix_(own, own)] for shape in (task.shape, excitation.shape))):
        words = in_words([robot.parameter_names[i] for i in own], change, task.centre[own])
        shown = f"{factor:.3g} times narrower" if factor > HIDDEN else "not seen in this motion"
        lines.append(f"{words}: {shown}")
    largest, states = np.abs(excitation.states).max(axis=0), robot.metadata.states
    lines += [
        f"{states[i].name} reaches {largest[i]:.3g} {states[i].unit}"
        f"{'' if states[i].continuous else f' of {states[i].limit:g}'}, ends at {excitation.states[-1, i]:.3g}"
        for i in Tangent(robot.metadata).plain[0]
    ]
    for rotation in robot.metadata.rotations:
        turned = _angle(excitation.states[0, rotation.quaternion], excitation.states[:, rotation.quaternion])
        lines.append(f"{rotation.name} turns by {turned.max():.3g} rad from its start, ends at {turned[-1]:.3g}")
    return "\n".join(lines)


def combinations(before: Array, after: Array) -> list[tuple[float, Array]]:
    """Pairs of a factor, by which the set becomes narrower, and the change (p,) of the parameters along that axis."""
    root = np.linalg.cholesky(before)
    inverse = np.linalg.inv(root)
    sizes, vectors = np.linalg.eigh(inverse @ after @ inverse.T)
    return [
        (float(1 / np.sqrt(max(size, 1e-300))), root @ vector) for size, vector in zip(sizes, vectors.T, strict=True)
    ]


def write(path: Path, robot: CompiledRobot, excitation: Excitation) -> None:
    """Time and inputs as CSV; the input of a row is held until the next row. ModelError where it cannot be written."""
    with replacing(path) as unfinished:
        header = ",".join((TIME, *robot.input_names))
        table = np.column_stack([excitation.time, excitation.inputs])
        np.savetxt(unfinished, table, "%.9g", ",", header=header, comments="", encoding="utf-8")
