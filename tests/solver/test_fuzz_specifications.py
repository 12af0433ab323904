"""Specifications, sweeps, counterexamples and identified sets with random values: refused, or in range."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modelgen
from modelgen.loader import CompiledRobot
from solver.certification import counterexample, specification
from solver.lab import sweeps
from solver.problem import Problem
from solver.problem import identified as sets
from tests.modelgen.support.cases import fuzzed
from tests.modelgen.support.damage import Damage, Mistake, damaged, damages, mistaken, mistakes
from tests.modelgen.support.identified_files import identified
from tests.solver.refusal import refused_or

SWEEP = (
    b'robots = ["pendulum"]\nseeds = [0, 1]\n[settings.usual]\nalgorithm = "rfvi"\n'
    b"adversaries = {state = 0.02}\nthreads = 1\n"
)
SPECIFICATION = {
    "starts": {"angle": [0.5, 2.5], "angle_rate": [-1.0, 1.0]},
    "parameters": {"relative": {"mass": [0.8, 1.2]}},
    "plant": "harsh",
    "effects": ["noise=2x"],
    "observer": False,
    "horizon": 1.0,
    "failure": {"not_at_target": True, "limits": {"angle_rate": 7.0}, "return_below": -60.0},
    "failure_probability": 0.1,
    "confidence": 0.99,
    "allowed_failures": 2,
    "map": ["angle", "angle_rate"],
}
SWEPT = {
    "robots": ["pendulum"],
    "seeds": [0, 1],
    "settings": {"usual": {"algorithm": "rfvi", "threads": 1, "width": 8}},
}


@pytest.fixture(scope="module")
def problem(load: Callable[[str], CompiledRobot]) -> Problem:
    return Problem(load("pendulum"))


def toml(value: Any) -> str:
    """A value in TOML; what it has no form for is left as it is, which is another mistake."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return json.dumps(value)


def text(content: dict[str, Any]) -> bytes:
    return "".join(f"{key} = {toml(value)}\n" for key, value in content.items()).encode("utf-8", "replace")


def read_specification(path: Path, problem: Problem) -> None:
    """Whatever is read is in range, and starts and parameters can be drawn from it."""
    found = specification.read(path, problem)
    assert 0.0 < found.conditions.horizon <= specification.LONGEST
    assert 0.0 < found.failure_probability < 1.0
    assert 0.5 <= found.confidence < 1.0
    assert 0 <= found.allowed_failures <= specification.MOST_FAILURES
    x, theta = found.distribution(problem, found.distribution.sample(8, 0))
    assert torch.isfinite(x).all()
    assert (x.abs() <= problem.bound).all()
    assert torch.isfinite(theta).all()


@fuzzed
@given(st.lists(mistakes, min_size=1, max_size=2))
def test_specifications_by_key(
    problem: Problem, tmp_path_factory: pytest.TempPathFactory, several: list[Mistake]
) -> None:
    path, content = tmp_path_factory.getbasetemp() / "spec.toml", SPECIFICATION
    for mistake in several:
        content = mistaken(content, mistake)
    path.write_bytes(text(content))
    refused_or(lambda: read_specification(path, problem), "spec.toml")


@fuzzed
@given(st.lists(mistakes, min_size=1, max_size=2))
def test_sweeps_by_key(tmp_path_factory: pytest.TempPathFactory, several: list[Mistake]) -> None:
    path, content = tmp_path_factory.getbasetemp() / "sweep.toml", SWEPT
    for mistake in several:
        content = mistaken(content, mistake)
    path.write_bytes(text(content))
    found = refused_or(lambda: sweeps.read(path), "sweep.toml")
    assert found is None or 1 <= len(found) <= sweeps.MOST_RUNS


@fuzzed
@given(st.lists(damages, min_size=1, max_size=3))
def test_damaged_specifications(
    problem: Problem, tmp_path_factory: pytest.TempPathFactory, several: list[Damage]
) -> None:
    path = tmp_path_factory.getbasetemp() / "spec.toml"
    for usual, read in ((SWEEP, sweeps.read), (text(SPECIFICATION), lambda path: read_specification(path, problem))):
        content = usual
        for damage in several:
            content = damaged(content or b"\0", damage)
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused_or(lambda read=read: read(path), "spec.toml")  # type: ignore[misc]


RUN = "pendulum-rfvi"
FOUND = {
    "run": RUN,
    "robot": "pendulum",
    "checkpoint": counterexample.checkpoint_hash(RUN),
    "conditions": {"plant": "harsh", "effects": ["stiction"], "horizon": 0.2, "observer": False},
    "failure": {"not_at_target": True, "limits": [[0, 2.0]], "return_below": None},
    "noise": 3,
    "start": {"angle": 3.0, "angle_rate": 0.1},
    "parameters": {"mass": 1.0, "length": 1.0},
    "total": -30.0,
    "success": True,
}


@fuzzed
@given(mistakes)
def test_counterexamples_are_replayed_with_their_own_verdict(
    tmp_path_factory: pytest.TempPathFactory, mistake: Mistake
) -> None:
    """The verdict is that of the rollout, and does not depend on the one in the file."""
    path = tmp_path_factory.getbasetemp() / "found.json"
    path.write_text(json.dumps(mistaken(FOUND, mistake)))
    found = refused_or(lambda: counterexample.load(path), "found.json")
    if found is not None:
        played = refused_or(lambda: counterexample.replay(found), "")
        claims = [dataclasses.replace(found, total=0.0, success=success) for success in (True, False)]
        assert played is None or len({repr(counterexample.judged(claim, played[1])) for claim in claims}) == 1


@fuzzed
@given(mistakes)
def test_identified_sets_of_other_values(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    """As a training takes them, and as a specification of `solver certify` does."""
    folder, robot = tmp_path_factory.getbasetemp(), modelgen.load("pendulum", dtype="float32")
    path = folder / "identified.json"
    path.write_text(json.dumps(mistaken(identified(robot), mistake)))
    known = refused_or(lambda: sets.read(path, robot), "identified.json")
    if known is not None:
        assert all(map(math.isfinite, [*known.nominal, *known.adversaries().values()]))
        bounds = robot.parameter_bounds
        assert all(low <= value <= high for value, (low, high) in zip(known.nominal, bounds.tolist(), strict=True))
    (folder / "with_a_set.toml").write_text('parameters = {identified = "identified.json"}\n')
    problem = Problem(robot)
    refused_or(lambda: read_specification(folder / "with_a_set.toml", problem), "")
