"""Artifacts from elsewhere: which backends ask for trust, who grants it, and that nothing runs without it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import HARMLESS, MODULES
from modelgen.cli import main
from modelgen.errors import ArtifactError, ModelError
from modelgen.trust import SHIPPED, TRUST, is_trusted, trusting
from tests.modelgen.support.forgery import forged

X, U = np.ones((3, 2)), np.zeros((3, 1))


@pytest.fixture
def foreign(artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the pendulum's artifact, for a user who has not built it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(artifacts / "pendulum", tmp_path / "generated" / "pendulum")
    return tmp_path / "generated"


def built(generated: Path) -> Path:
    """A model file of one's own, which is built."""
    text = (artifact.SHIPPED.parent / "models" / "pendulum.py").read_text()
    model = generated.parent / "pendulum.py"
    model.write_text(text.replace("horizon=5,", "horizon=4,"))
    assert main(["build", str(model), "--generated", str(generated)]) == 0
    return model


def test_the_list_of_shipped_artifacts() -> None:
    """After `modelgen build` of a shipped robot, copy its hash into modelgen/shipped.txt."""
    manifests = sorted(artifact.SHIPPED.glob(f"*/{artifact.MANIFEST}"))
    lines = [f"{json.loads(path.read_text())['hash']}  {path.parent.name}\n" for path in manifests]
    assert SHIPPED.read_text() == "".join(lines)


def test_what_runs_code_asks_for_trust_and_says_what_to_write(foreign: Path, tmp_path: Path) -> None:
    modelgen.load("pendulum", directory=foreign).dynamics(X, U)
    name = modelgen.load("pendulum", directory=foreign).hash
    for backend in set(MODULES) - HARMLESS:
        with pytest.raises(ArtifactError, match=rf"neither built here.*modelgen build pendulum.*--trust {name}"):
            modelgen.load("pendulum", backend=backend, directory=foreign)
    with pytest.raises(ArtifactError, match="belongs to another artifact"):
        modelgen.load("pendulum", backend="casadi", directory=foreign, trust="0" * 64)
    with pytest.raises(ModelError, match="all 64 digits"):
        modelgen.load("pendulum", backend="casadi", directory=foreign, trust=name[:12])
    assert modelgen.load("pendulum", backend="casadi", directory=foreign, trust=name).dynamics(X, U).shape == (3, 2)
    assert not (tmp_path / "state").exists()  # to trust once is not to trust for ever


def test_one_message_names_the_hashes_of_artifact_and_mechanics(foreign: Path) -> None:
    """They are two: what is built on request leaves the artifact as it is."""
    model = built(foreign)
    assert main(["build", str(model), "--generated", str(foreign), "--functions", "mechanics"]) == 0
    shutil.rmtree(foreign.parent / "state")
    with pytest.raises(ArtifactError) as refused:
        modelgen.load("pendulum", backend="casadi", directory=foreign)
    stated = re.search(r"--trust ([0-9a-f]{64}) ([0-9a-f]{64}) to", str(refused.value))
    assert stated
    robot = modelgen.load("pendulum", backend="casadi", directory=foreign, trust=stated.groups())
    assert robot.mass_matrix(X).shape == (3, 1, 1)
    alone = modelgen.load("pendulum", backend="casadi", directory=foreign, trust=stated[1])
    with pytest.raises(ArtifactError, match=f"--trust {stated[2]} {stated[1]} to"):
        alone.mass_matrix(X)


def test_built_here_is_trusted_until_the_content_changes(foreign: Path) -> None:
    built(foreign)
    robot = modelgen.load("pendulum", backend="casadi", directory=foreign)
    forged(foreign / "pendulum", lambda manifest: manifest["metadata"].update(description="another"))
    with pytest.raises(ArtifactError, match="--trust"):
        modelgen.load("pendulum", backend="casadi", directory=foreign)
    assert is_trusted(robot.hash)


def test_a_command_trusts_in_the_processes_that_it_starts_and_no_longer(foreign: Path) -> None:
    name = modelgen.load("pendulum", directory=foreign).hash
    with trusting(["a" * 64]), trusting([name]):
        assert is_trusted(name)
        assert os.environ[TRUST] == f"{'a' * 64} {name}"
    assert not is_trusted(name)
    assert TRUST not in os.environ


def test_verify_takes_the_option(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--mjcf` without a file ends the command after the artifact is opened."""
    model = built(foreign)
    shutil.rmtree(foreign.parent / "state")
    words = ["verify", str(model), "--generated", str(foreign), "--against", "mujoco", "--mjcf", "none.xml"]
    assert main(words) == 2
    stated = re.search("--trust ([0-9a-f]{64})", capsys.readouterr().err)
    assert stated
    assert main([*words, "--trust", stated[1]]) == 2
    assert "none.xml" in capsys.readouterr().err
    assert main([*words, "--trust", "yes"]) == 2
    assert "64 digits" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["numba", "torch", "casadi"])
def test_without_trust_nothing_of_an_artifact_runs(foreign: Path, tmp_path: Path, backend: str) -> None:
    """The same bait does run once it is trusted, but for CasADi's, which is no function at all."""
    bait, ran = tmp_path / "ran", f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    for name in json.loads((foreign / "pendulum" / artifact.MANIFEST).read_text())["files"][backend]:
        path = foreign / "pendulum" / name
        text = path.read_text()
        changed = {
            "numba": re.sub(r"(def affine_dynamics\(x, theta, a, B)", rf"\1, more={ran}", text),
            "torch": f"{text}\n{ran}\n",
            "casadi": text[:-20],
        }[backend]
        path.write_text(changed)
    forged(foreign / "pendulum")
    with pytest.raises(ArtifactError, match="--trust"):
        modelgen.load("pendulum", backend=backend, directory=foreign)
    assert not bait.exists()
    with trusting([artifact.read(foreign / "pendulum").hash]):
        if backend == "casadi":
            with pytest.raises(ArtifactError, match="cannot be read by CasADi"):
                modelgen.load("pendulum", backend=backend, directory=foreign)
        else:
            modelgen.load("pendulum", backend=backend, directory=foreign)
            assert bait.exists()
