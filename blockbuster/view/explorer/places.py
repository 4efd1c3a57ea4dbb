"""Which node a printed line belongs to: nodes are named by their place, ``0-3`` is node 3 in map 0.

A graph whose nodes carry their places as origins is equal to the one without, so every text that is
printed with its origins shows which line came from which node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from blockbuster.ir.graph import Graph, Node
from blockbuster.ir.ops import Map
from blockbuster.ir.origin import Origin, SourceLine
from blockbuster.rules.derivation import Path

MARK = "node@"
MARKED = re.compile(rf"{MARK}(\d+(?:-\d+)*):0")


def place_name(path: Path) -> str:
    """The name of the node at ``path``, whose last entry is its position.

    >>> place_name((0, 3))
    '0-3'
    """
    return "-".join(map(str, path))


def with_places(graph: Graph, path: Path = ()) -> Graph:
    """An equal graph in which the origin of every node says where the node is."""
    return replace(
        graph,
        nodes=tuple(_with_place(node, (*path, at)) for at, node in enumerate(graph.nodes)),
    )


def _with_place(node: Node, path: Path) -> Node:
    op = node.op
    if isinstance(op, Map):
        op = replace(op, body=with_places(op.body, path))
    origin = Origin(where=SourceLine(MARK + place_name(path), 0))
    return replace(node, op=op, origin=origin)


def place_of(origin: Origin) -> str:
    """The place that an origin of ``with_places`` names, or an empty text."""
    return place_in(" ".join(map(str, origin.lines())))


def place_in(text: str) -> str:
    """The first place that a text mentions, or an empty text."""
    found = MARKED.search(text)
    return found[1] if found else ""


def filled(lines: Sequence[str], places: Sequence[str]) -> list[str]:
    """Lines without a place of their own get that of the loop or map around them."""
    around: list[tuple[int, str]] = []
    result = []
    for line, place in zip(lines, places, strict=True):
        indent = len(line) - len(line.lstrip())
        while around and around[-1][0] >= indent and not _closes(line, indent, around[-1][0]):
            around.pop()
        result.append(place or (around[-1][1] if around else ""))
        if place and line.split("  #")[0].endswith((":", "{")):
            around.append((indent, place))
    return result


def _closes(line: str, indent: int, opened: int) -> bool:
    """Whether a line is the end of the block that was opened at an indentation."""
    return indent == opened and line.lstrip().startswith("}")
