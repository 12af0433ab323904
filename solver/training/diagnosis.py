"""What is said after a training whose policy does not solve its task, or pays too much: what its metrics show, and what
to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

MISMATCH = 0.03  # of V at the end of nominal training, above which it is rough
SOLVED = 0.95  # share of the selection's rollouts that succeed
LEANING = 0.2  # share of the rollouts that meet a limit
UNFITTED = 0.1  # value error, as a share of the mean |target|
LOST = 0.8  # of the best share of successes: less at the end means that later iterations lost it
#: In the rows of evaluations.
EVALUATED = {"iteration", "selection_success"}
FITTED = {"value_error", "target_mean"}  # in every row
NOMINAL = {"value_mismatch", "adversary"}  # in the rows of evaluations of this version


def diagnosis(
    kept: Mapping[str, float], rows: Sequence[dict[str, float]], idle_return: float, robot: str, folder: Path
) -> str:
    """A paragraph, or nothing where the kept policy succeeds in SOLVED of the rollouts and V is what that is paid.

    kept: success_rate, return_mean and limit_rate of the kept policy, and the selection_success that chose it. rows: of
    metrics.jsonl, which only explain: a damaged file changes no success. idle_return: mean return of the robot without
    input, from the task's starts.
    """
    looked, reached = [row for row in rows if row.keys() >= EVALUATED], kept["selection_success"]
    if reached >= SOLVED:
        return _roughness(looked, folder)
    fitted = [row for row in rows if row.keys() >= FITTED][-1:]
    errors = [row["value_error"] / max(abs(row["target_mean"]), 1e-9) for row in fitted]
    seen = (
        f"the kept policy succeeds in {100 * kept['success_rate']:.0f} % of the rollouts, and in {100 * reached:.0f} % "
        "of those that chose it, where one that meets a limit counts for two thirds: mean return "
        f"{kept['return_mean']:.3g}, {idle_return:.3g} without input; {100 * kept['limit_rate']:.0f} % of the rollouts "
        "meet a limit."
    )
    for row, error in zip(fitted, errors, strict=True):
        seen += f" The value error is {row['value_error']:.2g}, {100 * error:.0f} % of the mean target."
    then = f"`solver train {robot} --from {folder}` goes on from this run."
    last = looked[-1]["selection_success"] if looked else reached
    return " ".join([seen, *_remedies(kept, last, max(errors, default=0.0), idle_return, robot), then])


def _roughness(looked: Sequence[dict[str, float]], folder: Path) -> str:
    """What a V that is still rough may cost; nothing of a fine one. Under adversaries V is not what is paid."""
    nominal = [row["value_mismatch"] for row in looked if row.keys() >= NOMINAL and row["adversary"] == 0.0]
    if not nominal or nominal[-1] <= MISMATCH:
        return ""
    return (
        f"the task is solved, and V is still rough: it differs from what its policy is paid by {100 * nominal[-1]:.0f} "
        "% of what that gains over the idle robot. The policy may pay about as much too much: `solver limit "
        f"{folder}` looks for better motions; train with a larger --polish, or with more --states."
    )


def _remedies(
    kept: Mapping[str, float], last_success: float, error: float, idle_return: float, robot: str
) -> list[str]:
    """What to try, the likeliest first."""
    found = []
    if kept["limit_rate"] > LEANING:
        found.append("Widen the limits that it meets, or make them dearer with --limit-cost.")
    if error > UNFITTED:
        found.append("The networks do not follow their targets: try more --states, a larger --width, or more --epochs.")
    if last_success < LOST * kept["selection_success"]:
        found.append("Later iterations lost what earlier ones found: try a smaller --learning-rate, or more --states.")
    if kept["return_mean"] <= idle_return + 0.1 * abs(idle_return):
        found.append(f"It is hardly better than no input: `solver limit {robot}` says if the task is worth solving.")
    return found or ["It comes near and does not settle: try more --iterations, or a finer --step-periods at the end."]
