"""The independent check of a proof: it accepts what is true, and refuses what was changed."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.cli import main
from solver.errors import SolverError
from solver.proof import HELD, Equations, read, write
from solver.proof.basin import _about, prove_basin
from solver.proof.basin_search import BasinSearch
from solver.proof.checker import FIELDS, _require_same, check, verify
from solver.proof.closed_loop import ClosedLoop
from solver.proof.held_loop import HeldLoop
from solver.proof.reach import Reach
from solver.training.solution import load_solution


@cache
def proven() -> dict[str, Any]:
    """A proof of the nominal pendulum."""
    proof = prove_basin("pendulum-rfvi", spread=0.0, seconds=10.0)
    assert proof.nominal is not None
    return proof.about | {"claims": [proof.nominal.claim(proof.spread)]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "proof.json"
    write(path, proven())
    return path


@pytest.mark.parametrize("damage", ["tree", "basis", "back"])
@pytest.mark.slow
def test_a_claim_that_is_none_is_refused(file: Path, damage: str) -> None:
    proof = copy.deepcopy(proven())
    del proof["claims"][0][damage]
    write(file, proof)
    with pytest.raises(SolverError, match="a claim is not one"):
        check(file)


def test_every_flipped_digit_is_refused(file: Path) -> None:
    text, chooser = file.read_text(), random.Random(0)
    digits = [k for k, letter in enumerate(text) if letter.isdigit()]
    for _ in range(120):
        at = chooser.choice(digits)
        other = chooser.choice([digit for digit in "0123456789" if digit != text[at]])
        file.write_text(text[:at] + other + text[at + 1 :])
        with pytest.raises(SolverError):
            check(file)


def _changed(chooser: random.Random) -> dict[str, Any]:
    """A proof in which one number or name differs, with a digest of its own."""
    proof = copy.deepcopy(proven())
    claim = proof["claims"][0]
    factor = 1 + chooser.choice([-1, 1]) * chooser.uniform(1e-3, 0.5)
    i, j = chooser.randrange(2), chooser.randrange(2)
    kind = chooser.randrange(9)
    if kind == 0:
        proof["cost"][i][j] *= factor
    elif kind == 1:
        proof["level"] *= factor
    elif kind == 2:
        claim["shape"][i][j] *= factor
    elif kind == 3:
        claim["back"][i] = [factor * entry + 1e-2 for entry in claim["back"][i]]
    elif kind == 4:
        proof["hold"] *= factor
    elif kind == 5:
        proof["policy"] = chooser.choice(["pendulum-cfvi", "cartpole-rfvi"])
    elif kind == 6:
        name = chooser.choice(["program", "checkpoint"])
        proof[name] = proof[name][::-1]
    elif kind == 7:
        proof[chooser.choice(["limit", "parameters", "bound", "target"])][0] += factor
    else:
        claim["tree"] = claim["tree"][: -1 - chooser.randrange(3)]
    return proof


def test_a_changed_proof_with_a_right_digest_is_refused(tmp_path: Path) -> None:
    chooser = random.Random(1)
    for _ in range(80):
        write(tmp_path / "proof.json", _changed(chooser))
        with pytest.raises(SolverError):
            check(tmp_path / "proof.json")


@pytest.mark.parametrize("what", ["rate", "core", "sign"])
@pytest.mark.slow
def test_a_false_claim_is_not_shown(what: str, file: Path) -> None:
    """The hashes would be right: a rate that is too fast, no core, gravity with the wrong sign of another model."""
    proof = read(file, FIELDS)
    equations, claim = _require_same(proof, None), copy.deepcopy(proof["claims"][0])
    if what == "rate":
        claim["rate"] = 0.2
    elif what == "core":
        claim["core"] = 0.0
    else:
        nodes = copy.deepcopy(equations.nodes)
        first = next(k for k, node in enumerate(nodes) if isinstance(node, list) and node[0] == "sin")
        nodes[first][0] = "cos"  # the target is no equilibrium of this model
        equations = Equations({"nodes": nodes, "arguments": equations.arguments, "functions": equations.functions})
    loop = ClosedLoop(proof, equations, claim)
    middle = np.append(np.zeros(loop.d), loop.nominal)
    wide = 0.05 * (np.arange(len(middle)) < loop.d)
    low, high = middle - wide, middle + wide
    assert not verify(loop, low[None], high[None], 6)
    assert HELD in claim["tree"]


def test_a_proof_is_accepted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    assert "holds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "share", "spread"), [("reaction_wheel-rfvi", 0.5, 0.0), ("double_pendulum-rfvi", 0.0177, 0.05)]
)
@pytest.mark.slow
def test_proofs_of_larger_robots_are_accepted(policy: str, share: float, spread: float, tmp_path: Path) -> None:
    """Directions on which nothing bent depends stay open in the cells of the first, the second has two inputs."""
    loop = HeldLoop(load_solution(policy))
    search, box = BasinSearch(loop, 1e-5 * loop.limit), spread * np.abs(loop.nominal)
    search.aim(box)
    search.shape(1.0)
    ball = search.prove(share * search.widest, box, 60.0)
    assert ball is not None
    about = _about(policy, loop, 1e-5 * loop.limit)
    write(tmp_path / "proof.json", about | {"claims": [ball.claim([spread] * len(box))]})
    (result,) = check(tmp_path / "proof.json")
    assert result.holds
    assert result.checked > 3


@pytest.mark.slow
def test_a_search_goes_on_from_its_file(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def longer(path: Path) -> Reach:
        proof = prove_basin("pendulum-rfvi", spread=0.0, reach=0.3, resume=path)
        assert proof.nominal is not None
        assert proof.nominal.shape.tolist() == proven()["claims"][0]["shape"]
        proof.write(tmp_path / "reach.json")
        assert proof.reached[0] is not None
        return proof.reached[0]

    first = longer(file)
    second = longer(tmp_path / "reach.json")
    assert second.seconds > first.seconds
    assert len(second.slices[0]) > len(first.slices[0])
    assert second.share > first.share
    assert (second.proven | ~first.proven).all()
    assert main(["check", str(tmp_path / "reach.json")]) == 0
    assert "enters the set" in capsys.readouterr().out
    with pytest.raises(SolverError, match="another spread"):
        prove_basin("pendulum-rfvi", spread=0.1, reach=1.0, resume=file)
    with pytest.raises(SolverError, match="another input_error"):
        prove_basin("pendulum-rfvi", spread=0.0, input_error=1e-3, reach=1.0, resume=file)
    with pytest.raises(SolverError, match="give reach"):
        prove_basin("pendulum-rfvi", resume=file)


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"format": 7}))
    with pytest.raises(SolverError, match="no proof"):
        check(tmp_path / "other.json")


@pytest.mark.slow
def test_one_parameter_may_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is proven within 15 % of the mass alone is not of all parameters, and the check knows which it is."""
    file = tmp_path / "mass.json"
    prove_basin("pendulum-rfvi", spread=0.15, seconds=6.0, parameters=["mass"]).write(file)
    assert main(["check", str(file)]) == 0
    assert "+-15, 0 %" in capsys.readouterr().out
    content = json.loads(file.read_text())
    claim = content["claims"][1]
    mass = len(claim["basis"][0])  # the sides of a cell: those of w, then the parameters
    assert mass + 1 not in claim["tree"]  # no cell was halved along the length, which has one value
    claim["spread"] = [0.15, 0.15]
    write(file, content)
    assert main(["check", str(file)]) != 0
    with pytest.raises(SolverError, match="has no parameter 'weight'"):
        prove_basin("pendulum-rfvi", parameters=["weight"])
