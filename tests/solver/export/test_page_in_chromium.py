"""The page in a real browser: sliders, a push, the return, a worker; without any error."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture
def page(finished_run: Path, tmp_path: Path) -> Iterator[Any]:
    """A run's page, paused at its start; the test fails where the page reports an error."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium; apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright; pip install playwright")
    path, errors = tmp_path / "page.html", list[str]()
    assert main(["page", str(finished_run), "--out", str(path)]) == 0
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1000, "height": 1000})
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        opened.goto(path.as_uri())
        opened.click("#pause")
        opened.click("#reset")
        yield opened
        browser.close()
    assert errors == []


def drag(page: Any, across: float, up: float) -> None:
    """Drag from the tip of the hanging pendulum by shares of the scene's width and height."""
    page.evaluate("scrollTo(0, 0)")  # what was clicked may lie below
    box = page.locator("canvas.scene").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 0.9 * box["height"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across * box["width"], y - up * box["height"])
    page.mouse.up()


def test_sliders_and_pushes_change_the_motion(page: Any) -> None:
    page.locator("#parameters input").first.fill("2.4")
    assert "theta=2.4" in page.url
    assert page.locator("#parameters .outside").count() == 1
    assert page.evaluate(ON_TRACK) == pytest.approx([0.0, 0.0, 0.0], abs=1.0)
    before = page.evaluate("panes[0].simulation.x[1]")
    drag(page, 0.15, 0.0)
    assert abs(page.evaluate("panes[0].simulation.x[1]") - before) > 0.1
    assert page.evaluate("pushes.length") == 1
    for _ in range(3):
        page.keyboard.press("s")  # although the focus is on a button
    page.keyboard.press("ArrowRight")
    page.keyboard.press("s")
    assert page.evaluate("pushes.map((each) => each.at)") == [0, 3]
    assert page.evaluate("panes[0].simulation.result") < 0.0
    other = page.context.browser.new_page()
    other.goto(page.url)  # the same experiment, with its pushes
    other.click("#pause")
    other.evaluate("reset(true)")
    for _ in range(4):
        other.click("#step")
    assert other.evaluate("[...panes[0].simulation.x]") == page.evaluate("[...panes[0].simulation.x]")
    page.click("#reset")
    assert "push=" not in page.url


def test_address_restores_the_experiment(page: Any) -> None:
    """Maps of any two states, a worse drive, another start and curve; and no address breaks the page."""
    page.wait_for_selector("#heat canvas >> nth=1")
    page.select_option("#across", "1")
    page.select_option("#up", "0")
    page.wait_for_selector("#heat figcaption:has-text('angle_rate (±8 rad/s) across') >> nth=1")
    captions = page.locator("#heat figcaption").all_inner_texts()
    assert [each.partition(" of ")[0] for each in captions] == ["V", "torque"]
    page.locator("#harsh input").last.fill("2")
    assert "stiction=2" in page.url
    page.select_option("#drag", "place")
    drag(page, 0.4, 0.4)
    assert abs(page.evaluate("start[0]") - math.pi / 2) < 0.05
    page.locator("#plots select").first.select_option("1")
    state = "[start, conditions, drag, axes, shown, document.getElementById('drag').value]"
    other = page.context.browser.new_page()
    other.goto(page.url)
    assert other.evaluate(state) == page.evaluate(state)
    other.goto(other.url.partition("#")[0] + "#map=0,9&plots=0,0&push=1;2,x&theta=1&start=,&speed=-1&delay=1e9")
    other.reload()
    assert other.evaluate("[axes, pushes.length, conditions.theta.length, conditions.delay]") == [[0, 1], 0, 2, 20]


def test_many_starts_run_and_a_longer_rod_stays_in_view(page: Any) -> None:
    page.click("#many")
    page.wait_for_selector("#distribution canvas", timeout=300_000)
    assert "success" in page.locator("#distribution").inner_text()
    length = page.locator("#parameters input").nth(1)
    length.fill(length.evaluate("each => each.max"))
    assert page.evaluate("draw() || view.some((each, i) => each !== rules.view[i])")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; apt-get install chromium")
def test_page_fits_a_phone_and_prints(tmp_path: Path) -> None:
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
        facts = page.locator("#facts").inner_text()
        for fact in ("cfvi", "rfvi", "no adversary", "state 0", "networks", "seed"):
            assert fact in facts
        assert "undefined" not in page.locator("body").inner_text()
        browser.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; apt-get install chromium")
def test_touch_pushes_and_keys_move_sliders(finished_run: Path, tmp_path: Path) -> None:
    """On a phone, and without a mouse; a reader who wants less motion starts the page paused."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright; pip install playwright")
    path = tmp_path / "page.html"
    assert main(["page", str(finished_run), "--out", str(path)]) == 0
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": 390, "height": 844}
        page = browser.new_page(viewport=size, has_touch=True, is_mobile=True, reduced_motion="reduce")
        page.goto(path.as_uri())
        assert page.inner_text("#pause") == "Continue"
        before = page.evaluate("panes[0].simulation.x[1]")
        page.evaluate("scrollTo(0, 0)")
        box = page.locator("canvas.scene").bounding_box()
        assert box is not None
        across, up = box["x"] + box["width"] / 2, box["y"] + 0.9 * box["height"]
        finger = page.context.new_cdp_session(page)
        for kind, points in (("Start", [(across, up)]), ("Move", [(across + 80, up)]), ("End", [])):
            touches = [{"x": x, "y": y} for x, y in points]
            finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": touches})
        page.wait_for_function("pushes.length === 1")
        assert abs(page.evaluate("panes[0].simulation.x[1]") - before) > 0.1
        page.locator("#parameters input").first.focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("conditions.theta[0]") > page.evaluate("nominal[0]")
        assert page.evaluate("pushes.length") == 1  # the slider keeps its keys
        assert page.locator("#parameters input").first.get_attribute("aria-valuetext").endswith(" kg")
        browser.close()
