"""The worklist: sites of one level that rules have yet to look at.

A node without a site stays without one until a change touches something that its rule reads. So the
first site, in the order of rules and then of nodes, is found without another walk over the level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, cast

from blockbuster.ir.graph import Graph
from blockbuster.ir.level import Level
from blockbuster.rules.base import LocalRule, Match, Rule, UpstreamRule, takes_levels
from blockbuster.rules.faults import check_match, first_site, raised, result_types

FEW = 32
Keys = dict[int, None]


class Worklist:
    """A level, and for each rule where it may apply; extensions are asked for by themselves."""

    def __init__(self, level: Level, rules: Sequence[Rule], extensions: Sequence[Rule]) -> None:
        self.level = level
        self.result_types = result_types(level)
        """Those of the level, which no rule may change."""
        self._rules = [_places_of(rule, level) for rule in rules]
        self._extensions = [_places_of(rule, level) for rule in extensions]
        self._newest: Graph | None = None
        self._bodies: dict[int, None] = {}
        """The maps that have other bodies in ``_newest`` than in the level, by their positions."""

    def first(self) -> Match | None:
        """The first site of the first rule that has one."""
        return self._first(self._rules)

    def first_extension(self) -> Match | None:
        """The same for extensions."""
        return self._first(self._extensions)

    def take_body(self, graph: Graph, position: int) -> None:
        """Go on as ``graph``, where the map at ``position`` has another body of the same ports."""
        self._newest = graph
        self._bodies[position] = None

    def _first(self, rules: Iterable[_Places]) -> Match | None:
        if self._newest is not None:
            self.level.take_bodies(self._newest, self._bodies)
            self.update()
            self._newest, self._bodies = None, {}
        for places in rules:
            found = places.first(self.level)
            if found is not None:
                return found
        return None

    def update(self) -> None:
        """Look again where the last change of the level may have made a site."""
        level, change = self.level, self.level.change
        near = dict.fromkeys((*change.new, *change.near, *change.reordered))
        opened = _Opened(tuple(near), near, {})
        for key in change.new:
            opened.near.update(level.readers(key))
            opened.beside.update(level.siblings(key))
        for key in change.near:
            opened.beside.update(level.readers(key))
        for places in (*self._rules, *self._extensions):
            places.update(level, opened)

    def move_to(self, level: Level) -> None:
        """Go on with the same nodes under new keys: their map has other ports, or another order."""
        old, self.level = self.level, level
        self.result_types = result_types(level)
        ops = [old.nodes[key].op for key in old.order]
        same = [node.op for node in level.nodes.values()] == ops
        for places in (*self._rules, *self._extensions):
            places.move(level, old.rank if same else {})


class _Opened(NamedTuple):
    """What is to be looked at again: what changed, what is near that, what reads the same."""

    changed: tuple[int, ...]
    near: Keys
    beside: Keys


class _Places(Protocol):
    """Where one rule is still to be looked for."""

    def first(self, level: Level) -> Match | None:
        """The first site."""

    def update(self, level: Level, opened: _Opened) -> None:
        """Note what the last change of the level opened."""

    def move(self, level: Level, rank: Mapping[int, int]) -> None:
        """Go on with another level: ``rank`` says where nodes are in it, or nothing."""


def _places_of(rule: Rule, level: Level) -> _Places:
    if not takes_levels(rule):
        return _Anywhere(rule)
    return _Behind(rule) if isinstance(rule, UpstreamRule) else _Near(rule, level)


class _Near:
    """The nodes where a local rule may apply."""

    def __init__(self, rule: LocalRule, level: Level) -> None:
        self._rule = rule
        self._open: Keys = dict.fromkeys(level.order)
        self._cut_off: Keys = {}
        """Nodes without a site because there is some path."""

    def first(self, level: Level) -> Match | None:
        open_ = self._open
        few = len(open_) <= FEW
        keys: Iterable[int] = (
            sorted(open_, key=level.rank.__getitem__)
            if few
            else filter(open_.__contains__, level.order)
        )
        for key in keys:
            level.found_path = False
            found = _site_at(self._rule, level, key)
            if found is not None:
                return found
            del open_[key]
            if level.found_path:
                self._cut_off[key] = None
        return None

    def update(self, level: Level, opened: _Opened) -> None:
        for key in level.change.gone:
            self._open.pop(key, None)
            self._cut_off.pop(key, None)
        self._open |= opened.near
        if self._rule.looks_beside:
            self._open |= opened.beside
        if level.change.cut:
            self._open |= self._cut_off
            self._cut_off.clear()

    def move(self, level: Level, rank: Mapping[int, int]) -> None:
        self._open = {rank[k]: None for k in self._open} if rank else dict.fromkeys(level.order)
        self._cut_off = {rank[key]: None for key in self._cut_off} if rank else {}


class _Behind:
    """How many nodes, the first in order, are known to be no site of an upstream rule."""

    def __init__(self, rule: UpstreamRule) -> None:
        self._rule = rule
        self._closed = 0

    def first(self, level: Level) -> Match | None:
        for key in islice(level.order, self._closed, None):
            found = _site_at(self._rule, level, key)
            if found is not None:
                return found
            self._closed += 1
        return None

    def update(self, level: Level, opened: _Opened) -> None:
        if self._closed:
            before = max(self._closed - len(level.change.gone), 0)  # the others moved up
            self._closed = min([before, *map(level.rank.__getitem__, opened.changed)])

    def move(self, level: Level, rank: Mapping[int, int]) -> None:
        self._closed = 0


class _Anywhere:
    """Whether a rule that looks at a level as a whole, as a graph, may have a site."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._open = True

    def first(self, level: Level) -> Match | None:
        found = first_site(self._rule, level.graph()) if self._open else None
        self._open = found is not None
        return found

    def update(self, level: Level, opened: _Opened) -> None:
        self._open = True

    def move(self, level: Level, rank: Mapping[int, int]) -> None:
        self._open = True


def _site_at(rule: LocalRule, level: Level, key: int) -> Match | None:
    try:
        found = next(rule.matches_at(cast(Graph, level), key), None)
    except Exception as error:
        raise raised(rule, "matches_at", error, level.graph()) from error
    if found is not None:
        check_match(rule, found, level)
    return found
