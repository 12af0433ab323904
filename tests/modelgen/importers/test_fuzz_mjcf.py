"""Random MJCF files with free and ball joints, loops and inputs that only push, against MuJoCo."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.numeric import compiled_evaluator
from modelgen.errors import ModelError
from tests.modelgen.importers.test_mjcf import Machine, agree
from tests.modelgen.support.cases import CASES

pytestmark = pytest.mark.slow


pytest.importorskip("mujoco")

few = settings(max_examples=max(CASES // 10, 2), deadline=None)  # a derivation takes seconds
seeds = st.integers(0, 2**32 - 1)


def _numbers(random: np.random.Generator, low: float, high: float, count: int = 3) -> str:
    return " ".join(f"{value:.3f}" for value in random.uniform(low, high, count))


def _mass(random: np.random.Generator) -> str:
    return (
        f'<inertial pos="{_numbers(random, -0.2, 0.2)}" mass="{random.uniform(0.5, 3):.3f}" '
        f'diaginertia="{_numbers(random, 0.2, 0.3)}" euler="{_numbers(random, -90, 90)}"/>'
    )


def _motor(joint: str, random: np.random.Generator) -> str:
    """A motor that pushes to one side, or a servo."""
    if random.uniform() < 0.5:
        return f'<motor name="{joint}_motor" joint="{joint}" gear="{random.uniform(-2, 2):.3f}" ctrlrange="0 3"/>'
    return f'<position name="{joint}_servo" joint="{joint}" kp="{random.uniform(1, 9):.3f}" kv="1" ctrlrange="-1 2"/>'


@few
@given(
    seed=seeds,
    root=st.sampled_from(["free", "ball", "hinge"]),
    others=st.lists(st.sampled_from(["ball", "hinge", "slide"]), max_size=2),
)
def test_fuzz_trees_with_bodies_in_space(seed: int, root: str, others: list[str]) -> None:
    random, text, motors = np.random.default_rng(seed), "", ""
    for number, kind in enumerate([root, *others]):
        axis = f'axis="{_numbers(random, -1, 1)}" range="-1 1"' if kind in ("hinge", "slide") else ""
        damping = "" if kind == "free" else f'damping="{random.uniform(0, 1):.3f}" pos="{_numbers(random, -0.2, 0.2)}"'
        text += (
            f'<body name="b{number}" pos="{_numbers(random, -0.5, 0.5)}" euler="{_numbers(random, -180, 180)}">'
            f'<joint name="j{number}" type="{kind}" {axis} {damping}/>{_mass(random)}'
        )
        text += f'<site name="s{number}" pos="{_numbers(random, -0.2, 0.2)}" euler="{_numbers(random, -90, 90)}"/>'
        motors += _motor(f"j{number}", random) if kind in ("hinge", "slide") else ""
    motors += f'<general name="rotor" site="s0" gear="{_numbers(random, -1, 1, 6)}" ctrlrange="0 2"/>'
    _agrees(text + "</body>" * (1 + len(others)), motors)


@settings(max_examples=max(CASES // 10, 1), deadline=None)
@example(seed=123, welded=True, floats=False)
@given(seed=seeds, welded=st.booleans(), floats=st.booleans())
def test_fuzz_four_bars(seed: int, welded: bool, floats: bool) -> None:
    """Bars of any lengths, joined at a random posture, in any plane; what the importer writes is not refused.

    Of some, the crank can hardly move: the importer says so.
    """
    random = np.random.default_rng(seed)
    a, b, c = random.uniform(0.1, 0.6, 3)
    angles = random.uniform(-180, 180, 2)
    plane = f'euler="{_numbers(random, -180, 180)}"'
    limited = "" if random.uniform() < 0.5 else 'range="-40 50"'
    spring = f'stiffness="{random.uniform(0, 1):.3f}"' if random.uniform() < 0.5 else ""
    text = f"""<body name="base" pos="0 0 1" {plane}>{"<freejoint/>" if floats else ""}{_mass(random)}
      <body name="crank"><joint name="crank" axis="0 0 1" {limited}/>{_mass(random)}
        <body name="coupler" pos="{a:.3f} 0 0" euler="0 0 {angles[0]:.3f}"><joint name="coupler" axis="0 0 1" {spring}/>
          {_mass(random)}<body name="end" pos="{b:.3f} 0 0">{'<joint name="pin" axis="0 0 1"/>' if welded else ""}
          {_mass(random)}</body></body></body>
      <body name="rocker" pos="0.5 0.02 {random.uniform(-0.1, 0.1):.3f}" euler="0 0 {angles[1]:.3f}">
        <joint name="rocker" axis="0 0 -1" pos="{c:.3f} 0 0" damping="0.1"/>{_mass(random)}</body></body>"""
    kind = "weld" if welded else 'connect anchor="0 0 0"'
    try:
        _agrees(text, _motor("crank", random), f'<equality><{kind} body1="end" body2="rocker"/></equality>')
    except ModelError as error:
        assert "closes only very near the reference posture of crank" in str(error)  # noqa: PT017
        event("refused")


def _agrees(body: str, actuators: str, more: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), body, actuators, more)
        x, u = machine.draw()
        equations = equations_of_motion(machine.robot)
        parts = equations.mass_matrix.row_join(equations.force).row_join(equations.input_matrix)
        theta = [parameter.value for parameter in machine.robot.parameters if not parameter.fixed]
        symbols = (*equations.state, *equations.parameters)
        values = compiled_evaluator(symbols, parts, equations.definitions)(np.hstack([x, np.tile(theta, (len(x), 1))]))
        size = values.shape[1]
        force = values[:, :, size] + np.einsum("nij,nj->ni", values[:, :, size + 1 :], u)
        agree(np.linalg.solve(values[:, :, :size], force[:, :, None])[:, :, 0], machine.imported.acceleration(x, u))
