"""Export of policies as one HTML page in which the reader's browser simulates the robot in float64.

The parts are in `page`: `page.html`, `simulation.js` (closed loop), `observer.js` (its filter), `worker.js` (100
starts, maps), `page.js` (experiment and its address), `body.js` (what the robot looks like), `scene.js` (moving robot),
`figures.js` (plots, maps, distributions) and `controls.js` (sliders, story, keys, facts, start). The robot's functions
are JavaScript from its artifact. The page loads no other file.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from modelgen.arrays import robust_steps
from modelgen.style import CSS
from solver.errors import SolverError
from solver.export.js_export import as_json, numbers
from solver.export.js_export import engine as policy_engine
from solver.observer import FOUND, PARAMETERS_CHANGE, PUSH, make_sensing, usual_counts
from solver.observer.observability import ALL, estimated_parameters
from solver.observer.rest import DRIVE, NEWTON, REDUNDANT, largest_shift, leaning
from solver.plants.harsh import BREAKAWAY, COULOMB, RESTING, SWEEPS, Harsh, Harshness, noise_of
from solver.plants.outcome import settling_periods, tolerances
from solver.problem import UNIFORM, Problem
from solver.training.solution import Solution

FOLDER = Path(__file__).parent / "page"
MOST_RUNS = 4
SCRIPTS = ("page.js", "body.js", "scene.js", "figures.js", "controls.js")  # one script, in this order


def emit(solutions: Sequence[Solution]) -> str:
    """Page with runs of one robot.

    Raises SolverError for another number of runs, for runs of several robots, and for a robot without a drawing.
    """
    if not 1 <= len(solutions) <= MOST_RUNS:
        raise SolverError(f"there are {len(solutions)} runs; name 1 to {MOST_RUNS} runs")
    problem = solutions[0].problem
    for solution in solutions:
        if solution.problem.robot.hash != problem.robot.hash:
            raise SolverError(
                f"{solution.label} is a run of another robot than {solutions[0].label}; make one page a robot"
            )
    labels = [solution.label for solution in solutions]
    for place, label in enumerate(labels):  # of two runs with one label, the second has a number
        labels[place] = f"{label} ({labels[: place + 1].count(label)})" if label in labels[:place] else label
    runs = as_json(
        [
            {**numbers(solution), **_origin(solution), "label": label, "observer": observing(solution.problem)}
            for solution, label in zip(solutions, labels, strict=True)
        ]
    )
    data = f"const runs = {runs};\nconst workerText = {as_json(_text('worker.js'))};"
    parts = {
        "@TITLE@": html.escape(f"{problem.robot.name}: policies to push"),
        "@STYLE@": CSS,
        "@EQUATIONS@": "\n".join(problem.robot.equations()),
        "@ENGINE@": engine(*(solution.problem for solution in solutions)),
        "@PAGE@": "\n".join([data, *map(_text, SCRIPTS)]),
    }
    page = _text("page.html")
    for mark, text in parts.items():
        page = page.replace(mark, text, 1)
    return page


def engine(problem: Problem, *others: Problem) -> str:
    """Script with robot, facts, rules and makeSimulation, for the page, its workers and the tests. others: of the other
    runs of a page."""
    robot = problem.robot
    if not robot.drawing.segments([problem.target.tolist()]).size and not robot.metadata.rotations:
        raise SolverError(f"{robot.name} has no drawing; add robot.draw(...) to its model file and build again")
    source, names = robot.javascript(any(each.moving_trim for each in (problem, *others)))
    nominal = [parameter.value for parameter in robot.metadata.parameters]
    return "\n".join(
        [
            f"const robot = (() => {{\n{source}\nreturn {{ {', '.join(names)} }};\n}})();",
            f"const facts = {as_json(asdict(robot.metadata))};",
            f"const nominal = {as_json(nominal)};",
            f"const rules = {as_json(_rules(problem))};",
            "rules.points = 1 + Math.max(-1, ...robot.SEGMENTS.flat());",
            policy_engine(),
            _text("observer.js"),
            _text("simulation.js"),
        ]
    )


def _rules(problem: Problem) -> dict[str, object]:
    """Tolerances and noise of the page, which are not in the artifact."""
    (position, rate), robot = tolerances(problem), problem.robot.with_kernels()
    return {
        "position": position.tolist(),
        "rate": rate.tolist(),
        "settled": 1 + settling_periods(problem),
        # Integration steps in a control period, at nominal parameters and at others within their bounds.
        "steps": [problem.substeps, max(problem.substeps, robust_steps(robot.metadata, robot.dynamics))],
        "uniform": UNIFORM,
        "uneven": problem.robot.metadata.uneven,
        "unwrapped": problem.unwrapped_costs,
        "noise": noise_of(problem, 1.0).tolist(),
        "stiction": _stiction(problem),
        "leaning": leaning(problem, range(len(problem.theta))),
        "held": [i - len(problem.target) + problem.geometry.size for i in problem.robot.metadata.held],
        "newton": NEWTON,
        "redundant": REDUNDANT,
    }


def observing(problem: Problem) -> dict[str, object]:
    """Numbers of the observer with usual encoders.

    observable: the parameters that it can estimate. Of a family, those are told ones.
    """
    counts, bounds = usual_counts(problem), problem.theta_bounds
    bounded = bool((bounds[:, 0] < bounds[:, 1]).any())
    observable = estimated_parameters(problem, make_sensing(problem, counts), [ALL] if bounded else [])
    columns = [] if problem.context is None else problem.context.columns.tolist()
    told = [i for i in columns if problem.robot.parameter_names[i] not in problem.robot.metadata.references]
    return {
        "observable": [i for i in observable if i in told or not told],
        "counts": counts.tolist(),
        "limits": problem.tangent_limits.tolist(),
        "bounds": bounds.tolist(),
        "shifts": [largest_shift(problem, i).tolist() for i in range(len(bounds))],
        "drive": (DRIVE * problem.input_limits).tolist(),
        "found": FOUND,
        "change": PARAMETERS_CHANGE,
        "push": PUSH,
        "rolls": problem.robot.metadata.rolls,
    }


def _stiction(problem: Problem) -> dict[str, object] | None:
    """Dry friction of the harsh plant at its default size, or None if this robot cannot have it."""
    try:
        plant = Harsh(problem, Harshness(stiction=1.0))
    except SolverError:
        return None
    return {
        "rates": plant.rates,
        "steps": plant.steps,
        "sweeps": SWEEPS if len(plant.rates) > 1 else 1,
        "breakaway": (BREAKAWAY * problem.input_limits).tolist(),
        "coulomb": COULOMB,
        "resting": (RESTING * problem.state_limits[plant.rates]).tolist(),
    }


def _origin(solution: Solution) -> dict[str, object]:
    """Facts on the training of a run."""
    robot, training = solution.problem.robot, solution.run.identity()
    return {
        "algorithm": solution.run.settings.algorithm,
        "preset": solution.run.preset,
        "iteration": solution.iteration,
        "training": {
            name: value
            for name, value in training.items()
            if name == "adversaries" or isinstance(value, int | float | str)
        },
        "artifact": robot.hash[:12],
        "model": robot.model_hash[:12],
    }


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
