"""One line of a verification, and all lines as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modelgen.backends import MODULES

PRECISIONS = ("float64", "float32")
LIMITS = {"float64": 1e-9, "float32": 0.05}  # rounding in float32 stays below 0.05; a larger error is a defect
KERNELS = tuple(f"{backend} {precision}" for backend in MODULES for precision in PRECISIONS)


@dataclass(frozen=True)
class Check:
    """One line of a verification. `error` is None for a check that was skipped; `note` then gives the reason."""

    what: str
    case: str
    error: float | None
    limit: float
    note: str = ""
    where: str = ""  # the worst entry of a failed check: its name, the point, both values
    verdict: str = ""  # of a quantity on the whole domain; replaces the number

    @property
    def passed(self) -> bool:
        """Whether the check was skipped, or its error is within the limit."""
        return self.error is None or self.error <= self.limit


def table(checks: Sequence[Check]) -> str:
    """The checks as text: one line per check of the mechanics; one line per quantity, with one column per kernel."""
    lines = []
    by_quantity: dict[str, dict[str, Check]] = {}
    for check in checks:
        if check.case in KERNELS:
            by_quantity.setdefault(check.what, {})[check.case] = check
        else:
            lines.append(f"  {check.what:<46} {check.case:<15} {_cell(check):>18}  {check.note}".rstrip())
            lines += [f"    {check.where}"] * bool(check.where)
    if not by_quantity:
        return "\n".join(lines)
    cases = [case for case in KERNELS if any(case in cells for cells in by_quantity.values())]
    lines += ["", f"  {'kernels, limits 1e-9 and 5e-2':<46}" + "".join(f"{case:>17}" for case in cases)]
    for what, cells in by_quantity.items():
        shown = (_cell(cells.get(case)) for case in cases)
        lines.append(f"  {what:<46}" + "".join(f"{cell:>17}" for cell in shown))
        lines += [f"    {case}: {check.where}" for case, check in cells.items() if check.where]
    return "\n".join(lines)


def counts(checks: Sequence[Check]) -> dict[str, int]:
    """How many checks passed, failed and were skipped."""
    failed, skipped = sum(not check.passed for check in checks), sum(check.error is None for check in checks)
    return {"passed": len(checks) - failed - skipped, "failed": failed, "skipped": skipped}


def _cell(check: Check | None) -> str:
    if check is None:
        return "not checked"
    if check.verdict:
        return check.verdict if check.passed else f"{check.verdict} FAILED"
    if check.error is None:
        return "skipped"
    return f"{check.error:.1e}" + ("" if check.passed else " FAILED")
