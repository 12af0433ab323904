"""A system of `sympy.physics.mechanics` as part of a robot: its equations of motion, and its energies.

The equations of motion are the system's own. The energies serve `modelgen verify`, which compares the equations with
Lagrange's equations from the kinetic energy of the system's bodies and the work of its loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sympy import Basic, Expr, Matrix, S, Symbol, diff, simplify, srepr, trigsimp
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, ReferenceFrame, System

from modelgen.errors import ModelError, Place, calling_place, mistake
from modelgen.statement.declared import Load
from modelgen.statement.joints import Coordinate, Speed
from modelgen.statement.sympy_checks import (
    DIGITS,
    ROUNDING,
    TIME,
    Names,
    assigned,
    hidden_rolling,
    random_numbers,
    refuse_constraints,
    refuse_rolling_lagrangian,
    unseen_bodies,
)
from modelgen.statement.terms import Terms
from modelgen.units import dimension, divided


@dataclass(frozen=True)
class MechanicalSystem:
    """M vdot = force, with the rows in the order of the speeds; energies and loads in coordinates, rates and inputs."""

    coordinates: tuple[Coordinate, ...]  # q, in the system's order
    speeds: tuple[Symbol, ...]  # v: the rate of a coordinate, or a declared speed
    own: Mapping[Coordinate, Speed | None]  # coordinate whose rate is not in the state -> a speed that replaces it
    rates: Mapping[Symbol, Expr]  # rate of such a coordinate -> expression in q and v
    mass_matrix: Matrix
    force: Matrix  # affine in the inputs
    kinetic: Expr
    potential: Expr
    loads: tuple[Load, ...]
    place: Place = field(default_factory=calling_place)
    rolls: bool = False  # its velocities hide rolling, so that its kinetic energy holds for possible motions only
    warning: str = ""  # about what could not be checked

    @property
    def terms(self) -> tuple[Basic, ...]:
        """All expressions of the system."""
        forces = [load.force for load in self.loads]
        return self.mass_matrix, self.force, self.kinetic, self.potential, *forces, *self.rates.values()

    def statement(self) -> list[str]:
        """The content of the system as text, for the content hash."""
        return [*map(str, self.speeds), *map(srepr, self.terms)]


def make_system(
    check: Terms, system: object, coordinates: Mapping[Any, Any], speeds: Mapping[Any, Any], replaced: Mapping[Any, Any]
) -> MechanicalSystem:
    """The system of one `Robot.mechanics(...)`, checked. `replaced` maps its parameters and inputs to expressions.

    Raises ModelError for values that are not the robot's, for units that do not fit, and for a rate_limit of a
    coordinate whose rate is not an entry of the state. Raises also what `read_system` raises.
    """
    joints = {joint.symbol for joint in check.declared.joints}
    declared = {speed.symbol: speed for speed in check.declared.speeds}
    for kind, mapping, known in (("coordinates", coordinates, joints), ("speeds", speeds, declared)):
        for key, value in mapping.items():
            if value not in known:
                raise mistake(f"{kind}={{{key}: ...}} is {value!r}, which is not one of the robot's {kind}.")
    terms = {key: check.term(value, f"replacement of {key}", "zu") for key, value in replaced.items()}
    chosen = {key: declared[value] for key, value in speeds.items()}
    made = read_system(system, Names(dict(coordinates), terms), chosen)
    check.dimensions("kinetic energy of the system").check(made.kinetic, dimension("J"))
    check.dimensions("potential energy of the system").check(made.potential, dimension("J"))
    for load in made.loads:
        along = check.dimensions("load of the system")
        along.check(load.force, divided(dimension("J"), along.span(load.displacement) or dimension("1")))
    for joint in check.declared.joints:
        if joint.symbol in made.own and joint.rate_limit is not None:
            speed = made.own[joint.symbol]
            counts = f"; the limit of `{speed.symbol}` counts" if speed else ", and follows from the others"
            raise ModelError(
                f"the coordinate `{joint.symbol}` has a rate_limit, but its rate is not a speed of the system{counts}. "
                "Leave rate_limit out.",
                joint.place,
            )
    return made


def read_system(system: object, names: Names, speeds: Mapping[Any, Speed]) -> MechanicalSystem:
    """The system in the robot's symbols.

    Raises ModelError for constraints, for symbols without a replacement, and where SymPy fails.
    """
    try:
        method = _formed(system)
        return (_kane if isinstance(method, KanesMethod) else _lagrange)(method, names, speeds)
    except ModelError:
        raise
    except Exception as error:  # the algebra of SymPy may raise any exception
        words = " ".join(str(error).split()) or type(error).__name__
        raise mistake(f"SymPy cannot form the equations of this system: {words}") from error


def _formed(system: object) -> Any:
    """The method of the system, with its equations formed. Raises ModelError for constraints."""
    if isinstance(system, System):
        refuse_constraints(system.holonomic_constraints, system.u_aux)
        if system.eom_method is None:
            system.form_eoms()
        system = system.eom_method
    if isinstance(system, KanesMethod):
        refuse_constraints(system._f_h, system._uaux)  # SymPy has no public name for them
        try:
            system.forcing  # noqa: B018
        except ValueError:
            if not system.bodies:
                raise mistake(
                    "the KanesMethod has no bodies; call kane.kanes_equations(bodies, loads) before this line."
                ) from None
            system.kanes_equations()
        return system
    if isinstance(system, LagrangesMethod):
        refuse_rolling_lagrangian(system)
        if system.eom is None:
            system.form_lagranges_equations()
        return system
    raise mistake(
        f"the system is {type(system).__name__}; robot.mechanics takes a System, a KanesMethod or a LagrangesMethod "
        "of sympy.physics.mechanics."
    )


def _kane(method: Any, names: Names, speeds: Mapping[Any, Speed]) -> MechanicalSystem:
    """Kane's equations of the independent speeds, with their kinematics qdot = G(q) v + drift solved and simplified."""
    q, u = list(method.q), list(method.u)
    free = len(u) - len(method._udep)
    kinematics = Matrix([method.kindiffdict()[coordinate.diff(TIME)] for coordinate in q])
    slopes = kinematics.jacobian(u)
    trivial = all(entry in (0, 1) for entry in slopes)
    if not trivial:
        # SymPy solves by elimination, whose pivots may vanish although the kinematics are regular.
        slopes = slopes.applyfunc(lambda entry: simplify(trigsimp(entry)))
    drift = kinematics.xreplace(dict.fromkeys(u, S.Zero)).applyfunc(simplify)
    explicit = slopes * Matrix(u) + drift
    follow = following_speeds(method)
    if explicit != kinematics:
        equations = [coordinate.diff(TIME) - rate for coordinate, rate in zip(q, explicit, strict=True)]
        bodies, loads = method.bodies, method.loads
        constraints = list(Matrix(u[free:]) - follow * Matrix(u[:free])) if follow.rows else []
        held = {"u_dependent": u[free:], "velocity_constraints": constraints} if constraints else {}
        method = KanesMethod(method._inertial, q, u[:free], kd_eqs=equations, **held)
        method.kanes_equations(bodies, loads)
    every = Matrix.eye(free).col_join(follow)  # all speeds by the independent ones
    own_slopes = (slopes * every).applyfunc(simplify) if follow.rows else slopes
    v, own = assigned(q, u[:free], own_slopes, drift, names, speeds)
    names.known |= dict(zip(u[:free], v, strict=True))
    states = [names.coordinates[coordinate] for coordinate in q]
    reduced = dict(zip(u[free:], follow * Matrix(u[:free]), strict=True))
    rates_of = {coordinate.diff(TIME): rate.xreplace(reduced) for coordinate, rate in zip(q, explicit, strict=True)}
    rates = [names(rate, "kinematics") for rate in rates_of.values()]
    in_rates = _in_rates(q, u, slopes, drift, names)
    frame = method._inertial
    mass_matrix, forcing = independent_equations(method, follow, rates_of)
    kinetic = in_rates(sum((body.kinetic_energy(frame) for body in method.bodies), S.Zero), "kinetic energy")
    return MechanicalSystem(
        tuple(states),
        tuple(v),
        own,
        {state.rate: rate for state, rate in zip(states, rates, strict=True) if state in own},
        mass_matrix.applyfunc(lambda entry: names(entry.xreplace(rates_of).xreplace(reduced), "mass matrix")),
        forcing.applyfunc(lambda entry: names(entry.xreplace(rates_of).xreplace(reduced), "forces")),
        names.at_rest(kinetic),
        S.Zero,
        (*_loads(method.loads or (), frame, states, in_rates), *_specified(kinetic, states, names)),
        rolls=len(u) < len(q) or hidden_rolling(method.bodies, method.loads, frame, q, u, slopes) is not None,
    )


def _in_rates(
    q: Sequence[Expr], u: Sequence[Expr], slopes: Matrix, drift: Matrix, names: Names
) -> Callable[[Expr, str], Expr]:
    """A function that writes expressions of the system in the robot's coordinates and their rates.

    With fewer speeds than coordinates, the speeds follow from as many of the rates.
    """
    rows = independent_rows(slopes)
    states = [names.coordinates[q[row]] for row in rows]
    of_rows = Matrix([slopes[row, :] for row in rows])
    rest = Matrix([state.rate - names(drift[row], "kinematics") for state, row in zip(states, rows, strict=True)])
    solved = of_rows.applyfunc(lambda entry: names(entry, "kinematics")).inv(method="ADJ", try_block_diag=True) * rest
    by_rates = dict(zip(u, solved, strict=True))
    return names.with_more(by_rates | {q_i.diff(TIME): names.coordinates[q_i].rate for q_i in q}).moving


def _lagrange(method: Any, names: Names, speeds: Mapping[Any, Speed]) -> MechanicalSystem:
    """Lagrange's equations, whose speeds are the rates of the coordinates."""
    q = list(method.q)
    qdot = [coordinate.diff(TIME) for coordinate in q]
    v, own = assigned(q, qdot, Matrix.eye(len(q)), Matrix.zeros(len(q), 1), names, speeds)
    names.known |= dict(zip(qdot, v, strict=True))
    states = [names.coordinates[coordinate] for coordinate in q]
    moving = names.moving(method._L[0], "Lagrangian")  # SymPy has no public name for it
    energy = names.at_rest(moving)
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
        (*_loads(method.loads or (), method.inertial, states, names.moving), *_specified(moving, states, names)),
        warning=unseen_bodies(method),
    )


def _specified(energy: Expr, states: Sequence[Coordinate], names: Names) -> Iterator[Load]:
    """The inertial forces of specified accelerations, -d2T/(dqdot dv) vdot, for an energy at rest velocities v.

    The equations do not depend on v. So Lagrange's equations at v = 0 need these loads besides that energy.
    """
    for state in states:
        along = [energy.diff(state.rate, v) * acceleration for v, acceleration in names.specified.values()]
        force = names.at_rest(-sum(along, S.Zero))
        if force != 0:
            yield Load(state, force)


def _loads(
    loads: Iterable[Any], frame: Any, states: Sequence[Coordinate], names: Callable[[Expr, str], Expr]
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
                result.append(Load(state, force))
    return tuple(result)


def following_speeds(method: Any) -> Matrix:
    """A (dependent, independent) with u_dependent = A u_independent, by the velocity constraints of a KanesMethod.

    Raises ModelError for constraints that are not homogeneous, and for dependent speeds that do not follow.
    """
    count = len(method._udep)
    free = len(method.u) - count
    if not count:
        return Matrix.zeros(0, free)
    # SymPy has no public names for k and f of the constraints k u + f = 0
    k, f = method._k_nh, method._f_nh
    if any(simplify(entry) != 0 for entry in f):
        conditions = ", ".join(str(entry) for entry in k * method.u + f)
        raise mistake(
            f"the velocity constraints {conditions} = 0 do not vanish at rest; a model file holds constraints that "
            "are linear in the speeds, without a part of their own."
        )
    own = k[:, free:]
    if simplify(own.det()) == 0:
        names = ", ".join(map(str, method._udep))
        raise mistake(f"the dependent speeds {names} do not follow from the constraints; choose others.")
    solved: Matrix = -own.inv(method="ADJ") * k[:, :free]
    return solved.applyfunc(lambda entry: simplify(trigsimp(entry)))


def independent_equations(method: Any, follow: Matrix, rates_of: Mapping[Any, Expr]) -> tuple[Matrix, Matrix]:
    """M (p, p) and forcing (p, 1) of the independent speeds. With dependent speeds, SymPy's M has columns for all."""
    free = follow.cols
    matrix, forcing = method.mass_matrix[:free, :], method.forcing[:free, :]
    if not follow.rows:
        return matrix, forcing
    speeds = Matrix(list(method.u)[:free])
    change = follow.diff(TIME).xreplace(dict(rates_of)) * speeds
    return matrix[:, :free] + matrix[:, free:] * follow, forcing - matrix[:, free:] * change


def independent_rows(slopes: Matrix) -> list[int]:
    """As many rows of a matrix (n_q, n_u) as it has columns, linearly independent at random numbers.

    Rows with one entry come first, because they are the rates of coordinates.
    """
    numbers = random_numbers(slopes.atoms(AppliedUndef, Symbol) - {TIME}, Random(0))
    values = slopes.xreplace(numbers).evalf(DIGITS)
    order = sorted(range(slopes.rows), key=lambda row: sum(entry != 0 for entry in slopes[row, :]) > 1)
    kept: list[int] = []
    for row in order:
        rows = Matrix([values[other, :] for other in (*kept, row)])
        if rows.rank(iszerofunc=lambda x: abs(x) < ROUNDING) > len(kept):
            kept.append(row)
    return sorted(kept)
