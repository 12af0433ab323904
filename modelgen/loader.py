"""A robot's kernels, which have the same methods in every backend: loaded from an artifact. Needs no SymPy."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from modelgen.artifact.folder import find_mechanics, has_mechanics, opened, outdated, program, rebuild
from modelgen.artifact.manifest import Manifest
from modelgen.backends import MODULES, Kernels
from modelgen.backends import backend as backend_module
from modelgen.backends.drawing import Drawing
from modelgen.errors import ArtifactError, ModelError, checked, suggestion
from modelgen.metadata import Metadata
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.functions import SIGNATURES, Program
from modelgen.program.trim import trims

if TYPE_CHECKING:
    from jax import Array as JaxArray
    from torch import Tensor

_DTYPES = ("float64", "float32")
_MECHANICS = SIGNATURES.keys() - FUNCTIONS
#: NumPy arrays give NumPy arrays, and Torch tensors give Torch tensors. The backend jax gives JAX arrays.
Array = TypeVar("Array", bound="NDArray[Any] | Tensor | JaxArray")


class CompiledRobot:
    """The kernels of one robot with its names, limits and parameters.

    Shapes, in every backend: n states, m inputs, p parameters, N samples; x (N, n), u (N, m), costate (N, n),
    theta (p,) or (N, p), w (N, m) = B^T dV/dx. The last axis of a derivative is the variable differentiated.
    One sample may be given without the axis N, as x (n,), u (m,), ...: the results then have none either.

    Arrays are real numbers. One of another dtype than the robot's, or one that is not contiguous in memory, is copied
    in every call. That costs about as long as the `dynamics` of a small robot; results have the robot's dtype.
    `theta` is nominal unless given. Every method takes `out`, a tuple of arrays to write the results to, which are of
    the robot's dtype and contiguous; the backend jax has none. Raises ModelError for arrays of other shapes and for
    other objects.

    `mass_matrix` to `forward_kinematics` need `modelgen build NAME --functions mechanics`, which leaves the artifact
    and its hash as they are.
    """

    def __init__(
        self,
        manifest: Manifest,
        program: Program,
        backend: str,
        dtype: str,
        parallel: bool,
        folder: Path,
        directory: str | Path | None,
    ) -> None:
        metadata = manifest.metadata
        self._manifest = manifest
        self.metadata: Metadata = metadata
        self.name = metadata.name
        self.hash = manifest.hash
        self.model_hash = manifest.model_hash
        self.program = program
        self.operations = program.operations  # by function
        self.backend = backend
        self.dtype = dtype
        self.folder = folder
        self.outdated = outdated(folder, manifest, directory)
        self.state_names = tuple(state.name for state in metadata.states)
        self.input_names = tuple(entry.name for entry in metadata.inputs)
        self.parameter_names = tuple(parameter.name for parameter in metadata.parameters)
        self.declared_parameters = tuple(parameter.value for parameter in metadata.parameters)  # of the model file
        self._parallel = parallel
        self._directory = directory  # where the functions of mechanics are looked for when one of them is called
        self._make_kernels()

    def _make_kernels(self) -> None:
        """Make the kernels and the constants, which are arrays of the backend."""
        metadata = self.metadata
        self._kernels = kernels = _kernels(self.program, metadata, self.backend, self.dtype, self._parallel)
        self.nominal_parameters = kernels.constant([parameter.value for parameter in metadata.parameters])
        bounds = [(parameter.lower, parameter.upper) for parameter in metadata.parameters]
        self.parameter_bounds = kernels.constant(bounds).reshape(-1, 2)
        self.state_limits = kernels.constant([state.limit for state in metadata.states])
        self.input_limits = kernels.constant([entry.limit for entry in metadata.inputs])  # half of their ranges
        self.input_middle = kernels.constant([entry.middle for entry in metadata.inputs])
        self.trim = kernels.constant([entry.trim for entry in metadata.inputs])  # u0, which holds the target

    def __repr__(self) -> str:
        return f"<modelgen robot {self.name}: {self.backend}, {self.dtype}, {self.hash[:12]}>"

    def __copy__(self) -> CompiledRobot:
        robot = object.__new__(CompiledRobot)
        robot.__dict__ |= vars(self)
        return robot

    def __getstate__(self) -> dict[str, Any]:
        """All but the kernels, which are made again: compiled functions are of one process."""
        return {name: value for name, value in vars(self).items() if name not in ("_kernels", "_mechanics")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._make_kernels()

    def with_nominal(self, values: Sequence[float]) -> CompiledRobot:
        """The same robot with other nominal parameters (p,), identified ones for example; its hash stays.

        References among them move the target and the starts of the task.
        Raises ModelError for another number of them, and for one that is not finite.
        """
        given = list(values) if isinstance(values, Iterable) else [values]
        if not all(isinstance(value, Real) and isfinite(value) for value in given):
            raise ModelError(f"the parameters of `{self.name}` are {values!r}; give finite numbers.")
        if len(given) != len(self.parameter_names):
            known = f"{len(self.parameter_names)}: {', '.join(self.parameter_names)}"
            raise ModelError(f"{len(given)} parameters were given, but `{self.name}` has {known}.")
        robot = copy.copy(self)
        robot.__dict__.pop("drawing", None)
        robot.__dict__.pop("_mechanics", None)
        robot.metadata = self.metadata.with_nominal(given)
        nominal = [parameter.value for parameter in robot.metadata.parameters]
        robot._kernels = self._kernels.with_nominal(nominal)
        robot.nominal_parameters = robot._kernels.constant(nominal)
        return robot

    def with_kernels(self, backend: str = "llvm", dtype: str = "float64", parallel: bool = True) -> CompiledRobot:
        """The same robot with kernels of another backend or precision, made without opening the artifact again.

        Raises ModelError for an unknown backend or dtype.
        """
        _require_known(backend, dtype)
        robot = CompiledRobot(self._manifest, self.program, backend, dtype, parallel, self.folder, self._directory)
        return robot.with_nominal([parameter.value for parameter in self.metadata.parameters])

    def affine_dynamics(
        self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None
    ) -> tuple[Array, Array]:
        """a (N, n) and B (N, n, m) of xdot = a + B u."""
        a, B = self._evaluate("affine_dynamics", {"x": x, "theta": theta}, out)
        return a, B

    def dynamics(self, x: Array, u: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """xdot = a + B u (N, n)."""
        return self._evaluate("dynamics", {"x": x, "u": u, "theta": theta}, out)[0]

    def jacobians(
        self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None
    ) -> tuple[Array, Array, Array, Array, Array, Array]:
        """a, B, da_dx (N, n, n), dB_dx (N, n, m, n), da_dtheta (N, n, p), dB_dtheta (N, n, m, p)."""
        a, B, da_dx, dB_dx, da_dtheta, dB_dtheta = self._evaluate("jacobians", {"x": x, "theta": theta}, out)
        return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta

    def hamiltonian_gradient(
        self, x: Array, u: Array, costate: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None
    ) -> tuple[Array, Array, Array]:
        """dH_dx (N, n), dH_du (N, m), dH_dtheta (N, p) of H = costate . (a + B u), by one reverse sweep."""
        arguments = {"x": x, "u": u, "costate": costate, "theta": theta}
        dH_dx, dH_du, dH_dtheta = self._evaluate("hamiltonian_gradient", arguments, out)
        return dH_dx, dH_du, dH_dtheta

    def state_cost(
        self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None
    ) -> tuple[Array, Array]:
        """The task's cost q (N,), zero at the target and positive elsewhere, and dq_dx (N, n)."""
        q, dq_dx = self._evaluate("state_cost", {"x": x, "theta": theta}, out)
        return q, dq_dx

    def action_cost(self, u: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, Array, Array]:
        """The task's action cost g (N,) for |u| <= limit, dg_du (N, m), and d2g_du2 (N, m), its Hessian's diagonal."""
        g, dg_du, d2g_du2 = self._evaluate("action_cost", {"u": u}, out)
        return g, dg_du, d2g_du2

    def optimal_input(self, w: Array, out: tuple[Array, ...] | None = None) -> Array:
        """u (N, m) that maximises w . u - g(u) within the limits: the gradient at w of the convex conjugate of g."""
        return self._evaluate("optimal_input", {"w": w}, out)[0]

    def optimal_input_cost(self, w: Array, out: tuple[Array, ...] | None = None) -> Array:
        """g (N,) of the optimal input; it keeps its digits in float32 where the input saturates."""
        return self._evaluate("optimal_input_cost", {"w": w}, out)[0]

    def mass_matrix(self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """M (N, n_v, n_v) of M vdot + bias = S u."""
        return self._evaluate("mass_matrix", {"x": x, "theta": theta}, out)[0]

    def bias(self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """bias (N, n_v) of M vdot + bias = S u: Coriolis forces, gravity, springs and friction."""
        return self._evaluate("bias", {"x": x, "theta": theta}, out)[0]

    def gravity(self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """The weights' part of the bias (N, n_v), with `robot.potential_energy` and without springs."""
        return self._evaluate("gravity", {"x": x, "theta": theta}, out)[0]

    def input_map(self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """S (N, n_v, m): the generalized force of each input."""
        return self._evaluate("input_map", {"x": x, "theta": theta}, out)[0]

    def reaction(self, x: Array, u: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """Forces R (N, k) of the drives of commanded accelerations, in the order of robot.accelerate; N or N m."""
        return self._evaluate("reaction", {"x": x, "u": u, "theta": theta}, out)[0]

    def kinetic_energy(self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """T (N,), in J."""
        return self._evaluate("kinetic_energy", {"x": x, "theta": theta}, out)[0]

    def potential_energy(self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None) -> Array:
        """U (N,), in J: weights, springs and couplings."""
        return self._evaluate("potential_energy", {"x": x, "theta": theta}, out)[0]

    def forward_kinematics(
        self, x: Array, theta: Array | None = None, out: tuple[Array, ...] | None = None
    ) -> tuple[Array, Array]:
        """Positions (N, k, 3) of the points `point_names` in the world, in m, height last; dp_dq (N, k, 3, n_q)."""
        positions, dp_dq = self._evaluate("forward_kinematics", {"x": x, "theta": theta}, out)
        return positions, dp_dq

    def trim_at(self, x: Array, theta: Array | None = None) -> Array:
        """u0 (N, m), the smallest inputs within their limits that hold the robot at x (N, n) with theta (p,) or (N, p).

        They come nearest to it where no input holds it. `trim` is that of the target and the model file's parameters.
        """
        (u0,) = self._trim("trim", x, theta)
        return u0

    def trim_slopes(self, x: Array, theta: Array | None = None) -> tuple[Array, Array]:
        """u0 (N, m) of `trim_at` and du0_dtheta (N, m, p). Raises ArtifactError for an artifact without `jacobians`."""
        self._kernels_of("jacobians")
        u0, du0_dtheta = self._trim("trim_slopes", x, theta)
        return u0, du0_dtheta

    def _trim(self, function: str, x: Array, theta: Array | None) -> tuple[Array, ...]:
        kernels = self._trims
        if theta is None:
            kernels = kernels.with_nominal([parameter.value for parameter in self.metadata.parameters])
        return kernels.evaluate(function, {"x": x, "theta": theta}, None)

    @cached_property
    def trim_program(self) -> Program:
        """The functions `trim` and `trim_slopes`, made of this robot's program."""
        return trims(self.program, self.metadata)

    @cached_property
    def _trims(self) -> Kernels:
        """Kernels of the trims in double precision, since redundant inputs have no digits to lose; JAX has its own."""
        dtype = self.dtype if self.backend == "jax" else "float64"
        return _kernels(self.trim_program, self.metadata, self.backend, dtype, self._parallel)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that are built: those of the artifact, and of mechanics where there are some."""
        built = has_mechanics(self.name, self._directory)
        return (*self.program.operations, *(self._mechanics[1].operations if built else ()))

    @property
    def point_names(self) -> tuple[str, ...]:
        """The points of `forward_kinematics`: the origins of the links, then the points that the model file names."""
        return tuple(find_mechanics(self.name, self.model_hash, self._directory)[1].points)

    @cached_property
    def _mechanics(self) -> tuple[Kernels, Program]:
        """Kernels of the functions of mechanics. Raises ArtifactError where they are not built."""
        folder, manifest = find_mechanics(self.name, self.model_hash, self._directory)
        made = program(folder, manifest)
        kernels = _kernels(made, self.metadata, self.backend, self.dtype, self._parallel)
        return kernels, made

    def _kernels_of(self, function: str) -> Kernels:
        """The kernels that have a function. Raises ArtifactError where it is not built."""
        kernels, made = self._mechanics if function in _MECHANICS else (self._kernels, self.program)
        if function not in made.operations and function in SIGNATURES:
            there = ",".join([*made.operations, function])
            raise ArtifactError(
                f"`{self.name}` was built without `{function}`. {rebuild(self.folder, functions=there)}"
            )
        return kernels

    def casadi_function(self, name: str) -> Any:
        """The casadi.Function of one sample behind a method; columns in, one matrix an output. Backend casadi."""
        return self._of_one_backend("casadi_function", "casadi", name)

    def numba_function(self, name: str) -> Any:
        """The function of one sample behind a method, jitted by Numba, for your own jitted loops. Backend numba.

        It takes one-dimensional arrays, first the arguments and then the outputs that it fills, in the order of the
        emitted module: f = robot.numba_function("dynamics") is called f(x, u, theta, xdot), with x (n,), u (m,),
        theta (p,) and xdot (n,). A matrix is filled row by row, B as (n m,). Arrays are not checked.
        Numba does not see when a function that yours calls has changed: after `modelgen build`, delete the machine
        code that it kept of your functions with cache=True.
        Raises ModelError for an unknown name and above 5 000 operations, which Numba would compile for minutes.
        """
        return self._of_one_backend("numba_function", "numba", name)

    def _of_one_backend(self, method: str, backend: str, function: str) -> Any:
        """What a method gives that only the kernels of one backend have."""
        if self.backend != backend:
            raise ModelError(
                f"{method} belongs to the {backend} backend, and this robot uses {self.backend}. "
                f"Load it with modelgen.load('{self.name}', backend='{backend}')."
            )
        return getattr(self._kernels_of(function), method)(function)

    @cached_property
    def drawing(self) -> Drawing:
        """The robot as line segments: `drawing.segments(x)`, and `drawing.view`, the rectangle that encloses them."""
        return Drawing(self.program, self.metadata)

    def javascript(self, trims: bool = False) -> tuple[str, list[str]]:
        """The kernels and the drawing as JavaScript functions of one sample, as text, and their names.

        trims: `trim` too, (x, theta) -> u0.
        """
        from modelgen.backends import js

        more = (self.trim_program.function("trim"),) if trims else ()
        return js.with_drawing(replace(self.program, functions=(*self.program.functions, *more)))

    def equations(self) -> list[str]:
        """The equations of motion as MathML, a line each, as they are computed."""
        from modelgen.backends import mathml

        return mathml.equations(self.program, self.metadata)

    def _evaluate(
        self, function: str, arguments: dict[str, Array | None], out: tuple[Array, ...] | None
    ) -> tuple[Array, ...]:
        return self._kernels_of(function).evaluate(function, arguments, out)


@checked(ModelError, "dtype")
def load(
    name: str | Path,
    backend: str = "llvm",
    dtype: str = "float64",
    directory: str | Path | None = None,
    parallel: bool = True,
) -> CompiledRobot:
    """Load the artifact of the robot `name`. No code of an artifact is run, whoever made it.

    backend: llvm, numba, casadi, torch, jax or js. directory: the folder that holds NAME/; by default ./generated when
    it holds NAME, and otherwise the one shipped with the package. parallel: spread the samples over threads; False runs
    the same loop serially and releases the GIL. Gives a StaleArtifactWarning when the artifact was not built from the
    file models/NAME.py beside the folder of artifacts. Raises ModelError for an unknown name, backend or dtype, and
    ArtifactError when the artifact is damaged, edited or of another generator version.
    """
    _require_known(backend, dtype)
    folder, manifest = opened(name, directory)
    return CompiledRobot(manifest, program(folder, manifest), backend, dtype, parallel, folder, directory)


def _require_known(backend: str, dtype: str) -> None:
    if backend not in MODULES:
        known = ", ".join(MODULES)
        raise ModelError(f"There is no backend {backend!r}.{suggestion(str(backend), MODULES)} Backends: {known}.")
    if not isinstance(dtype, str) or dtype not in _DTYPES:  # a dtype of NumPy equals its name
        raise ModelError(f"There is no dtype {dtype!r}.{suggestion(str(dtype), _DTYPES)} Use float64 or float32.")


def _kernels(program: Program, robot: Metadata, backend: str, dtype: str, parallel: bool) -> Kernels:
    return backend_module(backend).load(program, robot, dtype, parallel)
