"""A model file as a LaTeX document or an HTML page, with formulas that are derived from the file."""

from __future__ import annotations

import numpy as np
from sympy import Matrix

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.loops import definitions
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.derivation.sketch import sketch
from modelgen.report import html, latex
from modelgen.report.contents import contents
from modelgen.statement.robot import Robot


def latex_document(robot: Robot) -> str:
    """A LaTeX document of the robot: quantities, task, equations of motion, state cost."""
    equations = equations_of_motion(robot)
    return latex.document(contents(metadata(robot, equations.trim), equations)) + "\n"


def html_page(robot: Robot) -> str:
    """An HTML page of the robot, with a picture of it at its start (grey) and at its target."""
    equations, drawn = equations_of_motion(robot), sketch(robot)
    described = metadata(robot, equations.trim)
    named = (*definitions(robot), *drawn.definitions)
    points = numpy_evaluator([*equations.state, *equations.parameters], Matrix(drawn.points), named)
    states = np.array([described.task.start_mean, described.task.target])
    theta = np.tile([parameter.value for parameter in described.parameters], (2, 1))
    segments = np.array(drawn.segments, int).reshape(-1, 2)
    pictures = list(points(*states.T, *theta.T)[:, segments]) if len(segments) else ()
    return html.document(contents(described, equations), pictures)
