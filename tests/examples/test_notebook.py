"""The notebook of the examples, executed as a reader would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "first_robot.py"


def test_the_notebook_trains_a_policy_that_swings_up_and_draws_v(tmp_path: Path) -> None:
    notebook = jupytext.read(NOTEBOOK)
    nbclient.NotebookClient(notebook, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.get("text", "") for output in outputs)
    mean, success = map(float, re.findall(r"-?\d+\.\d+", printed.splitlines()[-1]))
    assert success >= 0.95
    assert mean > -35.0
    assert "Now let it find out" in (tmp_path / "rod.html").read_text()
    assert any("image/png" in output.get("data", {}) for output in outputs)
