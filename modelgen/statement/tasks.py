"""The task of a model file: its action cost, a smooth barrier for the state cost, and its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import pi
from typing import Any

from sympy import Expr, Float, Symbol, tanh

from modelgen.errors import ModelError, mistake, suggestion
from modelgen.metadata import NamedActionCost, Reference, Task
from modelgen.statement.action_costs import ACTION_COSTS, ActionCost, InputCost, check_input_cost
from modelgen.statement.checker import TIME, expression, number, positive
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import DeclaredInput, DeclaredParameter, DeclaredTask
from modelgen.statement.joints import Ball, quaternion_of
from modelgen.statement.terms import Terms

FASTEST = 20_000  # Hz; no controller of a robot is faster
FASTEST_SIMULATION = 1_000_000  # Hz
LONGEST = 1_000_000  # control periods in a rollout
SMALLEST = 1e-30  # smallest weight * limit^2 of an action cost; its inverse is the largest
SIMULATION_RATE = 500  # Hz; the default simulation rate is the multiple of the control rate nearest to it


def smooth_barrier(x: object, limit: object, height: object) -> Expr:
    """A cost that rises by `height` where |x| passes `limit`, over a width of about 0.1 units of x.

    It is height (sigmoid(20 (x - limit)) + sigmoid(20 (-x - limit))) minus its value at x = 0, so that a cost that is
    zero at the target stays zero there. It is written with tanh, which cannot overflow in single precision. Raises
    ModelError for a limit so near to zero that the barrier does not rise by nine tenths of `height`.
    """
    at = expression(x, "coordinate of the barrier")
    edge = expression(limit, "limit of the barrier")
    rise = expression(height, "height of the barrier")
    if edge.is_number:
        edge = Float(positive(edge, "limit of the barrier"))
        if (share := float(tanh(10 * edge))) < 0.9:
            raise mistake(
                f"the barrier rises over a width of 0.1, so that with a limit of {float(edge):g} it has {share:.2g} of "
                f"its height. Measure x in a smaller unit: smooth_barrier({0.5 / float(edge):.4g} * x, 0.5, height)."
            )
    if rise.is_number:
        rise = Float(positive(rise, "height of the barrier"))
    return rise / 2 * (tanh(10 * (at - edge)) - tanh(10 * (at + edge)) + 2 * tanh(10 * edge))


def declared_action_cost(
    cost: object, inputs: Sequence[DeclaredInput]
) -> tuple[NamedActionCost, tuple[InputCost, ...]]:
    """The name and weights of an action cost, and its expressions for each input, about the middle of its range.

    A robot without inputs needs none. Raises ModelError for an object that is not an action cost, for weights that do
    not fit, and for functions that do not belong together.
    """
    if cost is None and not inputs:
        return NamedActionCost("none", ()), ()
    if not isinstance(cost, ActionCost):
        known = " or ".join(f"{cost_class.__name__}(weight)" for cost_class in ACTION_COSTS)
        raise mistake(f"action_cost is {cost!r}; write {known}, or an instance of your own ActionCost class.")
    kind = type(cost).__name__
    given = list(cost.weights) if isinstance(cost.weights, tuple | list) else [cost.weights] * len(inputs)
    if len(given) != len(inputs):
        raise mistake(
            f"action_cost has {len(given)} weights, but the robot has {len(inputs)} inputs. "
            f"Write {kind}([...]) with {len(inputs)} weights, or one number for all inputs."
        )
    weights = tuple(positive(weight, f"weight of {kind}") for weight in given)
    costs = []
    for declared, weight in zip(inputs, weights, strict=True):
        u, limit = declared.symbol, declared.limit
        if not SMALLEST <= weight * limit**2 <= 1 / SMALLEST:
            raise mistake(
                f"the weight of {kind} is {weight:g} for the input `{u}`; write {SMALLEST / limit**2:.2g} to "
                f"{1 / SMALLEST / limit**2:.2g}, with which single precision can compute costs."
            )
        if type(cost) in ACTION_COSTS:
            costs.append(_package_cost(type(cost), u, limit, weight))
        else:
            costs.append(cost.of_input(u, limit, weight))
            check_input_cost(kind, costs[-1], limit)
    return NamedActionCost(cost.name, weights), tuple(costs)


@lru_cache(maxsize=256)
def _package_cost(kind: type[ActionCost], u: Symbol, limit: float, weight: float) -> InputCost:
    """The checked expressions of a cost of this package, which follow from the arguments. SymPy takes 50 ms for them: a
    notebook states its robot many times, and a project many with the same motor."""
    cost = kind(weight).of_input(u, limit, weight)
    check_input_cost(kind.__name__, cost, limit)
    return cost


def with_rotations(
    balls: Sequence[Ball], target: Mapping[str, object], start: Mapping[str, object], free: Sequence[str]
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """Target, start and free states in which quaternions stand for the rotations of ball joints.

    Raises ModelError for a rotation that is not (roll, pitch, yaw), and for entries of quaternions written alone.
    """
    targets, starts, names = dict(target), dict(start), list(free)
    for ball in balls:
        entries = [entry.name for entry in ball.quaternion]
        if wrong := next((name for name in entries if name in targets or name in starts), None):
            raise mistake(f"`{wrong}` has a value alone; write {ball.name}=... with (roll, pitch, yaw).")
        goal = quaternion_of(targets.pop(ball.name, (0, 0, 0)), f"target of `{ball.name}`")
        targets |= dict(zip(entries, goal, strict=True))
        if ball.name in starts:
            pair = starts.pop(ball.name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise mistake(
                    f"the start of `{ball.name}` is {pair!r}; write {ball.name}=((roll, pitch, yaw), deviation)."
                )
            mean = quaternion_of(pair[0], f"start of `{ball.name}`")
            starts |= {name: (value, pair[1]) for name, value in zip(entries, mean, strict=True)}
        if ball.name in names:
            names[names.index(ball.name) : names.index(ball.name) + 1] = entries
    return targets, starts, names


def make_task(check: Terms, limits: Mapping[Symbol, float], arguments: Mapping[str, Any]) -> DeclaredTask:
    """The checked task. limits: of the states; `arguments` are those of `Robot.task`.

    Raises ModelError for a cost that is not one, and for numbers that do not fit the robot's states and limits.
    """
    cost, declared = check.term(arguments["state_cost"], "state cost", "qvz"), check.declared
    check.dimensions("state cost", bare=True).check_arguments(cost)
    weights, input_costs = declared_action_cost(arguments["action_cost"], declared.inputs)
    first, free = next(iter(limits)).name, arguments["free"]
    target, start = {} if arguments["target"] is None else arguments["target"], arguments["start"]
    for what, values in (("target", target), ("start", start)):
        if not isinstance(values, Mapping):
            raise mistake(f"{what} is {values!r}; write {what}=dict({first}=...).")
    if isinstance(free, str) or not isinstance(free, Sequence):
        raise mistake(f"free is {free!r}; write a list of names, such as free=[{first!r}].")
    target, start, free = with_rotations(declared.balls, target, start, free)
    numbers = _numeric_task(declared, limits, weights, {**arguments, "target": target, "start": start, "free": free})
    check.values_of_states(target, "target")
    check.values_of_states(start, "start mean")
    internal = {state.symbol.name for state in declared.internal}
    unstated, unstarted = (frozenset(internal - stated.keys()) for stated in (target, start))
    return DeclaredTask(cost, input_costs, numbers, unstated=unstated, unstarted=unstarted)


def _numeric_task(
    declared: Declarations, bounds: Mapping[Symbol, float], action_cost: NamedActionCost, stated: Mapping[str, Any]
) -> Task:
    """The numbers of the task."""
    names, limits, references = [symbol.name for symbol in bounds], list(bounds.values()), declared.references
    quaternions = {entry for ball in declared.balls for entry in ball.quaternion}
    spreads = [pi if symbol in quaternions else limit for symbol, limit in bounds.items()]  # largest deviations
    for what in ("target", "start", "free"):
        _require_states(stated[what], names, what)
    moving = [_affine(stated["target"].get(name, 0), f"target of `{name}`", references) for name in names]
    begins, deviations = _start(stated["start"], names, moving, references)
    if set(stated["free"]) == set(names):
        raise mistake("free contains every state, so that any motion would succeed. Leave one out.")
    goal, means = (tuple(value for value, _ in entries) for entries in (moving, begins))
    reach = [each.bounds[1] for each in references]
    spread = [(deviation, ()) for deviation in deviations]
    checked = ("target", moving, limits), ("start mean", begins, limits), ("start standard deviation", spread, spreads)
    for what, entries, largest in checked:
        for name, (value, slopes), limit in zip(names, entries, largest, strict=True):
            away = sum(abs(slope) * most for slope, most in zip(slopes, reach, strict=False))
            if abs(value) + away > limit * (1 + 1e-12):
                raise mistake(
                    f"the {what} of `{name}` is {value:g}{f' +- {away:g} by its references' if away else ''}, outside "
                    f"its limit of {limit:g}. Give a {what} within {limit:g} of zero, or widen the limit."
                )
    weight = number(stated["weight_at_horizon"], "weight_at_horizon")
    if not 0 < weight < 1:
        raise mistake(
            f"weight_at_horizon is {weight:g}; it is the discount factor left at the horizon. "
            "Give a number between 0 and 1, both excluded, such as 0.65."
        )
    control, simulation = _rates(stated["control_rate"], stated["simulation_rate"])
    seconds = positive(stated["horizon"], "horizon")
    if seconds * control < 1:
        raise mistake(
            f"a horizon of {seconds:g} s is shorter than one control step at {control} Hz. "
            f"Give a horizon of at least {1 / control:g} s."
        )
    if seconds * control > LONGEST:
        raise mistake(
            f"a horizon of {seconds:g} s at {control} Hz has {seconds * control:g} control periods. Give a horizon of "
            f"at most {LONGEST / control:g} s: a little more than the robot needs to reach its target."
        )
    return Task(
        goal,
        means,
        deviations,
        action_cost,
        seconds,
        weight,
        control,
        simulation,
        free=tuple(name for name in names if name in stated["free"]),
        references=tuple(
            Reference(
                each.symbol.name,
                tuple(slopes[column] for _, slopes in moving),
                tuple(slopes[column] for _, slopes in begins),
            )
            for column, each in enumerate(references)
        ),
    )


def _no_reference(what: str, found: str, symbol: str) -> ModelError:
    """The error for a target or a start that is neither a number nor an expression of references."""
    name, why = ("goal", "and a model has no time") if symbol in TIME else (symbol, "which is not a reference")
    return mistake(
        f"the {what} {found}, {why}. Write a number, or an expression of references: {name} = "
        f'robot.reference("{name}", limit=..., unit="..."), a set-point that changes while the robot runs.'
    )


def _affine(value: object, what: str, references: Sequence[DeclaredParameter]) -> tuple[float, tuple[float, ...]]:
    """A number with references at zero, and its slopes in these. Raises ModelError where it is not affine in them."""
    if not isinstance(value, Expr) or not value.free_symbols:
        if callable(value):
            raise _no_reference(what, "is a function", "t")
        return number(value, what), (0.0,) * len(references)
    term, symbols = expression(value, what), [each.symbol for each in references]
    strange = sorted(map(str, term.free_symbols - {*symbols}))
    if strange:
        raise _no_reference(what, f"contains `{strange[0]}`", strange[0])
    slopes = [term.diff(symbol).expand() for symbol in symbols]
    bent = next((symbol for symbol, slope in zip(symbols, slopes, strict=True) if slope.free_symbols), None)
    if bent is not None:
        raise mistake(
            f"the {what} is {term}, which is not affine in the reference `{bent}`. Write a number plus numbers times "
            "references; declare the curved term itself as the reference."
        )
    at_zero = number(term.xreplace(dict.fromkeys(symbols, Float(0))), what)
    return at_zero, tuple(number(slope, what) for slope in slopes)


def _require_states(given: Iterable[object], names: Sequence[str], what: str) -> None:
    for name in given:
        if name not in names:
            raise mistake(
                f"{what} contains `{name}`, which is not a state of this robot.{suggestion(str(name), names)} "
                f"The states are {', '.join(names)}."
            )


def _start(
    start: Mapping[str, object],
    names: Sequence[str],
    goal: Sequence[tuple[float, tuple[float, ...]]],
    references: Sequence[DeclaredParameter],
) -> tuple[list[tuple[float, tuple[float, ...]]], tuple[float, ...]]:
    """Mean, with its slopes in the references, and standard deviation of each state.

    A state without an entry starts exactly at its target.
    """
    means, deviations = list(goal), [0.0] * len(names)
    for name, pair in start.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise mistake(f"the start of `{name}` is {pair!r}; write {name}=(mean, standard_deviation).")
        means[names.index(name)] = _affine(pair[0], f"start mean of `{name}`", references)
        deviation = number(pair[1], f"start standard deviation of `{name}`")
        if deviation < 0:
            raise mistake(f"the start standard deviation of `{name}` is {deviation:g}; write a number >= 0.")
        deviations[names.index(name)] = deviation
    return means, tuple(deviations)


def _rates(control_rate: object, simulation_rate: object | None) -> tuple[int, int]:
    """Both rates in whole Hz. The simulation rate is a multiple of the control rate."""
    control = positive(control_rate, "control_rate")
    default = control * max(1, round(SIMULATION_RATE / control))
    simulation = default if simulation_rate is None else positive(simulation_rate, "simulation_rate")
    for name, value in (("control_rate", control), ("simulation_rate", simulation)):
        if value != int(value):
            raise mistake(f"{name} is {value:g} Hz; write a whole number of hertz.")
    if control > FASTEST:
        raise mistake(
            f"control_rate is {control:g} Hz; write at most {FASTEST} Hz. It is how often the controller acts, such as "
            "125 or 1000."
        )
    if simulation > FASTEST_SIMULATION:
        raise mistake(f"simulation_rate is {simulation:g} Hz; write at most {FASTEST_SIMULATION} Hz, or leave it out.")
    if simulation % control:
        nearest = control * max(1, round(simulation / control))
        raise mistake(
            f"simulation_rate is {simulation:g} Hz and control_rate {control:g} Hz; the input is held over a "
            f"whole number of simulation steps. Write a multiple, such as simulation_rate={nearest:g}."
        )
    return int(control), int(simulation)
