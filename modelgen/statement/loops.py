"""Closed loops: two points of a robot that are one, or two links whose frames are, and the coordinates that follow.

Rolling without slip: rates of coordinates that are linear in the speeds of the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sympy import MatrixBase, S, expand

from modelgen.errors import ModelError, Place, abridged, calling_place, mistake
from modelgen.statement.bodies import Link, Point, make_point
from modelgen.statement.checker import number
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import Rolling
from modelgen.statement.joints import RATE_UNITS, Coordinate, Joint
from modelgen.statement.terms import Terms

End = Point | Link


@dataclass(frozen=True)
class Loop:
    """Two ends that coincide: points, or links with their frames."""

    ends: tuple[End, End]
    dependent: Mapping[Coordinate, float]  # the coordinates that follow -> about their values at the starting posture
    at: Mapping[Coordinate, float]  # the other coordinates at the starting posture; zero where it names none
    place: Place = field(default_factory=calling_place)

    @property
    def frames(self) -> bool:
        """Whether the ends are links, whose orientations coincide too."""
        return isinstance(self.ends[0], Link)

    def statement(self) -> list[object]:
        """The content of the line as text, for the content hash."""
        ends = [end.name if isinstance(end, Link) else end.statement() for end in self.ends]
        return [
            *ends,
            *([symbol.name, value] for group in (self.dependent, self.at) for symbol, value in group.items()),
        ]


def make_loop(
    check: Terms,
    points: Sequence[Point],
    links: Sequence[Link],
    ends: tuple[object, object],
    dependent: object,
    at: object,
) -> Loop:
    """The loop of one `Robot.loop(...)`; its dependent coordinates leave the state.

    Raises ModelError for ends that are neither two points nor two links of the robot, and for coordinates and values
    that are not the robot's.
    """
    made = _end(check, points, links, ends[0], "first"), _end(check, points, links, ends[1], "second")
    if isinstance(made[0], Link) != isinstance(made[1], Link):
        raise mistake(
            "a loop joins a point and a link. Join two points, or two links whose frames coincide; the origin of a "
            'link is the point robot.point("name", (0, 0, 0), on=link).'
        )
    values = _values(dependent, "dependent", check)
    if not values:
        raise mistake(
            "the loop names no dependent coordinates. Write dependent={coordinate: value} with the coordinates that "
            "the loop determines, and about their values where all others are zero."
        )
    posture = _values(at, "at", check)
    both = next((symbol for symbol in posture if symbol in values), None)
    if both is not None:
        raise mistake(f"`{both}` is in dependent={{...}} and in at={{...}}; `at` names the independent coordinates.")
    for symbol in values:
        _depend(check.declared, symbol)
    return Loop(made, values, posture)


def _depend(declared: Declarations, coordinate: Coordinate) -> None:
    """Move a coordinate out of the state, because a closed loop determines it."""
    joint = next(joint for joint in declared.coordinates if joint.symbol == coordinate)
    if declared.stated_task:
        raise mistake("a loop is closed after robot.task(...); move the task to the end of the file.")
    if joint in declared.dependent:
        raise mistake(f"`{coordinate}` is a dependent coordinate of an earlier loop; name it once.")
    if joint.rate_limit is not None:
        raise ModelError(
            f"the coordinate `{coordinate}` has a rate_limit, but the loop determines its rate. Leave rate_limit out.",
            joint.place,
        )
    declared.joints.remove(joint)
    declared.dependent.append(joint)


def _end(check: Terms, points: Sequence[Point], links: Sequence[Link], end: object, which: str) -> End:
    """A point, a link, or the point at a position in the world frame."""
    known: list[End] = [*points, *links]
    for other in known:
        if end is other or end == other.name:
            return other
    if isinstance(end, tuple | list | MatrixBase):
        return make_point(check, (), (), f"{which}_end_of_the_loop", end, None)
    raise mistake(
        f"the {which} end of the loop is {end!r}; write a position (x, height) or (x, y, height), the return value of "
        "robot.point(...), or that of robot.link(...)."
    )


def _values(given: object, what: str, check: Terms) -> dict[Coordinate, float]:
    """Coordinates with numbers. Raises ModelError for others."""
    if not isinstance(given, Mapping):
        raise mistake(f"{what} is {given!r}; write {what}={{coordinate: value}}.")
    joints: dict[object, Joint] = {joint.symbol: joint for joint in check.declared.coordinates}
    result = {}
    for symbol, value in given.items():
        if symbol not in joints:
            raise mistake(
                f"{what}={{{symbol}: ...}} is not a coordinate of this robot. Write the return value of "
                "robot.revolute(...) or robot.prismatic(...)."
            )
        result[joints[symbol].symbol] = number(value, f"{what} value of `{symbol}`")
    return result


def roll(check: Terms, rates: Mapping[Coordinate, object]) -> None:
    """Enter the rates of one `Robot.roll(...)`.

    Raises ModelError for keys that are not coordinates of the state or have a rate already, and for rates that are not
    linear in the speeds or contain the rate of a coordinate that rolls itself.
    """
    declared = check.declared
    joints: dict[object, Joint] = {joint.symbol: joint for joint in declared.joints if joint.kind != "quaternion"}
    rolling = {symbol.rate for symbol in (*rates, *declared.rolls) if isinstance(symbol, Coordinate)}
    speeds = {speed.symbol for speed in declared.speeds} | {joint.symbol.rate for joint in declared.coordinates}
    speeds |= {turn.rate for turn in declared.turns}
    entered = {}
    for symbol, value in rates.items():
        if symbol not in joints:
            raise mistake(
                f"robot.roll({{{symbol}: ...}}) is not a coordinate of the state. Write the return value of "
                "robot.revolute(...) or robot.prismatic(...)."
            )
        joint = joints[symbol]
        rate = check.smooth(value, f"rate of `{symbol}`", "qv", RATE_UNITS[joint.kind])
        moving = sorted(rate.free_symbols & speeds, key=str)
        follows = next((speed for speed in moving if speed in rolling), None)
        if follows is not None:
            raise mistake(
                f"the rate of `{symbol}` contains `{follows}`, which follows from other speeds itself. Write it in the "
                "speeds of the state."
            )
        linear = sum((rate.diff(speed) * speed for speed in moving), S.Zero)
        curved = any(rate.diff(speed).free_symbols & speeds for speed in moving)
        if not moving or curved or expand(rate - linear) != 0:
            raise mistake(
                f"the rate of `{symbol}` is {abridged(str(rate))}, which is not linear in the speeds: it must be zero "
                "at rest and double with them, such as speed * cos(yaw)."
            )
        if joint.symbol in declared.rolls:
            raise mistake(f"the rate of `{symbol}` is in an earlier robot.roll already; name it once.")
        if joint.rate_limit is not None:
            raise ModelError(
                f"the coordinate `{symbol}` has a rate_limit, but its rate follows from other speeds. Leave rate_limit "
                "out.",
                joint.place,
            )
        entered[joint.symbol] = Rolling(rate)
    declared.rolls.update(entered)
