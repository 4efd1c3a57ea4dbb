"""The explorer's page in headless Chromium: it moves, computes what Python computes, and fits."""

import shutil

import pytest

import blockbuster as bb
from blockbuster.selection import closed_traffic
from blockbuster.view.explorer.page import page, write_whole
from blockbuster.view.render import can_render
from tests.interp.counted import graph_traffic as traffic
from tests.view.browser import Page
from tests.view.explorer_cases import SETTINGS, data, derivation
from tests.view.test_explorer import graphs

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no chromium with its driver"),
    pytest.mark.skipif(not can_render("svg"), reason="nothing is installed that draws pictures"),
]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The page of each derivation, by name."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {"attention": data("attention", prove=True), "heads": data("heads"),
             "residual": data("residual")}  # fmt: skip
    return {name: write_whole(folder / f"{name}.html", page(d)) for name, d in pages.items()}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def attention(chromium, files):
    page = Page(chromium, files["attention"])
    yield page
    errors = [entry for entry in chromium.get_log("browser") if entry["level"] != "INFO"]
    assert errors == []


@pytest.mark.parametrize("name", ["attention", "heads", "residual"])
def test_every_state_shows_without_errors(chromium, files, name):
    shown = Page(chromium, files[name])
    for at in range(len(data(name)["states"])):
        assert shown.at == at
        assert len(shown.all("#text li")) == len(data(name)["states"][at]["text"]["lines"])
        shown.wait(lambda: shown.all("#canvas svg"))
        if at:
            shown.wait(lambda: shown.all("#canvas .taken"))
            shown.press("b")
            shown.wait(lambda: shown.find("#side [data-value=before][aria-pressed=true]"))
            gone = data(name)["steps"][at - 1]["changes"]["text"]["gone"]
            assert bool(shown.all("#text .gone")) == bool(gone)
            shown.press("b")
        shown.press("\ue014")  # right
    assert chromium.get_log("browser") == []


def whole_arrays(x, w):
    y = x @ w
    return bb.exp(bb.custom(len, y, shape=y.shape) + 1)


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize(
    ("program", "dims", "words"),
    [
        (lambda x: x + 1, {"x": "M N"}, ("one kernel", "forall m")),
        (whole_arrays, {"x": "M K", "w": "K N"}, ("2 buffered edges left", "no loops")),
    ],
)
def test_programs_without_steps_loops_or_pictures(
    chromium, tmp_path, monkeypatch, program, dims, words, drawn
):
    monkeypatch.setattr("blockbuster.view.explorer.pictures.can_render", lambda _: drawn)
    path = tmp_path / "page.html"
    bb.fuse(bb.lower(bb.trace(program, **dims))).to_html(path, prove=False)
    shown = Page(chromium, path)

    assert words[0] in shown.find("#summary").text
    shown.press("\ue014", "b", "[", "e", "e", "\ue011")
    shown.find("#form [data-value=loops]").click()
    assert words[1] in shown.find("#text").text
    if drawn:
        shown.wait(lambda: shown.all("#canvas svg"))
    else:
        assert "no pictures" in shown.find("#canvas").text
        assert not shown.find("#depth").is_displayed()
    assert chromium.get_log("browser") == []


def test_keys_buttons_and_slider_move(attention):
    last = len(data("attention")["steps"]) + len(data("attention")["moves"]["steps"])
    keys = {"right": "\ue014", "left": "\ue012", "home": "\ue011", "end": "\ue010"}

    attention.press(keys["right"], keys["right"], keys["left"])
    assert attention.at == 1
    attention.press(keys["end"])
    assert attention.at == last
    attention.press(keys["right"])
    assert attention.at == last
    attention.press(keys["home"])
    assert attention.at == 0
    attention.click("#on")
    assert attention.at == 1
    attention.enter("#slider", 5, "input")
    assert attention.at == 5
    attention.click("#steps [data-at='3']")
    assert attention.at == 3


CLOCK = """
window.clock = null;
window.setInterval = (act, every) => { window.clock = act; return every; };
window.clearInterval = () => { window.clock = null; };
"""


def test_it_plays_until_it_is_stopped_or_at_the_end(attention):
    """By a clock that the test moves: a page that plays by itself is never where one looks."""
    attention.js(CLOCK)
    attention.press(" ")
    assert attention.find("#play").text == "Stop"
    for at in (1, 2):
        attention.js("clock()")
        assert attention.at == at
    attention.press(" ")
    assert attention.find("#play").text == "Play"
    assert attention.js("return clock") is None
    attention.press("\ue010")  # end
    attention.click("#play")
    assert attention.at == 0
    steps = [*data("attention")["steps"], *data("attention")["moves"]["steps"]]
    for _ in steps:
        attention.js("clock()")
    assert attention.at == len(steps)
    attention.js("clock()")
    assert attention.find("#play").text == "Play"
    assert attention.js("return clock") is None


def test_curve_leads_to_snapshots_and_the_live_region_tells(attention):
    snapshots = data("attention")["snapshots"]
    marked = [int(dot.get_attribute("data-at")) for dot in attention.all("#curve .snapshot")]

    assert marked == snapshots
    attention.tap(f"#curve .hit[data-at='{snapshots[0]}']")
    assert attention.at == snapshots[0]
    assert f"Step {snapshots[0]} of" in attention.find("#live").get_attribute("textContent")


@pytest.mark.parametrize(("sizes", "blocks"), SETTINGS)
def test_numbers_follow_sizes_and_are_those_of_python(attention, sizes, blocks):
    for dim in sizes:
        for what, table in (("size", sizes), ("blocks", blocks)):
            attention.enter(f"input[data-{what}='{dim}']", table[dim])
    for at, graph in enumerate(graphs("attention")):
        attention.go(at)
        counted = traffic(graph, sizes, blocks)
        closed = closed_traffic(graph).at(sizes, blocks, item_bytes=2)
        wanted = {
            "bytes": closed.bytes, "loads": counted.loads, "stores": counted.stores,
            "edges": len(graph.buffered_edges()), "footprint": closed.footprint * 2,
            "matrix": counted.flops["matrix"], "vector": counted.flops["vector"],
        }  # fmt: skip
        for metric, number in wanted.items():
            assert attention.number(f"#numbers [data-metric={metric}] .after") == number, metric
        if at:
            before = closed_traffic(graphs("attention")[at - 1]).at(sizes, blocks, item_bytes=2)
            assert attention.number("#saved") == before.bytes - closed.bytes


def test_sliders_change_sizes_and_reset_takes_it_back(attention):
    before = attention.number("#numbers [data-metric=bytes] .after")
    attention.click("#tab-sizes")
    attention.enter("[data-size-slider=N]", 6, "input")

    assert attention.find("input[data-size=N]").get_attribute("value") == "64"
    assert attention.number("#numbers [data-metric=bytes] .after") > before
    attention.click("#reset")
    assert attention.number("#numbers [data-metric=bytes] .after") == before
    attention.enter("#dtype", "float32")
    assert attention.number("#numbers [data-metric=bytes] .after") == 2 * before


def test_sizes_that_follow_keep_their_rules(chromium, files):
    shown = Page(chromium, files["heads"])
    heads = next(dim["name"] for dim in data("heads")["dims"] if dim["unit"])
    shown.enter("input[data-size=E]", 31)
    sizes = {
        dim["name"]: int(shown.find(f"[data-size='{dim['name']}']").get_property("value"))
        for dim in data("heads")["dims"]
    }

    assert sizes["E"] == 32
    assert sizes[heads] == 2
    graph = derivation("heads").start
    form = closed_traffic(graph)
    blocks = {
        dim["name"]: int(shown.find(f"[data-blocks='{dim['name']}']").get_property("value"))
        for dim in data("heads")["dims"]
    }
    moved = form.at(sizes, blocks, item_bytes=2)
    assert shown.number("#numbers [data-metric=bytes] .after") == moved.bytes


def test_lines_of_the_kernel_show_their_node(attention):
    attention.click("#tab-kernel")
    assert attention.at == len(data("attention")["states"]) - 1
    attention.wait(lambda: attention.all("#canvas svg"))
    (line,) = (li for li in attention.all("#panel-kernel li") if "= tl.exp2(p" in li.text)
    place = line.get_attribute("data-place")
    attention.js("arguments[0].click()", line)

    (node,) = attention.all("#canvas .linked")
    assert node.get_attribute("data-place") == place
    assert "exp" in node.text
    (listed,) = attention.all("#text .linked")
    assert "exp" in listed.text
    attention.press("\ue00c")  # escape
    attention.click("#title")
    assert attention.all("#canvas .linked") == []
    attention.click("#whole")
    assert len(attention.all("#panel-kernel li")) == len(data("attention")["kernel"]["lines"])


def test_maps_open_and_crumbs_lead_back(chromium, files):
    shown = Page(chromium, files["residual"])
    shown.wait(lambda: shown.all("#canvas svg"))
    maps = data("residual")["pictures"]["states"][0]["maps"]
    inner = max(maps, key=lambda place: (place.count("-"), place))
    outer = inner.split("-")[0]
    shown.enter("#depth", "0")
    for place in (outer, inner):
        selector = f'#canvas [data-place="{place}"]'
        shown.wait(lambda s=selector: shown.all(s))
        shown.tap(selector)
        shown.wait(lambda p=place: len(shown.all("#crumbs button")) == 1 + len(p.split("-")))
    shown.wait(lambda: shown.all(f'#canvas [data-place="{inner}-0"]'))
    shown.press("\ue00c")
    assert len(shown.all("#crumbs button")) == len(inner.split("-"))
    shown.find("#crumbs button").click()
    shown.wait(lambda: len(shown.all("#crumbs button")) == 1)
    first = shown.find(f'#canvas [data-place="{outer}"]')
    assert first.get_attribute("aria-label").startswith("Look into")
    shown.js("arguments[0].focus()", first)
    shown.press("\ue007")  # enter
    shown.wait(lambda: len(shown.all("#crumbs button")) == 2)
    shown.press("\ue00c")
    depths = [option.get_attribute("value") for option in shown.all("#depth option")]
    shown.enter("#depth", "auto")
    shown.press("[" * len(depths))
    assert shown.find("#depth").get_property("value") == "0"


def test_why_it_stops_leads_to_the_edge(chromium, files):
    shown = Page(chromium, files["residual"])
    left = data("residual")["left"]
    shown.click("#tab-why")
    assert len(shown.all("#panel-why .reasons:not(.stored) > li")) == len(left)
    shown.click("#panel-why .reasons:not(.stored) button")

    assert shown.at == data("residual")["snapshots"][-1]
    linked = shown.all("#text .linked")
    assert linked
    assert {li.get_attribute("data-place") for li in linked} == {left[0]["place"]}


def test_dark_and_light(attention):
    def ground():
        return attention.js("return getComputedStyle(document.documentElement).backgroundColor")

    light = ground()
    attention.click("#theme")
    dark = ground()
    assert light != dark
    attention.click("#theme")
    assert ground() == light
    attention.dark(True)
    attention.wait(lambda: ground() == dark)


def test_the_simulation_shows_processors_and_resources(attention):
    attention.click("#tab-simulation")
    made = data("attention")["simulation"]
    assert len(attention.all("#processors path")) == len(made["bars"]) + 1  # and the launches
    assert len(attention.all("#panel-simulation [data-busy]")) == len(made["resources"])
    attention.js(
        "const chart = document.getElementById('processors');"
        "const {left, top} = chart.getBoundingClientRect();"
        "chart.dispatchEvent(new MouseEvent('mousemove', {clientX: left + 1, clientY: top + 1}));"
    )
    assert attention.find("#bar-at").text.startswith("processor 0")


@pytest.mark.parametrize("tab", ["step", "sizes", "kernel", "simulation", "why", "source"])
def test_nothing_runs_out_of_the_window(attention, tab):
    for width, height in ((1280, 800), (800, 1000), (420, 900), (320, 640)):
        attention.resize(width, height)
        attention.click(f"#tab-{tab}")
        assert_inside(attention, width)


def assert_inside(shown, width):
    assert shown.js("return document.documentElement.scrollWidth") <= width
    wide = shown.js(
        "return [...document.querySelectorAll('header *, .timeline *, .bar *, #crumbs *')]"
        ".filter((e) => e.getClientRects().length && !e.closest('.tabs')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []


def test_controls_have_names(attention):
    nameless = attention.js(
        "return [...document.querySelectorAll('button, input, select')].filter((e) =>"
        " !e.textContent.trim() && !e.ariaLabel && !e.labels?.length).map((e) => e.outerHTML)"
    )
    assert nameless == []
    assert attention.find("#slider").get_attribute("aria-valuetext").startswith("0 of")


def test_the_page_opens_in_a_second(attention):
    def seconds():
        attention.driver.refresh()
        entry = "performance.getEntriesByType('navigation')[0]"
        return attention.js(f"return {entry}.loadEventEnd") / 1000

    assert any(0 < seconds() < 3 for _ in range(5)), (
        "the promise is one second; a busy machine gets three, and five attempts"
    )


def test_moves_of_the_kernel_stand_behind_the_rules(attention):
    moves = data("attention")["moves"]
    last = len(data("attention")["states"]) - 1
    for at, step in enumerate(moves["steps"], start=1):
        attention.enter("#slider", last + at, "input")
        assert attention.at == last + at
        assert attention.find("#panel-step h2").text == f"{last + at} {step['move']}"
        assert len(attention.all("#text li")) == len(moves["states"][at]["lines"])
        assert len(attention.all("#text .come")) == sum(
            end - begin for begin, end in moves["states"][at]["come"]
        )
        attention.press("b")
        assert len(attention.all("#text li")) == len(moves["states"][at - 1]["lines"])
        attention.press("b")
        assert not attention.find("#form").is_displayed()
    attention.press("\ue012")  # left
    attention.wait(lambda: attention.all("#canvas svg"))

    attention.enter("#slider", last, "input")
    assert attention.find("#form").is_displayed()


def test_a_move_shows_what_the_kernel_asks_before_and_after(attention):
    shown = data("attention")
    moves, last = shown["moves"], len(shown["states"]) - 1
    (at,) = (i for i, step in enumerate(moves["steps"], 1) if step["move"] == "stage")
    attention.click(f"#steps button.move[title='{moves['steps'][at - 1]['line']}']")
    assert attention.at == last + at
    for side, state in (("before", at - 1), ("after", at)):
        cost = moves["states"][state]["cost"]
        assert attention.number(f"#costs [data-cost='elements moved'] .{side}") == cost["elements"]
        shared = attention.number(f"#costs [data-cost='shared memory, about'] .{side}")
        assert shared == max(cost["shared"])
