"""The result of an identification as one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import io
from html import escape

import numpy as np
from matplotlib.figure import Figure

from modelgen.identification.figures import forecast, prediction, projections, spectra
from modelgen.identification.identifiability import Ellipsoid, in_words
from modelgen.identification.identified_file import IdentifiedFile
from modelgen.identification.identify import Identified
from modelgen.identification.result import text
from modelgen.loader import CompiledRobot

NAMED = 3  # directions of the set that are listed
STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{white-space:pre-wrap;"
    "background:#f2f2f2;padding:1em;"
    "overflow:auto}img{max-width:100%}"
)


def html(robot: CompiledRobot, content: IdentifiedFile, identified: Identified, file: str) -> str:
    """The page; content: that of `file`."""
    title = escape(f"Parameters of {robot.name} from recordings")
    held = max(identified.held_out, key=lambda each: float(np.nanmax(each.error / robot.state_limits)))
    listed = "".join(f"<li>{escape(line)}</li>" for line in least_known(robot, identified.ellipsoid))
    files = "\n".join(f"{log.path}  {log.seconds:.3g} s  {log.sha256}" for log in content.recordings)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"</head><body>\n<h1>{title}</h1>\n<pre>{escape(text(robot, content))}</pre>\n"
        "<h2>Held-out motion</h2>\n<p>The part with the worst prediction. Every "
        f"window of {identified.windows.seconds:g} s begins at the state that fits it best; the parameters are of the "
        "other parts.</p>\n"
        f"{_image(prediction(robot, held), 'predicted and measured states, and their difference, over time')}"
        f"{_ahead(robot, content, identified)}\n"
        "<h2>What the model leaves unexplained</h2>\n<p>Noise of a sensor has the same power at all frequencies: the "
        "dotted line. A hill is motion that the model lacks. The windows' own starts take away what is slower than "
        f"one window.</p>\n{_image(spectra(robot, identified), 'power of the residual over frequency')}\n"
        f"<h2>The {content.confidence:.0%} set</h2>\n<p>Blue: the set, and + its centre. Grey: x the model file's "
        "values, dotted its bounds. The least known parameters are drawn.</p>\n"
        f"{_image(projections(robot, identified), 'projections of the confidence set on pairs of parameters')}\n"
        f"<h2>What to measure next</h2>\n<p>The least known combinations, the widest first:</p>\n<ul>{listed}</ul>\n"
        f"<p><code>modelgen excite {escape(robot.name)} --identified {escape(file)}</code> writes an input that shows "
        "them.</p>\n"
        f"<h2>Recordings</h2>\n<pre>{escape(files)}</pre>\n</body></html>\n"
    )


def _ahead(robot: CompiledRobot, content: IdentifiedFile, identified: Identified) -> str:
    """What was predicted of the motion ahead, where a recording was long enough."""
    ahead = content.prediction
    if identified.bands is None or ahead is None:
        return ""
    picture = _image(
        forecast(robot, identified.bands), "errors of predictions and the bands about them, over the time ahead"
    )
    return (
        "\n<h2>The motion ahead</h2>\n<p>Every prediction begins at the state that fits the measurements just before "
        "it best, by parameters from the other parts. The band grows with what the confidence set leaves open in a "
        "prediction, and is drawn as in a usual one. Grey: the largest error in every twentieth of a second, and "
        f"that band. It holds {ahead.content:.0%} of the samples with confidence {ahead.confidence:.0%}.</p>\n"
        f"{picture}"
    )


def least_known(robot: CompiledRobot, region: Ellipsoid) -> list[str]:
    """The set's longest semi-axes, in units of half of each parameter's range, in words."""
    half = np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
    sizes, vectors = np.linalg.eigh(region.shape / np.outer(half, half))
    return [
        f"{in_words(robot.parameter_names, half * vectors[:, index], region.centre)}: known to "
        f"{100 * np.sqrt(max(sizes[index], 0.0)):.3g} % of the declared ranges"
        for index in np.argsort(-sizes)[:NAMED]
    ]


def _image(figure: Figure, words: str) -> str:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}">'
