"""Parameters that a user names: changed in a plant, told to a policy, or estimated. Checks of names, values, ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from modelgen.metadata import Parameter
from solver.errors import SolverError
from solver.problem import Problem
from solver.problem.context import Given

TOLD = "told"  # in place of names: all parameters that the policy is told
ALL = "all"  # in place of a name: those that change most, as many as can be told together
MOST = 5  # told parameters: the polynomials of `solver.value.family` grow fast with their number
MATTERS = 0.02  # effect above which `all` tells a parameter, as a share of the rates of change
SAMPLES, SEED = 1024, 0  # of the states at which effects are measured
HELD = 1e-4  # limits per second: a slower drift at the target is rest, in the rounding of float32
SINGLE = 1e-6  # relative error of numbers in single precision
ROUNDING = 1e-9  # share of the bounds: an end of a range this near to one is the bound
WITHIN = 64  # contexts within the ranges at which the target must be held, as at their ends


@dataclass(frozen=True)
class Relative:
    """A parameter relative to its nominal value: nominal * factor + added."""

    factor: float = 1.0
    added: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not is_number(value):
                raise SolverError(f"{name} of solver.Relative is {value!r}; give a number")

    def __str__(self) -> str:
        return f"+{self.added:.9g}" if self.added else f"{self.factor:.9g}x"


#: A value in SI units, or one relative to the nominal value.
Change = float | Relative


def in_words(changes: Mapping[str, Change]) -> str:
    """Changes in the form of the command line: mass=1.3x length=+0.1 damping=0.2."""
    return " ".join(
        f"{name}={change if isinstance(change, Relative) else f'{change:.9g}'}" for name, change in changes.items()
    )


def left_all_bounds(problem: Problem, theta: Tensor) -> SolverError:
    """Error to raise if rollouts at the parameters theta (p,) reach states that are not finite."""
    values = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return SolverError(
        f"rollouts at {values} reached states that are not finite; change the parameters by less, or raise the task's "
        "control_rate"
    )


def changed_parameters(problem: Problem, changes: Mapping[str, Change]) -> Tensor:
    """Parameters theta (p,) with some of them changed from their nominal values.

    Raises SolverError for an unknown name, a change that is no number, a factor of a parameter that is 0, and a value
    that is not finite, or not positive although the bounds of the model file are.
    """
    names = problem.robot.parameter_names
    theta = problem.theta.clone()
    for name, change in changes.items():
        if name not in names:
            raise SolverError(
                f"robot {problem.robot.name} has no parameter '{name}'.{suggestion(name, names)} Parameters: "
                f"{', '.join(names)}"
            )
        if not is_number(change) and not isinstance(change, Relative):
            raise SolverError(
                f"{name} is {change!r}; give a number in SI units, solver.Relative(1.3) for 1.3 times the model's, "
                "or solver.Relative(added=0.1) to add to it"
            )
        i = names.index(name)
        number = max(abs(change.factor), abs(change.added)) if isinstance(change, Relative) else abs(change)
        if not number < torch.finfo(theta.dtype).max:
            raise SolverError(f"the change {in_words({name: change})} is not a finite number in float32")
        if isinstance(change, Relative):
            if problem.theta[i] == 0.0 and change.factor != 1.0:
                raise SolverError(f"{name} is 0 in the model, so a factor cannot change it; write {name}=+0.1")
            theta[i] = problem.theta[i] * float(change.factor) + float(change.added)
        else:
            theta[i] = float(change)
    if not bool(torch.isfinite(theta).all()):
        raise SolverError(f"the changes {in_words(changes)} give parameters that are not finite: {theta.tolist()}")
    for name, number, lower in zip(names, theta.tolist(), problem.theta_bounds[:, 0].tolist(), strict=True):
        if lower > 0.0 >= number:
            raise SolverError(
                f"the changes {in_words(changes)} set {name} to {number:g}, but its bounds in the model are positive; "
                f"write {name}=0.5x, or {name}=+-0.05 to subtract 0.05 from the nominal value"
            )
    return theta


#: Names of told parameters, or their ranges: None for the bounds of the model file.
GivenRanges = Iterable[str] | Mapping[str, tuple[Change, Change] | None]


def names_in(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names; a string is one name."""
    return (names,) if isinstance(names, str) else tuple(names)


#: Whether a policy can be told these parameters of a robot together.
CanTell = Callable[[CompiledRobot, tuple[Given, ...]], bool]


def resolve(robot: CompiledRobot, given: GivenRanges, can_tell: CanTell | None = None) -> tuple[Given, ...]:
    """Told parameters of a robot in the order of theta, with their ranges. References are always among them.

    ALL stands for the parameters that change most: MOST at most, and with `can_tell` as many as it allows. Its range is
    of factors, which are held within the bounds of each. robot: with kernels on the CPU. Raises SolverError for an
    unknown name, a parameter without a range or without effect, for a range beyond the bounds of the model file, for
    too many of them, if there are none, and if no input holds the target with some of the values.
    """
    wanted = dict.fromkeys(robot.metadata.references) | _wanted(given)
    if ALL not in wanted:
        return _resolved(robot, wanted)
    factors = _factors(wanted.pop(ALL))
    others = {
        one.name: one for one in robot.metadata.parameters if one.name not in wanted and (one.value or not factors)
    }
    sizes = effects(robot, [Given(one.name, one.lower, one.upper) for one in others.values()])
    order = sorted(others, key=lambda name: -sizes[name])  # of equal ones the first in the model file
    most = [name for name in order[: max(0, MOST - len(wanted))] if sizes[name] >= MATTERS]
    if not wanted and not most:
        raise SolverError(
            f"--given {ALL}: no parameter changes a rate of {robot.name} by {100 * MATTERS:g} % within its bounds. "
            "Widen bounds=(lower, upper) in the model file, or leave --given out"
        )
    while True:
        found = _resolved(robot, wanted | {name: _within(others[name], factors) for name in most})
        if len(found) <= 1 or not most or can_tell is None or can_tell(robot, found):
            return found
        del most[-1]


def _resolved(robot: CompiledRobot, wanted: Mapping[str, tuple[Change, Change] | None]) -> tuple[Given, ...]:
    """Told parameters by the ranges of their names; None: the bounds of the model file. Errors as of `resolve`."""
    if not wanted:
        return ()
    references = robot.metadata.references
    parameters = {parameter.name: parameter for parameter in robot.metadata.parameters}
    for name in wanted:
        if name not in parameters:
            raise SolverError(
                f"--given {name}: robot {robot.name} has no parameter '{name}'.{suggestion(name, parameters)} "
                f"Parameters: {', '.join(parameters) or '(none)'}"
            )
    nominal = dict(zip(parameters, map(float, robot.nominal_parameters), strict=True))
    found = [
        _range(parameter, nominal[name], wanted[name] or (parameter.lower, parameter.upper))
        for name, parameter in parameters.items()
        if name in wanted
    ]
    if len(found) > MOST:
        names = ", ".join(entry.name for entry in found)
        raise SolverError(
            f"--given has {len(found)} parameters{' with the references' if references else ''} ({names}), and a "
            f"policy is told at most {MOST}; name those that change most"
        )
    idle = [name for name, size in effects(robot, found).items() if size == 0.0]
    if idle:
        raise SolverError(f"--given {idle[0]}: it changes neither motion nor cost of {robot.name}; leave it out")
    _require_held(robot, tuple(found))
    return tuple(found)


def _wanted(given: GivenRanges) -> dict[str, tuple[Change, Change] | None]:
    """Ranges by name. Raises SolverError for what is neither names nor ranges."""
    if not isinstance(given, Iterable):
        raise SolverError(f'given is {given!r}; give names, or ranges by name: ["mass"], or {{"mass": (0.8, 1.2)}}')
    wanted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names_in(given))
    for name, ends in wanted.items():
        pair = ends is None or (isinstance(ends, Sequence) and len(ends) == 2 and not isinstance(ends, str))
        if not isinstance(name, str) or not pair or not all(isinstance(end, Real | Relative) for end in ends or ()):
            shown = f"{{{name!r}: {ends!r}}}" if ends is not None else repr(name)
            raise SolverError(f'given has {shown}; give names, or ranges by name: ["mass"], or {{"mass": (0.8, 1.2)}}')
    return wanted


def at_references(robot: CompiledRobot, values: Mapping[str, Change]) -> Problem:
    """Problem of a robot whose references have these values; the others are zero.

    Raises SolverError for a value out of its range.
    """
    declared = {parameter.name: parameter for parameter in robot.metadata.parameters}
    given = tuple(Given(name, declared[name].lower, declared[name].upper) for name in robot.metadata.references)
    family = Problem(robot, given=given)
    return family.told_that(changed_parameters(family, values))


def effects(robot: CompiledRobot, given: Iterable[Given]) -> dict[str, float]:
    """Effect of every parameter: root mean square of the change of a rate from the middle to an end of its range.

    It is a share of the root mean square of that rate, over random states and inputs. The rates are those of the states
    and of the cost; the one that changes most counts.
    """
    generator, given = torch.Generator().manual_seed(SEED), tuple(given)
    states, inputs, theta = (
        torch.as_tensor(np.asarray(values), dtype=torch.float32)
        for values in (robot.state_limits, robot.input_limits, robot.nominal_parameters)
    )
    middle = torch.as_tensor(np.asarray(robot.input_middle), dtype=torch.float32)
    x = (2.0 * torch.rand(SAMPLES, len(states), generator=generator) - 1.0) * states
    u = middle + (2.0 * torch.rand(SAMPLES, len(inputs), generator=generator) - 1.0) * inputs
    x, u, theta = (values.to(getattr(torch, robot.dtype)) for values in (x, u, theta))

    def rates(changes: Mapping[int, float]) -> Tensor:
        changed = theta.clone()
        for column, value in changes.items():
            changed[column] = value
        told = changed.expand(len(x), -1).contiguous()
        return torch.cat([robot.dynamics(x, u, told), robot.state_cost(x, told)[0][:, None]], 1)

    size = rates({}).square().mean(0).sqrt().clamp_min(1e-12)
    found = {}
    for entry in given:
        column = robot.parameter_names.index(entry.name)
        difference = rates({column: entry.upper}) - rates({column: entry.lower})
        found[entry.name] = float((0.5 * difference.square().mean(0).sqrt() / size).max())
    return found


def _range(parameter: Parameter, nominal: float, ends: tuple[Change, Change]) -> Given:
    """A told parameter with the range between the ends. Raises SolverError for one that is empty or leaves out the
    nominal value, and beyond the bounds of the model file."""
    name, room = parameter.name, ROUNDING * (parameter.upper - parameter.lower)
    lower, upper = (_value(change, parameter.value) for change in ends)
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise SolverError(f"--given {name}: its range is {lower} to {upper}; give two finite numbers")
    lower = parameter.lower if abs(lower - parameter.lower) <= room else lower
    upper = parameter.upper if abs(upper - parameter.upper) <= room else upper
    if lower > upper:
        raise SolverError(
            f"--given {name}: its range is {lower:g} to {upper:g}; exchange them, the smaller number is first"
        )
    if lower == upper:
        raise SolverError(
            f"--given {name}: its range is {lower:g} to {upper:g}, so there is nothing to tell. Write "
            f"bounds=(lower, upper) in the model file, or --given {name}=LOWER:UPPER within its bounds"
        )
    if lower < parameter.lower or upper > parameter.upper:
        raise SolverError(
            f"--given {name}={lower:g}:{upper:g} exceeds the bounds of the model file, {parameter.lower:g} to "
            f"{parameter.upper:g} {parameter.unit}; give a range within them, or widen them"
        )
    room = max(room, SINGLE * abs(nominal))
    if not lower - room <= nominal <= upper + room:
        raise SolverError(
            f"--given {name}={lower:g}:{upper:g} leaves out the nominal {nominal:g} {parameter.unit}, which the policy "
            "is told wherever nothing else is said; extend the range to it, or change the value in the model file"
        )
    return Given(name, float(lower), float(upper))


def _factors(ends: tuple[Change, Change] | None) -> tuple[float, float] | None:
    """The factors of ALL, whose units differ. Raises SolverError for numbers in SI units, and for what is added."""
    if ends is None:
        return None
    lower, upper = (end.factor if isinstance(end, Relative) and not end.added else math.nan for end in ends)
    if not 0.0 < lower <= 1.0 <= upper or not lower < upper < math.inf:
        shown = ":".join(in_words({"": end})[1:] for end in ends)
        raise SolverError(
            f"--given {ALL}={shown} is no range of factors around 1; write {ALL}=0.8x:1.2x, and ranges in SI units by "
            "the name of a parameter"
        )
    return lower, upper


def _within(parameter: Parameter, factors: tuple[float, float] | None) -> tuple[Change, Change] | None:
    """The range of a parameter by factors, held within the bounds of the model file; None for the bounds."""
    if factors is None:
        return None
    ends = sorted(_value(Relative(factor), parameter.value) for factor in factors)  # a negative value turns them round
    return max(ends[0], parameter.lower), min(ends[1], parameter.upper)


def _value(change: Change, nominal: float) -> float:
    """Value of an end of a range in SI units. 1.4 times 0.127 is 0.1778, and not 0.17779999999999999."""
    if isinstance(change, Relative):
        return float(f"{nominal * change.factor + change.added:.12g}")
    return float(change)


def _require_held(robot: CompiledRobot, given: tuple[Given, ...]) -> None:
    """Raises SolverError if an input holds the target with nominal parameters, but none does with some told ones."""
    problem = Problem(robot, given=given)
    assert problem.context is not None
    inside = problem.context.draw(WITHIN, torch.Generator().manual_seed(SEED))
    theta = torch.cat([problem.theta[None], problem.context.theta(torch.cat([problem.context.corners(), inside]))])
    u = problem.trim_of(theta) if problem.moving_trim else problem.trim.repeat(len(theta), 1)
    drift = (robot.dynamics(problem.targets_of(theta), u, theta) / problem.state_limits).abs()
    free = [i for i, name in enumerate(robot.state_names) if name in robot.metadata.task.free]
    drift[:, free] = 0.0
    spent = (u - problem.input_middle).abs() >= (1.0 - HELD) * problem.input_limits  # costs may be infinite there
    moving = drift.amax(1) + spent.any(1)
    if float(moving[0]) <= HELD < float(moving.max()):
        values = theta[int(moving.argmax()), problem.context.columns].tolist()
        names = problem.context.names
        words = ", ".join(f"{name} = {value:g}" for name, value in zip(names, values, strict=True))
        first = [name for name in robot.metadata.internal if name not in robot.metadata.task.free]
        if first and not bool(spent[int(moving.argmax())].any()):
            references = [name for name in names if name in robot.metadata.references]
            way = "Tell one of these parameters, give its bounds such that the target is held everywhere in them, or "
            way += "train with the adversary `model` for them."
            if len(references) == len(names):  # which every policy of the robot is told
                way = f"Lower the limit of {', '.join(references)} in the model file, or state the robot without "
                way += f"{', '.join(first)}: a current follows at once with `robot.dc_motor`."
            raise SolverError(
                f"--given {' '.join(names)}: with {words}, {robot.name} is held by another {', '.join(first)} than by "
                "nominal parameters, and by one that does not change linearly with them, which a family cannot follow. "
                f"{way}"
            )
        raise SolverError(
            f"--given {' '.join(names)}: no input within the limits holds the target of {robot.name} with {words}. "
            "Give smaller ranges, or widen the limits of the inputs in the model file."
        )


def expanded(names: tuple[str, ...], told: tuple[str, ...], folder: str | Path) -> tuple[str, ...]:
    """The names with those that the policy of a run is told for TOLD. Raises SolverError if it is told none."""
    if TOLD not in names:
        return names
    if not told:
        raise SolverError(
            f"--estimate has no names, and the policy of {folder} is told nothing that can be estimated. Give the "
            "names of parameters, or `all`."
        )
    return tuple(dict.fromkeys([*(name for name in names if name != TOLD), *told]))


def require_told_names(folder: str | Path, names: Collection[str], told: Iterable[str]) -> None:
    """Raises SolverError for a parameter that the policy of a run cannot be told."""
    for name in told:
        if name not in names:
            known = f"It is told {', '.join(names)}." if names else "It is told no parameter."
            raise SolverError(
                f"the policy of {folder} cannot be told {name}.{suggestion(name, names)} {known} Leave it out, or "
                f"train with --given {name}."
            )


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Whether a value is an integer, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)
