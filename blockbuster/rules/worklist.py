"""Where a rule may apply: the sites of one level that are still to be looked at.

A node without a site stays without one until something near it changes. So the first site, in the
order of rules and then of nodes, is found without looking at the rest of the level again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from blockbuster.ir.graph import Graph
from blockbuster.ir.level import Level
from blockbuster.ir.types import Type
from blockbuster.rules.base import LocalRule, Match, Rule

FEW = 32


class Worklist:
    """A level, and for each rule the nodes where it may apply."""

    def __init__(self, level: Level, rules: Sequence[Rule]) -> None:
        self.level = level
        self.result_types = result_types(level)
        """Those of the level, which no rule may change."""
        self._rules = rules
        self._open: list[dict[int, None]] = [dict.fromkeys(level.order) for _ in rules]
        self._cut_off: list[dict[int, None]] = [{} for _ in rules]

    def first(self) -> Match | None:
        """The first site of the first rule that has one."""
        for rule, open_, cut_off in zip(self._rules, self._open, self._cut_off, strict=True):
            if isinstance(rule, LocalRule):
                found = self._first_of(rule, open_, cut_off)
            else:
                found = rule.match(self.level.graph())
            if found is not None:
                return found
        return None

    def _first_of(
        self, rule: LocalRule, open_: dict[int, None], cut_off: dict[int, None]
    ) -> Match | None:
        level, graph = self.level, cast(Graph, self.level)
        few = len(open_) <= FEW
        keys: Iterable[int] = (
            sorted(open_, key=level.rank.__getitem__)
            if few
            else filter(open_.__contains__, level.order)
        )
        for key in keys:
            level.found_path = False
            found = next(rule.matches_at(graph, key), None)
            if found is not None:
                return found
            del open_[key]
            if level.found_path:
                cut_off[key] = None
        return None

    def update(self) -> None:
        """Open again what is near the last change of the level."""
        change = self.level.change
        near = dict.fromkeys((*change.new, *change.near, *change.reordered))
        beside: dict[int, None] = {}
        for key in change.new:
            near |= self.level.readers(key)
            beside |= self.level.siblings(key)
        for key in change.near:
            beside |= self.level.readers(key)
        for rule, open_, cut_off in zip(self._rules, self._open, self._cut_off, strict=True):
            for key in change.gone:
                open_.pop(key, None)
                cut_off.pop(key, None)
            open_ |= near
            if isinstance(rule, LocalRule) and rule.looks_beside:
                open_ |= beside
            if change.cut:
                open_ |= cut_off
                cut_off.clear()

    def move_to(self, level: Level) -> None:
        """Go on with the same nodes under new keys: their map took its ports in another order."""
        old, self.level, rank = self.level, level, self.level.rank
        ops = [old.nodes[key].op for key in old.order]
        same = [node.op for node in level.nodes.values()] == ops
        self._open = [
            {rank[key]: None for key in open_} if same else dict.fromkeys(level.order)
            for open_ in self._open
        ]
        self._cut_off = [
            {rank[key]: None for key in cut_off} if same else {} for cut_off in self._cut_off
        ]


def result_types(graph: Graph | Level) -> tuple[Type, ...]:
    """The types of what leaves a graph."""
    return graph.types_of(output.value for output in graph.outputs)
