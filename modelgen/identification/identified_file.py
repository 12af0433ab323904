"""The file NAME.identified.json: the schema that writes and reads it. Every reader of an identified set uses `read`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from modelgen.arrays import Array
from modelgen.artifact.manifest import typed
from modelgen.errors import ModelError
from modelgen.files import replacing
from modelgen.loader import CompiledRobot
from modelgen.tangent import Tangent

Numbers = tuple[float, ...]
OrNull = tuple[float | None, ...]  # null where a state is not measured

LARGEST = 1e30  # of a number
ROUNDING = 1e-6  # of the largest entry of a shape in half ranges: how far it may be from symmetric and semidefinite


@dataclass(frozen=True)
class ParameterEntry:
    """A parameter with its interval."""

    value: float
    lower: float
    upper: float
    identified: bool


@dataclass(frozen=True)
class EffectEntry:
    """An estimated effect with its interval; its kind and what it belongs to are as in `model.Effect`."""

    kind: str
    of: str
    unit: str
    value: float
    lower: float
    upper: float
    identified: bool


@dataclass(frozen=True)
class Region:
    """All theta with (theta - centre)' P^-1 (theta - centre) <= 1, P = shape."""

    names: tuple[str, ...]
    centre: Numbers  # (p,)
    shape: tuple[Numbers, ...]  # (p, p)


@dataclass(frozen=True)
class OpenDirection:
    """A combination of parameters that the recordings leave open."""

    direction: dict[str, float]
    words: str
    reason: str


@dataclass(frozen=True)
class Sizes:
    """Sizes of what the parameters do not explain, as in `unexplained.Radii`."""

    state: Numbers  # (n,)
    action: Numbers  # (m,)
    observation: OrNull  # (n,)


@dataclass(frozen=True)
class Prediction:
    """Bands about a forecast, and what forecasts: see `forecast.Bands`."""

    content: float  # share of the samples in the bands
    confidence: float
    blocks: int
    seconds: Numbers  # ahead
    half_width: dict[str, Numbers | None]  # for each state, at these seconds
    spread: dict[str, Numbers | None]  # for each state, at these seconds
    fit: dict[str, float]  # parameters and effects
    deviations: dict[str, float]  # of the residuals, for each state
    known_delay: float  # s
    longest_delay: float  # s


@dataclass(frozen=True)
class HeldOutError:
    """Errors of the fit without some recordings there, and of the fit to all."""

    recordings: tuple[str, ...]
    root_mean_square: OrNull  # (n,)
    root_mean_square_of_all: OrNull  # (n,)


@dataclass(frozen=True)
class Residual:
    """Simulated minus measured states."""

    states: tuple[str, ...]
    root_mean_square: OrNull  # (n,)
    correlation_seconds: float
    condition: float
    windows: int
    window_seconds: float
    blocks: int
    inflation: float
    held_out: tuple[HeldOutError, ...]
    noise_ratio: OrNull = ()  # (n,) size of the held-out residual in sizes of the sensor's noise
    noise: OrNull = ()  # (n,) standard deviation of the sensor's noise
    widened: float = 1.0  # how many times the set is wider for it
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordingEntry:
    """A recording."""

    path: str
    sha256: str
    rows: int
    seconds: float


@dataclass(frozen=True)
class IdentifiedFile:
    """The content of the file."""

    robot: str
    model_hash: str
    ellipsoid: Region
    parameters: dict[str, ParameterEntry]
    radii: Sizes
    confidence: float
    effects: dict[str, EffectEntry]
    unidentifiable: tuple[OpenDirection, ...]
    fix: tuple[str, ...]
    residual: Residual
    prediction: Prediction | None
    recordings: tuple[RecordingEntry, ...]

    @property
    def centre(self) -> Array:
        """The centre (p,) of the set."""
        return np.array(self.ellipsoid.centre)

    @property
    def shape(self) -> Array:
        """The shape (p, p) of the set."""
        return np.array(self.ellipsoid.shape).reshape(len(self.ellipsoid.names), -1)


def write(path: Path, content: IdentifiedFile) -> None:
    """Write the file whole or not at all. Raises ModelError where it cannot be written."""
    text = json.dumps(dataclasses.asdict(content), indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(path) as unfinished:
        unfinished.write_text(text + "\n", encoding="utf-8")


def read(path: Path, robot: CompiledRobot) -> tuple[IdentifiedFile, str]:
    """The content of a file and the SHA-256 of its bytes.

    Raises ModelError for a file that cannot be read, was not written by `modelgen identify`, or belongs to another
    model, and for a set that is empty or does not fit the robot.
    """
    again = f"`modelgen identify {robot.name} LOG.csv ...`"
    try:
        data = path.read_bytes()
        raw = json.loads(data, parse_constant=_number, parse_float=_number, parse_int=_integer)
        if not isinstance(raw, Mapping):
            raise TypeError("it is not a table")
        model = raw["model_hash"]
        if model == robot.model_hash:
            content = typed(IdentifiedFile, raw, path.name)
            _check(content, robot)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}. Write it with {again}.") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"it has no entry {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ModelError(
            f"{path} is not a file of `modelgen identify`, or was edited ({reason[:200]}). Write it again with {again}."
        ) from error
    if model != robot.model_hash:
        raise ModelError(
            f"{path} belongs to another model: it was identified for {str(raw.get('robot'))[:60]} {str(model)[:12]}, "
            f"and the built one is {robot.name} {robot.model_hash[:12]}. Identify again with {again}."
        )
    _check_region(content, robot, path)
    return content, hashlib.sha256(data).hexdigest()


def _number(text: str) -> float:
    """A finite number of a JSON file. Raises ValueError for any other."""
    if not abs(value := float(text)) <= LARGEST:
        raise ValueError(f"{text[:60]} is not a finite number")
    return value


def _integer(text: str) -> int:
    _number(text)
    return int(text)


def _check(content: IdentifiedFile, robot: CompiledRobot) -> None:
    """Raise ValueError for names and sizes that are not the robot's."""
    names, states, p = robot.parameter_names, Tangent(robot.metadata).names, len(robot.parameter_names)
    region, radii, residual = content.ellipsoid, content.radii, content.residual
    if content.robot != robot.name:
        raise ValueError(f"its robot is {content.robot!r}")
    if region.names != tuple(names) or tuple(content.parameters) != tuple(names):
        raise ValueError(f"its set is not one of {', '.join(names)}")
    if len(region.centre) != p or [len(row) for row in region.shape] != [p] * p:
        raise ValueError(f"its centre or shape has not the size of {p} parameters")
    for name, value in zip(names, region.centre, strict=True):
        if content.parameters[name].value != value:
            raise ValueError(f"its value of {name} is not the centre of its ellipsoid")
    n, m = len(states), len(robot.input_names)
    if (len(radii.state), len(radii.action), len(radii.observation)) != (n, m, n):
        raise ValueError(f"its radii are not of {n} states and {m} inputs")
    if len(residual.root_mean_square) != n:
        raise ValueError(f"its residual is not one of {n} states")
    for size in (*radii.state, *radii.action, *radii.observation, *residual.root_mean_square):
        if size is not None and size < 0:
            raise ValueError(f"a size of its radii or residual is {size:g}")
    ahead = content.prediction
    if ahead is None:
        return
    times = len(ahead.seconds)
    for table in (ahead.half_width, ahead.spread):
        if set(table) != set(states) or any(row is not None and len(row) != times for row in table.values()):
            raise ValueError(f"its bands are not of {times} times for every state")
    deviations = [ahead.deviations[state] for state in states]
    if not (times and min(deviations) > 0 and ahead.fit.keys() >= set(names)):
        raise ValueError("its prediction does not fit the robot")


def _check_region(content: IdentifiedFile, robot: CompiledRobot, path: Path) -> None:
    """Raise ModelError for a set without members, and for a centre outside of the bounds."""
    declared = [(parameter.lower, parameter.upper) for parameter in robot.metadata.parameters]  # in double precision
    lower, upper = np.array(declared, float).reshape(-1, 2).T
    half = (upper - lower) / 2
    P = content.shape / np.outer(half, half)
    size = float(np.abs(P).max(initial=0.0))
    if np.abs(P - P.T).max(initial=0.0) > ROUNDING * size:
        raise ModelError(f"the ellipsoid in {path} is not a set: its shape is not symmetric. Identify again.")
    if not math.isfinite(size) or np.linalg.eigvalsh(P).min(initial=0.0) < -ROUNDING * size:
        raise ModelError(f"the ellipsoid in {path} is empty: its shape is not positive semidefinite. Identify again.")
    outside = (content.centre < lower) | (content.centre > upper)
    if outside.any():
        name = robot.parameter_names[int(outside.argmax())]
        raise ModelError(
            f"the set in {path} is empty: its {name} is not within the bounds of the model file. Identify again."
        )
