"""Report of a certificate: lines of text, and one HTML file without external content."""

from __future__ import annotations

import base64
import io
from html import escape

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from solver.certification.certificate import Certificate
from solver.certification.counterexample import motion, replay
from solver.certification.level_set import Map
from solver.plants.outcome import decimals
from solver.problem.problem import Problem

COLOURS = ListedColormap(["#d9776c", "#8fbf8f"])  # failed, arrived
STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}th{text-align:left;padding-right:1em;"
    "vertical-align:top}pre{background:#f2f2f2;padding:1em;overflow:auto}img{max-width:100%}"
)


def html(certificate: Certificate, generated: str | None = None) -> str:
    """HTML page with summary, text of the specification, map, and motion of the worst case."""
    problem, result = replay(certificate.worst.worst, generated)
    level = None if certificate.level_set is None else certificate.level_set.level
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in summary(certificate))
    title = escape(f"Certificate of {certificate.label}")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"</head><body>\n<h1>{title}</h1>\n<table>{rows}</table>\n<h2>Specification</h2>\n"
        f"<pre>{escape(certificate.specification.text)}</pre>\n"
        "<h2>Starts from which the robot arrives</h2>\n<p>Other states start at the target; parameters are nominal. "
        "The map is an illustration and not a bound.</p>\n"
        f"{_image(map_figure(problem, certificate.map, level), 'map of arrivals')}\n<h2>The worst case</h2>\n"
        f"{_image(motion(certificate.worst.worst, problem, result), 'states and inputs over time')}\n</body></html>\n"
    )


def map_figure(problem: Problem, drawn: Map, level: float | None) -> Figure:
    """Map of starts that fail and starts that arrive, with the boundary of {V >= level} and the target."""
    figure = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.pcolormesh(*drawn.axes, drawn.arrived.astype(float), cmap=COLOURS, vmin=0.0, vmax=1.0, rasterized=True)
    lines = f"green: arrives ({100 * drawn.arrived.mean():.0f} %), red: fails"
    if level is not None and drawn.value is not None and drawn.value.min() < level <= drawn.value.max():
        axes.contour(*drawn.axes, drawn.value, [level], colors="black", linewidths=1.2)
        lines += f", line: V = {level:.3g}"
    states = [problem.robot.metadata.states[index] for index in drawn.states]
    axes.plot(*(float(problem.target[index]) for index in drawn.states), "k+")
    axes.set(title=lines, xlabel=f"{states[0].name} [{states[0].unit}]", ylabel=f"{states[1].name} [{states[1].unit}]")
    return figure


def _image(figure: Figure, text: str) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'


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
                f"{opposed.episodes} rollouts failed, worst return {opposed.return_worst:.{digits}f}. This is the "
                "game of the training and no test of the robot: all act together, at their full radii, in every "
                "control period and in the worst direction, as no real disturbance does. It is no part of the bound",
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
