"""What a page is: one file without links, of one to four runs, with their starts, noise and nominal parameters."""

from __future__ import annotations

import copy
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solver.cli import main
from solver.export.js_export import numbers
from solver.export.page_export import FOLDER, emit, engine
from solver.plants.harsh import noise_of
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.training.solution import Solution, load_solution
from tests.modelgen.support.forgery import with_free_text

pytestmark = pytest.mark.slow


def test_page_is_one_file_without_links(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    assert main(["page", str(finished_run), str(finished_run), "--out", str(path)]) == 0
    assert "2 runs" in capsys.readouterr().out
    text = path.read_text()
    assert not re.search(r"https?://|\bfetch\(|\bsrc=|\bhref=|@[A-Z]+@", text)
    assert "default-src 'none'" in text


def test_page_of_a_robots_name_shows_its_shipped_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["page", "pendulum"]) == 0
    assert "pendulum.html: 2 runs" in capsys.readouterr().out
    text = (tmp_path / "pendulum.html").read_text()
    assert 0 < text.index("pendulum-cfvi") < text.index("pendulum-rfvi")


def test_a_page_takes_one_to_four_runs(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["page", *[str(finished_run)] * 5]) == 2
    assert "1 to 4" in capsys.readouterr().err


def with_meaning(solution: Solution, meaning: str) -> Any:
    """The run, of a robot that says something else of itself."""
    robot = copy.copy(solution.problem.robot)
    robot.name, robot.metadata = meaning, with_free_text(robot.metadata, meaning)
    problem = copy.copy(solution.problem)
    problem.robot = robot
    return replace(solution, problem=problem)


def test_script_in_a_model_description_is_escaped(finished_run: Path) -> None:
    evil = "</script><script>alert(1)</script><!--"
    plain = load_solution(finished_run)
    text = emit([with_meaning(plain, evil)])
    assert evil not in text
    assert text.count("<script") == emit([plain]).count("<script")
    assert text.count("<!--") == emit([plain]).count("<!--")
    assert ".innerHTML" not in text


def test_starts_and_noise_of_the_page_are_those_of_python() -> None:
    """A rotation starts turned by a Gaussian vector, and is measured so too; a reference moves the start."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    script, problem = racer.MiniRacer(), Problem(load_robot("satellite", "cpu", None))
    script.eval(engine(problem))
    chi = 1.538  # the median length of a vector of three standard normal numbers
    for deviation, median in ((math.pi, 2.31), (0.3, 0.3 * chi)):  # a - sin a = pi/2 for a uniform rotation
        script.eval(f"for (let i = 0; i < 4; i++) facts.task.start_deviation[i] = {deviation!r};")
        text = "JSON.stringify(Array.from({ length: 2000 }, (_, i) => drawnStart(facts, i, nominal)))"
        x = torch.tensor(json.loads(script.eval(text)))
        angle = 2.0 * torch.acos(x[:, 0].abs().clamp(max=1.0))
        assert float(angle.median()) == pytest.approx(median, rel=0.05)
    np.testing.assert_allclose(noise_of(problem, 2.0), [2e-3] * 3 + [0.1] * 3)
    assert json.loads(script.eval("JSON.stringify(rules.noise)")) == pytest.approx([1e-3] * 3 + [0.05] * 3)
    script.eval("facts.task.references = [{ name: facts.parameters[0].name, start: [0, 0, 0, 0, 2, 0, 0] }];")
    moved = json.loads(script.eval("JSON.stringify(drawnStart(facts, 0, [nominal[0] + 0.5, ...nominal.slice(1)]))"))
    assert moved[4] == pytest.approx(1.0)


def test_every_run_of_a_page_has_its_own_nominal_parameters() -> None:
    """A run that was trained on identified parameters, in the page of another one."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    usual = load_solution("pendulum-rfvi")
    problem = Problem(usual.problem.robot.with_nominal([1.4, 0.9]))
    own = replace(usual, problem=problem)
    script = racer.MiniRacer()
    script.eval(f"{engine(usual.problem)}\nconst run = {json.dumps(numbers(own))};")
    x = problem.sample_domain(20, torch.Generator().manual_seed(0))
    expected, other = own.controller()(x)[0], usual.controller()(x)[0]
    text = "const u = [0]; JSON.stringify(x.map((at) => (made.policy(at, u), u[0])))"
    script.eval(f"const made = makePolicy(robot, facts, run), x = {json.dumps(x.tolist())};")
    np.testing.assert_allclose(json.loads(script.eval(text)), expected[:, 0], atol=2e-3)
    assert float((expected - other).abs().max()) > 0.05


def test_the_starts_of_a_page_last_as_long_as_in_an_evaluation() -> None:
    """The horizon of a family is that of its slowest robot, and not the task's of 5 s."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution("pendulum-rfvi")
    problem = copy.copy(solution.problem)
    problem.horizon = 0.4
    script = racer.MiniRacer()
    script.eval(f"{engine(problem)}\nconst run = {json.dumps(numbers(replace(solution, problem=problem)))};")
    script.eval((FOLDER / "worker.js").read_text())
    script.eval("""
        const usual = makeSimulation;
        let periods = 0, posted = 0;
        makeSimulation = (...all) => {
          const made = usual(...all), step = made.step;
          return Object.assign(made, { step: (conditions) => { periods++; step(conditions); } });
        };
        var postMessage = () => { posted++; };
        const conditions = { theta: nominal, delay: 0, noise: 0, stiction: 0, seed: 1 };
        onmessage({ data: { run, conditions, job: "starts", first: 0, last: 2 } });
    """)
    assert script.eval("[periods, posted].join()") == f"{2 * 50},2"
