"""The pictures of all states: whole programs to several depths, and every map on its own.

A map is drawn as a program of one node, so that a map which stays as it is from one step to the
next is drawn once, wherever it stands. What is too much for one picture is left out: there one
looks into the maps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.rules.base import name_of
from blockbuster.view.draw import draw
from blockbuster.view.explorer.places import place_name
from blockbuster.view.render import HOW_TO, can_render

LIMITS = (90, 60, 40, 24)  # nodes in one picture: the first with which all fit into the budget
BUDGET = 12_000  # nodes in all pictures: what takes seconds to draw and megabytes to keep
EASY_NODES = 36  # in the picture that the page opens with
SVG = "{http://www.w3.org/2000/svg}"
DROPPED = ("font-family", "{http://www.w3.org/XML/1998/namespace}space", "id")


Key = tuple[str, int]
"""A drawing before it is made: the text of a program and the depth."""


@dataclass
class _Album:
    """Drawings to be made, each once, with at most ``limit`` nodes where there is a choice."""

    limit: int
    wanted: dict[Key, Graph] = field(default_factory=dict)
    nodes: int = 0

    def add(self, graph: Graph, depth: int) -> Key:
        """The key under which the drawing is found when it is made."""
        key = (graph.show(types=True), depth)
        if key not in self.wanted:
            self.wanted[key] = graph
            self.nodes += _visible(graph)[depth]
        return key

    def drawn(self) -> dict[Key, str]:
        """All drawings as SVG; each is a process of its own, so several are made at a time."""
        with ThreadPoolExecutor() as pool:
            made = pool.map(lambda item: _svg(item[1], item[0][1]), self.wanted.items())
            return dict(zip(self.wanted, made, strict=True))


def pictures_data(graphs: Sequence[Graph]) -> dict[str, Any]:
    """SVG texts, and for each state the numbers of its pictures; ``missing``: why there are none.

    ``whole`` are those of the program, from depth 0 on; ``maps`` those of maps by place.
    """
    if not can_render("svg"):
        missing = f"There are no pictures, because nothing that draws them is installed: {HOW_TO}."
        return {"svgs": [], "states": [], "depth": 0, "missing": missing}
    for limit in LIMITS:
        album = _Album(limit)
        states = [_of_state(graph, album) for graph in graphs]
        if album.nodes <= BUDGET:
            break
    drawn = album.drawn()
    numbers = {svg: number for number, svg in enumerate(dict.fromkeys(drawn.values()))}

    def number(key: Key) -> int:
        return numbers[drawn[key]]

    return {
        "svgs": list(numbers),
        "states": [
            {
                "whole": list(map(number, whole)),
                "complete": len(whole) == len(_visible(graph)),
                "maps": {place: number(key) for place, key in maps.items()},
            }
            for graph, (whole, maps) in zip(graphs, states, strict=True)
        ],
        "depth": max((d for d, n in enumerate(_visible(graphs[0])) if n <= EASY_NODES), default=0),
        "missing": "",
    }


def _of_state(graph: Graph, album: _Album) -> tuple[list[Key], dict[str, Key]]:
    """The drawings of the program by depth, and one of each map that holds more than it says."""
    last = _deepest(graph, album.limit, 0)
    maps = {}
    for path, level in graph.walk():
        for position, op in level.of_type(Map):
            if len(op.body.nodes) > 2 or any(True for _ in op.body.of_type(Map)):
                alone = _alone(level, position)
                key = album.add(alone, _deepest(alone, album.limit, 1))
                maps[place_name((*path, position))] = key
    return [album.add(graph, depth) for depth in range(last + 1)], maps


def _deepest(graph: Graph, limit: int, least: int) -> int:
    """How many maps deep a picture of at most ``limit`` nodes can go; no less than ``least``."""
    return max((d for d, n in enumerate(_visible(graph)) if n <= limit), default=least) or least


def _visible(graph: Graph) -> list[int]:
    """How many nodes a picture shows, for each depth."""
    levels: dict[int, int] = {}
    for path, level in graph.walk():
        levels[len(path)] = levels.get(len(path), 0) + len(level.nodes)
    return [sum(n for depth, n in levels.items() if depth <= d) for d in range(len(levels))]


def _alone(level: Graph, position: int) -> Graph:
    """The program of one node: the one at ``position`` with inputs for what it reads."""
    node, alone = level.nodes[position], Builder()
    operands = {
        value: alone.input(level.type_of(value), hint=name_of(level, value))
        for value in dict.fromkeys(node.operands)
    }
    made = alone.add(node.op, *(operands[v] for v in node.operands), hints=node.hints)
    return alone.finish(*made)


def _svg(graph: Graph, depth: int) -> str:
    """The picture without what the page does not need; elements know their node by its place."""
    ElementTree.register_namespace("", SVG.strip("{}"))
    svg = draw(graph, depth=depth).svg()
    root = ElementTree.fromstring(svg)
    _clean(root)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element) -> None:
    """Drop titles, styles, links around shapes and the invisible boxes of bodies, at all depths."""
    children: list[ElementTree.Element] = []
    for child in element:
        id = child.get("id", "")
        if child.tag in (f"{SVG}title", f"{SVG}style") or id.startswith("b-"):
            continue
        _clean(child)
        plain = child.tag == f"{SVG}a" or id.startswith("a_")
        children += list(child) if plain else [child]
    for child in list(element):
        element.remove(child)
    element.extend(children)
    id = element.get("id", "")
    for key in DROPPED:
        element.attrib.pop(key, None)
    for key, text in element.attrib.items():  # places, never the numbers of a label
        element.set(key, re.sub(r"(\d\.\d)\d+", r"\1", text))
    if id.startswith("n-"):
        element.set("data-place", id.removeprefix("n-"))
