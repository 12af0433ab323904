"""The JavaScript of an artifact, run by V8 from the wheel `mini-racer`, so that it can be compared with other backends.

A sample at a time, and numbers travel as text: for checks, not for speed. What is run is the translation of arithmetic
that `js.py` makes, in an engine that can reach neither files nor network.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from modelgen.artifact.folder import source
from modelgen.artifact.manifest import Manifest
from modelgen.backends import grammar, js
from modelgen.backends.host import Array, HostKernels
from modelgen.errors import ModelError

_CALL = """\
((rows, sizes) => rows.map((row) => {{
  const outputs = sizes.map((size) => new {array}(size));
  {function}(...row.map((each) => {array}.from(each)), ...outputs);
  return outputs.map((each) => each.join(" ")).join(" ");
}}).join(" "))({rows}, {sizes})
"""
_ARRAYS = {"float64": "Float64Array", "float32": "Float32Array"}


def load(folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> V8Kernels:  # noqa: ARG001
    """The functions in arrays of the dtype; JavaScript computes in float64 in between. `parallel` changes nothing.

    Raises ModelError without mini-racer, and ArtifactError for files that are missing, were edited, or hold more than
    arithmetic.
    """
    path, content = source(folder, manifest, "llvm")
    grammar.kernels(path, content, manifest.functions, manifest.sizes())
    return V8Kernels(js.translated(content.decode())[0], manifest, dtype)


class V8Kernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, text: str, manifest: Manifest, dtype: str) -> None:
        try:
            from py_mini_racer import MiniRacer
        except ModuleNotFoundError as error:
            raise ModelError("JavaScript needs an engine to run in; pip install mini-racer") from error
        super().__init__(manifest, dtype)
        self._array_type = _ARRAYS[dtype]
        self._engine = MiniRacer()
        self._engine.eval(text)

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        given = [arrays[name] for name in self._signatures[function].arguments]
        columns = [np.broadcast_to(each, (samples, each.shape[-1])).tolist() for each in given]
        rows = json.dumps([list(row) for row in zip(*columns, strict=True)])
        sizes = [math.prod(result.shape[1:]) for result in results]
        answer = self._engine.eval(_CALL.format(array=self._array_type, function=function, rows=rows, sizes=sizes))
        found = np.array(str(answer).split(), dtype=np.float64).reshape(samples, sum(sizes))
        for result, values in zip(results, np.split(found, np.cumsum(sizes)[:-1], axis=1), strict=True):
            result[...] = values.reshape(result.shape)
