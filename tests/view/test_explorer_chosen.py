"""What the page says of what runs, which steps matter, at which sizes it opens; notebooks."""

import re

import pytest

import blockbuster as bb
from blockbuster.view.explorer.excerpt import around, excerpt
from blockbuster.view.explorer.frames import frames
from blockbuster.view.explorer.milestones import milestones
from blockbuster.view.explorer.pictures import pictures_data
from blockbuster.view.explorer.setting import Setting, sizes_of
from blockbuster.view.explorer.svg import plain_svg
from blockbuster.view.render import can_render
from tests.view.explorer_cases import SMALL, data, derivation, kernel_of


def test_header_kernel_and_reasons_say_what_emit_chooses():
    shown, kernel = data("attention"), kernel_of("attention")

    assert shown["chosen"]["kernels"] == kernel.kernels == len(shown["kernel"]["kernels"])
    assert shown["chosen"]["words"].startswith(kernel.chosen)
    assert shown["chosen"]["sizes"] == SMALL["attention"]
    assert shown["chosen"]["state"] == shown["steps"][-1]["from"]
    blocks = {dim["name"]: dim["blocks"] for dim in shown["dims"]}
    tiles = dict(kernel.tiles)
    assert blocks == {d: -(-n // tiles[d]) for d, n in SMALL["attention"].items()}


def test_attention_opens_with_long_sequences_and_small_heads():
    assert sizes_of(derivation("attention").start, Setting()) == {
        "M": 4096, "D": 64, "N": 4096, "L": 64,
    }  # fmt: skip


def test_layers_are_wide_and_heads_have_sixty_four():
    graph = bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))
    assert set(sizes_of(graph, Setting()).values()) == {4096}
    heads = sizes_of(derivation("heads").start, Setting())
    assert heads["E"] == 2 * 64


def attend(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2)) @ v


def test_heads_of_sequences_that_attend_to_themselves_are_small():
    same = bb.lower(bb.trace(attend, q="B H S D", k="B H S D", v="B H S D"))
    assert sizes_of(same, Setting()) == {"B": 4, "H": 4, "S": 4096, "D": 64}
    added = bb.lower(bb.trace(lambda x, y: x + y, x="S D", y="S D"))
    assert sizes_of(added, Setting()) == {"S": 4096, "D": 4096}, "nothing is compared"


def test_scores_of_every_head_pass_through_memory_until_the_last_loop_is_gone():
    """Loops over heads are fused one after another: till the last, all scores are stored."""
    made = bb.fuse(bb.lower(bb.trace(attend, q="B H S D", k="B H S D", v="B H S D")))
    found = frames(made)
    born = milestones(found, {"B": 2, "H": 3, "S": 5, "D": 7})
    (told,) = [words for words in born if "S × S'" in words]

    assert "Values over B × H × S × S' (150 entries) no longer pass through" in told
    at = born.index(told)
    before = found[at].before.buffered_edges()
    assert any("S'" in levels(found[at].before, edge) for edge in before)
    assert not any("S'" in levels(found[at].after, e) for e in found[at].after.buffered_edges())


def levels(graph, edge):
    """The dims of the lists that pass along a buffered edge."""
    path, value, _ = edge
    return graph.at(path).type_of(value).lists


def test_lines_of_flash_attention_are_born_at_their_steps():
    made = derivation("attention")
    born = milestones(frames(made), SMALL["attention"])
    words = {at: told for at, told in enumerate(born, 1) if told}

    assert [at for at, told in words.items() if "division at the end" in told] == [7]
    (online,) = [told for told in words.values() if "One loop over N makes 2 sums" in told]
    assert "Values over M × N (96 entries) no longer pass through global memory" in online
    assert "running maximum: the loop over N" in words[len(born)]
    assert len(words) < len(born) / 2


@pytest.mark.parametrize(
    ("blocks", "told"),
    [({}, "Work is repeated"), ({"L": 2}, "Work is repeated"), ({"L": 1}, "has one, so repeats")],
)
def test_a_dim_of_one_block_repeats_no_work(blocks, told):
    born = milestones(frames(derivation("attention")), SMALL["attention"], blocks)
    (extended,) = [words for words in born if "block of L computes" in words]

    assert told in extended


def test_an_excerpt_keeps_types_and_reads_the_rest_as_inputs():
    graph = derivation("attention").start
    part = around(graph, [(0,)], 6)

    assert (0,) in part.paths
    assert 1 < len(part.paths) < len(graph.nodes)
    for node, path in zip(part.graph.nodes, part.paths, strict=True):
        assert node.types == graph.nodes[path[-1]].types
        operands = [part.graph.type_of(value) for value in node.operands]
        assert operands == [graph.type_of(v) for v in graph.nodes[path[-1]].operands]
    assert excerpt(graph, [(3,)]).paths == ((3,),)


def test_plain_svg_keeps_places_and_drops_what_is_not_seen():
    svg = """<?xml version="1.0"?>
<svg width="9pt" height="9pt" viewBox="0.00 0.00 9.25 9.25" xmlns="http://www.w3.org/2000/svg">
<g id="s&#45;0" class="cluster space"><title>x</title>
<g id="a_s"><a xlink:title=" "><polygon points="1.55,2"/></a>
</g>
</g>
<g id="n&#45;0&#45;1" class="node op"><title>y</title>
<text font-family="Helvetica" fill="black">12.0625</text>
</g>
</svg>
"""
    plain = plain_svg(svg)

    assert plain.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0.0 0.0 9.2 9.2">')
    assert re.findall(r"<(?!/)(\w+)", plain) == ["svg", "g", "text"]
    assert 'data-place="0-1"' in plain
    assert 'fill="currentColor">12.0625<' in plain


def hostile(x):
    return bb.exp(x)


@pytest.mark.parametrize("name", ["program", "derivation", "kernel", "proof", "proofs"])
def test_objects_show_themselves_in_notebooks(name):
    program = bb.trace(hostile, x="M N")
    made = bb.fuse(bb.lower(program))
    shown = {
        "program": lambda: program,
        "derivation": lambda: derivation("attention"),
        "kernel": lambda: bb.emit(made, {"M": 32, "N": 32}),
        "proof": lambda: bb.prove_equal(made.start, made.final, 1),
        "proofs": lambda: made.prove(trials=1),
    }[name]()
    html = shown._repr_html_()

    assert "\n" not in repr(shown)
    assert len(repr(shown)) < 120
    assert html.startswith("<div>")
    assert "<script" not in html
    assert len(html) < 40_000
    assert html.count("<table") == html.count("</table>")


def test_a_derivation_in_a_notebook_groups_its_steps():
    html = derivation("attention")._repr_html_()

    assert "fuse-maps × 6" in html
    assert html.count("<tr>") < len(derivation("attention").steps)
    assert "division at the end" in html


@pytest.mark.skipif(not can_render("svg"), reason="nothing is installed that draws pictures")
def test_the_start_is_drawn_downwards_too():
    found = frames(derivation("attention"))[:1]
    pictures = pictures_data([found[0].before, found[0].after], found)
    start, later = pictures["states"]
    boxes = [
        re.search(r'viewBox="([^"]*)"', pictures["svgs"][number])[1]
        for number in (start["whole"][0], start["tall"])
    ]
    (_, _, width, height), (_, _, narrow, high) = ([*map(float, box.split())] for box in boxes)

    assert narrow < width / 2
    assert high > 2 * height
    assert later["tall"] is None
