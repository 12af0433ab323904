"""Rolling without slip: rates of coordinates that are linear in the speeds of the state."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, S, expand

from modelgen.errors import ModelError, abridged
from modelgen.statement.declarations import RATE_UNITS, Coordinate, Joint
from modelgen.statement.terms import Terms


def rolling_rates(check: Terms, rates: Mapping[Coordinate, object]) -> dict[Coordinate, Expr]:
    """The checked rates of one `Robot.roll(...)`.

    Raises ModelError for keys that are not coordinates, and for rates that are not linear in the speeds or contain the
    rate of a coordinate that rolls itself.
    """
    joints: dict[object, Joint] = {joint.symbol: joint for joint in check.declared.coordinates}
    rolling = {symbol.rate for symbol in (*rates, *check.declared.rolls) if isinstance(symbol, Coordinate)}
    result = {}
    for symbol, value in rates.items():
        if symbol not in joints:
            raise ModelError(
                f"robot.roll({{{symbol}: ...}}) is not a coordinate of this robot. Write the return value of "
                "robot.revolute(...) or robot.prismatic(...).",
                check.place,
            )
        joint = joints[symbol]
        rate = check.smooth(value, f"rate of `{symbol}`", "qv", RATE_UNITS[joint.kind])
        speeds = {speed.symbol for speed in check.declared.speeds} | {other.rate for other in map(_symbol, joints)}
        speeds |= {turn.rate for ball in check.declared.balls for turn in ball.turn}
        moving = sorted(rate.free_symbols & speeds, key=str)
        follows = next((speed for speed in moving if speed in rolling), None)
        if follows is not None:
            raise ModelError(
                f"the rate of `{symbol}` contains `{follows}`, which follows from other speeds itself. Write it in the "
                "speeds of the state.",
                check.place,
            )
        linear = sum((rate.diff(speed) * speed for speed in moving), S.Zero)
        curved = any(rate.diff(speed).free_symbols & speeds for speed in moving)
        if not moving or curved or expand(rate - linear) != 0:
            raise ModelError(
                f"the rate of `{symbol}` is {abridged(str(rate))}, which is not linear in the speeds: it must be zero "
                "at rest and double with them, such as speed * cos(yaw).",
                check.place,
            )
        result[joint.symbol] = rate
    return result


def _symbol(symbol: object) -> Coordinate:
    assert isinstance(symbol, Coordinate)
    return symbol
