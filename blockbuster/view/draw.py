"""Pictures of block programs and of steps: DOT text, SVG, PNG.

Elements have ids that survive in SVG. For the node at path (0, 3):

    n-0-3           the node or map              e-0-3-1        the edge into its operand 1
    p-0-3-in1       the port of that operand     p-0-3-out0     the port of result 0
    a-0-3-0         the fold of result 0         e-0-3-out0     the edge to it, or to the port
    e-0-3-sum0      from the fold to the port    b-0-3, s-0-3   invisible space in and around a map
    e-0-3-first0    dashed: the fold's initial value (rule 7)
    e-0-3-lead0     dashed: the running exponent that rescales the fold

``i-0`` and ``o-0`` are an input and an output of the program, ``e-out0`` the edge to that output.
Classes of edges: ``buffered`` or ``local``, ``interior`` as ``Graph.buffered_edges`` counts,
``iterated``, ``aside`` for dashed ones. Classes of nodes: ``op``, ``map``, ``collapsed``, ``fold``,
``port``, ``input``, ``output``, and ``site`` for the nodes of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path as File

from blockbuster.emit.target.disk import write_whole
from blockbuster.errors import message
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.ir.show import Path
from blockbuster.rules.derivation import Step, apply_at
from blockbuster.view import dot
from blockbuster.view.picture import DEFAULTS, Picture
from blockbuster.view.render import can_render, render

PAGE = 620  # points that fit between the margins of a notebook

STYLE = """<style>
.blockbuster text { fill: currentColor; }
.blockbuster:root { color: black; }
@media (prefers-color-scheme: dark) { .blockbuster:root { color: #e8e8e8; } }
</style>"""


@dataclass(frozen=True)
class Drawing:
    """A picture as DOT text, rendered on demand; Jupyter shows it."""

    dot: str

    def svg(self) -> str:
        """The picture as an ``<svg>`` element, transparent, in the text color of its page.

        Raises DrawError if no Graphviz is installed.
        """
        return _themed(render(self.dot, "svg").decode())

    def png(self) -> bytes:
        """The picture as PNG, transparent. Raises DrawError if no Graphviz is installed."""
        return render(self.dot, "png")

    def save(self, path: str | File) -> File:
        """Write a .svg, .png or .dot file; it appears complete or not at all.

        Raises ValueError for another suffix, and DrawError if no Graphviz is installed.
        """
        place = File(path)
        match place.suffix:
            case ".svg":
                data = self.svg().encode()
            case ".png":
                data = self.png()
            case ".dot":
                data = self.dot.encode()
            case _:
                raise ValueError(message("drawings are .svg, .png or .dot files", value=str(path)))
        return write_whole(place, data)

    def _repr_svg_(self) -> str | None:
        """The picture, no wider than the page; None if no Graphviz is installed."""
        if not can_render("svg"):
            return None
        return _no_wider(self.svg(), PAGE)


def to_dot(
    graph: Graph,
    *,
    highlight: Iterable[Path] = (),
    depth: int | None = None,
    focus: Path = (),
    told: bool = True,
    down: bool = False,
) -> str:
    """The DOT text of ``graph``, the same in any process.

    ``highlight``: paths of nodes to emphasize. ``depth``: how many maps deep the drawing goes;
    deeper maps are boxes that list their content. ``focus``: the path of a map, to draw it alone.
    ``told``: pointing at an element shows its line of the text form. ``down``: values flow from top
    to bottom, not from left to right. Raises ValueError for a path that leads to no node, or to no
    map, and for a negative depth.
    """
    sites = [tuple(path) for path in highlight]
    focus = tuple(focus)
    for path in (*sites, focus):
        _check_path(graph, path)
    if depth is not None and depth < 0:
        raise ValueError(message("depth counts maps: 0 or more", value=depth))
    if focus and not isinstance(graph.at(focus[:-1]).nodes[focus[-1]].op, Map):
        raise ValueError(message("the node to focus on is no map", value=focus))
    picture = Picture(graph, sites, depth, told=told)
    look = {**DEFAULTS, "graph": {**DEFAULTS["graph"], "rankdir": "TB"}} if down else DEFAULTS
    return dot.document(look, picture.statements(focus))


def draw(
    graph: Graph, *, highlight: Iterable[Path] = (), depth: int | None = None, focus: Path = ()
) -> Drawing:
    """A picture of ``graph``; arguments and errors are those of ``to_dot``.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in X) { y = exp(x)  yield y } return Y }")
    >>> draw(graph).dot.startswith("digraph {")
    True
    """
    return Drawing(to_dot(graph, highlight=highlight, depth=depth, focus=focus))


def draw_step(step: Step, *, depth: int | None = None) -> Drawing:
    """The program before a step and after it, one above the other, the site emphasized.

    Ids are those of ``draw`` with ``before-`` or ``after-`` in front.
    """
    halves = zip(("before", "after"), sites(step), strict=True)
    parts: list[str] = []
    for title, (graph, paths) in reversed(list(halves)):  # Graphviz stacks frames from the bottom
        frame = {"label": title, "labelloc": "t", "labeljust": "l", "color": "gray", "margin": "10"}
        picture = Picture(graph, paths, depth, f"{title}-")
        parts += dot.cluster(f"{title}-frame", frame, picture.statements())
    return Drawing(dot.document(DEFAULTS, parts))


def sites(step: Step) -> tuple[tuple[Graph, list[Path]], tuple[Graph, list[Path]]]:
    """The program before a step with the nodes it matched, and after it with the nodes it made.

    If a rule does not name the nodes it made, these are the level's nodes with new operators.
    """
    before = step.before
    after, level = apply_at(before, step.derivation.applications[step.index])
    matched = [(*step.path, position) for position in step.match.values()]
    known = {id(node.origin) for _, graph in before.walk() for node in graph.nodes}
    made = [
        (*path, position)
        for path, graph in after.walk()
        if path[: len(level)] == level
        for position, node in enumerate(graph.nodes)
        if node.origin.rule == step.rule and id(node.origin) not in known
    ]
    if not made:
        ops = {node.op for node in before.at(step.path).nodes}
        nodes = enumerate(after.at(level).nodes)
        made = [(*level, position) for position, node in nodes if node.op not in ops]
    return (before, matched), (after, made)


def _check_path(graph: Graph, path: Path) -> None:
    level: Graph | None = graph
    for position in path:
        if level is None or not 0 <= position < len(level.nodes):
            raise ValueError(message("the program has no node at this path", value=path))
        op = level.nodes[position].op
        level = op.body if isinstance(op, Map) else None


def _no_wider(svg: str, points: float) -> str:
    """The element scaled down to this width, if it is wider."""
    head, end, rest = svg.partition(">")
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', head)
    if not size or float(size[1]) <= points:
        return svg
    height = float(size[2]) * points / float(size[1])
    scaled = f'width="{points:g}pt" height="{height:.0f}pt"'
    return head[: size.start()] + scaled + head[size.end() :] + end + rest


def _themed(svg: str) -> str:
    """The element alone, black in it replaced by the color of the text around it."""
    element = svg[svg.index("<svg") :]
    head, _, rest = re.sub(r'(stroke|fill)="black"', r'\1="currentColor"', element).partition(">")
    return f'{head} class="blockbuster">\n{STYLE}{rest}'
