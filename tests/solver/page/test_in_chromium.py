"""The page in a real browser: sliders, a push, the return, a worker; without any error."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from solver.cli import main

CHROMIUM = shutil.which("chromium")
#: How far the admissible set of the first parameter lies from its slider's track, in pixels: its ends and its height.
ON_TRACK = """
(() => {
  const input = document.querySelector("#parameters input"), set = document.querySelector("#parameters .set");
  const track = input.getBoundingClientRect(), marked = set.getBoundingClientRect();
  const { lower, upper } = facts.parameters[0];
  const thumb = (value) => track.left + 8 + ((track.width - 16) * (value - input.min)) / (input.max - input.min);
  const middle = (box) => (box.top + box.bottom) / 2;
  return [marked.left - thumb(lower), marked.right - thumb(upper), middle(marked) - middle(track)];
})()
"""


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
        assert page.evaluate(ON_TRACK) == pytest.approx([0.0, 0.0, 0.0], abs=1.0)
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
        page.wait_for_selector("#heat canvas >> nth=1")
        page.select_option("#across", "1")
        page.select_option("#up", "0")
        page.click("#maps")
        page.wait_for_selector("#heat figcaption:has-text('angle_rate (±8 rad/s) across') >> nth=1")
        captions = page.locator("#heat figcaption").all_inner_texts()
        assert [each.partition(" of ")[0] for each in captions] == ["V", "torque"]
        page.locator("#harsh input").last.fill("2")
        assert "stiction=2" in page.url
        page.select_option("#drag", "place")
        page.evaluate("scrollTo(0, 0)")
        box = page.locator("canvas.scene").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.9 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
        page.mouse.up()
        assert abs(page.evaluate("start[0]") - math.pi / 2) < 0.05
        other = browser.new_page()
        other.goto(page.url)
        assert other.evaluate("[start, conditions]") == page.evaluate("[start, conditions]")
        page.click("#many")
        page.wait_for_selector("#distribution canvas", timeout=300_000)
        assert "success" in page.locator("#distribution").inner_text()
        length = page.locator("#parameters input").nth(1)
        length.fill(length.evaluate("each => each.max"))
        assert page.evaluate("draw() || view.some((each, i) => each !== rules.view[i])")
        browser.close()
    assert errors == []


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; apt-get install chromium")
def test_a_phone_and_paper(tmp_path: Path) -> None:
    """Nothing is wider than a phone. Paper has no controls, and no heading without anything below it."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright; pip install playwright")
    path = tmp_path / "page.html"
    assert main(["page", "furuta-cfvi", "furuta-rfvi", "--out", str(path)]) == 0
    assert path.stat().st_size < 1_500_000
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.goto(path.as_uri())
        page.wait_for_selector("#plots canvas")
        page.wait_for_selector("#heat canvas >> nth=3")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        for slider in page.get_by_role("slider").all():
            assert slider.evaluate("each => each.labels.length") == 1
        page.emulate_media(media="print", color_scheme="dark")
        assert page.get_by_role("button").count() == 0
        headings = page.locator("h2:visible").all_inner_texts()
        assert headings == ["Over time", "100 starts", "Value function and policy", "Facts"]
        assert page.locator("#equations math:visible").count() > 4
        assert "resistance 8.4 Ohm" in page.locator("#now").inner_text()
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(17, 17, 17)"
        browser.close()
