"""Diagnosis of a training whose policy does not solve its task or costs too much: its metrics and changes to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

MISMATCH = 0.03  # V is rough above this mismatch at the end of nominal training
SOLVED = 0.95  # least share of successes in the selection of a solved task
LEANING = 0.2  # share of rollouts with a state at its limit
UNFITTED = 0.1  # value error, as a share of the mean |target|
LOST = 0.8  # later iterations lost successes if their share ends below this part of the best share
#: Keys of the rows of evaluations.
EVALUATED = {"iteration", "selection_success"}
FITTED = {"value_error", "target_mean"}  # keys of all rows
NOMINAL = {"value_mismatch", "adversary"}  # keys of the rows of evaluations


def diagnosis(
    kept: Mapping[str, float], rows: Sequence[dict[str, float]], idle_return: float, robot: str, folder: Path
) -> str:
    """Paragraph with the metrics and changes to try. Empty if the task is solved and V is smooth.

    kept: success_rate, return_mean and limit_rate of the best policy, and its selection_success. rows: of
    metrics.jsonl; they only explain, so a damaged file does not change the success. idle_return: mean return of the
    robot without input from the task's starts.
    """
    evaluated, reached = [row for row in rows if row.keys() >= EVALUATED], kept["selection_success"]
    if reached >= SOLVED:
        return _roughness(evaluated, folder)
    fitted = [row for row in rows if row.keys() >= FITTED][-1:]
    errors = [row["value_error"] / max(abs(row["target_mean"]), 1e-9) for row in fitted]
    judged = "; there a success that met a limit counts as two thirds" if kept["limit_rate"] > 0.0 else ""
    text = (
        f"the best policy succeeds in {100 * kept['success_rate']:.0f} % of the rollouts. The training chose it by "
        f"other rollouts, in which its share of successes was {100 * reached:.0f} %{judged}. Mean return "
        f"{kept['return_mean']:.3g}, {idle_return:.3g} without input; {100 * kept['limit_rate']:.0f} % of the rollouts "
        "have a state at its limit."
    )
    for row, error in zip(fitted, errors, strict=True):
        text += f" The value error is {row['value_error']:.2g}, {100 * error:.0f} % of the mean target."
    then = f"`solver train {robot} --start-from {folder}` continues from this run."
    last = evaluated[-1]["selection_success"] if evaluated else reached
    return " ".join([text, *_remedies(kept, last, max(errors, default=0.0), idle_return, robot), then])


def _roughness(evaluated: Sequence[dict[str, float]], folder: Path) -> str:
    """Sentences on a rough V; empty for a smooth V. With adversaries V differs from the nominal return in any case."""
    nominal = [row["value_mismatch"] for row in evaluated if row.keys() >= NOMINAL and row["adversary"] == 0.0]
    if not nominal or nominal[-1] <= MISMATCH:
        return ""
    return (
        f"the task is solved, but V is rough: it differs from the return of its policy by {100 * nominal[-1]:.0f} % of "
        "the policy's gain over the idle robot. The policy may cost that much more than necessary. `solver limit "
        f"{folder}` searches better motions; train with a larger --polish, or with more --states."
    )


def _remedies(
    kept: Mapping[str, float], last_success: float, error: float, idle_return: float, robot: str
) -> list[str]:
    """Changes to try; the most probable remedy is first."""
    remedies = []
    if kept["limit_rate"] > LEANING:
        remedies.append("Widen the limits that it reaches, or raise their cost with --limit-cost.")
    if error > UNFITTED:
        remedies.append(
            "The networks do not follow their targets: try more --states, a larger --width, or more --epochs."
        )
    if last_success < LOST * kept["selection_success"]:
        remedies.append("Later iterations lost successes: try a smaller --learning-rate, or more --states.")
    if kept["return_mean"] <= idle_return + 0.1 * abs(idle_return):
        cost, idle = -kept["return_mean"], -idle_return
        more = f"{cost / idle:.2g} times as much as" if idle > 0.0 else "more than"
        much = more if cost > 1.1 * idle else "about as much as"
        remedies.append(f"It costs {much} no input: `solver limit {robot}` shows the best return.")
    return remedies or [
        "It comes near but does not settle: try more --iterations, or shorter --step-periods at the end."
    ]
