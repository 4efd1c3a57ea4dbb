"""Finds the sites of rules in programs that have most levels in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Op
from blockbuster.rules.base import Match, Rule
from blockbuster.testing.sites import Site


class Finder:
    """Finds matches in programs that have most levels in common, as the steps of a walk have.

    A rule does not look twice through a level that it has been through.
    """

    def __init__(self, rules: Sequence[Rule], most: int | None = None) -> None:
        """``most`` is how many matches of one rule at one level are wanted, the first ones."""
        self.rules = {id(rule): rule for rule in rules}
        self.most = most
        self._known: dict[tuple[int, int], list[Match]] = {}
        self._hopeful: dict[int, tuple[Graph, dict[int, Rule]]] = {}
        """By the id of a level, which stays alive here."""

    def hopeful(self, level: Graph) -> dict[int, Rule]:
        """The rules that are not known to have no match at the level, by id."""
        known = self._hopeful.get(id(level))
        if known is None:
            kinds = tuple([type(node.op) for node in level.nodes])
            hopeful = {key: rule for key, rule in self.rules.items() if _among(rule.needs, kinds)}
            known = self._hopeful[id(level)] = level, hopeful
        return known[1]

    def matches(self, rule: Rule, level: Graph) -> list[Match]:
        """The matches of a rule, one of those given, at one level."""
        known = self._known.get((id(rule), id(level)))
        if known is None:
            hopeful = self.hopeful(level)
            found = rule.matches(level) if id(rule) in hopeful else ()
            known = self._known[id(rule), id(level)] = [*islice(found, self.most)]
            if not known:
                hopeful.pop(id(rule), None)
        return known

    def sites(self, graph: Graph, rule: Rule) -> list[Site]:
        """The sites of a rule at every level of a program."""
        return [
            Site(graph, path, match)
            for path, level in graph.walk()
            for match in self.matches(rule, level)
        ]


@lru_cache(maxsize=4096)
def _among(needs: tuple[type[Op], ...], kinds: tuple[type[Op], ...]) -> bool:
    """True if the operators that a rule needs are among those of a level."""
    return all(kinds.count(op) >= needs.count(op) for op in needs)
