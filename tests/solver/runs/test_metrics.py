"""The log of a training: cut lines, resumed logs, TensorBoard."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from threading import Condition, get_ident
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.errors import ReliabilityWarning
from solver.runs.folder import METRICS
from solver.runs.metrics import MetricsLog, Pace, pace, read_metrics

KEYS = ("iteration", "value_error")


def test_a_cut_line_of_metrics_is_left_out(tmp_path: Path) -> None:
    whole = [{"iteration": float(k), "value_error": 1.0} for k in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in whole) + '{"iteration": 3.0, "value_er'
    strange = "\n5\n[]\n{}\n" + '{"iteration": {}, "value_error": 1}\n' + "[" * 10_000 + "\n"
    (tmp_path / METRICS).write_bytes((text + strange).encode() + b"\xff\xfe\n")
    assert read_metrics(tmp_path, KEYS) == whole
    assert read_metrics(tmp_path / "nowhere", KEYS) == []


@given(
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 600),
)
@pytest.mark.slow
def test_no_row_is_lost_without_a_word(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, end: str, cut: int
) -> None:
    """As editors and crashes leave the file: what is read was written, and what cannot be read is said."""
    rows = [{"iteration": float(k), "value_error": k / 3} for k in range(5)]
    path = tmp_path_factory.getbasetemp() / METRICS
    content = "".join(json.dumps(row) + end for row in rows).encode(encoding)
    path.write_bytes(content[: len(content) - cut])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_metrics(path.parent, KEYS)
    assert found == rows[: len(found)]
    unreadable = encoding in ("utf-16-le", "utf-32")
    if not cut and not unreadable:
        assert found == rows
    assert bool(found) or unreadable or cut > len(content) / 5
    said = [warning for warning in caught if warning.category is ReliabilityWarning]
    assert bool(said) == (unreadable and cut < 0.7 * len(content)) or cut >= 0.7 * len(content)


def test_a_resumed_log_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    rows = [{"iteration": float(k), "value_error": float(k)} for k in range(4)]
    log = MetricsLog(tmp_path, 0, KEYS)
    for row in rows:
        log.write(row)
    log.close()
    log = MetricsLog(tmp_path, 2, KEYS)
    assert read_metrics(tmp_path, KEYS) == rows[:2]
    log.write({"iteration": 2.0, "value_error": 9.0})
    log.close()
    assert read_metrics(tmp_path, KEYS) == [*rows[:2], {"iteration": 2.0, "value_error": 9.0}]


def test_tensorboard_holds_the_same_numbers(finished_run: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(finished_run))
    board.Reload()
    rows = read_metrics(finished_run)
    for name in ("value_error", "return_mean"):
        expected = [(int(row["iteration"]), pytest.approx(row[name], rel=1e-5)) for row in rows if name in row]
        assert [(event.step, event.value) for event in board.Scalars(name)] == expected


@pytest.mark.timeout(60)
def test_ctrl_c_while_a_row_is_handed_over_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's `Condition.notify` may be left between its release of a waiter and its removal from the list. The next
    call then releases the same one: here TensorBoard's thread is not told that the log is closed."""
    log = MetricsLog(tmp_path, 0, KEYS)
    told: list[Any] = []
    notify, me = Condition.notify, get_ident()

    def noted(condition: Any, n: int = 1) -> None:
        if get_ident() == me:
            told.append(condition)
        notify(condition, n)

    monkeypatch.setattr(Condition, "notify", noted)
    log.write({"iteration": 0.0, "value_error": 1.0})
    monkeypatch.undo()
    rows = told[0]
    for _ in range(1000):
        if rows._waiters:
            break
        time.sleep(0.01)

    def interrupted() -> None:
        rows._waiters[0].release()
        raise KeyboardInterrupt

    monkeypatch.setattr(rows, "notify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.write({"iteration": 1.0, "value_error": 1.0})
    monkeypatch.undo()
    log.close()


def test_the_pace_is_the_time_to_an_evaluation_as_good_as_the_kept_one() -> None:
    def row(seconds: float, **evaluation: float) -> dict[str, float]:
        return {"seconds_targets": seconds, "seconds_fit": 1.0, **evaluation}

    def looked(success: float, returned: float, kept: float) -> dict[str, float]:
        return row(2.0, seconds_evaluation=4.0, success_rate=success, return_mean=returned, kept=kept)

    rows = [row(2.0), looked(0.5, -9.0, 2), row(2.0), looked(1.0, -10.09, 4), looked(1.0, -10.0, 5)]
    reached = pace([*rows, looked(1.0, -12.0, 5)])
    assert reached == Pace(total=6 * 3.0 + 4 * 4.0, reached=4 * 3.0 + 2 * 4.0, rows=6, row=4)
    assert str(reached) == "99 % of the final return after 20 s of 34 s, iteration 4 of 6"
    assert pace([row(1.0)]) is None
