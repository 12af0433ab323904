"""A joint of a URDF gets an input only where the file drives it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.cli import main
from modelgen.derivation.model_file import load
from modelgen.importers.urdf import model_file
from tests.modelgen.importers.machine import MIMIC, ROBOT, SPIN, inertial, load_text

pytest.importorskip("yourdfpy")

ARM, SPINS = "arm_effort", "lambda_joint_effort"


def transmission(*joints: str) -> str:
    named = "".join(f'<joint name="{joint}"/>' for joint in joints)
    return f'\n<transmission name="t"><actuator name="motor"/>{named}</transmission>'


def control(joint: str, interface: str, within: str = "") -> str:
    command = f'<command_interface name="{interface}"/>' if interface else ""
    joint = f'<joint name="{joint}">{command}<state_interface name="position"/></joint>'
    return f'\n<ros2_control name="system" type="system">{joint}{within}</ros2_control>'


@pytest.mark.parametrize(
    ("drives", "inputs"),
    [
        (transmission("arm"), [ARM]),
        (transmission("lambda", "arm"), [ARM, SPINS]),
        (transmission("arm", "rail"), [ARM]),  # the rail has no effort
        (control("lambda", "effort"), [SPINS]),
        (control("lambda", "position"), [SPINS]),
        (control("lambda", "velocity"), [SPINS]),
        (control("arm", "") + control("lambda", "effort"), [SPINS]),
        (control("arm", "brake") + control("lambda", "effort"), [SPINS]),
        (control("lambda", "", transmission("arm")), [ARM]),
        (transmission("arm") + control("lambda", "effort"), [ARM, SPINS]),
    ],
)
@pytest.mark.slow
def test_the_file_decides_which_joints_have_a_motor(
    written: Callable[..., Path], tmp_path: Path, drives: str, inputs: list[str]
) -> None:
    warnings: list[str] = []
    text = model_file(written(*ROBOT, drives), "machine", warn=warnings.append)
    assert [declared.symbol.name for declared in load_text(text, tmp_path).inputs] == inputs
    assert not any("--passive" in warning for warning in warnings)
    for name in {ARM, SPINS} - set(inputs):
        assert f"{name.removesuffix('_effort')} is passive" in text


def test_a_furuta_whose_pendulum_has_no_transmission_has_one_input(
    written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Both joints have an effort limit, and drive the robot without the transmission."""
    parts = [f'<link name="{name}">{inertial(0.1)}</link>' for name in ("base", "beam", "rod")]
    parts += [
        f'''<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>
        <limit effort="0.5" velocity="20"/></joint>'''
        for name, parent, child in (("turn", "base", "beam"), ("swing", "beam", "rod"))
    ]
    written(*parts, transmission("turn"))
    assert main(["import", "machine.urdf"]) == 0
    assert [declared.symbol.name for declared in load("machine").inputs] == ["turn_effort"]
    written(*parts)
    capsys.readouterr()
    assert main(["import", "machine.urdf", "--name", "all"]) == 0
    assert capsys.readouterr().err.count("an effort limit gave one to turn, swing.") == 1
    assert main(["import", "machine.urdf", "--name", "some", "--passive", "sw*"]) == 0
    assert [declared.symbol.name for declared in load("some").inputs] == ["turn_effort"]


@pytest.mark.parametrize(("reach", "warned"), [(1.57, 0), (90, 1)])
def test_limits_that_look_like_degrees_are_warned_of(written: Callable[..., Path], reach: float, warned: int) -> None:
    warnings: list[str] = []
    parts = [f'<link name="{name}">{inertial(0.1)}</link>' for name in ("base", "beam")]
    joint = f"""<joint name="turn" type="revolute"><parent link="base"/><child link="beam"/><axis xyz="0 1 0"/>
        <limit lower="{-reach}" upper="{reach}" effort="0.5" velocity="20"/></joint>"""
    model_file(written(*parts, joint), "machine", warn=warnings.append)
    assert sum("if this is an angle in degrees" in warning for warning in warnings) == warned


def test_passive_joints_have_no_input(written: Callable[..., Path], tmp_path: Path) -> None:
    """Without a word in the file, and against its word. The joints keep their losses."""
    for parts in (ROBOT, [*ROBOT, transmission("arm", "lambda")]):
        text = model_file(written(*parts), "machine", passive=["a*", "rail"])
        assert [declared.symbol.name for declared in load_text(text, tmp_path).inputs] == [SPINS]
        assert "robot.damp(arm, arm_damping)" in text
        assert "arm is passive" in text
        assert "rail has no effort" in text


def test_a_transmission_gives_no_input_to_a_joint_that_follows(written: Callable[..., Path], tmp_path: Path) -> None:
    text = model_file(written(*ROBOT[:-2], MIMIC, SPIN, transmission("arm", "rail")), "machine")
    assert [declared.symbol.name for declared in load_text(text, tmp_path).inputs] == [ARM]


def test_a_joint_held_by_fix_may_have_a_transmission(written: Callable[..., Path], tmp_path: Path) -> None:
    text = model_file(written(*ROBOT, transmission("arm", "lambda")), "machine", ["lambda"])
    assert [declared.symbol.name for declared in load_text(text, tmp_path).inputs] == [ARM]


@pytest.mark.parametrize(
    ("drives", "words"),
    [
        (transmission("arn"), r"<transmission> `t` drives a joint `arn`, which does not exist; .* Did you mean `arm`"),
        (transmission("mount"), "<transmission> `t` drives a joint that is fixed; .*: `mount`"),
        (control("lamda", "effort"), "<ros2_control> `system` drives a joint `lamda`, .* Did you mean `lambda`"),
    ],
)
@pytest.mark.slow
def test_a_driven_joint_that_does_not_exist_or_is_fixed_is_warned_of(
    written: Callable[..., Path], tmp_path: Path, drives: str, words: str
) -> None:
    """Files of a family share all transmissions. Such a joint changes nothing."""
    for others, inputs in (((), [ARM, SPINS]), ((transmission("arm"),), [ARM])):
        warnings: list[str] = []
        text = model_file(written(*ROBOT, drives, *others), "machine", warn=warnings.append)
        assert [declared.symbol.name for declared in load_text(text, tmp_path).inputs] == inputs
        assert sum(bool(re.search(rf"machine\.urdf:\d+: {words}", warning)) for warning in warnings) == 1
        assert any("--passive" in warning for warning in warnings) == (not others)


def test_a_pattern_that_matches_no_moving_joint_is_refused(written: Callable[..., Path]) -> None:
    with pytest.raises(ModelError, match=re.escape("`lamda` of passive matches no joint that moves. Did you")):
        model_file(written(*ROBOT), "machine", passive=["lamda"])
    with pytest.raises(ModelError, match="`mount` of passive"):
        model_file(written(*ROBOT), "machine", passive=["mount"])
    with pytest.raises(ModelError, match="`rail` is in efforts and in passive"):
        model_file(written(*ROBOT), "machine", passive=["r*"], efforts={"rail": 2.0})


def test_a_robot_whose_joints_are_all_passive_is_refused(written: Callable[..., Path]) -> None:
    with pytest.raises(ModelError, match="`arm`, `lambda`"):
        model_file(written(*ROBOT), "machine", passive=["*"])
    with pytest.raises(ModelError, match="`arm`, `lambda`"):
        model_file(written(*ROBOT, control("arm", "")), "machine")


@pytest.mark.slow
def test_efforts_from_outside_give_motors(
    written: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A published pendulum often has no effort; the refusal names the option that helps, and no guess is warned of."""
    parts = [f'<link name="{name}">{inertial(0.1)}</link>' for name in ("base", "beam", "rod")]
    parts += [
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>{limit}</joint>'
        for name, parent, child, limit in (
            ("turn", "base", "beam", ""),
            ("swing", "beam", "rod", '<limit effort="0" velocity="20"/>'),
        )
    ]
    path = written(*parts)
    assert main(["import", "machine.urdf"]) != 0
    error = capsys.readouterr().err
    assert "--effort turn=5" in error
    warnings: list[str] = []
    text = model_file(path, "machine", warn=warnings.append, efforts={"*": 2.5, "swing": 0.3})
    inputs = load_text(text, tmp_path).inputs
    assert [(each.symbol.name, each.limit) for each in inputs] == [("turn_effort", 2.5), ("swing_effort", 0.3)]
    assert not any("--passive" in warning for warning in warnings)
    assert main(["import", "machine.urdf", "--effort", "*=2.5", "swing=0.3"]) == 0
    assert [(each.symbol.name, each.limit) for each in load("machine").inputs] == [
        (each.symbol.name, each.limit) for each in inputs
    ]
    assert main(["import", "machine.urdf", "--name", "other", "--effort", "*=-1"]) != 0
    assert "1e-15 to 1e+15" in " ".join(capsys.readouterr().err.split())
    driven = model_file(written(*parts, transmission("turn")), "machine", efforts={"swing": 0.3})
    assert [each.symbol.name for each in load_text(driven, tmp_path).inputs] == ["swing_effort"]
    for efforts, words in (
        ({"twist": 1.0}, "`twist` of efforts matches"),
        ({"turn": -1.0}, "efforts turn=-1: write"),
    ):
        with pytest.raises(ModelError, match=words):
            model_file(path, "machine", efforts=efforts)
