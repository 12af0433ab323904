"""Every setting of a training run, with its meaning."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from solver.errors import SolverError
from solver.fvi.targets import Trace
from solver.game.adversaries import ADVERSARIES, make_adversaries
from solver.game.adversaries.adversary import Adversary
from solver.game.adversaries.paper import ActionAdversary, ObservationAdversary, ParameterAdversary, StateAdversary
from solver.problem.schemes import SCHEMES, SchemeName
from solver.streams import require_seed

Device = Literal["cpu", "cuda"]
Backend = Literal["auto", "llvm", "numba", "torch"]
Modulation = Literal["wiener", "stationary"]
OptimiserName = Literal["adam", "soap"]
CHOICES = {
    "backend": get_args(Backend),
    "device": get_args(Device),
    "modulation": get_args(Modulation),
    "optimiser": get_args(OptimiserName),
    "integrator": tuple(SCHEMES),
}
MOST = 10**9  # of whatever is counted
MOST_WEIGHTS = 10**8  # of all networks: 400 MB, as much for each moment of Adam, and four times for the bases of SOAP
LAST = 0.85  # share of the iterations after which training never skips any: the learning rate falls to its end there
SHARES = ("start_share", "target_share", "on_policy_share")  # of the states; the rest is uniform

#: All radii at zero: cFVI.
NO_ADVERSARIES: dict[str, Any] = {kind.setting(): 0.0 for kind in ADVERSARIES}
#: Settings of the adversaries. They have no effect where no adversary plays.
ADVERSARY = (
    *NO_ADVERSARIES,
    *("adversary_ramp", "modulation", "relative_values", "adversarial_share"),
)


@dataclass(frozen=True)
class Settings:
    """One training run. Two runs with equal settings on one machine give bit-identical weights."""

    seed: int = 0
    """Seeds the weights, the states and the adversaries' modulation."""
    iterations: int = 60
    """Value iterations: each makes targets from the current V and fits V to them."""
    states: int = 8192
    """States per iteration, drawn anew: uniformly from the state domain, except for the shares below."""
    start_share: float = 0.05
    """Share of the states drawn from the task's start distribution instead. V may have a kink near the starts. Uniform
    draws rarely fall there, and a V that misses the kink can trap the policy."""
    start_spread: float = 0.05
    """Standard deviation of the Gaussian added to these starts, as a share of the state limits. It widens a start
    distribution that is narrower than the kink."""
    target_share: float = 0.0
    """Share of the states drawn around the task's target. With several joints few uniform draws are near it, and the
    policy's own rollouts may not reach it yet."""
    target_spread: float = 0.15
    """Largest standard deviation of these states, as a share of the state limits. Each state draws its own, uniformly
    between zero and this."""
    on_policy_share: float = 0.0
    """Share of the states drawn from a buffer of rollouts of the current policy: real-time dynamic programming."""
    on_policy_spread: float = 0.0
    """Largest standard deviation of the Gaussian added to these states, as a share of the state limits. The policy
    follows the gradient of V, and states along a narrow bundle of motions do not determine it across the bundle."""
    rollouts: int = 64
    """Rollouts that each iteration adds to the buffer, from the task's starts over its horizon."""
    buffer: int = 100000
    """Largest number of states in the buffer. The oldest are removed first."""
    exploration_noise: float = 0.2
    """Standard deviation of the noise on the inputs of these rollouts, as a share of the input limits."""
    adversarial_share: float = 0.0
    """Share of these rollouts in which the adversaries play instead of the noise, as soon as their radii are positive.
    They drive the robot to states that it does not reach by itself."""
    epochs: int = 20
    """Passes over the states per iteration."""
    minibatch: int = 512
    """States per gradient step."""
    optimiser: OptimiserName = "adam"
    """What takes the gradient steps: Adam, or SOAP, which is Adam in the eigenbasis of the gradients of each weight
    matrix: a step takes longer and the fit needs far fewer of them."""
    learning_rate: float = 3e-3
    """The optimiser's step size at the first iteration."""
    final_learning_rate: float = 1e-5
    """The optimiser's step size at the last iteration, reached on a half cosine."""
    weight_decay: float = 1e-6
    """The optimiser's L2 penalty on the weights."""
    amsgrad: bool = False
    """Use the AMSGrad variant of Adam."""
    keep_optimiser: bool = True
    """Keep the optimiser's moments from one iteration to the next. The authors reset them."""
    loss_power: float = 1.0
    """p of the loss mean |V - V_tar|^p."""
    loss_scale: float = 0.0
    """The fit weighs a state by c/(c + |V_tar|), with c this share of the mean |V| at the task's starts: the smaller,
    the more precise V is where little is left to pay. 0 weighs all states alike, as the authors do."""
    limit_cost: float = 0.0
    """Cost per second while the simulation holds a state at its limit, as a multiple of the state cost with all states
    at their limits. With 0 a limit is a wall that costs nothing, and a policy may learn to lean on it."""
    trace_decay: float = 0.97
    """lambda of the n-step target, per value step: the larger, the further a target looks ahead."""
    trace_floor: float = 1e-2
    """The look-ahead of a target ends where the weight of its last return falls to this."""
    step_periods: tuple[int, ...] = (4, 4, 4, 2)
    """Control periods of a value step, in which both players hold their moves: one entry per equal share of the
    iterations, from coarse to fine."""
    reaction_periods: float = 0.0
    """Control periods that an input acts before the next one can (zero-order hold): 1, or 2 with a period of delay. The
    policy then takes into account how its own input moves the state in that time, in training and afterwards. 0 is the
    closed form of continuous time, which chatters where V is steep."""
    members: int = 4
    """Networks in the ensemble."""
    layers: int = 3
    """Hidden layers of each network."""
    width: int = 96
    """Units in each hidden layer."""
    position_scale: float = 2.0
    """The network sees a position that does not wrap as position_scale * q/limit. 0: in SI units."""
    rate_scale: float = 8.0
    """The network sees a rate as rate_scale * v/limit. 0: in SI units."""
    alpha_state: float = StateAdversary.usual
    """Radius of the state adversary, in SI units of the state per second (stationary) or per root second."""
    alpha_action: float = ActionAdversary.usual
    """Radius of the action adversary, in units of the input."""
    alpha_observation: float = ObservationAdversary.usual
    """Radius of the observation adversary, in units of the state."""
    alpha_parameters: float = ParameterAdversary.usual
    """Half width of the box of the parameter adversary, as a share of every nominal parameter. With --identified, the
    semi-axes of its ellipsoid, as a share of those of the file."""
    adversary_ramp: tuple[float, float] = (0.0, 0.0)
    """Begin and end, as shares of the iterations, of the ramp on which all radii grow from zero to their full size. 0 0
    plays at full size from the first iteration."""
    modulation: Modulation = "wiener"
    """Radii of the state, action and observation adversary: modulated by a Wiener process (the authors') or fixed."""
    relative_values: bool = False
    """While an adversary plays, subtract the largest value target of an iteration from all of them (relative value
    iteration). The networks are zero at the task's target, but V is not where an adversary keeps the robot moving. A
    constant changes no player's move."""
    basin: bool = False
    """Take V from the Riccati equation where the regulator of the linearised robot brings the real one to the target.
    A network fits V over the whole domain, and is not precise enough beside the target of a robot that must balance.
    Not with relative_values, under which V at the target is not that of the Riccati equation."""
    metric: bool = False
    """Measure errors by the quadratic form of the basin, where there is one: the networks learn by what factor V
    differs from it, and no longer its shape. Where a motion along one direction costs a thousand times that along
    another, as with two poles on one cart, they do not learn the shape."""
    integrator: SchemeName = "rk4"
    """How targets and rollouts are integrated: rk4, the classical Runge-Kutta method, or euler, the authors' explicit
    Euler with their sum of the cost, which adds energy."""
    evaluate_every: int = 5
    """Iterations between two evaluations by rollouts. The last iteration is always evaluated."""
    episodes: int = 100
    """Rollouts per evaluation."""
    convergence: float = 0.0
    """Largest relative difference between the mean returns of three evaluations, all with success, at which training
    goes on to its next phase before its time: to the next step length, to the growth of the adversaries, or to the last
    iterations, of small learning rates. It skips the iterations in between. Where they do not agree
    when the adversaries would begin to grow, or the last step length of cFVI begins, these wait, for at most half as
    many iterations again. 0: neither, it does all iterations."""
    polish: int = 0
    """Most iterations that polish V at the end of nominal training: at the end of cFVI, and before the adversaries of
    rFVI begin to grow. Each has 6 times the states, and fits them to the end in twice the epochs. They come only where
    the task is solved and V is rough: where it differs from what its policy is paid by more than 3 % of what that gains
    over the idle robot."""
    device: Device = "cpu"
    """Where Torch computes: on the CPU, or on a GPU with CUDA."""
    backend: Backend = "auto"
    """The robot's kernels: llvm (the default on the CPU), numba, or torch (the default with cuda, and the only one
    there). Results are equal but for rounding."""
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Worker threads on the CPU. Results do not depend on it."""
    chunk: int = 1536
    """States whose targets are computed together, few enough to stay in the cache of a CPU; a GPU takes all. Every
    chunk has a random stream of its own, so results depend on it."""

    def __post_init__(self) -> None:
        """SolverError names the first setting that has another type or is out of its range."""
        for setting in dataclasses.fields(self):
            _require_type(setting.name, str(setting.type), getattr(self, setting.name))
        counts = "iterations states rollouts buffer epochs minibatch loss_power members layers width evaluate_every"
        counts += " episodes threads chunk"
        amounts = "start_spread target_spread on_policy_spread exploration_noise weight_decay loss_scale limit_cost"
        amounts += " reaction_periods position_scale rate_scale convergence polish"
        least = dict.fromkeys(counts.split(), 1) | dict.fromkeys(amounts.split(), 0)
        for name, bound in least.items():
            if not getattr(self, name) >= bound:
                raise SolverError(f"setting {name} is {getattr(self, name)}; give a value of at least {bound:g}")
        for name in counts.split():
            if getattr(self, name) > MOST:
                raise SolverError(f"setting {name} is above {MOST:.0e}; give at most that")
        self._require_size()
        self._require_optimiser()
        require_seed(self.seed, "setting seed")
        for name in ("learning_rate", "final_learning_rate"):
            if not getattr(self, name) > 0.0:
                raise SolverError(f"setting {name} is {getattr(self, name)}; give a positive value")
        for name in ("trace_decay", "trace_floor"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise SolverError(f"setting {name} is {getattr(self, name)}; give a value in [0, 1)")
        if self.trace_floor == 0.0:
            raise SolverError("setting trace_floor is 0, so that targets would never end; give for example 1e-4")
        for name in (*SHARES, "adversarial_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise SolverError(f"setting {name} is {getattr(self, name)}; give a share in [0, 1]")
        if sum(getattr(self, name) for name in SHARES) > 1.0:
            raise SolverError(f"the sum of the settings {', '.join(SHARES)} is above 1; give less of one")
        for kind in ADVERSARIES:
            if not 0.0 <= self.radius(kind) <= kind.most:
                most = "" if math.isinf(kind.most) else f" and at most {kind.most:g}"
                raise SolverError(f"setting {kind.setting()} is {self.radius(kind)}; give a value of at least 0{most}")
        ramp = self.adversary_ramp
        numbers = isinstance(ramp, tuple) and all(type(share) in (int, float) for share in ramp)
        if not numbers or len(ramp) != 2 or not 0.0 <= ramp[0] <= ramp[1] <= 1.0:
            raise SolverError(
                f"setting adversary_ramp is {ramp}; give two shares of the iterations, for example 0.3 0.6"
            )
        whole = isinstance(self.step_periods, tuple) and all(
            type(hold) is int and hold >= 1 for hold in self.step_periods
        )
        if not whole or not self.step_periods:
            raise SolverError(
                f"setting step_periods is {self.step_periods}; give whole control periods, for example 4 2 1"
            )

    def _require_optimiser(self) -> None:
        if self.amsgrad and self.optimiser != "adam":
            raise SolverError(
                f"setting amsgrad is of the optimiser adam, and this is {self.optimiser}; change one of them"
            )

    def _require_size(self) -> None:
        """SolverError for networks that no machine has the memory for, as a damaged run.json may ask for."""
        weights = self.members * self.layers * max(self.width, 32) ** 2
        if weights > MOST_WEIGHTS:
            raise SolverError(
                f"settings members {self.members}, layers {self.layers} and width {self.width} make networks of about "
                f"{weights:.1e} weights; give smaller ones, of at most {MOST_WEIGHTS:.0e} weights in all"
            )

    @property
    def algorithm(self) -> str:
        """rfvi, or cfvi where all radii are zero."""
        return "rfvi" if any(self.radius(kind) > 0.0 for kind in ADVERSARIES) else "cfvi"

    def adversary_share(self, iteration: int) -> float:
        """The share of their full size that the admissible sets have in an iteration, in [0, 1]; 0 for cfvi."""
        begin, full = (share * self.iterations for share in self.adversary_ramp)
        if self.algorithm == "cfvi" or iteration < begin:
            return 0.0
        return 1.0 if iteration >= full else (iteration - begin) / (full - begin)

    def next_phase(self, iteration: int) -> int:
        """The first later iteration at which the step length changes, the adversaries begin to grow, or the last
        iterations at small learning rates begin; `iteration` itself where there is none, and while they grow."""
        if self.algorithm == "rfvi" and iteration >= self.refinement and self.adversary_share(iteration) < 1.0:
            return iteration
        begins = self._step_changes()
        if self.algorithm == "rfvi" and self.adversary_ramp[1] > 0.0:
            begins.append(self.refinement)
        begins.append(math.ceil(LAST * self.iterations))
        return min((begin for begin in begins if begin > iteration), default=iteration)

    @property
    def refinement(self) -> int:
        """The iteration by which the task should be solved: the adversaries begin to grow, or, of cFVI, the step length
        changes for the last time."""
        if self.algorithm == "rfvi":
            return math.ceil(self.adversary_ramp[0] * self.iterations)
        return max(self._step_changes(), default=0)

    def _step_changes(self) -> list[int]:
        """The iterations at which the step length changes."""
        steps = self.step_periods
        changes = [stage for stage in range(1, len(steps)) if steps[stage] != steps[stage - 1]]
        return [math.ceil(stage * self.iterations / len(steps)) for stage in changes]

    def radius(self, kind: type[Adversary]) -> float:
        """The full radius of an adversary: the setting alpha_NAME, or the kind's usual one where there is no such
        setting."""
        alpha: float = getattr(self, kind.setting(), kind.usual)
        return alpha

    def adversaries(self, iteration: int) -> tuple[Adversary, ...]:
        """The adversaries that play in an iteration, with the radii of that iteration."""
        share = self.adversary_share(iteration)
        return make_adversaries({kind.name: share * self.radius(kind) for kind in ADVERSARIES})

    def trace(self, iteration: int) -> Trace:
        """How the targets of an iteration look ahead."""
        stage = iteration * len(self.step_periods) // self.iterations
        return Trace(self.trace_decay, self.trace_floor, self.step_periods[stage], self.reaction_periods)


def _require_type(name: str, kind: str, value: object) -> None:
    """SolverError unless a setting from Python or run.json is of the annotated kind."""
    if name in CHOICES and value not in CHOICES[name]:
        raise SolverError(f"setting {name} is {value!r}; choices are {', '.join(CHOICES[name])}")
    if kind == "int" and type(value) is not int:
        raise SolverError(f"setting {name} is {value!r}; give a whole number")
    if kind == "float" and (type(value) not in (int, float) or not math.isfinite(value)):  # type: ignore[arg-type]
        raise SolverError(f"setting {name} is {value!r}; give a finite number")
    if kind == "bool" and type(value) is not bool:
        raise SolverError(f"setting {name} is {value!r}; give True or False")
