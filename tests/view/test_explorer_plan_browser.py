"""The explorer's page of plans in Chromium; pictures fit, zoom and move, and search finds."""

import json

import pytest

import blockbuster as bb
from blockbuster.view.explorer.export import write_html
from blockbuster.view.explorer.setting import Setting
from tests.view import test_explorer_browser as browser
from tests.view.browser import Page
from tests.view.test_explorer_plan import SETTING, normed

chromium = browser.chromium
pytestmark = [*browser.pytestmark, pytest.mark.slow]  # the browser takes seconds to start


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.html"
    program = bb.trace(normed, x="M K", w="K N")
    derivation = bb.fuse(bb.lower(program))
    said = []
    write_html(derivation, path, SETTING, prove=False, program=program, progress=said.append)
    assert said[0] == "choosing the plan of kernels"
    assert any(text.startswith("program 2 of 2") for text in said)
    return path


@pytest.fixture
def shown(chromium, path):
    page = Page(chromium, path)
    yield page
    assert [e for e in chromium.get_log("browser") if e["level"] != "INFO"] == []


def inside(shown, pane):
    """Whether the picture of a pane is wholly seen in it."""
    return shown.js(
        "const pane = document.querySelector(arguments[0]), svg = pane.querySelector('svg');"
        "return pane.scrollWidth <= pane.clientWidth + 1 && pane.scrollHeight <= pane.clientHeight"
        " + 1 && svg.getBoundingClientRect().width > 40",
        pane,
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The page of causal attention over batches: a plan of one part."""
    path = tmp_path_factory.mktemp("alone") / "alone.html"
    program = bb.trace(causal, q="B H S D", k="B H S D", v="B H S D")
    write_html(bb.fuse(bb.lower(program)), path, Setting(), prove=False, program=program)
    return path


def causal(q, k, v):
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    scores = bb.where(seen, q @ k.swapaxes(-1, -2), -float("inf"))
    return bb.softmax(scores) @ v


def test_a_plan_of_one_part_tells_what_fusing_gave(chromium, alone):
    page = Page(chromium, alone)
    told = page.find("#plan-list").text
    assert "null" not in told
    assert "Values over B × H × S × S' (268,435,456 entries) no longer pass through" in told
    at = page.find("#plan-list .gains button").get_attribute("data-step")
    words = page.find("#plan-list .gains button").text
    page.click("#plan-list .gains button")
    page.wait(lambda: page.js("return location.hash") == f"#{at}")
    assert page.find("#panel-step .born").text == f"{words}."


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (420, False)])
def test_step_0_shows_the_whole_program_in_readable_letters(chromium, alone, width, dark):
    page = Page(chromium, alone)
    page.resize(width, 800)
    page.dark(dark)
    page.press("p")
    page.wait(lambda: inside(page, "#canvas"))
    nodes = page.js(
        "return [...document.querySelectorAll('#canvas [data-place]')].map((e) => e.dataset.place)"
    )
    places = {place for place in nodes if "-" not in place}
    lines = page.js("return [...document.querySelectorAll('#text li')].map((e) => e.dataset.place)")
    assert places == {place for place in lines if place and "-" not in place}
    heights = page.js(
        "return [...document.querySelectorAll('#canvas text')]"
        ".map((e) => e.getBoundingClientRect().height)"
    )
    assert min(heights) > 7, "pixels"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (420, True)])
def test_the_page_opens_with_the_plan(shown, width, dark):
    shown.resize(width, 800)
    shown.dark(dark)
    assert shown.find("#plan-view").is_displayed()
    assert not shown.find("main").is_displayed()
    assert shown.js("return location.hash") == "#plan"
    assert len(shown.all("#plan-canvas [data-part]")) == 2
    assert len(shown.all("#plan-list .kernels > li")) == 2
    shown.wait(lambda: inside(shown, "#plan-canvas"))
    assert shown.js("return document.documentElement.scrollWidth") <= width


def test_a_click_on_a_kernel_opens_its_derivation(shown):
    shown.tap('#plan-canvas [data-part="2"]')
    shown.wait(lambda: shown.js("return location.hash") == "#2/0")
    shown.wait(lambda: shown.all("#canvas svg"))
    assert "program 2 of 2" in shown.find("#title").text
    assert not shown.find("#plan-view").is_displayed()
    shown.press("\ue014")  # right
    assert shown.js("return location.hash") == "#2/1"
    shown.press("p")
    assert shown.find("#plan-view").is_displayed()
    shown.click("#whole-program")
    shown.wait(lambda: shown.js("return location.hash") == "#0")
    shown.wait(lambda: "the plan divides it" in shown.find("#summary").text)


@pytest.mark.parametrize("width", [1280, 420])
def test_pictures_fit_in_every_tab(shown, width):
    shown.resize(width, 800)
    shown.press("p")
    for tab in ("step", "sizes", "kernel", "simulation", "why", "source"):
        shown.click(f"#tab-{tab}")
        shown.wait(lambda: inside(shown, "#canvas"))


def test_pictures_zoom_by_the_wheel_and_move_by_dragging(shown):
    shown.press("p")
    shown.wait(lambda: inside(shown, "#canvas"))
    wheel = (
        "const pane = document.querySelector('#canvas'), box = pane.getBoundingClientRect();"
        "pane.dispatchEvent(new WheelEvent('wheel', {deltaY: -900, cancelable: true,"
        " clientX: box.left + 60, clientY: box.top + 60}))"
    )
    shown.js(wheel)
    assert not inside(shown, "#canvas")
    before = shown.js("return document.querySelector('#canvas').scrollLeft")
    drag = (
        "const pane = document.querySelector('#canvas'), box = pane.getBoundingClientRect();"
        "const at = (x) => ({clientX: box.left + x, clientY: box.top + 50, bubbles: true,"
        " button: 0, pointerType: 'mouse'});"
        "pane.dispatchEvent(new PointerEvent('pointerdown', at(200)));"
        "window.dispatchEvent(new PointerEvent('pointermove', at(120)));"
        "window.dispatchEvent(new PointerEvent('pointerup', at(120)))"
    )
    shown.js(drag)
    moved = shown.js("return document.querySelector('#canvas').scrollLeft")
    assert moved == pytest.approx(before + 80, abs=2)
    shown.press("0")
    assert inside(shown, "#canvas")


def test_search_finds_by_name_and_goes_on(shown):
    shown.press("/")
    assert not shown.find("#plan-view").is_displayed()
    shown.press("dot")
    assert shown.all("#text .linked")
    shown.press("\ue00c")  # escape
    assert shown.all("#text .linked") == []
    shown.press("/", "nowhere")
    assert "none" in shown.find("#search").get_attribute("class").split()


@pytest.mark.parametrize("pane", ["#plan-canvas", "#canvas"])
def test_labels_are_painted_after_arrows(shown, pane):
    if pane == "#canvas":
        shown.press("p")
        shown.wait(lambda: shown.all("#canvas svg"))
    painted = shown.js(
        "const pane = document.querySelector(arguments[0]);"
        "const graph = pane.querySelector('g.graph') || pane.querySelector('svg');"
        "return [...graph.children].map((e) => e.tagName === 'text' ||"
        " e.classList.contains('node') ? 'label' : e.classList.contains('edge') ? 'edge' : '')",
        pane,
    )
    assert "label" in painted, json.dumps(painted)
    assert painted.index("label") > max(i for i, e in enumerate(painted) if e == "edge")
