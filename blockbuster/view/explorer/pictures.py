"""The pictures of all states: whole programs to several depths, places of steps, maps on their own.

A picture shows nodes of one level as a program of their own. So a map or a neighbourhood that stays
as it is from one step to the next is drawn once, wherever it stands. What is too much for one
picture is left out: there one looks into the maps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.rules.derivation import Path
from blockbuster.view.draw import to_dot
from blockbuster.view.explorer.excerpt import Excerpt, around, excerpt
from blockbuster.view.explorer.frames import Frame
from blockbuster.view.explorer.places import place_name
from blockbuster.view.explorer.svg import plain_svg
from blockbuster.view.render import HOW_TO, can_render, render_all

LIMITS = (60, 40, 24, 16)  # nodes in one picture: the first with which all fit into the budget
BUDGET = 4_000  # nodes in all pictures: what takes a second or two to draw
NEAR = 14  # nodes in the picture of a step's place
EASY_NODES = 36  # in the picture that the page opens with
BATCH = 40  # pictures that one process draws

Key = tuple[str, int]
"""A drawing before it is made: the text of a program and the depth."""

Shown = tuple[Key, tuple[str, ...] | None]
"""A drawing, and the places of its nodes at the top; None where it is the whole program."""


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

    def part(self, found: Excerpt, limit: int) -> Shown:
        """The drawing of an excerpt, as deep as it goes with ``limit`` nodes."""
        places = tuple(place_name(path) for path in found.paths)
        return self.add(found.graph, _deepest(found.graph, limit, 0)), places

    def drawn(self) -> dict[Key, str]:
        """All drawings as SVG; a process makes many, and several run at a time."""
        texts = [to_dot(graph, depth=depth, told=False) for (_, depth), graph in self.wanted.items()]
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        count = max(1, -(-len(texts) // BATCH))
        batches = [order[first::count] for first in range(count)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(lambda batch: _together([texts[at] for at in batch]), batches)
            found = {at: svg for batch, svgs in zip(batches, made, strict=True)
                     for at, svg in zip(batch, svgs, strict=True)}  # fmt: skip
        return {key: found[at] for at, key in enumerate(self.wanted)}


def _together(texts: Sequence[str]) -> list[str]:
    """The pictures of several graphs, drawn by one process."""
    return [plain_svg(svg) for svg in render_all(texts)]


@dataclass(frozen=True)
class _State:
    """The drawings of one state. ``taken`` and ``made``: where steps after and before it are."""

    whole: Sequence[Key]
    complete: bool
    maps: dict[str, Shown]
    made: Shown | None
    taken: dict[int, Shown]


def pictures_data(graphs: Sequence[Graph], found: Sequence[Frame]) -> dict[str, Any]:
    """SVG texts, and for each state the numbers of its pictures; ``missing``: why there are none.

    ``whole`` are those of the program, from depth 0 on, ``maps`` those of maps by place, with the
    places of their nodes; ``made`` is where the step to this state took place and ``taken`` where
    each step from it does, by its number, if the whole does not show that.
    """
    if not can_render("svg"):
        missing = f"There are no pictures, because nothing that draws them is installed: {HOW_TO}."
        return {"svgs": [], "states": [], "depth": 0, "missing": missing}
    for limit in LIMITS:
        album = _Album(limit)
        states = [_of_state(graphs, found, at, album) for at in range(len(graphs))]
        if album.nodes <= BUDGET:
            break
    drawn = album.drawn()
    numbers = {svg: number for number, svg in enumerate(dict.fromkeys(drawn.values()))}

    def shown(one: Shown | None) -> list[Any] | None:
        return one and [numbers[drawn[one[0]]], one[1] and list(one[1])]

    return {
        "svgs": list(numbers),
        "states": [
            {
                "whole": [numbers[drawn[key]] for key in state.whole],
                "complete": state.complete,
                "maps": {place: shown(one) for place, one in state.maps.items()},
                "made": shown(state.made),
                "taken": {step: shown(one) for step, one in state.taken.items()},
            }
            for state in states
        ],
        "depth": max((d for d, n in enumerate(_visible(graphs[0])) if n <= EASY_NODES), default=0),
        "missing": "",
    }


def _of_state(graphs: Sequence[Graph], found: Sequence[Frame], at: int, album: _Album) -> _State:
    """The drawings of a program by depth, of where steps take place, and of maps that say more."""
    graph, counts = graphs[at], _visible(graphs[at])
    last = _deepest(graph, album.limit, 0)
    small = counts[0] <= album.limit or at == 0
    whole = [album.add(graph, depth) for depth in range(last + 1)] if small else []
    maps = {
        place_name(path): album.part(excerpt(graph, [path]), album.limit)
        for path, op in _maps(graph)
        if len(op.body.nodes) > 2 or any(True for _ in op.body.of_type(Map))
    }
    made, taken = None, {}
    if counts[last] > NEAR or not small or last < len(counts) - 1:
        if at and found[at - 1].made:
            made = _near(graph, found[at - 1].made, album)
        for step, frame in enumerate(found, 1):
            if frame.start == at and frame.roles:
                taken[step] = _near(graph, [path for _, path in frame.roles], album)
    return _State(whole, small and last == len(counts) - 1, maps, made, taken)


def _near(graph: Graph, sites: Sequence[Path], album: _Album) -> Shown:
    return album.part(around(graph, sites, NEAR), NEAR)


def _maps(graph: Graph) -> Iterator[tuple[Path, Map]]:
    for path, level in graph.walk():
        for position, op in level.of_type(Map):
            yield (*path, position), op


def _deepest(graph: Graph, limit: int, least: int) -> int:
    """How many maps deep a picture of at most ``limit`` nodes can go; no less than ``least``."""
    return max((d for d, n in enumerate(_visible(graph)) if n <= limit), default=least) or least


def _visible(graph: Graph) -> list[int]:
    """How many nodes a picture shows, for each depth."""
    levels: dict[int, int] = {}
    for path, level in graph.walk():
        levels[len(path)] = levels.get(len(path), 0) + len(level.nodes)
    return [sum(n for depth, n in levels.items() if depth <= d) for d in range(len(levels))]
