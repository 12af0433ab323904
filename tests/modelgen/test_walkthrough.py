"""docs/concepts/how-a-model-becomes-a-kernel.md prints what it says; run as a script, this file rewrites its output."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "how-a-model-becomes-a-kernel.md"
BLOCK = re.compile(r"```python\n(.*?)```\n```text\n(.*?)```\n", re.DOTALL)


def rewritten(text: str) -> str:
    """The page with the output of every block of code, all of them run in one namespace."""
    namespace: dict[str, object] = {}

    def run(found: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(found[1], namespace)
        return f"```python\n{found[1]}```\n```text\n{printed.getvalue()}```\n"

    return BLOCK.sub(run, text)


def test_the_page_prints_what_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == 6
    assert rewritten(text) == text, "python tests/modelgen/test_walkthrough.py rewrites it; then read it"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
