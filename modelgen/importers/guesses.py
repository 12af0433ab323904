"""Messages about what a model file guesses, because the imported file does not say it."""

from __future__ import annotations

from collections.abc import Iterator

from modelgen.importers.model_text import CONTROL_RATE, ModelLines

PLACEHOLDER = 1000.0  # rad/s, m/s: a common placeholder in published files; no joint reaches it
GUESS = 10.0  # m, the limit of a prismatic joint if its own is too large
TOO_STRONG = 100.0  # times the rate limit, reached within a control period: the effort is too strong to be simulated


def guesses(written: ModelLines, format: str) -> Iterator[str]:
    """Messages about the guesses in the file. format: "URDF" or "MJCF"."""
    if written.guessed:
        reason = f", or one of {PLACEHOLDER:g} or more," if format == "URDF" else ""
        yield (
            f"the {format} has no velocity limit{reason} for {', '.join(written.guessed)}; the "
            "rate_limit in the file is a guess. Correct it."
        )
    if written.endless:
        yield (
            f"the limits of {', '.join(written.endless)} are too large: revolute joints turn without end in the "
            f"file, and others have a limit of {GUESS:g} m, which is a guess. Correct it."
        )
    if written.ranges:
        yield (
            f"limits are symmetric in the file, and the task ends at zero; the {format} has "
            f"{', '.join(written.ranges)}. Write the real range with robot.end_stops(coordinate, (lower, upper), "
            "stiffness, width=...), and a target and a start within it."
        )
    if written.middle:
        yield (
            "zero does not lie in the middle half of some ranges; these coordinates are measured from the middle, "
            f"where the task ends: {', '.join(written.middle)}."
        )
    if written.strong:
        yield (
            f"the effort of {', '.join(written.strong)} moves the load to {TOO_STRONG:g} times the rate limit or "
            f"more within 1/{CONTROL_RATE} s, which is too fast to be simulated. Correct the effort, or add the "
            "motor's inertia: robot.rotor(coordinate, inertia, gear=...)."
        )
    if written.smoothed:
        yield (
            f"the dry friction of {', '.join(written.smoothed)} is strong for light links; it fades over a wide "
            "range of rates in the file, so that it can be simulated. Correct the friction or its smoothing, or "
            "add the motor's inertia."
        )
    if written.coupled:
        follow, hold = ("<mimic>", "--fix mimic") if format == "URDF" else ("<equality>", "--fix")
        yield (
            f"{', '.join(written.coupled)} follow other joints ({follow}); the stiffness and damping that couple "
            f"them are guesses. Correct them, or hold the joints with {hold}."
        )
