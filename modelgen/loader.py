"""Load an artifact as a compiled robot, which has the same methods in every backend. Needs no SymPy.

Shapes, in every backend: n states, m inputs, p parameters, N samples; x (N, n), u (N, m), costate (N, n),
theta (p,) or (N, p), w (N, m) = B^T dV/dx. The last axis of a derivative is the variable differentiated.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from modelgen.artifact.folder import find, read, verified
from modelgen.artifact.manifest import Manifest
from modelgen.backends import MODULES, Kernels, backend, drawing
from modelgen.backends.drawing import Drawing
from modelgen.errors import ModelError, suggestion
from modelgen.metadata import Metadata

_DTYPES = ("float64", "float32")


class CompiledRobot:
    """The kernels of one robot with its names, limits and parameters.

    Every method takes `out`, arrays to write the results to. Those of the state take `theta`, by default the nominal
    parameters.
    """

    def __init__(self, manifest: Manifest, kernels: Kernels, backend: str, dtype: str, folder: Path) -> None:
        metadata = manifest.metadata
        self.metadata: Metadata = metadata
        self.name = metadata.name
        self.hash = manifest.hash
        self.model_hash = manifest.model_hash
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

    def casadi_function(self, name: str) -> Any:
        """The casadi.Function of one sample behind a method; columns in, one matrix an output. Backend casadi."""
        return self._of_one_backend("casadi_function", "casadi")(name)

    def numba_function(self, name: str) -> Any:
        """The function of one sample behind a method, jitted by Numba, for your own jitted loops. Backend numba.

        It takes one-dimensional arrays, first the arguments and then the outputs that it fills, in the order of the
        emitted module: f = robot.numba_function("dynamics") is called f(x, u, theta, xdot), with x (n,), u (m,),
        theta (p,) and xdot (n,). A matrix is filled row by row, B as (n m,). Arrays are not checked.
        Numba does not see when a function that yours calls has changed: after `modelgen build`, delete the machine
        code that it kept of your functions with cache=True.
        Raises ModelError for an unknown name and above 5 000 operations, which Numba would compile for minutes.
        """
        return self._of_one_backend("numba_function", "numba")(name)

    def _of_one_backend(self, method: str, backend: str) -> Any:
        """A method that only the kernels of one backend have."""
        found = getattr(self._kernels, method, None)
        if found is None:
            raise ModelError(
                f"{method} belongs to the {backend} backend, and this robot uses {self.backend}. "
                f"Load it with modelgen.load('{self.name}', backend='{backend}')."
            )
        return found

    @cached_property
    def drawing(self) -> Drawing:
        """The robot as line segments: `drawing.segments(x)`, and `drawing.view`, the rectangle that encloses them."""
        return drawing.load(self.folder, self._manifest)

    def javascript(self) -> tuple[str, list[str]]:
        """The kernels and the drawing as JavaScript functions of one sample, as text, and their names."""
        from modelgen.backends import js

        return js.of_artifact(self.folder, self._manifest)

    def _evaluate(self, function: str, arguments: dict[str, Any], out: tuple[Any, ...] | None) -> tuple[Any, ...]:
        return self._kernels.evaluate(function, arguments, out)


def load(
    name: str,
    backend: str = "llvm",
    dtype: str = "float64",
    directory: str | Path | None = None,
    parallel: bool = True,
) -> CompiledRobot:
    """Load the artifact of the robot `name`.

    directory: the folder that holds NAME/; by default ./generated when it holds NAME, else the one shipped
    beside the packages. parallel: spread the samples over threads; False runs the same loop serially
    and releases the GIL. Raises ModelError for an unknown name, backend or dtype, and ArtifactError when the
    artifact is damaged, edited or of another generator version.
    """
    if backend not in MODULES:
        known = ", ".join(MODULES)
        raise ModelError(f"There is no backend {backend!r}.{suggestion(str(backend), MODULES)} Backends: {known}.")
    if dtype not in _DTYPES:
        raise ModelError(f"There is no dtype {dtype!r}.{suggestion(str(dtype), _DTYPES)} Use float64 or float32.")
    folder = find(name, directory)
    manifest = read(folder)
    verified(folder, manifest, backend)
    kernels = _backend(backend).load(folder, manifest, dtype, parallel)
    return CompiledRobot(manifest, kernels, backend, dtype, folder)


_backend = backend
