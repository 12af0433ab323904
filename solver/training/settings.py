"""Every setting of a training, with its meaning."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from typing import Literal, get_args

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.fvi.states import MIXTURES
from solver.game.adversaries import ADVERSARIES
from solver.problem.schemes import SCHEMES, SchemeName
from solver.streams import require_seed

Device = Literal["cpu", "cuda"]
Modulation = Literal["wiener", "stationary"]
OptimiserName = Literal["soap", "amsgrad"]
Sampling = Literal["mixture", "domain", "uniform", "rollouts", "spread-rollouts"]
CHOICES = {
    "device": get_args(Device),
    "modulation": get_args(Modulation),
    "optimiser": get_args(OptimiserName),
    "sampling": tuple(MIXTURES),
    "integrator": tuple(SCHEMES),
}
MOST = 10**9  # of whatever is counted
MOST_THREADS = 512
MOST_WEIGHTS = 10**8  # of all networks: 400 MB, as much for each moment of Adam, and four times for the bases of SOAP
COUNTS = ("iterations", "states", "epochs", "minibatch", "members", "layers", "width", "evaluate_every", "episodes")
POSITIVE = ("learning_rate", "final_learning_rate")
NOT_NEGATIVE = ("loss_scale", "limit_cost", "reaction_periods", "input_scale", "convergence", "polish")
SHARES = {"trace_decay": 0.0, "trace_floor": 1e-12}  # least value of each; all are below 1
#: Settings that have no effect where no adversary plays.
ADVERSARY = ("adversaries", "adversary_ramp", "modulation")


@dataclass(frozen=True)
class Settings:
    """One training run. Two runs with equal settings on one machine give bit-identical weights."""

    seed: int = 0
    """Seeds the weights, the states and the adversaries' modulation."""
    iterations: int = 60
    """Value iterations: each makes targets from the current V and fits V to them."""
    states: int = 8192
    """States per iteration, drawn anew."""
    sampling: Sampling = "mixture"
    """Where the states come from. `uniform`: the state domain (DP of the paper). `rollouts`: rollouts of the current
    policy (its RTDP). `domain`: the state domain, with shares around the task's starts and target. `mixture`: half of
    `domain`, half of `rollouts`. `spread-rollouts`: `rollouts` with noise added to the states."""
    epochs: int = 20
    """Passes over the states per iteration."""
    minibatch: int = 512
    """States per gradient step."""
    optimiser: OptimiserName = "soap"
    """Optimiser of the fit. `soap` keeps its moments between the iterations, and its learning rate falls. `amsgrad` is
    the authors' Adam: renewed in every iteration, at a constant learning rate."""
    learning_rate: float = 3e-3
    """Step size of the optimiser at the first iteration."""
    final_learning_rate: float = 1e-5
    """Step size of `soap` at the last iteration, reached on a half cosine."""
    loss_scale: float = 0.2
    """The fit weights a state by c/(c + |V_tar|), where c is this share of the mean |V| at the task's starts. A small
    value makes V precise where little is left to pay. 0 weights all states alike, as the authors do."""
    trace_decay: float = 0.94
    """lambda of the n-step target, per value step: the larger, the further a target looks ahead."""
    trace_floor: float = 0.3
    """The look-ahead of a target ends where the weight of its last return falls to this."""
    step_periods: tuple[int, ...] = (4, 4, 4, 2)
    """Control periods of a value step, in which both players hold their moves: one entry per equal share of the
    iterations, from coarse to fine."""
    reaction_periods: float = 1.0
    """Control periods that an input acts before the next one can (zero-order hold): 1, or 2 with a period of delay. The
    policy then takes into account how its own input moves the state in that time, in training and afterwards. 0 is the
    closed form of continuous time, which chatters where V is steep."""
    limit_cost: float = 1.0
    """Cost per second while the simulation holds a state at its limit, as a multiple of the state cost with all states
    at their limits. With 0 a limit is a wall that costs nothing, and a policy may learn to lean on it."""
    integrator: SchemeName = "rk4"
    """Integration of targets and rollouts: rk4, the classical Runge-Kutta method, or euler, the authors' explicit Euler
    with their sum of the cost, which adds energy."""
    members: int = 4
    """Networks in the ensemble."""
    layers: int = 3
    """Hidden layers of each network."""
    width: int = 96
    """Units in each hidden layer."""
    input_scale: float = 8.0
    """The networks see a rate as input_scale * v/limit and a position that does not wrap as 2 q/limit. 0: in SI
    units."""
    basin: bool = True
    """Take V from the Riccati equation where the regulator of the linearised robot brings the real robot to the target,
    and measure errors in its metric. A network alone is not precise enough beside the target of a robot that must
    balance."""
    adversaries: dict[str, float] = field(default_factory=dict, hash=False)
    """Radius of every adversary that plays, by name. `state`: SI units of the state per second (stationary) or per root
    second. `action`: units of the input. `observation`: units of the state. `parameters`: share of every nominal
    parameter, or with identified parameters the share of the semi-axes of their set."""
    adversary_ramp: tuple[float, float] = (0.0, 0.0)
    """Begin and end, as shares of the iterations, of the ramp on which all radii grow from zero to their full size. 0 0
    plays at full size from the first iteration."""
    modulation: Modulation = "stationary"
    """Radii of the state, action and observation adversary: fixed, or modulated by a Wiener process (the authors')."""
    evaluate_every: int = 5
    """Iterations between two evaluations by rollouts. The last iteration is always evaluated."""
    episodes: int = 100
    """Rollouts per evaluation."""
    convergence: float = 0.0
    """Largest relative difference between the mean returns of three evaluations, all with success, at which training
    skips to its next phase. The phases are the step lengths, the growth of the adversaries, and the last iterations
    with small learning rates. Where the evaluations do not agree when the adversaries would begin to grow, or the last
    step length without adversaries, this phase waits, for at most half as many iterations again. 0: neither."""
    polish: int = 0
    """Most iterations that polish V at the end of nominal training. Each has 6 times the states and twice the epochs.
    They come only where the task is solved and V is rough: it differs from what its policy is paid by more than 3 % of
    what that gains over the idle robot."""
    device: Device = "cpu"
    """Where Torch computes: on the CPU, or on a GPU with CUDA."""
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Worker threads on the CPU. Results do not depend on it."""

    def __post_init__(self) -> None:
        """Raises SolverError for the first setting that has another type or is out of its range."""
        for setting in dataclasses.fields(self):
            _require_type(setting.name, str(setting.type), getattr(self, setting.name))
        for name in COUNTS:
            _require(name, 1 <= getattr(self, name) <= MOST, f"a whole number from 1 to {MOST:.0e}", self)
        _require("threads", 1 <= self.threads <= MOST_THREADS, f"a whole number from 1 to {MOST_THREADS}", self)
        for name in NOT_NEGATIVE:
            _require(name, getattr(self, name) >= 0.0, "a value of at least 0", self)
        for name in POSITIVE:
            _require(name, getattr(self, name) > 0.0, "a positive value", self)
        for name, least in SHARES.items():
            _require(name, least <= getattr(self, name) < 1.0, f"a value of at least {least:g} and below 1", self)
        require_seed(self.seed, "setting seed")
        steps = self.step_periods
        whole = isinstance(steps, tuple) and steps and all(type(count) is int and count >= 1 for count in steps)
        _require("step_periods", bool(whole), "whole control periods, for example 4 2 1", self)
        ramp = self.adversary_ramp
        numbers = isinstance(ramp, tuple) and len(ramp) == 2 and all(type(share) in (int, float) for share in ramp)
        ordered = numbers and 0.0 <= ramp[0] <= ramp[1] <= 1.0
        _require("adversary_ramp", ordered, "two shares of the iterations, for example 0.3 0.6", self)
        weights = self.members * self.layers * max(self.width, 32) ** 2
        _require("width", weights <= MOST_WEIGHTS, f"networks of at most {MOST_WEIGHTS:.0e} weights in all", self)
        _require_adversaries(self.adversaries)

    @property
    def algorithm(self) -> str:
        """rfvi, or cfvi where no adversary plays."""
        return "rfvi" if any(radius > 0.0 for radius in self.adversaries.values()) else "cfvi"


def _require(name: str, right: bool, wanted: str, settings: Settings) -> None:
    """Raises SolverError, with the value and what is wanted, unless it is right."""
    if not right:
        raise SolverError(f"setting {name} is {getattr(settings, name)}; give {wanted}")


def _require_type(name: str, kind: str, value: object) -> None:
    """Raises SolverError unless a setting from Python or run.json is of the annotated kind."""
    if name in CHOICES and value not in CHOICES[name]:
        raise SolverError(f"setting {name} is {value!r}; choices are {', '.join(CHOICES[name])}")
    if kind == "int" and type(value) is not int:
        raise SolverError(f"setting {name} is {value!r}; give a whole number")
    if kind == "float" and (type(value) not in (int, float) or not math.isfinite(value)):  # type: ignore[arg-type]
        raise SolverError(f"setting {name} is {value!r}; give a finite number")
    if kind == "bool" and type(value) is not bool:
        raise SolverError(f"setting {name} is {value!r}; give True or False")


def _require_adversaries(radii: object) -> None:
    """Raises SolverError unless every name is in the table of adversaries, with a radius in its range."""
    kinds = {kind.name: kind for kind in ADVERSARIES}
    if not isinstance(radii, dict):
        raise SolverError(f"setting adversaries is {radii!r}; give radii by name, for example {{'action': 0.1}}")
    for name, radius in radii.items():
        if name not in kinds:
            hint = suggestion(str(name), kinds)
            raise SolverError(f"setting adversaries has no adversary {name!r}.{hint} There are {', '.join(kinds)}")
        _require_type(f"adversaries[{name!r}]", "float", radius)
        if not 0.0 <= radius <= kinds[name].most:
            most = "" if math.isinf(kinds[name].most) else f" and at most {kinds[name].most:g}"
            raise SolverError(f"the radius of the adversary {name} is {radius}; give a value of at least 0{most}")
