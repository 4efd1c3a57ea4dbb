"""Candidates beside the snapshots: programs whose dots read operands that an earlier kernel stored.

A norm that is fused into a product is computed again for each block of the result's columns,
between memory and the matrix units, which delays loads that could run ahead. Stored once, in the
dtype that the dots read, it costs a kernel and a pass through memory, and the product is a loop of
plain dots. ``Materialize`` stores it; which is cheaper depends on sizes, and choice.py decides.
"""

from __future__ import annotations

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Functional
from blockbuster.rules import Derivation, Match, Materialize, made_safe
from blockbuster.rules.materialize import site_of
from blockbuster.selection.candidates.variant import Variant
from blockbuster.selection.priors import PRIORS


def operands_apart(derivation: Derivation) -> tuple[Variant, ...]:
    """The most fused snapshots that have operands of dots to store, in their safe form."""
    found: dict[Graph, Variant] = {}
    for number in range(len(derivation.snapshots_after), 0, -1):
        one = stored_from(derivation, number)
        if one is not None:
            found.setdefault(one.graph, one)
        if len(found) == PRIORS.operands_apart_forms:
            break
    return tuple(found.values())


def stored_from(derivation: Derivation, number: int) -> Variant | None:
    """The safe form of snapshot ``number``, counted from 1, with operands of its dots stored; None
    if no dot reads one to store.
    """
    stable = made_safe(derivation.at_snapshot(number))
    made = with_operands_stored(stable)
    name = f"snapshot {number} with operands of dots stored"
    return None if made is stable else Variant(made, name)


def with_operands_stored(derivation: Derivation) -> Derivation:
    """With each value stored that a dot reads, and that a loop computes again."""
    rule = Materialize()
    while True:
        sites = rule.of_kind(derivation.final, "operand")
        found = next((site for site in sites if _feeds_a_dot(site)), None)
        if found is None:
            return derivation
        derivation = derivation.then(found)


def _feeds_a_dot(site: Match) -> bool:
    """True if a dot of their level reads one of the values, which ``site_of`` names."""
    path, values = site_of(site)
    level = site.graph.at(path)
    dots = (node for node in level.nodes if node.op == Functional("dot"))
    return any(value in node.operands for node in dots for value in values)
