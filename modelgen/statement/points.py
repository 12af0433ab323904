"""Named points of a robot, whose positions and Jacobians are kernels; the equations of motion do not use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Expr, Matrix, S, srepr

from modelgen.errors import ModelError, Place
from modelgen.statement.checker import identifier
from modelgen.statement.links import Link
from modelgen.statement.terms import Terms


@dataclass(frozen=True)
class Point:
    """A point in the world, or in the frame of a link."""

    name: str
    position: Matrix  # (3, 1), the height last
    link: Link | None  # None: the position is that in the world
    place: Place

    def statement(self) -> str:
        """All that the line states, as text."""
        return f"{self.link.name if self.link else ''} {srepr(self.position)}"


def stated_point(
    check: Terms, points: Sequence[Point], links: Sequence[Link], name: object, position: object, on: object
) -> Point:
    """The point of one `Robot.point(...)`. Raises ModelError for a name that a point or a link has already."""
    place = check.place
    named = identifier(name, "point", place)
    if named in {each.name for each in points} | {each.name for each in links}:
        raise ModelError(f"there is a point or link named `{named}` already; give this point another name.", place)
    if on is not None and not any(link is on for link in links):
        raise ModelError(
            f"the point `{named}` stands on {getattr(on, 'name', repr(on))}, which is no link of this robot. Write "
            "on=LINK with what robot.link(...) returned, or leave it out for a position in the world.",
            place,
        )
    if not isinstance(position, tuple | list | Matrix) or len(position) not in ((3,) if on is not None else (2, 3)):
        wanted = "(x, y, z) in the link's frame" if on is not None else "(x, height) or (x, y, height)"
        raise ModelError(f"the position of `{named}` is {position!r}; write {wanted}.", place)
    may_contain = "" if on is not None else "q"
    entries: list[Expr] = [check.smooth(each, f"position of `{named}`", may_contain, "m") for each in position]
    if len(entries) == 2:
        entries.insert(1, S.Zero)
    return Point(named, Matrix(entries), on if isinstance(on, Link) else None, place)
