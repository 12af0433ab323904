"""A certificate as lines of text and as one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import io
from html import escape

from matplotlib.figure import Figure

from solver.certification.certificate import Certificate
from solver.certification.counterexample import replay
from solver.certification.figures import map_figure
from solver.certification.recording import motion
from solver.plants.outcome import decimals

STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}th{text-align:left;padding-right:1em;"
    "vertical-align:top}pre{background:#f2f2f2;padding:1em;overflow:auto}img{max-width:100%}"
)


def html(certificate: Certificate, generated: str | None = None) -> str:
    """The page: summary, distribution word for word, map, and the motion of the worst case."""
    problem, result = replay(certificate.worst.found, generated)
    level = None if certificate.level_set is None else certificate.level_set.level
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in summary(certificate))
    title = escape(f"Certificate of {certificate.label}")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"</head><body>\n<h1>{title}</h1>\n<table>{rows}</table>\n<h2>Over which distribution it holds</h2>\n"
        f"<pre>{escape(certificate.specification.text)}</pre>\n"
        "<h2>Where the robot arrives</h2>\n<p>The other states begin at the target, and the parameters are nominal. "
        "The map is a picture, and no bound.</p>\n"
        f"{_image(map_figure(problem, certificate.map, level), 'map of arrivals')}\n<h2>The worst case</h2>\n"
        f"{_image(motion(certificate.worst.found, problem, result), 'states and inputs over time')}\n</body></html>\n"
    )


def _image(figure: Figure, text: str) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'


def summary(certificate: Certificate) -> list[tuple[str, str]]:
    """What the certificate says, as pairs of a name and a text: for the terminal and for the page."""
    bound, told, worst = certificate.bound, certificate.specification, certificate.worst
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
            f"failure probability at most {100 * bound.failure_bound:.3g} % at confidence {bound.confidence:.9g}, over "
            "the distribution below",
        ),
        ("stated", f"at most {100 * told.failure_probability:.3g} %: {verdict}"),
        (
            "worst case",
            f"return {worst.found.total:.{digits}f} ({'no failure' if worst.found.success else 'a failure'}) in "
            f"{worst.rollouts} rollouts; random sampling of as many: {worst.random.total:.{digits}f}",
        ),
        ("from", _listed(worst.found.start)),
        ("at", _listed(worst.found.parameters)),
    ]
    opposed = certificate.opposed
    if opposed is not None:
        rows.append(
            (
                "adversaries",
                f"the run's own ({', '.join(opposed.adversaries)}), on the nominal robot: {opposed.failures} of "
                f"{opposed.episodes} rollouts failed, worst return {opposed.return_worst:.{digits}f}",
            )
        )
    region = certificate.level_set
    if region is not None:
        rows.append(
            (
                "level set",
                f"V >= {region.level:.4g}, {100 * region.share:.1f} % of the domain: {region.failures} of "
                f"{region.episodes} uniform starts in it failed, failure probability at most "
                f"{100 * region.failure_bound:.3g} %, same confidence, same parameters",
            )
        )
    return rows


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.5g}" for name, value in values.items())
