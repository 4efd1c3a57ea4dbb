"""The pictures of all states: whole programs to several depths, places of steps, single maps.

A picture shows nodes of one level as a program of their own. So a map or a neighbourhood that stays
the same from one step to the next is drawn once, wherever it stands. A program too large for one
picture is left out; its maps have pictures of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
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
NEAR = 10  # nodes in the picture of a step's place
EASY_NODES = 36  # in the picture that the page opens with
BATCH = 40  # pictures that one process draws

Key = tuple[str, int, bool]
"""A drawing before it is made: the text of a program, the depth, and whether it runs downwards."""


@dataclass(frozen=True)
class _Part:
    """A program that is worth a picture: its text, how many nodes each depth shows of it.

    ``places``: of its nodes at the top; None if it is a whole program.
    """

    graph: Graph
    text: str
    counts: Sequence[int]
    places: tuple[str, ...] | None = None

    def deepest(self, limit: int) -> int:
        """How many maps deep a picture of at most ``limit`` nodes can go."""
        return max((depth for depth, n in enumerate(self.counts) if n <= limit), default=0)


@dataclass
class _Parts:
    """Programs and their texts; a map that a step leaves alone is the same object behind it."""

    known: dict[tuple[Any, ...], tuple[Graph, str, list[int]]] = field(default_factory=dict)

    def whole(self, graph: Graph) -> _Part:
        """The whole program."""
        return _Part(graph, graph.show(types=True), _visible(graph))

    def of(self, found: Excerpt) -> _Part:
        """Some nodes of a program."""
        given = tuple((one.hint, one.type) for one in found.graph.inputs)
        names = found.graph.output_names
        nodes = tuple((id(node.op), node.operands, node.hints) for node in found.graph.nodes)
        key = (given, names, nodes)
        if key not in self.known:
            graph = found.graph
            self.known[key] = (graph, graph.show(types=True), _visible(graph))
        return _Part(*self.known[key], tuple(place_name(path) for path in found.paths))


@dataclass
class _Album:
    """Drawings to be made, each once, with at most ``limit`` nodes where there is a choice."""

    limit: int
    wanted: dict[Key, Graph] = field(default_factory=dict)
    nodes: int = 0

    def add(self, part: _Part, depth: int, *, down: bool = False) -> Key:
        """The key under which the drawing is found when it is made."""
        key = (part.text, depth, down)
        if key not in self.wanted:
            self.wanted[key] = part.graph
            self.nodes += part.counts[depth]
        return key

    def drawn(self) -> dict[Key, str]:
        """All drawings as SVG; a process makes many, and several run at a time."""
        texts = [
            to_dot(graph, depth=depth, told=False, down=down)
            for (_, depth, down), graph in self.wanted.items()
        ]
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
    """What is worth a picture in one state.

    ``made`` is where the step to it took place, ``taken`` where each step from it does, by number.
    """

    whole: _Part
    maps: dict[str, _Part]
    made: _Part | None
    taken: dict[int, _Part]


def pictures_data(graphs: Sequence[Graph], found: Sequence[Frame]) -> dict[str, Any]:
    """SVG texts, and for each state the numbers of its pictures; ``missing``: why there are none.

    ``whole`` are those of the program, from depth 0 on, ``tall`` the start from top to bottom, for
    narrow windows; ``maps`` those of maps by place, ``made``
    and ``taken`` those of where steps take place, each with the places of its nodes. What is too
    much for one picture is null or not there.
    """
    if not can_render("svg"):
        missing = f"There are no pictures, because nothing that draws them is installed: {HOW_TO}."
        return {"svgs": [], "states": [], "depth": 0, "missing": missing}
    parts = _Parts()
    states = [_of_state(graphs, found, at, parts) for at in range(len(graphs))]
    for limit in LIMITS:
        album = _Album(limit)
        keys = [_keys(state, album, first=not at) for at, state in enumerate(states)]
        if album.nodes <= BUDGET:
            break
    drawn = album.drawn()
    numbers = {svg: number for number, svg in enumerate(dict.fromkeys(drawn.values()))}

    def number(key: Key) -> int:
        return numbers[drawn[key]]

    return {
        "svgs": list(numbers),
        "states": [_numbered(of, number) for of in keys],
        "depth": states[0].whole.deepest(EASY_NODES),
        "missing": "",
    }


def _of_state(graphs: Sequence[Graph], found: Sequence[Frame], at: int, parts: _Parts) -> _State:
    """The program, where steps take place in it, and the maps that hold more than they say."""
    graph = graphs[at]
    sites = {
        step: [path for _, path in frame.roles]
        for step, frame in enumerate(found, 1)
        if frame.start == at and frame.roles
    }
    made = found[at - 1].made if at else ()
    return _State(
        parts.whole(graph),
        {
            place_name(path): parts.of(excerpt(graph, [path]))
            for path, op in _maps(graph)
            if len(op.body.nodes) > 2 or any(True for _ in op.body.of_type(Map))
        },
        parts.of(around(graph, made, NEAR)) if made else None,
        {step: parts.of(around(graph, paths, NEAR)) for step, paths in sites.items()},
    )


def _keys(state: _State, album: _Album, *, first: bool) -> dict[str, Any]:
    """The drawings of a state: numbers stand where its data has them, keys for pictures."""

    def shown(part: _Part, limit: int) -> list[Any]:
        return [album.add(part, part.deepest(limit)), part.places]

    counts = state.whole.counts
    last = state.whole.deepest(album.limit)
    fits = first or counts[0] <= album.limit
    easy = fits and last == len(counts) - 1
    near = not easy or counts[last] > NEAR
    return {
        "whole": [album.add(state.whole, depth) for depth in range(last + 1)] if fits else [],
        "tall": album.add(state.whole, 0, down=True) if first else None,
        "complete": easy,
        "maps": {place: shown(part, album.limit) for place, part in state.maps.items()},
        "made": shown(state.made, NEAR) if near and state.made else None,
        "taken": {step: shown(part, NEAR) for step, part in state.taken.items() if near},
    }


def _numbered(of: dict[str, Any], number: Callable[[Key], int]) -> dict[str, Any]:
    """The data of a state, pictures by their numbers."""

    def shown(one: list[Any] | None) -> list[Any] | None:
        return one and [number(one[0]), one[1]]

    return {
        "whole": list(map(number, of["whole"])),
        "tall": number(of["tall"]) if of["tall"] else None,
        "complete": of["complete"],
        "maps": {place: shown(one) for place, one in of["maps"].items()},
        "made": shown(of["made"]),
        "taken": {step: shown(one) for step, one in of["taken"].items()},
    }


def _maps(graph: Graph) -> Iterator[tuple[Path, Map]]:
    for path, level in graph.walk():
        for position, op in level.of_type(Map):
            yield (*path, position), op


def _visible(graph: Graph) -> list[int]:
    """How many nodes a picture shows, for each depth."""
    levels: dict[int, int] = {}
    for path, level in graph.walk():
        levels[len(path)] = levels.get(len(path), 0) + len(level.nodes)
    return [sum(n for depth, n in levels.items() if depth <= d) for d in range(len(levels))]
