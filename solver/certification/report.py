"""Report of a certificate: lines of text, and one HTML file without external content."""

from __future__ import annotations

from html import escape

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from modelgen.style import colour, document, figure, table
from solver.certification.certificate import Certificate
from solver.certification.counterexample import motion, replay
from solver.certification.level_set import Map
from solver.plants.outcome import decimals
from solver.problem.problem import Problem

COLOURS = ListedColormap([colour("policy-2"), colour("policy-1")])  # failed, arrived


def html(certificate: Certificate, generated: str | None = None) -> str:
    """HTML page with summary, text of the specification, map, and motion of the worst case."""
    problem, result = replay(certificate.worst.worst, generated)
    level = None if certificate.level_set is None else certificate.level_set.level
    body = [
        table((escape(name), escape(text)) for name, text in summary(certificate)),
        f"<h2>Specification</h2>\n<pre>{escape(certificate.specification.text)}</pre>",
        "<h2>Starts from which the robot arrives</h2>\n<p>Other states start at the target; parameters are nominal. "
        "The map is an illustration and not a bound.</p>",
        figure(map_figure(problem, certificate.map, level), "map of arrivals"),
        "<h2>The worst case</h2>",
        figure(motion(certificate.worst.worst, problem, result), "states and inputs over time"),
    ]
    return document(f"Certificate of {certificate.label}", body)


def map_figure(problem: Problem, drawn: Map, level: float | None) -> Figure:
    """Map of starts that fail and starts that arrive, with the boundary of {V >= level} and the target."""
    drawing = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes = drawing.subplots()
    axes.pcolormesh(*drawn.axes, drawn.arrived.astype(float), cmap=COLOURS, vmin=0.0, vmax=1.0, rasterized=True)
    lines = f"blue: arrives ({100 * drawn.arrived.mean():.0f} %), orange: fails"
    if level is not None and drawn.value is not None and drawn.value.min() < level <= drawn.value.max():
        axes.contour(*drawn.axes, drawn.value, [level], colors=colour("ink"), linewidths=1.2)
        lines += f", line: V = {level:.3g}"
    states = [problem.robot.metadata.states[index] for index in drawn.states]
    axes.plot(*(float(problem.target[index]) for index in drawn.states), "+", color=colour("ink"))
    axes.set(title=lines, xlabel=f"{states[0].name} [{states[0].unit}]", ylabel=f"{states[1].name} [{states[1].unit}]")
    return drawing


def summary(certificate: Certificate) -> list[tuple[str, str]]:
    """Rows of a name and a text, for the terminal and for the page."""
    bound, spec, worst = certificate.bound, certificate.specification, certificate.worst
    digits = decimals(bound.return_mean)
    verdict = "holds" if certificate.holds else "is missed"
    rows = [
        ("run", f"{certificate.run} ({certificate.label})"),
        (
            "failures",
            f"{bound.failures} of {bound.episodes} independent rollouts, mean return {bound.return_mean:.{digits}f}",
        ),
        (
            "bound",
            f"failure probability at most {100 * bound.failure_bound:.3g} % at confidence {bound.confidence:.9g}, for "
            "the distribution of the specification",
        ),
        ("required", f"at most {100 * spec.failure_probability:.3g} %: {verdict}"),
        (
            "worst case",
            f"return {worst.worst.total:.{digits}f} ({worst.worst.judgement}) in {worst.rollouts} rollouts; worst of "
            f"equally many random rollouts: {worst.random.total:.{digits}f}",
        ),
        ("from", _listed(worst.worst.start)),
        ("at", _listed(worst.worst.parameters)),
    ]
    opposed = certificate.opposed
    if opposed is not None:
        rows.append(
            (
                "adversaries",
                f"of the run ({', '.join(opposed.adversaries)}), on the nominal robot: {opposed.failures} of "
                f"{opposed.episodes} rollouts failed, worst return {opposed.return_worst:.{digits}f}. They act "
                "together and at their full radii in every control period, and are no part of the bound",
            )
        )
    region = certificate.level_set
    if region is not None:
        rows.append(
            (
                "level set",
                f"V >= {region.level:.4g}, {100 * region.share:.1f} % of the domain: {region.failures} of "
                f"{region.episodes} uniform starts in it failed, failure probability at most "
                f"{100 * region.failure_bound:.3g} % with the same confidence and parameters",
            )
        )
    return rows


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.5g}" for name, value in values.items())
