"""The symbols of a system of `sympy.physics.mechanics`, and those of the robot in their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Basic, Derivative, Expr, Matrix, Symbol
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import dynamicsymbols

from modelgen.errors import ModelError, Place, suggestion
from modelgen.statement.declared import Coordinate, Speed

TIME = dynamicsymbols._t


class Names:
    """Replaces the symbols of the system by those of the robot, and refuses a symbol without a replacement."""

    def __init__(self, coordinates: Mapping[Any, Coordinate], replaced: Mapping[Any, Expr], place: Place) -> None:
        self.coordinates = coordinates
        self.known: dict[Any, Expr] = {**coordinates, **replaced}
        self.place = place

    def __call__(self, expression: Expr, what: str) -> Expr:
        changing = expression.atoms(Derivative) - self.known.keys()
        for each in sorted(changing or expression.atoms(AppliedUndef) - self.known.keys(), key=str):
            self._refuse(each, what)
        result: Expr = expression.xreplace(self.known)
        if TIME in result.free_symbols:
            self._refuse(TIME, what)
        given = set().union(*(value.free_symbols for value in self.known.values()))
        for symbol in sorted(result.free_symbols - given, key=str):
            if str(symbol) in map(str, self.known):
                raise ModelError(
                    f"the {what} of the system contains a `{symbol}` that is another symbol than the `{symbol}` of the "
                    "mappings, which is a string or has other assumptions. Write the script's own symbol there.",
                    self.place,
                )
            raise ModelError(
                f"the {what} of the system contains `{symbol}`, which nothing is given for."
                f"{suggestion(str(symbol), map(str, self.known))} Write "
                f'parameters={{{symbol}: robot.parameter("{symbol}", value, "unit", ...)}}, or inputs={{...}}.',
                self.place,
            )
        return result

    def _refuse(self, what: Basic, where: str) -> None:
        if what == TIME:
            why = "depends on time itself; only coordinates, speeds and inputs may change with time."
        elif isinstance(what, Derivative):
            why = (
                f"contains {what}, the derivative of something that is no coordinate of the system, or an acceleration."
            )
        else:
            why = (
                f"contains {what}, which changes with time and is declared nowhere. If it drives the system, write "
                f'inputs={{{what.func}: robot.input("{what.func}", limit, "unit")}}; if it is a coordinate, give it to '
                "the method as one."
            )
        raise ModelError(f"the {where} of the system {why}", self.place)


def assigned(
    q: Sequence[Expr], u: Sequence[Expr], slopes: Matrix, drift: Matrix, names: Names, speeds: Any, place: Place
) -> tuple[list[Symbol], dict[Coordinate, Speed]]:
    """The robot's symbol for each speed of the system: the rate of a coordinate, or a declared speed."""
    _check_keys("coordinates", q, names.coordinates, "robot.revolute(...) or robot.prismatic(...)", place)
    if len(q) != len(u):
        raise ModelError(
            f"the system has {len(q)} coordinates and {len(u)} speeds; model files need as many speeds as coordinates "
            "(no quaternions: use three angles).",
            place,
        )
    result: list[Symbol | None] = [None] * len(u)
    left = []
    for i, coordinate in enumerate(q):
        column = next((j for j in range(len(u)) if slopes[i, j] == 1), None)
        if column is not None and drift[i] == 0 and sum(entry != 0 for entry in slopes[i, :]) == 1:
            result[column] = names.coordinates[coordinate].rate
        else:
            left.append(names.coordinates[coordinate])
    missing = [speed for speed, symbol in zip(u, result, strict=True) if symbol is None]
    _check_keys("speeds", missing, speeds, 'robot.speed(name, limit=..., unit="rad/s")', place)
    taken = iter([speeds[speed] for speed in missing])
    own = {coordinate: next(taken) for coordinate in left}
    symbols = iter([speeds[speed].symbol for speed in missing])
    return [next(symbols) if symbol is None else symbol for symbol in result], own


def _check_keys(what: str, wanted: Sequence[Expr], given: Mapping[Any, Any], write: str, place: Place) -> None:
    """Refuse keys that are not exactly the system's, and values that are not all different."""
    for each in wanted:
        if each not in given:
            raise ModelError(f"{what}={{...}} says nothing of {each} of the system. Add {each}: {write}.", place)
    for each in given:
        if each not in wanted:
            known = ", ".join(map(str, wanted)) or "none"
            why = " A speed that is the rate of a coordinate takes that one's." if what == "speeds" else ""
            raise ModelError(f"{what}={{...}} names {each}, but the system's are {known}.{why}", place)
    if len(set(map(str, given.values()))) < len(given):
        raise ModelError(f"{what}={{...}} gives the same for two of {', '.join(map(str, given))}.", place)
