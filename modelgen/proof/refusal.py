"""What `modelgen build` refuses: what is refuted, with the line, the expression and the point."""

from __future__ import annotations

from collections.abc import Iterable

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import ModelError
from modelgen.proof.findings import REFUTED, Effort, Finding, derived_findings, stated_findings
from modelgen.statement.robot import Robot

BUILD = Effort(search=0.5, proof=0.25)  # most robots need less: what is proven is not searched for long


def refuse_stated(robot: Robot) -> None:
    """Raise ModelError, with the line, for a divisor, root, logarithm or inverse function without a value somewhere."""
    _refuse(stated_findings(robot, BUILD))


def refuse_derived(robot: Robot, equations: EquationsOfMotion) -> None:
    """Raise ModelError for a mass matrix that is not positive definite somewhere, and for a negative state cost."""
    _refuse(derived_findings(robot, equations, BUILD))


def _refuse(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.status == REFUTED:
            raise ModelError(finding.note, finding.place)
