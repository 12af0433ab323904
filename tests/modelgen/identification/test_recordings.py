"""Reading CSV files: columns and expressions, units, comments, gaps, and one paragraph for every mistake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelgen
from modelgen.errors import ModelError
from modelgen.identification.columns import columns
from modelgen.identification.recordings import read
from modelgen.identification.windows import cut
from modelgen.loader import CompiledRobot

ROWS = [(0.01 * k, 3.0 + 0.01 * k, 0.5) for k in range(60)]


def written(folder: Path, rows: Sequence[tuple[object, ...]], header: str = "time,angle,torque") -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


def test_columns_units_signs_and_empty_cells(pendulum: CompiledRobot, tmp_path: Path) -> None:
    rows = [(k * 10, "" if k == 4 else 170 + k, k, 7) for k in range(20)]
    path = written(tmp_path, rows, "ms,theta,motor*1,other")
    where = columns(["time=ms*0.001", "angle=theta*-pi/180", "torque=motor*1*0.1"], pendulum.metadata)
    found = read(path, pendulum.metadata, where)
    np.testing.assert_allclose(found.time, 0.01 * np.arange(20))
    np.testing.assert_allclose(found.inputs[:, 0], 0.1 * np.arange(20))
    expected = -np.radians(170.0 + np.arange(20))
    expected[4] = np.nan
    np.testing.assert_allclose(found.states[:, 0], expected)
    assert np.isnan(found.states[:, 1]).all()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("a+b+pi", np.pi + 7.0),
        ("a+b*2+-0.5", 13.5),
        ("a+b", 7.0),
        ("a+b*1e+1", 70.0),
        ("(a+b - 5)^2 / 8", 0.5),
        ("a+b*2*pi/4096 + c%", 14 * np.pi / 4096 + 0.03),
        ("-a+b + 2pi", 2 * np.pi - 7.0),
        ("a+b/50% - (1 + c)^50%", 12.0),
        ("a+b + 2pi%", 7.0 + 0.02 * np.pi),
        ("0.25", 0.25),
    ],
)
def test_an_expression_of_columns(pendulum: CompiledRobot, tmp_path: Path, column: str, expected: float) -> None:
    path = written(tmp_path, [(0.01 * k, 7.0, 3.0) for k in range(20)], "time,a+b,c")
    found = read(path, pendulum.metadata, columns([f"angle={column}", "torque=0"], pendulum.metadata))
    np.testing.assert_allclose(np.cos(found.states[:, 0] - expected), 1.0)
    assert not found.inputs.any()


def test_comments_are_skipped_and_lines_keep_their_numbers(pendulum: CompiledRobot, tmp_path: Path) -> None:
    where, path = columns((), pendulum.metadata), tmp_path / "log.csv"
    rows = [",".join(map(str, row)) for row in ROWS]
    for head in (["# a rig", "#", "time,angle,torque"], ["# a rig", "# time,angle,torque"]):  # as np.savetxt has it
        path.write_text("\n".join([*head, *rows[:20], "# paused", *rows[20:]]))
        np.testing.assert_allclose(read(path, pendulum.metadata, where).time, [row[0] for row in ROWS])
        path.write_text("\n".join([*head, *rows[:20], "# paused", "0.2,x,0", *rows[20:]]))
        with pytest.raises(ModelError, match=rf"log\.csv:{len(head) + 22}: "):
            read(path, pendulum.metadata, where)


def test_cells_in_per_cent(pendulum: CompiledRobot, tmp_path: Path) -> None:
    path = written(tmp_path, [(0.01 * k, 3.0, f"{k} %") for k in range(20)])
    found = read(path, pendulum.metadata, columns((), pendulum.metadata))
    np.testing.assert_allclose(found.inputs[:, 0], np.arange(20) / 100)


def test_an_angle_that_wraps_is_unwrapped(pendulum: CompiledRobot, tmp_path: Path) -> None:
    angle = 3.0 + 0.02 * np.arange(40)
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    path = written(tmp_path, [(0.01 * k, wrapped[k], 0.0) for k in range(40)])
    found = read(path, pendulum.metadata, columns((), pendulum.metadata))
    np.testing.assert_allclose(found.states[:, 0], angle)


def test_an_angle_with_limits_that_wraps_is_refused(tmp_path: Path) -> None:
    """It has one value in each posture. A spike in one row, and a pause, are no turn."""
    robot, time = modelgen.load("planar_arm2", backend="casadi").metadata, 0.01 * np.arange(60)
    shoulder = 2.9 + 1.5 * time
    where = columns([f"{entry.name}=0" for entry in robot.inputs], robot)

    def log(angle: np.ndarray) -> Path:
        return written(tmp_path, list(zip(time, angle, 0 * time, strict=True)), "time,shoulder,elbow")

    with pytest.raises(ModelError, match=r"log\.csv:19: `shoulder` jumps by a turn"):
        read(log((shoulder + np.pi) % (2 * np.pi) - np.pi), robot, where)
    np.testing.assert_allclose(read(log(shoulder), robot, where).states[:, 0], shoulder)
    shoulder[30] -= 4.0
    time[40:] += 2.0
    shoulder[40:] -= 2 * np.pi
    np.testing.assert_allclose(read(log(shoulder), robot, where).states[:, 0], shoulder)


def test_no_window_runs_over_a_gap(pendulum: CompiledRobot, tmp_path: Path) -> None:
    rows = [(time + (2.0 if time > 0.295 else 0.0), angle, torque) for time, angle, torque in ROWS]
    found = read(written(tmp_path, list(rows)), pendulum.metadata, columns((), pendulum.metadata))
    windows = cut(pendulum, [found], 0.2)
    assert windows.steps.max() < 0.011
    assert windows.steps.shape[1] == 2  # 0.3 s on either side: a rest of less than half a window is left out


@pytest.mark.parametrize(
    ("header", "change", "said"),
    [
        ("time,angel,torque", {}, "no column `angle`. Did you mean `angel`?"),
        ("time,angle,angle", {}, "2 columns `angle`"),
        ("time;angle;torque", {}, "are separated by semicolons. Export it with commas"),
        ("time\tangle\ttorque", {}, "are separated by tabs"),
        ("time,angle,torque", {5: (0.03, 3.0, 0.5)}, "log.csv:7: the time does not increase: 0.03 s follows 0.04 s"),
        (
            "time,angle,torque",
            {5: (0.04, 3.0, 0.5)},
            "log.csv:7: the time 0.04 s stands in two rows",
        ),
        ("time,angle,torque", {5: (0.05, 3.0, 0, 5)}, "log.csv:7: the row has 4 cells, and the header names 3"),
        ("time,angle,torque", {5: (0.05, 3.0, "1_5")}, "log.csv:7: the column `torque`, read as `torque`, has `1_5`"),
        ("time,angle,torque", {5: (0.05, 3.0, "\uff11")}, "log.csv:7: the column `torque`"),
        ("time,angle,torque", {5: (0.05, "x", 0.5)}, "log.csv:7: the column `angle`, read as `angle`, has `x`"),
        ("time,angle,torque", {5: (0.05, 3.0, "")}, "log.csv:7: `torque` is empty"),
        ("time,angle,torque", {5: (0.05, 3.0)}, "log.csv:7: `torque` is empty"),
        ("time,angle,torque", {k: (0.01 * k, 3.0, 400.0) for k in range(60)}, "torque reaches 400 N m"),
        (
            "time,angle,torque",
            {k: (0.01 * k, 3.0 * k, 0.5) for k in range(60)},
            "angle=angle*pi/180",
        ),
    ],
)
def test_a_mistake_in_a_recording_is_named(
    pendulum: CompiledRobot, tmp_path: Path, header: str, change: dict[int, tuple[object, ...]], said: str
) -> None:
    path = written(tmp_path, [change.get(k, row) for k, row in enumerate(ROWS)], header)
    with pytest.raises(ModelError) as told:
        read(path, pendulum.metadata, columns((), pendulum.metadata))
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_too_few_rows_and_no_file(pendulum: CompiledRobot, tmp_path: Path) -> None:
    where = columns((), pendulum.metadata)
    with pytest.raises(ModelError, match=r"\b9 rows"):
        read(written(tmp_path, list(ROWS[:9])), pendulum.metadata, where)
    with pytest.raises(ModelError, match=r"gone\.csv"):
        read(tmp_path / "gone.csv", pendulum.metadata, where)
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(ModelError, match="`time`"):
        read(tmp_path / "empty.csv", pendulum.metadata, where)
    (tmp_path / "picture.csv").write_bytes(bytes(range(256)))
    with pytest.raises(ModelError, match=r"picture\.csv .*CSV"):
        read(tmp_path / "picture.csv", pendulum.metadata, where)


@pytest.mark.parametrize(
    "pair",
    ["speed=x", "angle", "angle=", "angle=x*", "angle=x*two", "angle=torque", "time=x*nan", "angle=x(2)", "angle=x y",
     "angle=__import__('os')", "angle=x if x else x", "angle=9**9**9**9", "angle=1/(x-x)", "angle=" + "(" * 400],
)  # fmt: skip
def test_an_expression_that_has_no_value_is_refused(pendulum: CompiledRobot, tmp_path: Path, pair: str) -> None:
    path = written(tmp_path, [(*row, 1.0) for row in ROWS], "time,angle,torque,x")
    with pytest.raises(ModelError, match=r"columns|no finite value"):
        read(path, pendulum.metadata, columns([pair], pendulum.metadata))


def test_a_quantity_is_named_once(pendulum: CompiledRobot) -> None:
    with pytest.raises(ModelError, match="angle=a and angle=b"):
        columns(["angle=a", "angle=b"], pendulum.metadata)


@pytest.mark.parametrize("factor", [-1.0, 20.0, 0.3])
def test_a_velocity_in_another_unit_than_its_position(pendulum: CompiledRobot, tmp_path: Path, factor: float) -> None:
    """With an empty cell and the noise of a sensor; a filter's delay of 40 ms is no other unit."""
    random, time = np.random.default_rng(0), 0.01 * np.arange(300)
    where = columns((), pendulum.metadata)
    for late, scale in ((0.0, 1.0), (0.04, 1.0), (0.0, factor)):
        rate = scale * (2.0 * np.cos(4.0 * (time - late)) + 0.1 * random.normal(size=300))
        rows = [
            (t, 0.5 * np.sin(4.0 * t), r if k != 50 else "", 0.0)
            for k, (t, r) in enumerate(zip(time, rate, strict=True))
        ]
        path = written(tmp_path, rows, "time,angle,angle_rate,torque")
        if scale == 1.0:
            assert np.isnan(read(path, pendulum.metadata, where).states[50, 1])
            continue
        with pytest.raises(ModelError, match=r"`angle_rate`.*`angle`.*angle_rate=angle_rate\*-1"):
            read(path, pendulum.metadata, where)


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_a_rate_is_compared_with_its_own_coordinate(tmp_path: Path, factor: float) -> None:
    """The rate of a wheel's place follows from its turn, so that the first rate belongs to the second coordinate."""
    wheel = modelgen.Robot("wheel")
    place, turn = wheel.prismatic("place", limit=2), wheel.revolute("turn", limit=60, rate_limit=30)
    wheel.roll({place: 0.05 * turn.rate})
    wheel.body(wheel.parameter("mass", 1.0, "kg", tolerance=0.5), 0.001, (place, 0.05), turn)
    wheel.apply(turn, wheel.input("torque", 1, "N m"))
    task: dict[str, Any] = {"start": {}, "horizon": 3, "weight_at_horizon": 0.6, "control_rate": 100}
    wheel.task(state_cost=place**2 + turn**2 + turn.rate**2, action_cost=modelgen.Quadratic(0.1), **task)
    robot = modelgen.compile(wheel, backend="casadi").metadata
    time = 0.01 * np.arange(300)
    rows = [(t, 0.5 * np.sin(t), 10 * np.sin(t), factor * 10 * np.cos(t), 0) for t in time]
    path = written(tmp_path, rows, "time,place,turn,turn_rate,torque")
    if factor == 1.0:
        assert read(path, robot, columns((), robot)).states.shape == (300, 3)
        return
    with pytest.raises(ModelError, match=r"`turn_rate`.* is 0\.3 times the slope of `turn`"):
        read(path, robot, columns((), robot))
