"""The plan as the explorer's first page, and pictures that fit, zoom and move, in Chromium."""

import json
import re

import pytest

import blockbuster as bb
from blockbuster.frontend import lower
from blockbuster.simulation import simulate
from blockbuster.view.explorer import simulation
from blockbuster.view.explorer.export import write_html
from blockbuster.view.explorer.plan import choice_for, choices_of, plan_data, plan_of
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.explorer.simulation import sampled
from blockbuster.view.render import can_render
from tests.view import test_explorer_browser as browser
from tests.view.browser import Page

needs_browser = browser.pytestmark
chromium = browser.chromium
SIZES = {"M": 4096, "K": 4096, "N": 4096}
SETTING = Setting(sizes=SIZES)


def normed(x, w):
    return bb.rms_norm(bb.gelu(x @ w))


@pytest.fixture(scope="module")
def program():
    return bb.trace(normed, x="M K", w="K N")


@pytest.fixture(scope="module")
def divided(program):
    """The plan of a product and a norm that are two kernels."""
    plan, missing = plan_of(program, SIZES, SETTING)
    assert not missing
    return plan


def test_boxes_say_what_the_plan_explains(divided):
    shown = plan_data(divided, alone=False)
    explained = " ".join(divided.explain().split())

    assert len(shown["parts"]) == len(divided.divided.parts) == 2
    assert sum(part["us"] for part in shown["parts"]) == pytest.approx(divided.total_us)
    for part in shown["parts"]:
        assert part["computes"] in explained
        assert f"limited by {' and '.join(part['limits'])}" in explained
    for reason in (*shown["stored"], *shown["search"]):
        assert " ".join(reason.split()) in explained
    if can_render("svg"):
        assert re.findall(r'data-part="(\d+)"', shown["picture"]) == ["1", "2"]


def test_each_box_leads_to_the_derivation_of_its_kernels(divided, program):
    pages = [page for part in plan_data(divided, alone=False)["parts"] for page in part["pages"]]

    assert pages == [1, 2], "page 0 is the derivation of the whole program"
    assert choice_for(lower(program), divided) is None
    for fused, choice in choices_of(divided):
        assert choice.considered.best.graph == choice.derivation.final
        assert choice.derivation.start == fused.graph


def test_a_program_in_one_part_is_chosen_once():
    program = bb.trace(lambda x, w: bb.gelu(x @ w), x="M K", w="K N")
    plan, _ = plan_of(program, SIZES, SETTING)
    choice = choice_for(lower(program), plan)

    assert choice is not None
    assert choice.considered is plan.divided.considered[0]
    assert plan_data(plan, alone=True)["parts"][0]["pages"] == [0]


def test_a_plan_that_cannot_be_made_says_why(program):
    plan, missing = plan_of(program, {"M": 4}, SETTING)

    assert plan is None
    assert "no plan of the whole program" in missing
    assert "no size given for K, N" in missing


def test_much_to_simulate_is_sampled_from_the_grid(monkeypatch):
    program = bb.trace(lambda x, w: x @ w, x="B M K", w="B K N")
    kernel = bb.emit(bb.fuse(bb.lower(program)).final, {"B": 8, "M": 256, "K": 64, "N": 128})
    whole, none = sampled(kernel)
    assert none == {}
    assert whole == kernel

    monkeypatch.setattr(simulation, "MOST_TILES", 40)
    smaller, shrunk = sampled(kernel)
    assert shrunk == {"B": 2}
    assert smaller.sizes == {**kernel.sizes, **shrunk}
    data = simulation.simulation_data(kernel, "h200")
    assert data["sample"] == [["B", 2, 8]]
    assert data["time"] == pytest.approx(simulate(smaller, launch="graph").time_us, abs=1e-3)


@pytest.fixture(scope="module")
def path(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.html"
    derivation = bb.fuse(bb.lower(program))
    said = []
    write_html(
        derivation, path, SETTING, prove=False, program=program, progress=said.append
    )
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


class TestInChromium:
    pytestmark = [*needs_browser, pytest.mark.slow]

    @pytest.mark.parametrize(("width", "dark"), [(1280, False), (420, True)])
    def test_the_page_opens_with_the_plan(self, shown, width, dark):
        shown.resize(width, 800)
        shown.dark(dark)
        assert shown.find("#plan-view").is_displayed()
        assert not shown.find("main").is_displayed()
        assert shown.js("return location.hash") == "#plan"
        assert len(shown.all("#plan-canvas [data-part]")) == 2
        assert len(shown.all("#plan-list .kernels li")) == 2
        shown.wait(lambda: inside(shown, "#plan-canvas"))
        assert shown.js("return document.documentElement.scrollWidth") <= width

    def test_a_click_on_a_kernel_opens_its_derivation(self, shown):
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

    def test_pictures_fit_in_every_tab_and_zoom_and_move(self, shown):
        shown.press("p")
        for tab in ("step", "sizes", "kernel", "simulation", "why", "source"):
            shown.click(f"#tab-{tab}")
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

    def test_search_finds_by_name_and_goes_on(self, shown):
        shown.press("/")
        assert not shown.find("#plan-view").is_displayed()
        shown.press("dot")
        assert shown.all("#text .linked")
        shown.press("\ue00c")  # escape
        assert shown.all("#text .linked") == []
        shown.press("/", "nowhere")
        assert "none" in shown.find("#search").get_attribute("class").split()

    def test_labels_are_painted_after_arrows(self, shown):
        painted = shown.js(
            "const graph = document.querySelector('#plan-canvas g.graph')"
            " || document.querySelector('#plan-canvas svg');"
            "return [...graph.children].map((e) => e.tagName === 'text' ? 'label' :"
            " e.classList.contains('edge') ? 'edge' : '')"
        )
        assert "label" in painted, json.dumps(painted)
        assert painted.index("label") > max(i for i, e in enumerate(painted) if e == "edge")
