"""Pairs of maps that will stand in one graph after rule 6 or 7, and may fuse there."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from blockbuster.ir.graph import Graph
from blockbuster.rules.base import label
from blockbuster.rules.fuse_maps import FuseMaps, shared_operands
from blockbuster.rules.fuse_siblings import FuseSiblings


class Meeting(NamedTuple):
    """Two maps that a fusion rule can take: the one from outside, the one from inside, in words."""

    outer: int
    inner: int
    words: str


def meeting(graph: Graph, outer: Collection[int], inner: Collection[int]) -> Meeting | None:
    """The first map of ``outer`` that fuses with one of ``inner``, both positions in ``graph``.

    (a) it feeds it, (b) both read the same list that is an input, (c) or that a node makes.
    """
    for match in FuseMaps().matches(graph):
        producer, consumer = match.nodes["producer"], match.nodes["consumer"]
        if producer in outer and consumer in inner:
            what = f"{label(match.node('producer'))} -> {label(match.node('consumer'))}"
            return Meeting(producer, consumer, f"(a) {what}")
    for match in FuseSiblings().matches(graph):
        first, second = match.nodes["first"], match.nodes["second"]
        shared = [v for v in shared_operands(graph, first, second) if graph.type_of(v).buffered]
        if not shared:
            continue  # a local value costs no pass
        variant = "(b)" if any(v.node < 0 for v in shared) else "(c)"
        words = f"{variant} {label(match.node('first'))} | {label(match.node('second'))}"
        for one, other in ((first, second), (second, first)):
            if one in outer and other in inner:
                return Meeting(one, other, words)
    return None
