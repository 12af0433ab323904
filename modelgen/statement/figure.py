"""The shapes of `robot.draw`, turned into lines in a vertical plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import Expr, Integer, Matrix, Rational, cos, pi, sin, sqrt

from modelgen.errors import ModelError, Place, suggestion

Point = tuple[Expr, Expr]  # across and height (m)
Line = tuple[Point, ...]  # drawn from point to point
Term = Callable[[object, str], Expr]  # checks an expression of coordinates and parameters

CORNERS = 16  # of the polygon that shows a circle
DEPTH = Rational(7, 20)  # y points away from the viewer and moves a point to the right and up by this much


def stated_lines(stated: Mapping[str, Any], term: Term, place: Place) -> list[Line]:
    """The lines of one `robot.draw(...)`, which names one shape. Raises ModelError for anything else."""
    if len(stated) != 1 or not stated.keys() <= SHAPES.keys():
        wrong = next((name for name in stated if name not in SHAPES), "")
        hint = suggestion(wrong, SHAPES) if wrong else ""
        raise ModelError(
            f"robot.draw({', '.join(f'{name}=...' for name in stated)}) is not one shape.{hint} Write one of "
            "robot.draw(line=[point, point, ...]), robot.draw(box=(centre, (width, height), angle)) and "
            "robot.draw(circle=(centre, radius, angle)); the angles may be left out.",
            place,
        )
    ((name, value),) = stated.items()
    return SHAPES[name](value, term, place)


def _line(value: Any, term: Term, place: Place) -> list[Line]:
    if not isinstance(value, tuple | list) or len(value) < 2:
        raise ModelError(f"the line is {value!r}; write at least two points, line=[(x, height), (x, height)].", place)
    return [tuple(_point(each, term, place) for each in value)]


def _box(value: Any, term: Term, place: Place) -> list[Line]:
    form = "box=((x, height), (width, height)) or box=((x, height), (width, height), angle)"
    centre, size, angle = _parts(value, "box", form, place)
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ModelError(f"the size of the box is {size!r}; write {form}.", place)
    across, height = (term(each, "size of a box") / 2 for each in size)
    middle, lean = _point(centre, term, place), term(angle or 0, "angle of a box")
    corners = [_beside(middle, i * across, j * height, lean) for i, j in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    return [(*corners, corners[0])]


def _circle(value: Any, term: Term, place: Place) -> list[Line]:
    centre, size, angle = _parts(value, "circle", "circle=((x, height), radius) or with an angle behind", place)
    middle, radius = _point(centre, term, place), term(size, "radius of a circle")
    turns = [2 * pi * Rational(k, CORNERS) for k in range(CORNERS)]
    rim = [_beside(middle, radius * sin(each), radius * cos(each), Integer(0)) for each in turns]
    spoke = (
        [(middle, _beside(middle, Integer(0), radius, term(angle, "angle of a circle")))] if angle is not None else []
    )
    return [(*rim, rim[0]), *spoke]


#: The shapes of `robot.draw`. A further one is a further entry.
SHAPES: dict[str, Callable[[Any, Term, Place], list[Line]]] = {"line": _line, "box": _box, "circle": _circle}


def _parts(value: Any, what: str, form: str, place: Place) -> tuple[Any, Any, Any]:
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise ModelError(f"the {what} is {value!r}; write {form}.", place)
    centre, size, *angle = value
    return centre, size, angle[0] if angle else None


def _point(value: Any, term: Term, place: Place) -> Point:
    if not isinstance(value, tuple | list | Matrix) or len(value) not in (2, 3):
        raise ModelError(f"the point is {value!r}; write (x, height) or (x, y, height), the height last.", place)
    return projected([term(each, "point of a drawing") for each in value])


def projected(position: Sequence[Expr]) -> Point:
    """(x, height) unchanged; (x, y, height) in cabinet projection, y away from the viewer."""
    x, *y, height = position
    depth = DEPTH * y[0] if y else Integer(0)
    return x + depth, height + depth


def _beside(centre: Point, across: Expr, up: Expr, lean: Expr) -> Point:
    """A point of a shape that leans to the right by an angle."""
    return centre[0] + across * cos(lean) + up * sin(lean), centre[1] - across * sin(lean) + up * cos(lean)


def rod(mass: Expr, inertia: Expr, centre: Sequence[Expr], angle: Expr) -> Line:
    """The uniform rod with a body's mass and inertia, upright at angle 0."""
    half = sqrt(3 * inertia / mass) if mass != 0 else Integer(0)
    middle = projected(centre)
    return _beside(middle, Integer(0), -half, angle), _beside(middle, Integer(0), half, angle)
