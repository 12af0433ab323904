"""A system of `sympy.physics.mechanics` as part of a robot: its equations, and its energies to verify them with.

The equations of motion are the system's own. `modelgen verify` compares them with Lagrange's equations from the
kinetic energy of the system's bodies and the work of its loads, in coordinates and their rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sympy import Basic, Derivative, Expr, Float, Matrix, S, Symbol, diff, simplify, srepr, trigsimp
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, ReferenceFrame, System, dynamicsymbols

from modelgen.errors import ModelError, Place, suggestion
from modelgen.statement.declared import Coordinate, Load, Speed
from modelgen.statement.terms import Terms
from modelgen.statement.units import dimension, divided

TIME = dynamicsymbols._t
DIGITS = 50
CHANCES = 3  # random numbers at which the velocities are examined
CLOSED = 1e-20  # a smaller difference is rounding


@dataclass(frozen=True)
class MechanicalSystem:
    """M vdot = force, rows and speeds in one order; energies and loads in coordinates, rates and inputs."""

    coordinates: tuple[Coordinate, ...]  # q, in the system's order
    speeds: tuple[Symbol, ...]  # v: the rate of a coordinate, or a declared speed
    own: Mapping[Coordinate, Speed]  # coordinate whose rate is no entry of the state -> the speed in its place
    rates: Mapping[Symbol, Expr]  # coordinate's rate -> expression in q and v, where it is not v itself
    mass_matrix: Matrix
    force: Matrix  # affine in the inputs
    kinetic: Expr
    potential: Expr
    loads: tuple[Load, ...]
    place: Place

    @property
    def terms(self) -> tuple[Basic, ...]:
        """All its expressions."""
        forces = [load.force for load in self.loads]
        return self.mass_matrix, self.force, self.kinetic, self.potential, *forces, *self.rates.values()

    def statement(self) -> list[str]:
        """All that the system states, as text, for the content hash."""
        return [*map(str, self.speeds), *map(srepr, self.terms)]


def stated_system(
    check: Terms, system: object, coordinates: Mapping[Any, Any], speeds: Mapping[Any, Any], replaced: Mapping[Any, Any]
) -> MechanicalSystem:
    """The system of one `Robot.mechanics(...)`, checked; `replaced` maps its parameters and inputs to expressions.

    Raises ModelError for values that are not the robot's, for units that do not fit, for a rate_limit where the rate
    is no entry of the state, and as `read_system` does.
    """
    place = check.place
    joints = {joint.symbol for joint in check.declared.joints}
    declared = {speed.symbol: speed for speed in check.declared.speeds}
    for what, given, known in (("coordinates", coordinates, joints), ("speeds", speeds, declared)):
        for key, value in given.items():
            if value not in known:
                raise ModelError(f"{what}={{{key}: ...}} gives {value!r}, which is none of this robot's {what}.", place)
    terms = {key: check.term(value, f"replacement of {key}", "u") for key, value in replaced.items()}
    chosen = {key: declared[value] for key, value in speeds.items()}
    found = read_system(system, dict(coordinates), chosen, terms, place)
    check.dimensions("kinetic energy of the system").check(found.kinetic, dimension("J"))
    check.dimensions("potential energy of the system").check(found.potential, dimension("J"))
    for load in found.loads:
        along = check.dimensions("load of the system")
        along.check(load.force, divided(dimension("J"), along.span(load.displacement) or dimension("1")))
    for joint in check.declared.joints:
        if joint.symbol in found.own and joint.rate_limit is not None:
            raise ModelError(
                f"the coordinate `{joint.symbol}` has a rate_limit, but its rate is no speed of the system; the "
                f"limit that counts is that of `{found.own[joint.symbol].symbol}`. Leave rate_limit out.",
                joint.place,
            )
    return found


def read_system(
    system: object,
    coordinates: Mapping[Any, Coordinate],
    speeds: Mapping[Any, Speed],
    replaced: Mapping[Any, Expr],
    place: Place,
) -> MechanicalSystem:
    """The system in the symbols of a robot; `replaced` maps the system's parameters and inputs to expressions of them.

    Raises ModelError for constraints, for symbols without a replacement, and where SymPy fails.
    """
    try:
        method = _formed(system, place)
        if isinstance(method, KanesMethod):
            return _kane(method, coordinates, speeds, replaced, place)
        return _lagrange(method, coordinates, speeds, replaced, place)
    except ModelError:
        raise
    except Exception as error:  # SymPy raises whatever its algebra does
        words = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"SymPy cannot form the equations of this system: {words}", place) from error


def _formed(system: object, place: Place) -> Any:
    """The method of the system with its equations formed. Raises ModelError for constraints."""
    if isinstance(system, System):
        _check_free((*system.holonomic_constraints, *system.velocity_constraints), system.u_aux, place)
        if system.eom_method is None:
            system.form_eoms()
        system = system.eom_method
    if isinstance(system, KanesMethod):
        rolling = system._k_nh * system.u + system._f_nh if system._f_nh else ()  # SymPy shows them nowhere else
        _check_free((*system._f_h, *rolling), system._uaux, place)
        try:
            system.forcing  # noqa: B018
        except ValueError:
            if not system.bodies:
                raise ModelError(
                    "the KanesMethod has no bodies; write kane.kanes_equations(bodies, loads) before this line.", place
                ) from None
            system.kanes_equations()
        return system
    if isinstance(system, LagrangesMethod):
        _check_free(system.coneqs, (), place)
        if system.eom is None:
            system.form_lagranges_equations()
        return system
    raise ModelError(
        f"the system is {type(system).__name__}; robot.mechanics takes a System, a KanesMethod or a LagrangesMethod "
        "of sympy.physics.mechanics.",
        place,
    )


def _check_free(constraints: Iterable[Expr], auxiliary: Iterable[Expr], place: Place) -> None:
    for constraint in constraints:
        raise ModelError(
            f"the system has a constraint, {constraint} = 0: a closed loop or a rolling condition. Model files state "
            "robots without constraints: choose independent coordinates, or cut the loop and add a stiff spring there.",
            place,
        )
    for speed in auxiliary:
        raise ModelError(
            f"the system has the auxiliary speed {speed}, which finds reactions and is no state; leave it out.", place
        )


def _kane(
    method: Any, coordinates: Mapping[Any, Coordinate], speeds: Mapping[Any, Speed], replaced: Any, place: Place
) -> MechanicalSystem:
    """Kane's equations with their kinematics, qdot = G(q) v + drift, solved and simplified."""
    q, u = list(method.q), list(method.u)
    found = Matrix([method.kindiffdict()[coordinate.diff(TIME)] for coordinate in q])
    slopes = found.jacobian(u)
    trivial = all(entry in (0, 1) for entry in slopes)
    if not trivial:
        # SymPy solves by elimination, whose pivots may vanish where the kinematics are sound.
        slopes = slopes.applyfunc(lambda entry: simplify(trigsimp(entry)))
    drift = found.xreplace(dict.fromkeys(u, S.Zero)).applyfunc(simplify)
    explicit = slopes * Matrix(u) + drift
    if explicit != found:
        equations = [coordinate.diff(TIME) - rate for coordinate, rate in zip(q, explicit, strict=True)]
        bodies, loads = method.bodies, method.loads
        method = KanesMethod(method._inertial, q, u, kd_eqs=equations)
        method.kanes_equations(bodies, loads)
    names = _Names(coordinates, replaced, place)
    v, own = _assigned(q, u, slopes, drift, names, speeds, place)
    names.known |= dict(zip(u, v, strict=True))
    states = [names.coordinates[each] for each in q]
    turned = {each.diff(TIME): rate for each, rate in zip(q, explicit, strict=True)}
    _check_positions(method, slopes, turned, place)
    rates = [names(rate, "kinematics") for rate in explicit]
    to_rates = _inverse(states, rates, own)
    frame = method._inertial

    def in_rates(expression: Expr, what: str) -> Expr:
        return names(expression.xreplace(turned), what).xreplace(to_rates)

    kinetic = sum((body.kinetic_energy(frame) for body in method.bodies), S.Zero)
    return MechanicalSystem(
        tuple(states),
        tuple(v),
        own,
        {state.rate: rate for state, rate in zip(states, rates, strict=True) if state in own},
        method.mass_matrix.applyfunc(lambda entry: names(entry.xreplace(turned), "mass matrix")),
        method.forcing.applyfunc(lambda entry: names(entry.xreplace(turned), "forces")),
        in_rates(kinetic, "kinetic energy"),
        S.Zero,
        _loads(method.loads or (), frame, states, in_rates, place),
        place,
    )


def _check_positions(method: Any, slopes: Matrix, turned: Mapping[Any, Expr], place: Place) -> None:
    """Refuse a velocity of a mass centre that is the rate of no position: a rolling condition hides in it.

    With velocity = A(q) qdot + ..., column i of A is the derivative of the position by q_i, so that dA_i/dq_j must be
    dA_j/dq_i. Both are computed at random numbers with 50 digits. A body whose velocity cannot be written along the
    axes of the inertial frame is left to `modelgen verify`.
    """
    frame, q, u = method._inertial, list(method.q), list(method.u)
    random = Random(0)
    for body in method.bodies:
        point = getattr(body, "masscenter", None) or body.point
        try:
            velocity = Matrix([point.vel(frame).dot(axis) for axis in frame]).xreplace(dict(turned))
        except ValueError:
            continue
        along = velocity.jacobian(u)
        changes = [(along.diff(each), slopes.diff(each)) for each in q]
        used = set().union(*(entry.atoms(AppliedUndef, Symbol) for entry in (along, slopes)))
        for _ in range(CHANCES):
            numbers = {each: Float(random.uniform(0.5, 1.5), DIGITS) for each in sorted(used - {TIME}, key=str)}
            A, G = (matrix.xreplace(numbers).evalf(DIGITS) for matrix in (along, slopes))
            back = G.inv()
            slopes_of_A = [
                (dA.xreplace(numbers) - A * back * dG.xreplace(numbers)).evalf(DIGITS) * back for dA, dG in changes
            ]
            bent = [
                abs(slopes_of_A[j][row, i] - slopes_of_A[i][row, j])
                for i in range(len(q))
                for j in range(i)
                for row in range(3)
            ]
            if max(bent, default=0) > CLOSED:
                raise ModelError(
                    f"the velocity of the point {point} is the rate of no position in these coordinates: a rolling or "
                    "sliding condition hides in it, such as contact.set_vel(frame, 0). Model files state robots "
                    "without constraints: let the contact move, with coordinates of its own, and hold it by stiff "
                    "friction there, or choose coordinates in which the robot only rolls along a line.",
                    place,
                )


def _lagrange(
    method: Any, coordinates: Mapping[Any, Coordinate], speeds: Mapping[Any, Speed], replaced: Any, place: Place
) -> MechanicalSystem:
    q = list(method.q)
    names = _Names(coordinates, replaced, place)
    v, own = _assigned(
        q, [each.diff(TIME) for each in q], Matrix.eye(len(q)), Matrix.zeros(len(q), 1), names, speeds, place
    )
    names.known |= {each.diff(TIME): rate for each, rate in zip(q, v, strict=True)}
    states = [names.coordinates[each] for each in q]
    energy = names(method._L[0], "Lagrangian")  # SymPy shows it nowhere else
    still = energy.xreplace(dict.fromkeys(v, S.Zero))
    return MechanicalSystem(
        tuple(states),
        tuple(v),
        own,
        {},
        method.mass_matrix.applyfunc(lambda entry: names(entry, "mass matrix")),
        method.forcing.applyfunc(lambda entry: names(entry, "forces")),
        energy - still,
        -still,
        _loads(method.loads or (), method.inertial, states, names, place),
        place,
    )


class _Names:
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


def _assigned(
    q: Sequence[Expr], u: Sequence[Expr], slopes: Matrix, drift: Matrix, names: _Names, speeds: Any, place: Place
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


def _inverse(
    states: Sequence[Coordinate], rates: Sequence[Expr], own: Mapping[Coordinate, Speed]
) -> dict[Symbol, Expr]:
    """The declared speeds as expressions of coordinates and rates."""
    speeds = [speed.symbol for speed in own.values()]
    if not speeds:
        return {}
    rows = Matrix([rates[states.index(state)] for state in own])
    rest = Matrix([state.rate for state in own]) - rows.xreplace(dict.fromkeys(speeds, S.Zero))
    solved = rows.jacobian(speeds).inv(method="ADJ", try_block_diag=True) * rest
    return dict(zip(speeds, solved, strict=True))


def _loads(
    loads: Iterable[Any], frame: Any, states: Sequence[Coordinate], names: Callable[[Expr, str], Expr], place: Place
) -> tuple[Load, ...]:
    """The generalized force of every load along every coordinate."""
    result = []
    for where, load in loads:
        velocity = where.ang_vel_in(frame) if isinstance(where, ReferenceFrame) else where.vel(frame)
        moving = [(velocity.dot(axis), axis) for axis in (frame.x, frame.y, frame.z)]
        components = [
            (names(speed, "velocities"), names(load.dot(axis), "loads")) for speed, axis in moving if speed != 0
        ]
        for state in states:
            force = sum((diff(speed, state.rate) * push for speed, push in components), S.Zero)
            if force != 0:
                result.append(Load(state, force, place))
    return tuple(result)
