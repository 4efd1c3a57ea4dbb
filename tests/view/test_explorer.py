"""The explorer's data and page: numbers, places, size, bytes, and what a page may not contain."""

import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import blockbuster as bb
from blockbuster.ir.ops import Functional
from blockbuster.rules import PEELING_RULES, RULES
from blockbuster.view.explorer.conditions import conditions
from blockbuster.view.explorer.data import SCHEMA, explorer_data
from blockbuster.view.explorer.page import page, write_whole
from blockbuster.view.explorer.places import place_name, with_places
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.explorer.texts import changed
from blockbuster.view.render import can_render
from tests.interp.counted import graph_traffic as traffic
from tests.parameters import rest_slow
from tests.view.explorer_cases import (
    SETTINGS,
    data,
    derivation,
    kernel_of,
    passed,
    unpacked,
    values,
)

NAMES = ("attention", "heads", "residual")
draws = pytest.mark.skipif(not can_render("svg"), reason="nothing is installed that draws pictures")


def graphs(name):
    return [derivation(name).start, *(frame.after for frame in passed(name))]


def node_at(graph, place):
    *path, at = map(int, place.split("-"))
    return graph.at(tuple(path)).nodes[at]


def lines(page, numbers):
    return [page["strings"][number] for number in numbers]


# numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "blocks"), SETTINGS)
def test_numbers_are_those_that_interpreting_counts(sizes, blocks):
    shown = data("attention")
    numbers = values(shown, sizes, blocks)

    for graph, state in zip(graphs("attention"), shown["states"], strict=True):
        counted = traffic(graph, sizes, blocks)
        forms = [[numbers[form] for form in tensor["forms"]] for tensor in state["tensors"]]
        loads, stores, loaded, stored = map(sum, zip(*forms, strict=True))
        assert (loads, stores) == (counted.loads, counted.stores)
        moved = counted.tensors.values()
        assert loaded == sum(m.loaded_elements for m in moved)
        assert stored == sum(m.stored_elements for m in moved)
        assert numbers[state["dots"]] == counted.dots
        assert len(state["edges"]) == len(graph.buffered_edges())


@pytest.mark.parametrize("name", NAMES)
def test_tensors_are_paired_once_each(name):
    shown = data(name)
    for at, step in enumerate(shown["steps"]):
        states = shown["states"]
        before, after = states[step["from"]]["tensors"], states[at + 1]["tensors"]
        olds = [i for i, _ in step["tensors"] if i is not None]
        news = [j for _, j in step["tensors"] if j is not None]
        assert sorted(olds) == list(range(len(before)))
        assert sorted(news) == list(range(len(after)))
        for i, j in step["tensors"]:
            if i is not None and j is not None:
                assert before[i]["hint"] == after[j]["hint"]
                if before[i]["kind"] == "input":
                    assert after[j]["name"] == before[i]["name"]


@pytest.mark.slow
def test_sizes_that_follow_are_marked_and_fit():
    dims = {dim["name"]: dim for dim in data("heads")["dims"]}
    heads = [dim for dim in dims.values() if dim["unit"]]

    assert [(dim["size"], dim["follows"]) for dim in heads] == [(2, True)]
    assert dims["E"]["step"] == 2
    assert all(dim["blocks"] <= dim["size"] for dim in dims.values())


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting(sizes={"Z": 3}), "unknown dim Z in sizes"),
        (Setting(blocks={"Z": 3}), "unknown dim Z in blocks"),
        (Setting(sizes={"M": 0}), "sizes has 0 for M"),
        (Setting(sizes={"E": 3}), "E cannot be 3 here"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(setting, words):
    with pytest.raises(ValueError, match=words):
        explorer_data(derivation("heads"), setting, prove=False)


# places ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_places_of_steps_are_what_was_matched_and_made(name):
    programs, shown = graphs(name), data(name)
    for at, step in enumerate(shown["steps"]):
        before, after = programs[step["from"]], programs[at + 1]
        assert all(node_at(before, place) for _, place in step["roles"])
        assert step["made"] or step["rule"] == "fuse-elementwise"
        for place in step["made"]:
            assert node_at(after, place).origin.rule in (step["rule"], "")


@pytest.mark.parametrize("name", NAMES)
def test_lines_name_the_node_that_they_print(name):
    for graph, state in zip(graphs(name), data(name)["states"], strict=True):
        text = lines(data(name), state["text"]["lines"])
        places = lines(data(name), state["text"]["places"])
        own = {}
        for line, place in zip(text, places, strict=True):
            if place and " = " in line:
                own.setdefault(place, line)
        for path, level in graph.walk():
            for at, node in enumerate(level.nodes):
                line = own.pop(place_name((*path, at)))
                dim = getattr(node.op, "dim", "")
                assert type(node.op).__name__ != "Map" or f"= map {dim}" in line
        assert not own


def test_loops_and_kernel_lines_lead_to_their_operators():
    shown, final = data("attention"), graphs("attention")[-1]
    loops, kernel = shown["states"][-1]["loops"], shown["kernel"]
    (span,) = kernel["kernels"]

    def places(text, words, begin=0, end=None):
        pairs = zip(lines(shown, text["lines"]), lines(shown, text["places"]), strict=True)
        return [place for line, place in list(pairs)[begin:end] if words in line]

    assert lines(shown, kernel["lines"])[span[0]] == "@triton.jit"
    for place in (*places(loops, "dot("), *places(kernel, "tl.dot(", *span)):
        assert node_at(final, place).op == Functional("dot")
    for place in (*places(loops, "row_sum("), *places(kernel, "tl.sum(", *span)):
        assert node_at(final, place).op == Functional("row_sum")
    (exp,) = places(kernel, "= tl.exp2(p", *span)
    assert exp in places(loops, "= exp(")
    (loop,) = places(kernel, "for n0 in", *span)
    assert node_at(final, loop).op.dim == "N"
    inside = places(kernel, "offs_n = ", *span)
    assert inside == [loop], "a line without a node of its own belongs to the loop around it"


def test_marking_places_changes_no_program_and_no_kernel():
    final = bb.safe(derivation("attention").final)
    shown = data("attention")

    assert with_places(final) == final
    assert "\n".join(lines(shown, shown["kernel"]["lines"])) + "\n" == kernel_of("attention").source


def test_a_text_without_loops_says_why_and_names_no_marks():
    def sorted_product(x, w):
        y = x @ w
        return bb.custom(len, y, shape=y.shape) + 1

    found = explorer_data(
        bb.fuse(bb.lower(bb.trace(sorted_product, x="M K", w="K N"))), Setting(), prove=False
    )
    for missing in (found["states"][0]["loops"]["missing"], found["kernel"]["missing"]):
        assert "function of whole arrays" in missing
        assert "@" not in missing


# what a step says ------------------------------------------------------------------------


def test_every_rule_has_side_conditions_with_sentences():
    for rule in dict.fromkeys((*RULES, *PEELING_RULES)):
        found = conditions(rule)
        assert found, rule.name
        assert all(name and sentence.endswith(".") for name, sentence in found)
    (fuse_maps,) = (rule for rule in RULES if rule.name == "fuse-maps")
    names = [name for name, _ in conditions(fuse_maps)]
    assert names == [
        "different dims", "first iteration gone", "edge not item by item", "indirect path",
    ]  # fmt: skip


def test_changed_lines_ignore_numbers_that_keep_names_apart():
    before = ["p = map M {", "  t1 = exp(x_1)", "}"]
    after = ["p_4 = map M {", "  t7 = exp(x_2)", "  t8 = neg(t7)", "}"]

    assert changed(before, after) == ([], [(2, 3)])
    assert changed(after, before) == ([(2, 3)], [])


def test_proofs_stand_beside_their_steps():
    shown = data("attention", prove=True)
    count = len(derivation("attention").steps)

    assert [step["proof"]["tier"] for step in shown["steps"]] == ["A"] * count + ["B"]
    assert all(step["proof"]["equal"] for step in shown["steps"])
    assert shown["steps"][0]["proof"]["bound"] < 1e-6
    assert shown["steps"][-1]["proof"]["bound"] is None
    assert "no proven bound" in shown["steps"][-1]["proof"]["bound_in_words"]
    assert shown["proof"]["equal"] is True
    assert data("attention")["proof"] is None


@pytest.mark.slow
def test_why_it_stops_names_the_reader_of_each_edge():
    left, final = data("residual")["left"], derivation("residual").final

    assert len(left) == len(final.buffered_edges()) > 0
    for edge in left:
        assert node_at(final, edge["place"])
        assert edge["reason"]


# the page --------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Checks that elements nest, and keeps ids, links and the text of scripts."""

    VOID = ("meta", "link", "input", "br", "path")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.scripts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "action", "data", "xlink:href"):
                self.links.append(value)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text


def outline(text):
    found = Outline()
    found.feed(text)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    return found


def test_page_is_well_formed_and_holds_its_data():
    text = page(data("attention"))

    assert unpacked(text)["schema"] == SCHEMA
    assert unpacked(text) == json.loads(json.dumps(data("attention")))
    assert len(outline(text).scripts) == 2


def test_page_refers_to_nothing_outside():
    text = page(data("attention"))

    assert outline(text).links == ["data:,", "#inspector"]
    assert set(re.findall(r"[a-z]+://[^\s\"'<>)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|import\(", text)
    assert "default-src 'none'" in text


def one_more(x):
    """More </script><b>&amp;"""
    return x + 1


def test_text_of_the_user_ends_no_script():
    title = "</script><script>alert(1)</script><!--"
    made = bb.fuse(bb.lower(bb.trace(one_more, x="M N")))
    found = explorer_data(made, Setting(), title=title, prove=False)
    text = page(found)

    assert any("</script><b>&amp;" in line for line in found["source"]["lines"])
    assert len(outline(text).scripts) == 2
    assert text.count("</script>") == 2
    assert unpacked(text)["title"] == title


@draws
def test_pictures_know_the_places_of_nodes():
    shown, programs = data("heads"), graphs("heads")
    pictures = shown["pictures"]

    for graph, state in zip(programs, pictures["states"], strict=True):
        for depth, number in enumerate(state["whole"]):
            places = set(re.findall(r'data-place="([\d-]+)"', pictures["svgs"][number]))
            wanted = {
                place_name((*path, at))
                for path, level in graph.walk()
                if len(path) <= depth
                for at in range(len(level.nodes))
            }
            assert places == wanted
        for place, (number, tops) in state["maps"].items():
            assert tops == (place,)
            body = node_at(graph, place).op.body
            places = set(re.findall(r'data-place="([\d-]+)"', pictures["svgs"][number]))
            assert {"0", *(f"0-{at}" for at in range(len(body.nodes)))} <= places


@draws
def test_pictures_round_places_but_no_numbers_of_the_program():
    graph = bb.lower(bb.trace(lambda x: x * 12.0625, x="M N"))
    shown = explorer_data(bb.fuse(graph), Setting(), prove=False)
    svg = shown["pictures"]["svgs"][0]
    assert "12.0625" in re.sub(r"<[^>]*>", "", svg)
    assert not re.findall(r'(?:points|d|x|y|cx|cy)="[^"]*\d\.\d\d', svg)


@draws
def test_pictures_are_stored_once():
    pictures = data("attention")["pictures"]

    assert len(pictures["svgs"]) == len(set(pictures["svgs"]))
    states = pictures["states"]
    parts = [p for s in states for p in (*s["maps"].values(), s["made"], *s["taken"].values()) if p]
    whole = [n for s in states for n in (*s["whole"], s["tall"]) if n is not None]
    used = [*whole, *(number for number, _ in parts)]
    assert len(used) > len(pictures["svgs"]) == len(set(used))


@pytest.mark.slow
def test_the_largest_example_stays_small():
    size = len(page(data("rmsnorm-swiglu")).encode())

    assert 100_000 < size < 800_000, "the promise is 2 MB"


SCRIPT = """
import sys, hashlib
from pathlib import Path
import blockbuster as bb
from blockbuster.examples import ALL
programs = {
    "softmax": lambda: bb.trace(lambda x, w: bb.softmax(x) @ w, x="M K", w="K N"),
    "attention": ALL[0].program,
}
bb.fuse(bb.lower(programs[sys.argv[2]]())).to_html(sys.argv[1], trials=1)
"""


@pytest.mark.parametrize("name", rest_slow(["softmax", "attention"], ["softmax"]))
def test_two_processes_write_the_same_bytes(tmp_path, name):
    digests = set()
    for seed in ("1", "4242"):
        path = tmp_path / f"{seed}.html"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", SCRIPT, str(path), name], env=environment, check=True)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())

    assert len(digests) == 1


def test_a_page_appears_completely_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
