"""Load an artifact as a compiled robot, which has the same methods in every backend. Needs no SymPy.

Shapes, in every backend: n states, m inputs, p parameters, N samples; x (N, n), u (N, m), costate (N, n),
theta (p,) or (N, p), w (N, m) = B^T dV/dx. The last axis of a derivative is the variable differentiated.
One sample may be given without the axis N, as x (n,), u (m,), ...: the results then have none either.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from modelgen.artifact.folder import find, find_mechanics, has_mechanics, read
from modelgen.artifact.manifest import Manifest, MechanicsManifest
from modelgen.backends import HARMLESS, MODULES, TRANSLATED, Kernels, backend, drawing
from modelgen.backends.drawing import Drawing
from modelgen.errors import ArtifactError, ModelError, suggestion
from modelgen.metadata import Metadata
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.mechanics import MECHANICS
from modelgen.trust import require_trust

_DTYPES = ("float64", "float32")


class CompiledRobot:
    """The kernels of one robot with its names, limits and parameters.

    Every method takes `out`, arrays to write the results to. Those of the state take `theta`, by default the nominal
    parameters. `mass_matrix` to `forward_kinematics` need `modelgen build NAME --functions mechanics`, which leaves
    the artifact and its hash as they are.
    """

    def __init__(
        self,
        manifest: Manifest,
        kernels: Kernels,
        backend: str,
        dtype: str,
        folder: Path,
        parallel: bool,
        directory: str | Path | None,
        trust: Collection[str],
    ) -> None:
        metadata = manifest.metadata
        self.metadata: Metadata = metadata
        self.name = metadata.name
        self.hash = manifest.hash
        self.model_hash = manifest.model_hash
        self.operations = manifest.operations  # by function
        self.backend = backend
        self.dtype = dtype
        self.folder = folder
        self.state_names = tuple(state.name for state in metadata.states)
        self.input_names = tuple(entry.name for entry in metadata.inputs)
        self.parameter_names = tuple(parameter.name for parameter in metadata.parameters)
        self.declared_parameters = tuple(parameter.value for parameter in metadata.parameters)  # of the model file
        self.nominal_parameters = kernels.constant(self.declared_parameters)
        self.parameter_bounds = kernels.constant(
            [(parameter.lower, parameter.upper) for parameter in metadata.parameters] or [(0.0, 0.0)][:0]
        ).reshape(-1, 2)
        self.state_limits = kernels.constant([state.limit for state in metadata.states])
        self.input_limits = kernels.constant([entry.limit for entry in metadata.inputs])
        self._kernels = kernels
        self._manifest = manifest
        self._parallel = parallel
        self._directory = directory  # where the functions of mechanics are looked for when one of them is called
        self._trust = trust

    def __repr__(self) -> str:
        return f"<modelgen robot {self.name}: {self.backend}, {self.dtype}, {self.hash[:12]}>"

    def with_nominal(self, values: Sequence[float]) -> CompiledRobot:
        """The same robot with other nominal parameters (p,), identified ones for example; its hash stays.

        Raises ModelError for another number of them.
        """
        if len(values) != len(self.parameter_names):
            raise ModelError(
                f"{len(values)} parameters were given, but `{self.name}` has {len(self.parameter_names)}: "
                f"{', '.join(self.parameter_names)}."
            )
        changed = tuple(
            replace(each, value=float(value)) for each, value in zip(self.metadata.parameters, values, strict=True)
        )
        robot = copy.copy(self)
        robot.__dict__.pop("drawing", None)
        robot.__dict__.pop("_mechanics", None)
        robot.metadata = replace(self.metadata, parameters=changed)
        robot._manifest = replace(self._manifest, metadata=robot.metadata)
        robot._kernels = self._kernels.with_nominal([each.value for each in changed])
        robot.nominal_parameters = robot._kernels.constant([each.value for each in changed])
        return robot

    def affine_dynamics(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """a (N, n) and B (N, n, m) of xdot = a + B u."""
        return self._evaluate("affine_dynamics", {"x": x, "theta": theta}, out)

    def dynamics(self, x: Any, u: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """xdot (N, n)."""
        return self._evaluate("dynamics", {"x": x, "u": u, "theta": theta}, out)[0]

    def jacobians(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """a, B, da_dx (N, n, n), dB_dx (N, n, m, n), da_dtheta (N, n, p), dB_dtheta (N, n, m, p)."""
        return self._evaluate("jacobians", {"x": x, "theta": theta}, out)

    def hamiltonian_gradient(
        self, x: Any, u: Any, costate: Any, theta: Any = None, out: tuple[Any, ...] | None = None
    ) -> tuple[Any, ...]:
        """dH_dx (N, n), dH_du (N, m), dH_dtheta (N, p) of H = costate . (a + B u), by one reverse sweep."""
        arguments = {"x": x, "u": u, "costate": costate, "theta": theta}
        return self._evaluate("hamiltonian_gradient", arguments, out)

    def state_cost(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """The task's cost q (N,), zero at the target and positive elsewhere, and dq_dx (N, n)."""
        return self._evaluate("state_cost", {"x": x, "theta": theta}, out)

    def action_cost(self, u: Any, out: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """The task's action cost g (N,) for |u| <= limit, dg_du (N, m), and d2g_du2 (N, m), its Hessian's diagonal."""
        return self._evaluate("action_cost", {"u": u}, out)

    def optimal_input(self, w: Any, out: tuple[Any, ...] | None = None) -> Any:
        """u (N, m) that maximises w . u - g(u) within the limits: the gradient of the convex conjugate of g."""
        return self._evaluate("optimal_input", {"w": w}, out)[0]

    def optimal_input_cost(self, w: Any, out: tuple[Any, ...] | None = None) -> Any:
        """g (N,) of the optimal input; it keeps its digits in float32 where the input saturates."""
        return self._evaluate("optimal_input_cost", {"w": w}, out)[0]

    def mass_matrix(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """M (N, n_v, n_v) of M vdot + bias = S u. This and the following are there after `--functions mechanics`."""
        return self._evaluate("mass_matrix", {"x": x, "theta": theta}, out)[0]

    def bias(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """bias (N, n_v): all forces but M vdot and S u, on that side of M: Coriolis, gravity, springs, friction."""
        return self._evaluate("bias", {"x": x, "theta": theta}, out)[0]

    def gravity(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """The weights' part of the bias (N, n_v), that of `robot.potential_energy` included, that of springs not."""
        return self._evaluate("gravity", {"x": x, "theta": theta}, out)[0]

    def input_map(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """S (N, n_v, m): the generalized force of each input."""
        return self._evaluate("input_map", {"x": x, "theta": theta}, out)[0]

    def kinetic_energy(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """T (N,), in J."""
        return self._evaluate("kinetic_energy", {"x": x, "theta": theta}, out)[0]

    def potential_energy(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> Any:
        """U (N,), in J: weights, springs and couplings."""
        return self._evaluate("potential_energy", {"x": x, "theta": theta}, out)[0]

    def forward_kinematics(self, x: Any, theta: Any = None, out: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """Positions (N, k, 3) of the points `point_names` in the world, in m, height last; dp_dq (N, k, 3, n_q)."""
        return self._evaluate("forward_kinematics", {"x": x, "theta": theta}, out)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that are built: those of the artifact, and of mechanics where there are some."""
        built = has_mechanics(self.name, self._directory)
        return (*self._manifest.functions, *(self._mechanics[1].functions if built else ()))

    @property
    def point_names(self) -> tuple[str, ...]:
        """The points of `forward_kinematics`: the origins of the links, then the points that the model file names."""
        return tuple(self._mechanics[1].points)

    @cached_property
    def _mechanics(self) -> tuple[Kernels, MechanicsManifest]:
        """Kernels of the functions of mechanics. Raises ArtifactError where they are not built."""
        folder, manifest = find_mechanics(self.name, self.model_hash, self._directory)
        kernels = _kernels(folder, manifest, self.backend, self.dtype, self._parallel, self._trust, [self.hash])
        return kernels.with_nominal([each.value for each in self.metadata.parameters]), manifest

    def _kernels_of(self, function: str) -> Kernels:
        """The kernels that have a function. Raises ArtifactError where it is not built."""
        kernels, manifest = self._mechanics if function in MECHANICS else (self._kernels, self._manifest)
        if function not in manifest.functions and function in {*MECHANICS, *FUNCTIONS}:
            there = ",".join([*manifest.functions, function])
            raise ArtifactError(
                f"`{self.name}` was built without `{function}`. Run `modelgen build {self.name} --functions {there}`."
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
        return drawing.load(self.folder, self._manifest)

    def javascript(self) -> tuple[str, list[str]]:
        """The kernels and the drawing as JavaScript functions of one sample, as text, and their names."""
        from modelgen.backends import js

        return js.of_artifact(self.folder, self._manifest)

    def equations(self) -> list[str]:
        """The equations of motion as MathML, a line each, as they are computed."""
        from modelgen.backends import mathml

        return mathml.of_artifact(self.folder, self._manifest)

    def _evaluate(self, function: str, arguments: dict[str, Any], out: tuple[Any, ...] | None) -> tuple[Any, ...]:
        return self._kernels_of(function).evaluate(function, arguments, out)


def load(
    name: str | Path,
    backend: str = "llvm",
    dtype: str = "float64",
    directory: str | Path | None = None,
    parallel: bool = True,
    trust: str | Collection[str] = (),
) -> CompiledRobot:
    """Load the artifact of the robot `name`.

    directory: the folder that holds NAME/; by default ./generated when it holds NAME, else the one shipped
    beside the packages. parallel: spread the samples over threads; False runs the same loop serially
    and releases the GIL. trust: hashes of artifacts whose code may run, which numba, casadi and torch ask for
    where an artifact was neither built here nor shipped with modelgen. Raises ModelError for an unknown name, backend
    or dtype, and ArtifactError when the artifact is damaged, edited, not trusted or of another generator version.
    """
    backends = MODULES | TRANSLATED
    if backend not in backends:
        known = ", ".join(backends)
        raise ModelError(f"There is no backend {backend!r}.{suggestion(str(backend), backends)} Backends: {known}.")
    if dtype not in _DTYPES:
        raise ModelError(f"There is no dtype {dtype!r}.{suggestion(str(dtype), _DTYPES)} Use float64 or float32.")
    folder = find(name, directory)
    manifest = read(folder)
    trusted = (trust,) if isinstance(trust, str) else tuple(trust)
    beside = [] if backend in HARMLESS else _mechanics_hashes(manifest.metadata.name, manifest.model_hash, directory)
    kernels = _kernels(folder, manifest, backend, dtype, parallel, trusted, beside)
    return CompiledRobot(manifest, kernels, backend, dtype, folder, parallel, directory, trusted)


def _mechanics_hashes(name: str, model_hash: str, directory: str | Path | None) -> list[str]:
    """Of the functions of mechanics, where there are some that belong to the artifact."""
    try:
        return [find_mechanics(name, model_hash, directory)[1].hash] if has_mechanics(name, directory) else []
    except ArtifactError:
        return []


def _kernels(
    folder: Path,
    manifest: Manifest,
    backend: str,
    dtype: str,
    parallel: bool,
    trust: Collection[str],
    beside: Sequence[str],
) -> Kernels:
    if backend not in HARMLESS:
        require_trust(manifest.metadata.name, folder, manifest.hash, backend, trust, beside)
    return _backend(backend).load(folder, manifest, dtype, parallel)


_backend = backend
