"""The page's own script, by V8, beside rollouts in float64."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import modelgen
from modelgen.cli import main as build
from solver.export.js_export import numbers
from solver.export.page_export import FOLDER, emit, engine, observing
from solver.game.policies import Hold
from solver.observer import Observer, make_sensing, usual_counts
from solver.observer.rest import lean
from solver.plants.harsh import Harsh, Harshness
from solver.plants.outcome import controller, rollouts, succeeded
from solver.plants.plant import Nominal
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.integrator import integrate_period
from solver.problem.robots import load_robot
from solver.training.settings import Settings
from solver.training.solution import RunDescription, Solution, load_solution, make_ensemble
from solver.value.frozen import FrozenValue
from tests.solver.references import motor_arm, windy_crane
from tests.solver.small_trainings import MODELS, untrained_family

pytestmark = pytest.mark.slow


LOOP = """
const simulation = makeSimulation(robot, facts, rules, run);
const conditions = { theta: [...nominal], delay: 0, noise: 0, stiction: 0, seed: 1 };
function roll(x, theta, periods, stiction) {
  Object.assign(conditions, { theta, stiction });
  simulation.reset(x, conditions);
  const states = [];
  for (let i = 0; i < periods; i++) { simulation.step(conditions); states.push([...simulation.x]); }
  return JSON.stringify({ states, result: simulation.result, success: simulation.success() });
}
"""


def in_float64(solution: Solution, folder: Path | None = None) -> tuple[Problem, FrozenValue]:
    """The problem and the value function of a run with every number in double precision. folder: of its artifact."""
    robot = modelgen.load(solution.problem.robot.name, dtype="float64", parallel=False, directory=folder)
    problem = Problem(robot)
    for name, value in list(vars(problem).items()):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            setattr(problem, name, value.double())
    problem.state_limits = torch.as_tensor(robot.state_limits, dtype=torch.float64)
    problem.bound = torch.where(problem.clipped, problem.state_limits, torch.inf)
    return problem, FrozenValue(copy.deepcopy(solution.ensemble).double())


@pytest.mark.parametrize(
    ("name", "reaction", "drift"),
    [("pendulum", 0.0, False), ("pendulum", 1.0, True), ("planar_arm2", 1.0, True)],
)
def test_javascript_rollout_equals_python(name: str, reaction: float, drift: bool, begun: Callable[..., Path]) -> None:
    """A second in float64, another parameter than the nominal one, and the same again after a push."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution(begun(name, drift), None, reaction)
    problem, value = in_float64(solution)
    script = racer.MiniRacer()
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(numbers(solution))};\n{LOOP}")
    theta = problem.robot.nominal_parameters * 1.1
    periods = round(1.0 / problem.control_step)
    x = problem.sample_starts(1, torch.Generator().manual_seed(3)).double() + 0.05
    with torch.no_grad():
        for push in (0.0, 0.5):
            x[:, x.shape[1] // 2 :] += push
            plant = Nominal(problem, torch.as_tensor(theta, dtype=torch.float64))
            expected = rollouts(problem, controller(problem, value, Hold(reaction, drift)), x, plant, seconds=1.0)
            found = json.loads(script.eval(f"roll({x[0].tolist()}, {theta.tolist()}, {periods}, 0)"))
            np.testing.assert_allclose(found["states"], expected.x[1:, 0].numpy(), atol=1e-6)
            assert found["result"] == pytest.approx(float(expected.returns[0]), rel=1e-6)
            assert found["success"] == bool(expected.success[0])
            x = expected.x[-1]


def test_a_page_takes_steps_that_suffice_for_other_parameters() -> None:
    """One period of Furutas at corners of the parameters' bounds, beside many more steps."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution("furuta-rfvi")
    problem, value = in_float64(solution)
    script, generator = racer.MiniRacer(), torch.Generator().manual_seed(0)
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(numbers(solution))};\n{LOOP}")
    x = problem.sample_domain(1000, generator).double()
    lower, upper = problem.theta_bounds.T
    theta = torch.where(torch.rand(len(x), len(lower), generator=generator) < 0.5, lower, upper)
    with torch.no_grad():
        u = controller(problem, value, solution.run.settings.hold)(x)[0]
        expected = integrate_period(problem, x, u, theta, steps=64).x
    texts = (f"roll({one.tolist()}, {other.tolist()}, 1, 0)" for one, other in zip(x, theta, strict=True))
    found = torch.tensor([json.loads(script.eval(text))["states"][0] for text in texts], dtype=torch.float64)
    free = (expected.abs() < 0.9 * problem.state_limits).all(1)  # the others were clipped after every step
    assert float(((found - expected).abs() / problem.state_limits)[free].max()) < 1e-4
    assert free.float().mean() > 0.5


@pytest.mark.parametrize("name", ["furuta", "planar_arm2"])
def test_stiction_in_javascript_equals_the_harsh_plant(name: str) -> None:
    """One second in float64, with twice the usual friction; without it the rollout is another."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution(f"{name}-rfvi")
    problem, value = in_float64(solution)
    script = racer.MiniRacer()
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(numbers(solution))};\n{LOOP}")
    x = problem.sample_starts(1, torch.Generator().manual_seed(3)).double()
    theta = torch.as_tensor(problem.robot.nominal_parameters, dtype=torch.float64)
    policy = controller(problem, value, solution.run.settings.hold)
    with torch.no_grad():
        expected = rollouts(problem, policy, x, Harsh(problem, Harshness(stiction=2.0), theta), seconds=1.0)
    rolled = [f"roll({x[0].tolist()}, {theta.tolist()}, {len(expected.u)}, {level})" for level in (2, 0)]
    found, without = (json.loads(script.eval(text)) for text in rolled)
    np.testing.assert_allclose(found["states"], expected.x[1:, 0].numpy(), atol=1e-6)
    assert found["result"] == pytest.approx(float(expected.returns[0]), rel=1e-6)
    assert np.abs(np.array(without["states"]) - found["states"]).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "delay", "seconds"),
    [
        ("furuta-cfvi", 2, 0.5),
        ("planar_quadrotor-rfvi", 0, 0.5),
        ("satellite", 1, 1.0),
    ],
)
def test_the_observer_in_javascript_is_that_of_evaluate(
    name: str, delay: int, seconds: float, begun: Callable[..., Path]
) -> None:
    """In closed loop with encoders and a delay; the first observable parameter is another and is estimated. Unstable
    robots make of the rounding of the float32 numbers a thousand times as much in half a second."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution(begun(name) if name == "satellite" else name)  # which ships no policy
    problem, value = in_float64(solution)
    problem.theta, problem.theta_bounds = problem.theta.double(), problem.theta_bounds.double()
    numbers_of, script = observing(solution.problem), racer.MiniRacer()
    loop = LOOP.replace("delay: 0,", f"finds: true, delay: {delay},")
    loop = loop.replace("success: simulation", "found: [...simulation.observer.parameters], success: simulation")
    run = {**numbers(solution), "observer": numbers_of}
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(run)};\n{loop}")
    estimated = numbers_of["observable"][0]  # type: ignore[index]
    theta = torch.as_tensor(problem.robot.nominal_parameters, dtype=torch.float64).clone()
    theta[estimated] *= 1.2
    x = problem.sample_starts(1, torch.Generator().manual_seed(3)).double()
    plant = Harsh(problem, Harshness(encoder=1.0, delay=delay), theta)
    policy = controller(problem, value, solution.run.settings.hold)
    parameter = problem.robot.parameter_names[estimated]
    expected = rollouts(problem, policy, x, plant, seconds=seconds, observed=True, estimate=[parameter])
    found = json.loads(script.eval(f"roll({x[0].tolist()}, {theta.tolist()}, {len(expected.u)}, 0)"))
    np.testing.assert_allclose(found["states"], expected.x[1:, 0].numpy(), atol=1e-4)
    assert found["result"] == pytest.approx(float(expected.returns[0]), rel=1e-4)
    estimate = float(expected.estimates[parameter][0])
    assert found["found"][estimated] == pytest.approx(estimate, rel=1e-4)
    assert abs(estimate / float(problem.theta[estimated]) - 1.0) > 1e-3


WIND = """wind = robot.parameter("wind", 0.0, "N", bounds=(-1.5, 1.5), meaning="constant force across")
robot.apply(across, thrust * sin(pitch) + wind)
"""


def test_a_page_leans_against_the_wind(tmp_path: Path) -> None:
    """As `evaluate` does: in closed loop with an observer that finds the wind, and where it judges success."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    text = (MODELS / "planar_quadrotor.py").read_text(encoding="utf-8").replace('Robot("planar_', 'Robot("windy_')
    path = tmp_path / "windy_quadrotor.py"
    path.write_text(text.replace("robot.apply(across, thrust * sin(pitch))\n", WIND), encoding="utf-8")
    assert build(["build", str(path), "--generated", str(tmp_path)]) == 0
    shipped = load_solution("planar_quadrotor-rfvi")
    solution = replace(shipped, problem=Problem(load_robot("windy_quadrotor", "cpu", str(tmp_path))))
    problem, value = in_float64(solution, tmp_path)
    problem.theta, problem.theta_bounds = problem.theta.double(), problem.theta_bounds.double()
    numbers_of, script = observing(solution.problem), racer.MiniRacer()
    run = {**numbers(solution), "observer": numbers_of}
    loop = LOOP.replace("delay: 0,", "finds: true, delay: 0,")
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(run)};\n{loop}")
    estimated = [problem.robot.parameter_names[i] for i in numbers_of["observable"]]  # type: ignore[attr-defined]
    theta = problem.theta.clone()
    theta[-1] = 1.2
    x = problem.target[None].double().clone()
    plant = Harsh(problem, Harshness(encoder=1.0), theta)
    policy = controller(problem, value, solution.run.settings.hold)
    expected = rollouts(problem, policy, x, plant, seconds=3.0, observed=True, estimate=estimated)
    found = json.loads(script.eval(f"roll({x[0].tolist()}, {theta.tolist()}, {len(expected.u)}, 0)"))
    np.testing.assert_allclose(found["states"][:40], expected.x[1:41, 0].numpy(), atol=3e-4)  # then rounding has grown
    np.testing.assert_allclose(found["states"][-1][:3], expected.x[-1, 0, :3].numpy(), atol=0.01)
    near = torch.tensor([[0.0, 0.0, 0.1, 0.0, 0.0, 0.0]], dtype=torch.float64)
    for begin, words in ((None, ""), (near, f", {near[0].tolist()}")):
        apart = script.eval(
            f"JSON.stringify([...simulation.observer.lean(facts.task.target, {theta.tolist()}{words})])"
        )
        np.testing.assert_allclose(json.loads(apart), lean(problem, theta[None], begin)[0].numpy(), atol=1e-5)
    assert abs(found["states"][-1][2]) > 0.2  # rad, far beyond the tolerance of a level pose
    assert expected.success.item() is True
    assert found["success"] is True
    assert not succeeded(problem, expected.x).item()


@pytest.mark.parametrize("mass", [0.8, 1.0, 1.4])
def test_an_estimate_beyond_the_told_range_shifts_the_input_on_a_page(mass: float) -> None:
    """As `Observer.compensate` does: from the trim of the nearest robot that the policy can be told, at the target of
    the reference. Untrained networks, and an observer that has found the mass."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = untrained_family(Given("mass", 0.95, 1.05), Given("lean", -0.5, 0.5))
    problem = solution.problem
    assert problem.moving_trim
    script, data = racer.MiniRacer(), {**numbers(solution), "observer": observing(problem)}
    assert data["observer"]["observable"] == [0]  # type: ignore[index]
    loop = LOOP.replace("delay: 0", "finds: true, delay: 0")
    counted = """let tells = 0;
    const made = makePolicy, counting = (tell) => (values) => { tells++; return tell(values); };
    makePolicy = (...all) => { const one = made(...all); return { ...one, tell: counting(one.tell) }; };"""
    script.eval(f"{engine(problem)}\n{counted}\nconst run = {json.dumps(data)};\n{loop}")
    theta = problem.theta.clone()
    theta[:2] = torch.tensor([mass, 0.3])
    assert problem.robot.parameter_names[:2] == ("mass", "lean")
    true = torch.where(torch.arange(len(theta)) == 0, 1.0, theta)
    script.eval(f"conditions.theta = {true.tolist()}; simulation.reset([0.35, 0], conditions)")
    script.eval(f"tells = 0; simulation.observer.parameters[0] = {mass}; simulation.step(conditions)")
    assert script.eval("tells") == 1
    counts = usual_counts(problem)
    observer = Observer(problem, make_sensing(problem, counts), [0])
    observer.know(theta)
    x = observer.estimate((torch.tensor([[0.35]]) / counts).round() * counts)
    assert observer.parameters is not None
    u = solution.controller()(problem.told(x, observer.parameters))[0]
    expected = observer.compensate(u)
    assert json.loads(script.eval("JSON.stringify([...simulation.u])")) == pytest.approx(expected[0].tolist(), abs=1e-3)
    assert (float((expected - u).abs()) > 0.1) == (mass != 1.0)
    rows = problem.told(torch.tensor([[0.35, 0.0]]), true)
    paid = problem.cost_at(rows).cost(expected) * problem.control_step  # from the trim of the robot, as in `rollouts`
    paid += integrate_period(problem, rows[:, :2], expected, true[None]).state_cost
    assert script.eval("simulation.result") == pytest.approx(-float(paid), rel=1e-3)


def test_a_family_on_the_page_of_another_run_finds_its_trim() -> None:
    """The first run is of one robot, whose trim stands still. The second one needs the function of the trim."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    family = untrained_family(Given("mass", 0.8, 1.2), Given("lean", -0.5, 0.5))
    page, script = emit([family.told_that({}), family]), racer.MiniRacer()
    found = re.search('<script id="engine">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    script.eval(f"{found[1]}\nconst made = makePolicy(robot, facts, {json.dumps(numbers(family))}), u = [0];")
    script.eval("made.tell({ mass: 1.1, lean: 0.3 }); made.policy([0.3, 0], u);")
    row = family.problem.told(torch.tensor([[0.3, 0.0]]), torch.tensor([1.1, 0.3]))
    assert script.eval("u[0]") == pytest.approx(float(family.controller()(row)[0]), abs=1e-3)


def test_arrays_of_another_length_are_refused_in_javascript() -> None:
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    family, script = untrained_family(Given("mass", 0.8, 1.2)), racer.MiniRacer()
    script.eval(f"{engine(family.problem)}\nconst made = makePolicy(robot, facts, {json.dumps(numbers(family))});")
    for call in ("policy([3], [0])", "policy([3, 0, 0], [0])", "policy([3, 0], [])", "value([3, 0], [0])"):
        with pytest.raises(racer.JSEvalException, match=r"give it|are given"):
            script.eval(f"made.{call}")
    assert math.isfinite(script.eval("made.policy([3, 0], [0])"))


def test_the_drive_of_a_late_policy_holds_the_robot_that_it_is_told() -> None:
    """Until the first input arrives, as on the harsh plant of Python: the trim of what the policy knows, not of the
    nominal robot, which stands upright without one."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    family, script = untrained_family(Given("mass", 0.8, 1.2), Given("lean", -0.5, 0.5)), racer.MiniRacer()
    script.eval(f"{engine(family.problem)}\nconst run = {json.dumps(numbers(family))};\n{LOOP}")
    script.eval("Object.assign(conditions, { delay: 1, knows: true });")
    held = json.loads(script.eval("roll([0.3, 0], [1.1, 0.3, ...nominal.slice(2)], 1, 0)"))["states"][0]
    problem = family.told_that({"mass": 1.1, "lean": 0.3}).problem
    simulation = Harsh(problem, Harshness(delay=1.0)).begin(torch.tensor([[0.3, 0.0]]))
    simulation.step(problem.trim[None])
    np.testing.assert_allclose(held, simulation.x[0], atol=1e-5)
    assert abs(held[1]) < 1e-3


@pytest.mark.parametrize("knows", [True, False])
def test_a_current_that_holds_a_robot_follows_its_mass_on_a_page(knows: bool) -> None:
    """Target and the 100 starts, where the policy is told the mass, as in `solver.problem.context`."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    given = (Given("mass", 0.8, 1.2),)
    problem, described = Problem(motor_arm(), given=given), RunDescription("motor_arm", "", None, Settings(), "fast")
    ensemble = make_ensemble(problem.robot, Settings(members=1, layers=1, width=4), problem.context)
    described = replace(described, given=given)
    run = json.dumps(numbers(Solution(described, problem, ensemble, FrozenValue(ensemble), 0)))
    script, theta = racer.MiniRacer(), problem.theta.clone()
    theta[0] = 1.2
    conditions = {"theta": theta.tolist(), "knows": knows, "delay": 0, "noise": 0, "stiction": 0}
    script.eval(f"{engine(problem)}\nconst run = {run}, conditions = {json.dumps(conditions)};")
    script.eval((FOLDER / "worker.js").read_text())
    script.eval("""
        const usual = makeSimulation, seen = [];
        makeSimulation = (...all) => {
          const made = usual(...all), first = made.reset;
          const reset = (x, given) => { first(x, given); seen.push(x[2], made.target[2]); };
          return Object.assign(made, { step: () => {}, reset });
        };
        var postMessage = () => {};
        onmessage({ data: { run, conditions, job: "starts", first: 0, last: 2 } });
    """)
    assert problem.context is not None
    rows = problem.told(problem.target[None], theta if knows else problem.theta)
    start = problem.sample_starts(1, torch.Generator().manual_seed(0), rows[:, 3:])[0, 2]
    expected = [float(start), float(problem.targets(rows)[0, 2])] * 2
    assert json.loads(script.eval("JSON.stringify(seen)")) == pytest.approx(expected, rel=1e-5)
    assert expected[0] == pytest.approx(9.81 * (1.2 if knows else 1.0), rel=1e-4)


@pytest.mark.parametrize("name", ["unicycle", "planar_arm2"])
def test_the_page_judges_every_state_as_an_evaluation_does(name: str, built_unseen: Callable[[str], Path]) -> None:
    """At rest at the target, and with one state after the other half way to its limit."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    problem = Problem(load_robot(name, "cpu", str(built_unseen(name)) if name == "unicycle" else None))
    ensemble = make_ensemble(problem.robot, Settings(members=1, layers=1, width=4))
    described = RunDescription(name, problem.robot.hash, None, Settings(), "fast")
    run = json.dumps(numbers(Solution(described, problem, ensemble, FrozenValue(ensemble), 0)))
    script = racer.MiniRacer()
    script.eval(f"{engine(problem)}\nconst run = {run};\n{LOOP}")
    moved = problem.target + torch.diag(0.5 * problem.state_limits)
    for x in torch.cat([problem.target[None], moved]):
        script.eval(f"simulation.reset({x.tolist()}, conditions);")
        expected = bool(succeeded(problem, x.expand(2, 1, -1))[0])
        assert bool(script.eval("simulation.good")) == expected, x


@pytest.mark.parametrize("wind", [-4.0, 4.0])
def test_an_angle_that_leans_across_its_seam_is_judged_alike(wind: float) -> None:
    """At pi, leaning by 0.39 rad: success is within 5 degrees of that pose, on both sides, in Python and on a page."""
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    problem, settings = Problem(windy_crane()), Settings(members=1, layers=1, width=4)
    ensemble = make_ensemble(problem.robot, settings)
    described = RunDescription("windy_crane", "", None, settings, "fast")
    solution = Solution(described, problem, ensemble, FrozenValue(ensemble), 0)
    run = json.dumps({**numbers(solution), "observer": observing(problem)})
    script, theta = racer.MiniRacer(), torch.tensor([wind])
    script.eval(f"{engine(problem)}\nconst run = {run};\n{LOOP}\nconditions.theta = [{wind}];")
    apart = -math.copysign(math.atan(4.0 / 9.81), wind)
    for beside in (0.0, 0.08, 0.2, 0.35, -0.08, -0.2, -0.35):
        x = problem.confine(torch.tensor([[0.0, math.pi + apart + beside, 0.0, 0.0]]))
        assert bool(succeeded(problem, x.expand(2, 1, -1), theta)[0]) == (abs(beside) < 0.087), beside
        script.eval(f"simulation.reset({x[0].tolist()}, conditions);")
        assert bool(script.eval("simulation.good")) == (abs(beside) < 0.087), beside
