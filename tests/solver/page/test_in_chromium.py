"""The page in a real browser: sliders, a push, the return, a worker; without any error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from solver.cli import main

CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; apt-get install chromium")
def test_a_reader_moves_pushes_and_reads(finished_run: Path, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright; pip install playwright")
    path, errors = tmp_path / "page.html", list[str]()
    assert main(["page", str(finished_run), "--out", str(path)]) == 0
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 1000})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        page.click("#pause")
        page.click("#reset")
        page.locator("#parameters input").first.fill("2.4")
        assert "theta=2.4" in page.url
        assert page.locator("#parameters .outside").count() == 1
        before = page.evaluate("panes[0].simulation.x[1]")
        page.evaluate("scrollTo(0, 0)")  # the slider is below
        box = page.locator("canvas.scene").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.9 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + 0.9 * box["height"])
        page.mouse.up()
        assert abs(page.evaluate("panes[0].simulation.x[1]") - before) > 0.1
        page.click("#step")
        assert page.evaluate("panes[0].simulation.result") < 0.0
        page.click("#maps")
        page.wait_for_selector("#heat canvas >> nth=1")
        page.click("#many")
        sync_api.expect(page.locator("#progress")).not_to_have_js_property("value", 0, timeout=60_000)
        browser.close()
    assert errors == []
