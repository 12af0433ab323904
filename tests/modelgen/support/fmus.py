"""FMUs in FMPy: an instance of one, and its numbers by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest


class Instance:
    """An FMU that FMPy has extracted, instantiated and initialised."""

    def __init__(self, path: Path, kind: str, folder: Path, **start: float) -> None:
        fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
        unzipped = fmpy.extract(str(path), str(folder))
        self.description: Any = fmpy.read_model_description(unzipped)
        self.two = self.description.fmiVersion == "2.0"
        self.references = {one.name: one.valueReference for one in self.description.modelVariables}
        self.fmu = fmpy.instantiate_fmu(unzipped, self.description, kind)
        if self.two:
            self.fmu.setupExperiment(startTime=0.0)
        self.set(**start)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def set(self, **values: float) -> None:
        """Set numbers by name."""
        references = [self.references[name] for name in values]
        (self.fmu.setReal if self.two else self.fmu.setFloat64)(references, [float(v) for v in values.values()])

    def get(self, *names: str) -> np.ndarray[Any, Any]:
        """Numbers by name."""
        references = [self.references[name] for name in names]
        return np.array((self.fmu.getReal if self.two else self.fmu.getFloat64)(references))

    def step(self, time: float, seconds: float) -> None:
        """A step of co-simulation."""
        self.fmu.doStep(currentCommunicationPoint=time, communicationStepSize=seconds)

    def close(self) -> None:
        """Unload the machine code."""
        self.fmu.terminate()
        self.fmu.freeInstance()


def complaints(path: Path) -> list[str]:
    """What FMPy's validator finds."""
    validation = pytest.importorskip("fmpy.validation", reason="FMPy is not installed")
    return list(validation.validate_fmu(str(path)))
