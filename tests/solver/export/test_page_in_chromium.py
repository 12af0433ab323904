"""The page in a real browser: sliders, a push, the return, a worker; without any error."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from solver.cli import main
from solver.export.page_export import emit
from solver.problem.context import Given
from tests.solver.references import unicycle
from tests.solver.small_trainings import untrained_family

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium")
#: How far the bounds of the first parameter lie from its slider's track, in pixels: its ends and its height.
ON_TRACK = """
(() => {
  const input = document.querySelector("#parameters input"), set = document.querySelector("#parameters .set");
  const track = input.getBoundingClientRect(), marked = set.getBoundingClientRect();
  const { lower, upper } = facts.parameters[0];
  const thumb = (value) => track.left + 11 + ((track.width - 22) * (value - input.min)) / (input.max - input.min);
  const middle = (box) => (box.top + box.bottom) / 2;
  return [marked.left - thumb(lower), marked.right - thumb(upper), middle(marked) - middle(track)];
})()
"""


#: Where the tip of the first robot is on the screen, and the size of its picture.
TIP = """
(() => {
  const { canvas, simulation } = panes[0], box = canvas.getBoundingClientRect();
  const [x, y] = placed(box.width, box.height).to(pointsAt(simulation.x)[tip]);
  return [box.left + x, box.top + y, box.width, box.height];
})()
"""
#: How many drawn points of all robots lie outside of their pictures.
OUTSIDE = """
panes.reduce((count, { canvas, simulation }) => {
  const { to } = placed(canvas.clientWidth, canvas.clientHeight);
  const out = ([x, y]) => x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight;
  return count + pointsAt(simulation.x).map(to).filter(out).length;
}, 0)
"""
#: Contrast ratios (WCAG 2.2) to paper and surface: words need 4.5, what is drawn 3.
CONTRASTS = """
(() => {
  paints.clear();
  const light = (name) => {
    const parts = paint(name).match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255);
    const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const least = (names) => Math.min(...names.flatMap((name) => [ratio(name, "paper"), ratio(name, "surface")]));
  return [least(["ink", "soft", "accent", "good", "bad"]), least([1, 2, 3, 4].map((i) => `policy-${i}`))];
})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright; pip install playwright")
    with sync_api.sync_playwright() as play:
        yield play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """opened(path, **options): a page of a new browser, on a phone; the test fails where the page reports an error."""
    errors = list[str]()

    def of(path: Path, **options: Any) -> Any:
        page = browser.new_page(**{"viewport": {"width": 390, "height": 844}, **options})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        return page

    yield of
    for context in browser.contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="module")
def written(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the tiny run."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["page", str(finished_run), "--out", str(path)]) == 0
    return path


@pytest.fixture
def page(written: Path, opened: Callable[..., Any]) -> Any:
    """That page, paused at its start."""
    page = opened(written, viewport={"width": 1000, "height": 1000})
    page.click("#pause")
    page.click("#reset")
    return page


def drag(page: Any, across: float, up: float) -> None:
    """Drag from the tip of the hanging pendulum by shares of the scene's width and height."""
    page.evaluate("scrollTo(0, 0)")  # what was clicked may lie below
    x, y, width, height = page.evaluate(TIP)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across * width, y - up * height)
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
    page.wait_for_selector("#heat figure[data-filled='1,0'] >> nth=1")
    captions = page.locator("#heat figcaption").all_inner_texts()
    assert [each.partition(" of ")[0] for each in captions] == ["V", "torque"]
    assert page.evaluate("heat.map((each) => each.signed)") == [False, True]
    page.locator("#harsh input").last.fill("2")
    assert "stiction=2" in page.url
    page.select_option("#drag", "place")
    page.evaluate("draw(true)")
    length = page.evaluate("placed(panes[0].canvas.clientWidth, panes[0].canvas.clientHeight).scale")  # of 1 m
    drag(page, length / page.evaluate(TIP)[2], length / page.evaluate(TIP)[3])
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
    assert page.evaluate(f"draw() || {OUTSIDE}") == 0


def test_page_fits_a_phone_and_prints(opened: Callable[..., Any], tmp_path: Path) -> None:
    """Nothing is wider than a phone. Paper has no controls, and no heading without anything below it."""
    path = tmp_path / "page.html"
    assert main(["page", "furuta-cfvi", "furuta-rfvi", "--out", str(path)]) == 0
    assert path.stat().st_size < 1_500_000
    page = opened(path, color_scheme="dark")
    page.wait_for_selector("#plots canvas")
    page.wait_for_selector("#heat canvas >> nth=3")
    names = ["furuta-cfvi", "furuta-rfvi"]
    assert page.locator("#panes figcaption b").all_inner_texts() == names
    assert page.locator("#heat figcaption b").all_inner_texts() == [name for name in names for _ in "Vu"]
    assert page.locator("#facts tr:has-text('training') th").all_inner_texts()[1:] == names
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        words, drawn = page.evaluate(CONTRASTS)
        assert words >= 4.5
        assert drawn >= 3.0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for slider in page.get_by_role("slider").all():
        assert slider.evaluate("each => each.labels.length") == 1
    page.emulate_media(media="print", color_scheme="dark")
    assert page.get_by_role("button").count() == 0
    headings = page.locator("h2:visible").all_inner_texts()
    assert headings == ["Over time", "Value function and policy", "100 starts", "Facts"]
    assert page.locator("#equations math:visible").count() > 4
    assert "resistance 8.4 Ohm" in page.locator("#now").inner_text()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(20, 24, 28)"
    facts = page.locator("#facts").inner_text()
    for fact in ("cfvi", "rfvi", "no adversary", "state 0", "networks", "seed"):
        assert fact in facts
    assert "undefined" not in page.locator("body").inner_text()


def test_touch_pushes_and_keys_move_sliders(written: Path, opened: Callable[..., Any]) -> None:
    """On a phone, and without a mouse; a reader who wants less motion starts the page paused."""
    page = opened(written, has_touch=True, is_mobile=True, reduced_motion="reduce")
    assert page.inner_text("#pause") == "Continue"
    before = page.evaluate("panes[0].simulation.x[1]")
    page.evaluate("scrollTo(0, 0)")
    across, up, *_ = page.evaluate(TIP)
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


def test_a_story_is_told_and_the_robot_stays_in_its_picture(page: Any) -> None:
    """Every step is an experiment: a push at the target, half as much mass again, and an observer that finds it."""
    steps = page.locator("#story button")
    assert steps.all_inner_texts() == ["1Push it", "2Make it heavier", "3Now let it find out"]
    steps.nth(0).click()
    assert page.evaluate("start") == page.evaluate("facts.task.target")
    page.evaluate("pause(true)")
    for _ in range(80):
        page.evaluate("advance()")
    assert page.evaluate("pushes[0].done && Math.abs(panes[0].simulation.x[1]) > 0.01")
    assert page.evaluate(f"draw() || {OUTSIDE}") == 0
    steps.nth(1).click()
    assert page.evaluate("conditions.theta[0]") == pytest.approx(1.5 * page.evaluate("nominal[0]"))
    assert "1.5 kg" in page.inner_text("#told")
    assert page.evaluate("start") == page.evaluate("facts.task.start_mean")
    assert page.locator(".track .found:visible").count() == 0
    steps.nth(2).click()
    assert "knows=found" in page.url
    assert page.locator("#knows").input_value() == "found"
    page.evaluate("pause(true)")
    for _ in range(200):
        page.evaluate("advance()")
    page.evaluate("draw()")
    assert page.evaluate("panes[0].simulation.observer.parameters[0]") == pytest.approx(1.5, rel=0.1)
    assert page.inner_text(".finds").startswith("finds mass 1.")
    assert page.locator(".track .found:visible").count() == 1
    page.select_option("#knows", "nominal")
    page.evaluate("draw()")
    assert page.locator(".finds:visible").count() == 0


def test_a_push_moves_a_robot_without_speeds(opened: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(emit([untrained_family(robot=unicycle())]))
    page = opened(tmp_path / "page.html", viewport={"width": 1000, "height": 1000})
    page.click("#pause")
    page.locator("#story button").first.click()
    page.evaluate("pause(true)")
    page.evaluate("reset()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[...panes[0].simulation.x]") == pytest.approx([0.3, 0.0, 0.0])
    drag(page, 0.1, 0.05)
    moved = page.evaluate("[...panes[0].simulation.x]")
    assert moved[0] > 0.4
    assert moved[1] > 0.01
    page.select_option("#drag", "place")
    drag(page, -0.1, 0.0)
    assert page.evaluate("start[0]") < moved[0] - 0.05


@pytest.mark.parametrize(
    ("given", "steps", "theta"),
    [
        ((Given("lean", -0.6, 0.6),), ["heavier", "Now let it find out"], 1.5),
        ((Given("mass", 0.5, 0.9), Given("lean", -0.6, 0.6)), ["lighter", "Now let it find out"], 0.5),
    ],
)
def test_a_story_says_what_it_changes_and_what_a_policy_can_be_told(
    given: tuple[Given, ...], steps: list[str], theta: float, opened: Callable[..., Any], tmp_path: Path
) -> None:
    """A policy that is told its reference only is told no mass. An observer finds it all the same."""
    (tmp_path / "page.html").write_text(emit([untrained_family(*given)]))
    page = opened(tmp_path / "page.html")
    buttons = page.locator("#story button")
    assert buttons.all_inner_texts()[1:] == [f"2Make it {steps[0]}", f"3{steps[1]}"]
    buttons.nth(2).click()
    assert page.evaluate("conditions.theta[0]") == pytest.approx(theta)
    assert ("is told the estimate" in page.inner_text("#told")) == (len(given) > 1)
    page.evaluate("pause(true), advance(), advance()")
    assert page.evaluate("panes[0].simulation.observer.estimated") == [0]


#: What the policy is told in a step when it is asked, and the estimate.
TOLD = """() => {
    const { observer } = panes[0].simulation, { compensate } = observer;
    let told;
    observer.compensate = (...given) => { told = runs[0].told.entries[0]; compensate(...given); };
    advance();
    observer.compensate = compensate;
    return [told, observer.parameters[0]];
}"""


#: The state through which the maps are drawn.
MAPPED = """(() => {
    const usual = worker;
    let x;
    worker = (message) => { x = message.x; };
    maps();
    worker = usual;
    return x;
})()"""


def test_a_family_is_told_what_is_found_and_its_target_moves(
    trained_family: Callable[[str], Path], opened: Callable[..., Any], tmp_path: Path
) -> None:
    """To where the pointer is, within the range of the reference; the slider shows it."""
    path = tmp_path / "page.html"
    assert main(["page", str(trained_family("lean")), "--out", str(path)]) == 0
    page = opened(path)
    page.click("#pause")
    assert page.locator("#story button").all_inner_texts()[-1] == "3Now let it find out"
    assert page.locator("#knows option").count() == 3
    page.select_option("#drag", "goal")
    page.evaluate("scrollTo(0, 0)")
    for wanted, expected in ((0.4, 0.4), (1.2, 0.6)):
        x, y, *_ = page.evaluate(TIP.replace("simulation.x)", "simulation.target)"))
        scale = page.evaluate("placed(panes[0].canvas.clientWidth, panes[0].canvas.clientHeight).scale")
        lean = page.evaluate("panes[0].simulation.target[0]")
        page.mouse.move(x, y)
        page.mouse.down()
        across, down = math.sin(wanted) - math.sin(lean), math.cos(lean) - math.cos(wanted)
        page.mouse.move(x + scale * across, y + scale * down)
        page.mouse.up()
        assert page.evaluate("conditions.theta[1]") == pytest.approx(expected, abs=0.02)
        page.evaluate("draw()")
        assert page.evaluate("panes[0].simulation.target[0]") == pytest.approx(expected, abs=0.02)
    assert page.evaluate("pushes.length") == 0
    assert page.evaluate(MAPPED)[0] == pytest.approx(0.6, abs=0.02)  # at this target, and not at the nominal one
    page.locator("#story button").last.click()
    page.evaluate("pause(true)")
    for _ in range(100):
        page.evaluate("advance()")
    estimated = "panes[0].simulation.observer.estimated.map((i) => facts.parameters[i].name)"
    assert page.evaluate(estimated) == ["mass"]
    told, found = page.evaluate(TOLD)  # the first from -1 to 1
    assert told == pytest.approx((found - 1.0) / 0.5, abs=1e-9)
    assert told > 0.1
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(
    ("lower", "words"), [(1.1, "those nearest to the nominal values"), (0.9, "the nominal values")]
)
def test_a_family_without_the_nominal_robot_says_which_it_shows(
    lower: float, words: str, opened: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(emit([untrained_family(Given("mass", lower, 1.5), Given("lean", -0.3, 0.3))]))
    page = opened(path)
    assert page.locator("#knows option").first.inner_text() == words
    page.locator("#story button").nth(1).click()
    assert f"The policy knows {max(lower, 1.0):g} kg" in page.locator("#told").inner_text()


def test_a_body_in_space_turns_under_the_camera(
    opened: Callable[..., Any], begun: Callable[..., Path], tmp_path: Path
) -> None:
    """Its points move rigidly in space, what is drawn is the artifact's picture, and a drag beside it orbits."""
    path = tmp_path / "page.html"
    assert main(["page", str(begun("quadrotor")), "--out", str(path)]) == 0
    page = opened(path)
    page.click("#pause")
    page.click("#reset")
    found = """
    (() => {
      const points = spacePoints(panes[0].simulation.x);
      const distance = (p, r) => Math.hypot(p[0] - r[0], p[1] - r[1], p[2] - r[2]);
      return points.flatMap((p, i) => points.slice(0, i).map((r) => distance(p, r)));
    })()
    """
    before = page.evaluate(found)
    for _ in range(30):
        page.evaluate("advance()")
    assert page.evaluate(found) == pytest.approx(before, abs=1e-9)
    assert page.evaluate(f"draw() || {OUTSIDE}") == 0
    picture = page.evaluate(
        "planePoints(panes[0].simulation.x).map((p, i) => {"
        " const [x, y, z] = spacePoints(panes[0].simulation.x)[i];"
        " return Math.hypot(x + 0.35 * y - p[0], z + 0.35 * y - p[1]); })"
    )
    assert max(picture, default=0.0) < 1e-9
    yaw, speeds = page.evaluate("orbit.yaw"), page.evaluate("[...panes[0].simulation.x.slice(q)]")
    box = page.locator("canvas.scene").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 94, box["y"] + 4)
    page.mouse.up()
    assert abs(page.evaluate("orbit.yaw") - yaw) > 0.3
    assert page.evaluate("[...panes[0].simulation.x.slice(q)]") == speeds
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[...panes[0].simulation.x.slice(q)]") != speeds
    assert page.evaluate("document.documentElement.scrollWidth") == 390
