"""A policy distilled into a small network: what it learns, what it costs, and its C beside Torch's."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.export import distilled
from solver.export.c_export import emit_observer
from solver.export.c_folder import kernels
from solver.export.distilled import board
from solver.export.distilled.cost import WIDTHS, cost, observer_cost, read_budget, widest
from solver.export.distilled.network import SmallNetwork, argument_scale, controller, emit
from solver.export.distilled.regression import DistillationLoss, Effort, compare, distil, require_small_loss
from solver.game.policies import Hold
from solver.observer import make_sensing, usual_counts
from solver.observer.observability import estimated_parameters
from solver.plants.harsh import possible_effects
from solver.problem import Problem
from solver.training.solution import Solution, load_solution
from tests.solver.export.test_c_export import COMPILER, STRICT, needs_compiler

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
QUICK = Effort(rounds=2, states=1500, steps=150, minibatch=256)


def sources(solution: Solution, width: int, folder: Path) -> tuple[SmallNetwork, Path]:
    """A network with random weights, large enough that inputs saturate, and a folder with its C and the robot's."""
    name, generator = solution.problem.robot.name, torch.Generator().manual_seed(3)
    network = SmallNetwork(solution.ensemble.features, argument_scale(solution.problem), width, generator)
    with torch.no_grad():
        network.weights[-1].mul_(3.0)
    files = {file: text.encode() for file, text in emit(solution.problem, network, name, ["facts"]).items()}
    for file, content in {**files, **kernels(solution.problem, observer=True)}.items():
        (folder / file).write_bytes(content)
    return network, folder


@needs_compiler
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("name", ["pendulum", "planar_arm2"])
def test_c_is_torchs_and_never_nan(name: str, real: str, begun: Callable[..., Path], tmp_path: Path) -> None:
    """With one input and two; inside of the domain, outside of it, and where a state is no number."""
    solution = load_solution(begun(name))
    problem = solution.problem
    network, folder = sources(solution, 16, tmp_path)
    driver = folder / "driver"
    files = [str(folder / f"{name}{end}.c") for end in ("", "_policy", "_policy_driver")]
    words = [*STRICT, f"-D{name.upper()}_REAL={real}", *files, "-lm", "-o", str(driver)]
    subprocess.run([str(COMPILER), *words], check=True)
    x = 1.2 * problem.sample_domain(200, torch.Generator().manual_seed(1))
    limits, inside = problem.input_limits.numpy(), ~(x.abs() > problem.bound).any(1).numpy()
    assert 20 < inside.sum() < 190
    strange = x[:40].clone()
    strange[torch.arange(40), torch.arange(40) % x.shape[1]] = torch.tensor([np.nan, np.inf, -np.inf, 1e30] * 10)
    rows = torch.cat([x, problem.target[None], strange]).tolist()
    text = "\n".join(" ".join(map(repr, row)) for row in rows)
    answer = subprocess.run([driver], input=text, capture_output=True, text=True, check=True).stdout
    found = np.array([line.split() for line in answer.splitlines()], float)
    u = controller(problem, network)(x)[0].numpy()
    assert np.abs(u / limits).max() > 0.6
    np.testing.assert_allclose(found[:200, :-1] / limits, u / limits, atol=1e-4)
    np.testing.assert_array_equal(found[:200, -1], inside)
    assert np.abs(found[200, :-1] / limits).max() < 1e-6
    broken = ~np.isfinite(strange.numpy()).all(1)
    assert (found[201:][broken] == 0.0).all()
    assert (np.abs(found[:, :-1]) <= limits).all()


CONTROLLER = """
#include <stdio.h>
#include "{name}_policy.h"
#define float {name}_real
{period}
#undef float
int main(void) {{
    {name}_real positions[{q}], u[{m}];
    for (;;) {{
        for (int i = 0; i < {q}; i++) {{
            double value;
            if (scanf("%lf", &value) != 1) return 0;
            positions[i] = ({name}_real)value;
        }}
        POLICY(positions, u);
        for (int k = 0; k < {m}; k++) printf("%.9g ", (double)u[k]);
        printf("%d\\n", observer.measured);
    }}
}}
"""


@needs_compiler
@pytest.mark.parametrize(
    ("name", "real", "delay"),
    [
        ("furuta", "float", "DELAY=1"),
        ("furuta", "double", "LONGEST_DELAY=2"),
        ("planar_arm2", "float", "DELAY=0"),
        ("planar_arm2", "float", "RATES"),
    ],
)
def test_no_measurement_makes_a_controller_send_nan(name: str, real: str, delay: str, tmp_path: Path) -> None:
    """Observer, policy and compensation in every period. Sensors that fail, jump and count beyond all bounds, for a
    while each; then positions of a robot at rest, which it follows again."""
    solution = load_solution(f"{name}-rfvi")
    problem = solution.problem
    q = len(problem.target) if delay == "RATES" else len(problem.robot.metadata.coordinates)
    _, folder = sources(solution, 8, tmp_path)
    for file, text in emit_observer(problem).items():
        (folder / file).write_text(text)
    period = board.period(problem, 10**6)
    fields = {"name": name, "period": period, "q": q, "m": len(problem.input_limits)}
    (folder / "controller.c").write_text(CONTROLLER.format(**fields))
    files = [str(folder / f"{name}{end}.c") for end in ("", "_policy", "_observer")] + [str(folder / "controller.c")]
    words = [f"-D{name.upper()}_REAL={real}", f"-D{name.upper()}_{delay}", "-std=c99", "-O0", "-Wall", "-Werror"]
    subprocess.run([str(COMPILER), *words, *files, "-lm", "-o", str(folder / "controller")], check=True)
    random = np.random.default_rng(4)
    strange = [np.nan, np.inf, -np.inf, 1e30, -1e38, 3e5, 1e-42, 0.0]
    rows = random.uniform(-1.0, 1.0, (4000, q)) * problem.state_limits.numpy()[:q]
    for begin in range(0, 3500, 50):  # from single failures to none that is measured
        broken = random.random((50, q)) < random.choice([0.02, 0.3, 1.0])
        rows[begin : begin + 50][broken] = random.choice(strange[: random.integers(1, 9)], broken.sum())
    rows[1000:2000, 0] = np.nan
    rows[3500:] = problem.target.numpy()[:q]
    answer = subprocess.run(
        [folder / "controller"],
        input="\n".join(" ".join(map(repr, row)) for row in rows.tolist()),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = np.array([line.split() for line in answer.splitlines()], float)
    assert len(found) == len(rows)
    assert (np.abs(found[:, :-1]) <= problem.input_limits.numpy() * (1 + 1e-6)).all()
    assert np.abs(found[:, :-1]).max() > 0.0
    assert (found[:-500, -1] == 0).any()
    assert (found[-10:, -1] == 2).all()


def test_distillation_learns_the_argument_of_the_runs_policy(gallery_run: Path) -> None:
    """In the domain and along rollouts, better than the network that it began with; one seed gives one network."""
    solution = load_solution(gallery_run)
    problem = solution.problem
    x = problem.sample_domain(500, torch.Generator().manual_seed(9))
    _, control_matrix = problem.robot.affine_dynamics(x)
    teacher = Hold(0.0).policy(problem, solution.value)
    w = torch.einsum("bnm,bn->bm", control_matrix, solution.value(x)[1])
    torch.testing.assert_close(teacher.argument(x, solution.value(x)[1]), w)
    wanted, _ = solution.controller()(x)
    off = (controller(problem, distil(solution, 16, 0, QUICK))(x)[0] - wanted).abs().mean()
    assert off < 0.25 * wanted.abs().mean()
    brief = replace(QUICK, states=150, steps=5)
    networks = [distil(solution, 16, seed, brief) for seed in (0, 0, 1)]
    first, second, other = (torch.cat([w.flatten() for w in network.weights]) for network in networks)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_the_scale_is_the_argument_of_half_the_limit(gallery_run: Path) -> None:
    problem = load_solution(gallery_run).problem
    u = problem.action_cost.policy(argument_scale(problem)[None])[0]
    torch.testing.assert_close(u, 0.5 * problem.input_limits)


needs_emulator = pytest.mark.skipif(bool(board.missing_tools()), reason=f"not installed: {board.missing_tools()}")


@needs_emulator
def test_policy_and_observer_fit_the_period_of_a_drive(tmp_path: Path) -> None:
    """134 000 cycles at two an instruction: 40 % of a period of 500 Hz at 168 MHz. The widest network, 40 periods."""
    solution = load_solution("furuta-rfvi")
    _, folder = sources(solution, WIDTHS[0], tmp_path)
    for file, text in emit_observer(solution.problem).items():
        (folder / file).write_text(text)
    x = np.linspace([0.0, 3.0], [0.4, -1.0], 40, dtype=np.float32)
    counts = board.measured(solution.problem, folder, x, board.period(solution.problem, len(x)))
    largest = counts.largest
    assert 45_000 < largest.instructions <= 134_000 / 2
    assert largest.flash < 65_536
    assert (np.abs(counts.u) <= solution.problem.input_limits.numpy()).all()
    assert np.abs(counts.u).max() > 0.0
    policy, observer = cost(solution.problem, WIDTHS[0]), observer_cost(solution.problem)
    stated = policy.instructions + observer.period.instructions
    assert stated / 1.5 < largest.instructions <= stated <= 134_000 / 2
    assert largest.flash <= policy.flash + observer.period.flash


@needs_emulator
@pytest.mark.parametrize(
    ("name", "estimate"),
    [("pendulum", ""), ("planar_arm2", ""), ("satellite", ""), ("furuta", "all")],
)
def test_the_stated_cost_of_an_observer_bounds_what_is_counted(
    name: str, estimate: str, load: Callable[[str], CompiledRobot], tmp_path: Path
) -> None:
    """Instructions, flash and stack, without the policy, over a motion that turns a joint and then stops."""
    problem, names = Problem(load(name)), [estimate] if estimate else []
    estimated = estimated_parameters(problem, make_sensing(problem, usual_counts(problem)), names)
    none = {f"{name}_policy.h": f'#include "{name}.h"\n', f"{name}_policy.c": "typedef int none;\n"}
    for file, text in {**emit_observer(problem, names), **none}.items():
        (tmp_path / file).write_text(text)
    for file, content in kernels(problem, observer=True).items():
        (tmp_path / file).write_bytes(content)
    code = board.period(problem, 40).replace(f"{name}_policy(x, u);", "u[0] = x[0];")
    turns = np.concatenate([np.linspace(0.0, 1.0, 25), np.ones(15)])[:, None]
    error = torch.from_numpy(turns).float() * 0.5 * problem.tangent_limits
    x = problem.geometry.moved(problem.target, error)[:, : problem.robot.metadata.nq].numpy()
    largest, stated = board.measured(problem, tmp_path, x, code).largest, observer_cost(problem, estimated).period
    assert stated.instructions / 1.5 < largest.instructions <= stated.instructions
    assert stated.flash / 2 < largest.flash <= stated.flash
    assert stated.stack / 2 < largest.stack <= stated.stack


@needs_emulator
@pytest.mark.parametrize("width", [8, 32])
def test_the_stated_cost_bounds_what_an_emulated_board_counts(gallery_run: Path, tmp_path: Path, width: int) -> None:
    """And is no more than 1.5 times of it. The inputs that the board computes are Torch's."""
    solution = load_solution(gallery_run)
    network, folder = sources(solution, width, tmp_path)
    x = solution.problem.sample_domain(150, torch.Generator().manual_seed(1))
    counts = board.measured(solution.problem, folder, x.numpy())
    largest, stated = counts.largest, cost(solution.problem, width)
    assert stated.instructions / 1.5 < largest.instructions <= stated.instructions
    assert stated.flash / 1.5 < largest.flash <= stated.flash
    assert largest.stack <= stated.stack
    expected = controller(solution.problem, network)(x)[0].numpy()
    np.testing.assert_allclose(counts.u, expected, atol=1e-4 * float(solution.problem.input_limits[0]))


def test_the_widest_network_that_fits_is_taken(gallery_run: Path) -> None:
    problem = load_solution(gallery_run).problem
    assert read_budget("0.5ms@168MHz").instructions == read_budget("500us@168000kHz").instructions == 42000
    for width in WIDTHS:
        needed = cost(problem, width).instructions
        assert widest(problem, read_budget(f"{2 * needed}us@1MHz")) == width
    with pytest.raises(SolverError, match=rf"{2 * needed - 2}us@1MHz .* {2 * needed}us"):
        widest(problem, read_budget(f"{2 * needed - 2}us@1MHz"))


def test_an_observer_takes_its_part_of_the_budget(gallery_run: Path) -> None:
    """It leaves a narrower network where both no longer fit; a budget that it exceeds alone names it."""
    problem = load_solution(gallery_run).problem
    observer = observer_cost(problem).period.instructions
    for width in WIDTHS:
        needed = cost(problem, width).instructions + observer
        assert widest(problem, read_budget(f"{2 * needed}us@1MHz"), observer) == width
    with pytest.raises(SolverError, match=rf"{observer} .*{2 * needed}us@1MHz"):
        widest(problem, read_budget(f"{2 * needed - 2}us@1MHz"), observer)
    with pytest.raises(SolverError, match=rf"pendulum .*{observer}"):
        widest(problem, read_budget(f"{2 * observer - 2}us@1MHz"), observer)


@pytest.mark.parametrize("text", ["500us", "500@168MHz", "-5us@168MHz", "500us@168", "us@MHz", "1e3us@1MHz"])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SolverError, match="500us@168MHz"):
        read_budget(text)


def test_a_loss_above_the_stated_one_is_refused() -> None:
    good = {"return_mean": -10.0, "success_rate": 1.0}
    require_small_loss(
        DistillationLoss("nominal", good, {"return_mean": -10.15, "success_rate": 1.0}), 0.02, "1us@1MHz"
    )
    for worse in ({"return_mean": -10.25, "success_rate": 1.0}, {"return_mean": -9.0, "success_rate": 0.95}):
        with pytest.raises(SolverError, match="max_loss"):
            require_small_loss(DistillationLoss("nominal", good, worse), 0.02, "1us@1MHz")


def test_the_command_writes_a_header_with_the_facts_or_nothing(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no emulator; the next test counts."""
    monkeypatch.setattr(distilled, "missing_tools", lambda: "qemu")
    monkeypatch.setattr(distilled, "distil", lambda solution, width, seed, *_: distil(solution, width, seed, QUICK))
    words = ["export", str(finished_run), "--c", str(tmp_path / "c"), "--budget", "500us@168MHz"]
    assert main([*words, "--max-loss", "1", "--observer"]) == 0
    header = (tmp_path / "c" / "pendulum_policy.h").read_text()
    problem = load_solution(finished_run).problem
    needed = cost(problem, widest(problem, read_budget("500us@168MHz")))
    facts = [f"{needed.instructions} instructions", f"{needed.flash} bytes of flash", f"{needed.stack} of stack"]
    facts += ["single precision", "Control rate 25 Hz", "angle_rate (rad/s) -8 to 8", problem.robot.model_hash]
    for fact in (*facts, "nominal", "parameters", "harsh", "success", "Not counted on an emulated board: qemu is not"):
        assert fact in header
    assert f"{needed.instructions} instructions" in capsys.readouterr().out
    beside = observer_cost(problem)
    both = needed.instructions + beside.period.instructions
    for fact in (f"{beside.period.instructions} instructions", f"{beside.delay} instructions more", f"{both} instr"):
        assert fact in header
    assert (tmp_path / "c" / "pendulum_observer.c").exists()
    words[3] = str(tmp_path / "none")
    good = {"return_mean": -1.0, "return_worst": -1.0, "success_rate": 1.0}
    monkeypatch.setattr(
        distilled, "compare", lambda *_: [DistillationLoss("nominal", good, {**good, "return_mean": -1.03})]
    )
    assert main(words) == 2
    assert "loses 3.0 % of the return" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@needs_emulator
def test_the_header_states_what_is_counted(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts of the board, which are refused where it computes other inputs than Torch."""
    solution = load_solution(finished_run)
    untrained = Effort(rounds=1, states=200, steps=1, episodes=2, counted=100)

    def exported() -> dict[str, str]:
        return distilled.export(solution, "untrained", "500us@168MHz", 1e6, effort=untrained, observer=True)

    files = exported()
    text = files["pendulum_policy.h"]
    (policy,) = re.findall(
        r"(\d+) instructions, \d+ bytes of flash with libm, \d+ of stack: the policy, over 100", text
    )
    (period,) = re.findall(r"(\d+) instructions, .*: policy and observer, over 100 control periods", text)
    for file, content in kernels(solution.problem, True).items():
        (tmp_path / file).write_bytes(content)
    for file, source in files.items():
        (tmp_path / file).write_text(source)
    counts, x = board.count_policy(solution, tmp_path, 100)
    assert (int(policy), len(x)) == (counts.largest.instructions, 100)
    assert int(policy) < int(period) < 42_000

    def wrong(problem: Problem, observer: bool) -> dict[str, bytes]:
        made = kernels(problem, observer)
        made["pendulum.c"] = made["pendulum.c"].replace(b"u_optimal[0] = ", b"u_optimal[0] = R(0.9) * ")
        return made

    monkeypatch.setattr(distilled, "kernels", wrong)
    with pytest.raises(SolverError, match="Export without budget"):
        exported()


def test_a_budget_without_c_is_refused(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(finished_run), "--onnx", "x.onnx", "--budget", "500us@168MHz"]) == 2
    assert "--c DIR" in capsys.readouterr().err


@pytest.mark.slow
def test_a_robot_without_stiction_is_compared_with_the_effects_that_it_can_have() -> None:
    """Each input of the quadrotor drives several coordinates, so that its stiction is not known."""
    solution = load_solution("planar_quadrotor-rfvi")
    assert possible_effects(solution.problem) == ("delay", "saturation", "backlash", "encoder", "noise")
    solution.problem.horizon, act = 0.3, solution.controller()
    *_, harsh = compare(solution.problem, act, act, observed=True, episodes=2)
    assert harsh.plant == "harsh, observer"
    assert harsh.own == harsh.distilled
