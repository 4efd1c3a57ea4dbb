"""Pictures as DOT text: every node and edge once, between the right ends, in the right look."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster import examples
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Collect, Map, Rescale
from blockbuster.ir.parse import parse
from blockbuster.rules import PEELING_RULES
from blockbuster.testing.generators import GENERATORS
from blockbuster.view.draw import draw, draw_step, sites, to_dot
from blockbuster.view.picture import BUFFERED, SITE
from tests.random_programs.strategies import programs

EDGE = re.compile(
    r' *"(?P<tail>[^"]+)" -> "(?P<head>[^"]+)"(:x\d+:w)? '
    r'\[id="(?P<id>[^"]+)", class="(?P<classes>[^"]*)"(?P<look>.*)\];'
)
NODE = re.compile(r' *"(?P<name>[^"]+)" \[label=.* class="(?P<classes>[^"]*)".*\];')
BOX = re.compile(r' *subgraph "cluster_(?P<name>[^"]+)" {')
ID = re.compile(r'\bid="([^"]+)"')

SMALL = """
graph(X: M,N[M,N], b: M[M] = port, U: N[N] = v(N[N = |N| from |N| of 2 * |N|])) {
  R, T = map M (x in X, c in b, u = U) {
    s, y = map N (p in !x, q in !u, k = c) {
      d = p - p / 2
      z = row_shift(d, k)
      e = col_scale(z, q)
      r = row_sum(e)
      yield +r
      yield e
    }
    w = exp(s - c)
    yield w
    yield y
  }
  return R, T
}
"""


def edges(text: str) -> list[re.Match[str]]:
    return [found for line in text.splitlines() if (found := EDGE.fullmatch(line))]


def joined(path: tuple[int, ...]) -> str:
    return "-".join(map(str, path))


def tail_of(graph: Graph, path: tuple[int, ...], value) -> str:
    """Where a value of the level at ``path`` comes from."""
    if value.node < 0:
        return f"p-{joined(path)}-in{value.port}" if path else f"i-{value.port}"
    here = joined((*path, value.node))
    is_map = isinstance(graph.nodes[value.node].op, Map)
    return f"p-{here}-out{value.port}" if is_map else f"n-{here}"


def operand_edges(graph: Graph):
    """Edges into operands, by what the program says: id, ends, value, level, how it is read."""
    for path, level in graph.walk():
        for position, node in enumerate(level.nodes):
            here = joined((*path, position))
            for k, value in enumerate(node.operands):
                is_map = isinstance(node.op, Map)
                head = f"p-{here}-in{k}" if is_map else f"n-{here}"
                enters = is_map and k < len(node.op.iterated)
                iterated, whole = (
                    enters and node.op.iterated[k] is wanted for wanted in (True, False)
                )
                tail = tail_of(level, path, value)
                yield f"e-{here}-{k}", tail, head, value, level, iterated, whole


def result_edges(graph: Graph):
    """Edges to results, by what the program says: id and ends."""
    for k, output in enumerate(graph.outputs):
        yield f"e-out{k}", tail_of(graph, (), output.value), f"o-{k}"
    for path, level in graph.walk():
        for position, op in level.of_type(Map):
            inner = (*path, position)
            here = joined(inner)
            for k, (output, result) in enumerate(zip(op.body.outputs, op.results, strict=True)):
                tail, port = tail_of(op.body, inner, output.value), f"p-{here}-out{k}"
                fold = port if isinstance(result, Collect) else f"a-{here}-{k}"
                yield f"e-{here}-out{k}", tail, fold
                if fold != port:
                    yield f"e-{here}-sum{k}", fold, port
                if isinstance(result, Rescale):
                    for at, lead in enumerate(result.leads):
                        more = f"-{at}" if at else ""
                        yield f"e-{here}-lead{k}{more}", f"a-{here}-{lead}", fold
                if op.start:
                    yield f"e-{here}-first{k}", f"p-{here}-in{len(op.iterated) + k}", fold


def check(graph: Graph) -> None:
    """Every part of the program is drawn once, where it belongs."""
    text = to_dot(graph)
    drawn = edges(text)
    ends = {(e["id"], e["tail"], e["head"]) for e in drawn}
    operands = list(operand_edges(graph))
    assert ends == {o[:3] for o in operands} | set(result_edges(graph))
    assert len(drawn) == len(ends)

    by_id = {e["id"]: e for e in drawn}
    nodes = [found for line in text.splitlines() if (found := NODE.fullmatch(line))]
    looks = {found["name"]: found[0] for found in nodes}
    for ident, _, head, value, level, iterated, whole in operands:
        classes = by_id[ident]["classes"].split()
        assert ("iterated" in classes) == iterated
        assert ("buffered" in classes) == level.type_of(value).buffered
        if head.startswith("p-"):
            assert ('shape="square"' in looks[head]) == whole
            assert (BUFFERED in looks[head]) == level.type_of(value).buffered
    interior = [e["id"] for e in drawn if "interior" in e["classes"]]
    expected = Counter((p, v, n) for p, v, n in graph.buffered_edges())
    level_of = {o[0]: (o[0], o[3]) for o in operands}
    found = Counter(
        (path[:-1], level_of[i][1], path[-1])
        for i in interior
        for path in [tuple(int(n) for n in i.split("-")[1:-1])]
    )
    assert found == expected
    for e in drawn:
        assert (BUFFERED in e["look"]) == ("buffered" in e["classes"])

    names = [found["name"] for found in nodes]
    boxes = [found["name"] for line in text.splitlines() if (found := BOX.fullmatch(line))]
    nodes = Counter(name for name in names + boxes if name.startswith("n-"))
    paths = [(*p, n) for p, level in graph.walk() for n in level.places()]
    assert nodes == Counter(f"n-{joined(path)}" for path in paths)
    assert {e["tail"] for e in drawn} | {e["head"] for e in drawn} <= set(names)
    ids = ID.findall(text)
    assert len(ids) == len(set(ids))


@given(st.sampled_from(sorted(GENERATORS)).flatmap(programs))
def test_every_part_of_a_program_is_drawn_once(graph):
    check(graph)


@pytest.mark.parametrize("example", examples.ALL, ids=lambda e: e.name)
def test_every_part_of_a_fused_program_is_drawn_once(example):
    derivation = bb.fuse(bb.lower(example.program()))

    check(derivation.start)
    check(derivation.final)
    check(bb.safe(derivation.final))
    check(bb.fuse(derivation.start, rules=PEELING_RULES).final)


def test_golden(golden):
    golden("drawings/small.dot", to_dot(parse(SMALL)))


def test_a_fused_kernel_has_no_interior_buffered_edge():
    derivation = bb.fuse(bb.lower(examples.ALL[0].program()))

    assert "interior" in to_dot(derivation.start)
    assert "interior" not in to_dot(derivation.final)


def test_buffered_edges_differ_in_print_without_color():
    widths = {
        classes: {re.search(r'penwidth="([\d.]+)"', e["look"]) for e in drawn}
        for classes in ("buffered", "buffered interior", "local")
        if (drawn := [e for e in edges(to_dot(parse(SMALL))) if e["classes"] == classes])
    }

    assert widths.keys() >= {"buffered", "local"}
    assert widths["local"] == {None}
    assert {float(w[1]) for w in widths["buffered"] if w} == {1.5}


def test_depth_collapses_the_maps_below():
    graph = parse(SMALL)

    overview, one, all_of_it = (to_dot(graph, depth=depth) for depth in (0, 1, 2))
    assert "subgraph" not in overview
    assert 'class="map collapsed"' in overview
    assert "5 operations" in overview
    assert 'subgraph "cluster_n-0"' in one
    assert 'subgraph "cluster_n-0-0"' not in one
    assert "4 operations" in one
    assert "collapsed" not in all_of_it
    assert all_of_it == to_dot(graph)


def test_focus_draws_one_map_under_its_own_path():
    text = to_dot(parse(SMALL), focus=(0, 0))

    assert 'subgraph "cluster_n-0-0"' in text
    assert 'subgraph "cluster_n-0"' not in text
    assert {e["id"] for e in edges(text)} > {"e-0-0-0", "e-0-0-1", "e-0-0-2", "e-0-0-0-0"}
    assert '"o-0" [label=<<b>y</b>' in text
    assert '"o-1" [label=<<b>s</b>' in text


def test_highlight_marks_nodes_and_maps():
    graph = parse(SMALL)
    marked = [
        line for line in to_dot(graph, highlight=[(0, 1), (0, 0)]).splitlines() if SITE in line
    ]

    assert SITE not in to_dot(graph)
    assert len(marked) == 2
    assert any(line.lstrip().startswith('"n-0-1" [') for line in marked)


@pytest.mark.parametrize("path", [(7,), (0, 9), (0, 1, 0), (-1,)])
def test_a_path_that_leads_nowhere(path):
    with pytest.raises(ValueError, match=f"no node at this path\n.*{re.escape(str(path))}"):
        draw(parse(SMALL), highlight=[path])


def test_a_negative_depth():
    with pytest.raises(ValueError, match="0 or more\n  value: -1"):
        draw(parse(SMALL), depth=-1)


def test_focus_takes_a_map():
    with pytest.raises(ValueError, match=r"the node to focus on is no map\n.*\(0, 1\)"):
        draw(parse(SMALL), focus=(0, 1))


@pytest.mark.parametrize("example", examples.ALL, ids=lambda e: e.name)
def test_a_step_shows_what_it_matched_and_what_it_made(example):
    derivation = bb.fuse(bb.lower(example.program()))
    for step in derivation.steps:
        (before, matched), (after, made) = sites(step)
        assert (before, after) == (step.before, step.after)
        assert sorted(matched) == sorted((*step.path, n) for n in step.match.values())
        assert made
        parents = [id(before.at(step.path).nodes[n].origin) for n in step.match.values()]
        for path in made:
            origin = after.at(path[:-1]).nodes[path[-1]].origin
            assert origin.rule == step.rule
            assert [id(parent) for parent in origin.parents] == parents


def test_the_halves_of_a_step_have_their_own_ids():
    step = bb.fuse(bb.lower(examples.ALL[0].program())).steps[5]
    text = draw_step(step).dot
    ids = ID.findall(text)

    assert len(ids) == len(set(ids))
    assert {ident.split("-")[0] for ident in ids} == {"before", "after"}
    assert text.count("site") == sum(len(paths) for _, paths in sites(step)) > 1
