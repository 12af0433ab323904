"""Lines in a vertical plane for the shapes of `robot.draw` and for the rods of planar bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import Expr, Integer, MatrixBase, Rational, cos, pi, sin, sqrt

from modelgen.errors import mistake, suggestion
from modelgen.statement.checker import shown

PlanePoint = tuple[Expr, Expr]  # across and height (m)
Line = tuple[PlanePoint, ...]  # drawn from point to point
Term = Callable[[object, str], Expr]  # checks an expression of coordinates and parameters; str: its name in messages

CORNERS = 16  # of the polygon that shows a circle
DEPTH = Rational(7, 20)  # shift to the right and up per metre of y, which points away from the viewer


def shape_lines(unnamed: Sequence[Any], shape: Mapping[str, Any], term: Term) -> list[Line]:
    """The lines of one shape of `robot.draw(...)`. Raises ModelError unless there is exactly one known shape.

    unnamed: values without the name of a shape.
    """
    if unnamed or len(shape) != 1 or not shape.keys() <= SHAPES.keys():
        wrong = next((name for name in shape if name not in SHAPES), "")
        hint = suggestion(wrong, SHAPES) if wrong else ""
        words = [*map(shown, unnamed), *(f"{name}=..." for name in shape)]
        raise mistake(
            f"robot.draw({', '.join(words)}) is not one shape with its name.{hint} Write one of "
            "robot.draw(line=[point, point, ...]), robot.draw(box=(centre, (width, height), angle)) and "
            "robot.draw(circle=(centre, radius, angle)); the angles are optional."
        )
    ((name, value),) = shape.items()
    return SHAPES[name](value, term)


def _line(value: Any, term: Term) -> list[Line]:
    if not isinstance(value, tuple | list) or len(value) < 2:
        raise mistake(f"the line is {value!r}; write at least two points, line=[(x, height), (x, height)].")
    return [tuple(_point(point, term) for point in value)]


def _box(value: Any, term: Term) -> list[Line]:
    form = "box=((x, height), (width, height)) or box=((x, height), (width, height), angle)"
    centre, size, angle = _parts(value, "box", form)
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise mistake(f"the size of the box is {size!r}; write {form}.")
    across, height = (term(side, "size of a box") / 2 for side in size)
    middle, lean = _point(centre, term), term(angle or 0, "angle of a box")
    corners = [_offset(middle, i * across, j * height, lean) for i, j in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    return [(*corners, corners[0])]


def _circle(value: Any, term: Term) -> list[Line]:
    centre, size, angle = _parts(value, "circle", "circle=((x, height), radius) or circle=(..., angle)")
    middle, radius = _point(centre, term), term(size, "radius of a circle")
    turns = [2 * pi * Rational(k, CORNERS) for k in range(CORNERS)]
    rim = [_offset(middle, radius * sin(turn), radius * cos(turn), Integer(0)) for turn in turns]
    spoke = []
    if angle is not None:
        spoke = [(middle, _offset(middle, Integer(0), radius, term(angle, "angle of a circle")))]
    return [(*rim, rim[0]), *spoke]


#: The shapes of `robot.draw`. To add a shape, add an entry.
SHAPES: dict[str, Callable[[Any, Term], list[Line]]] = {"line": _line, "box": _box, "circle": _circle}


def _parts(value: Any, what: str, form: str) -> tuple[Any, Any, Any]:
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise mistake(f"the {what} is {value!r}; write {form}.")
    centre, size, *angle = value
    return centre, size, angle[0] if angle else None


def _point(value: Any, term: Term) -> PlanePoint:
    if not isinstance(value, tuple | list | MatrixBase) or len(value) not in (2, 3):
        raise mistake(f"the point is {value!r}; write (x, height) or (x, y, height), the height last.")
    return projected([term(component, "point of a drawing") for component in value])


def projected(position: Sequence[Expr]) -> PlanePoint:
    """(x, height) unchanged; (x, y, height) in cabinet projection, with y away from the viewer."""
    x, *y, height = position
    depth = DEPTH * y[0] if y else Integer(0)
    return x + depth, height + depth


def _offset(centre: PlanePoint, across: Expr, up: Expr, lean: Expr) -> PlanePoint:
    """The point at (across, up) from the centre of a shape that leans to the right by the angle `lean`."""
    return centre[0] + across * cos(lean) + up * sin(lean), centre[1] - across * sin(lean) + up * cos(lean)


def rod(mass: Expr, inertia: Expr, centre: Sequence[Expr], angle: Expr) -> Line:
    """The uniform rod with the mass and inertia of a body. It is upright at angle 0."""
    half = sqrt(3 * inertia / mass) if mass != 0 else Integer(0)
    middle = projected(centre)
    return _offset(middle, Integer(0), -half, angle), _offset(middle, Integer(0), half, angle)
