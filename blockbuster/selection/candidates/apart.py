"""Candidates beside the snapshots: programs whose loops of dots compute no row statistics.

Fusing a norm with a matmul ends in one loop that takes the dots and adds up rows of their operand.
On an H200 that is 1.3 to 2.2 times slower than one kernel for the sums and one for the dots, whose
loads then run ahead. ``Materialize`` separates them; choice.py decides which is cheaper.
Less fused, the sums stand in a loop of their own before those of the dots: separated, they are one
kernel with blocks of its own instead of chunks in the blocks of the dots.

Where inputs are constant there are such programs whose dots read stored operands, too: weights with
the factors of a norm are then computed once for all calls, as are the sums of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Functional, Map
from blockbuster.rules import Derivation, Match, Materialize, safe
from blockbuster.selection.candidates.operands_apart import with_operands_stored
from blockbuster.selection.candidates.variant import Variant
from blockbuster.selection.priors import PRIORS

LOSES = (
    "statistics are computed apart: rows times columns, less mean times sums of columns, loses "
    "digits where the mean is more than a hundred deviations"
)


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of a program, for all its candidates."""

    derivation: Derivation
    _counted: dict[Graph, int] = field(default_factory=dict, repr=False, compare=False)

    def outer_products(self, graph: Graph) -> int:
        """How many outer products the safe form of ``graph`` has, counted once."""
        if graph not in self._counted:
            self._counted[graph] = _outer_products(safe(graph))
        return self._counted[graph]

    @cached_property
    def fewest_outer_products(self) -> int:
        """In the safe form of the snapshot that has least of them."""
        return min(map(self.outer_products, self.derivation.snapshots))

    def apart(self, made: Derivation, number: int) -> Variant:
        """The candidate that ends with ``made``: snapshot ``number`` without statistics."""
        return Variant(made, f"snapshot {number} with statistics apart", self.notes(made.final))

    def notes(self, graph: Graph) -> tuple[str, ...]:
        """A note if a mean is taken off after the dots, where some snapshot would do so before.

        The safe form of a program normalizes rows where it knows their variance (centering.py).
        Products of float32 then keep digits that a difference of sums has lost; those of float16
        have fewer digits than their sums.
        """
        own = self.outer_products(graph)
        return (LOSES,) if own > 0 and own > self.fewest_outer_products else ()


def apart_from(derivation: Derivation, number: int, *, stored: bool = False) -> Variant:
    """Snapshot ``number``, counted from 1, with all statistics taken out of its loops of dots.

    ``stored``: computed operands of dots are stored, too.
    """
    snapshots = Snapshots(derivation)
    one = snapshots.apart(_without_statistics(derivation.at_snapshot(number)), number)
    return _with_operands(one, snapshots) if stored else one


def statistics_apart(derivation: Derivation) -> tuple[Variant, ...]:
    """The candidates from the first snapshots that have statistics to separate, least fused first.

    Last, of several products, the first snapshot whose sums stand before its loops of dots.
    """
    found: dict[Graph, Variant] = {}
    before: list[tuple[Derivation, int]] = []
    snapshots = Snapshots(derivation)
    for number in range(1, len(derivation.snapshots_after) + 1):
        if len(found) >= PRIORS.apart_forms:
            break
        whole = derivation.at_snapshot(number)
        made = _without_statistics(whole)
        if sums_beside_dots(made.final) != sums_beside_dots(whole.final):
            found.setdefault(made.final, snapshots.apart(made, number))
        elif made.final != whole.final:
            before.append((made, number))
    for made, number in before[:1] if _products(derivation.final) > 1 else ():
        found.setdefault(made.final, snapshots.apart(made, number))
    return tuple(found.values())


def operands_stored_too(derivation: Derivation, found: Sequence[Variant]) -> tuple[Variant, ...]:
    """The candidates among these whose dots read computed operands, with those stored."""
    snapshots = Snapshots(derivation)
    made = (_with_operands(one, snapshots) for one in found)
    return tuple(one for one, old in zip(made, found, strict=True) if one.graph != old.graph)


def _with_operands(one: Variant, snapshots: Snapshots) -> Variant:
    made = with_operands_stored(one.derivation)
    name = f"{one.name} and operands of dots stored"
    return Variant(made, name, snapshots.notes(made.final))


def _without_statistics(derivation: Derivation) -> Derivation:
    """With all statistics materialized of maps that hold dots."""
    rule = Materialize()
    while True:
        sites = rule.of_kind(derivation.final, "value")
        found = next((site for site in sites if _holds_dots(site)), None)
        if found is None:
            return derivation
        derivation = derivation.then(found)


def _holds_dots(site: Match) -> bool:
    level = site.graph
    ops = [level.nodes[position].op for position in site.nodes.values()]
    bodies = [op.body for op in ops if isinstance(op, Map)]
    inner = (node for body in bodies for _, graph in body.walk() for node in graph.nodes)
    return any(node.op == Functional("dot") for node in inner)


def sums_beside_dots(graph: Graph) -> int:
    """How many results of maps that sum dots, at all levels, are folds of something else."""
    count = 0
    for _, level in graph.walk():
        for _, op in level.of_type(Map):
            ends = zip(op.body.outputs, op.results, strict=True)
            folded = [o.value for o, result in ends if not isinstance(result, Collect)]
            dots = sum(_is_dot(op.body, value) for value in folded)
            count += len(folded) - dots if dots else 0
    return count


def _is_dot(body: Graph, value: Value) -> bool:
    return value.node >= 0 and body.nodes[value.node].op == Functional("dot")


def _products(graph: Graph) -> int:
    return sum(n.op == Functional("dot") for _, level in graph.walk() for n in level.nodes)


def _outer_products(graph: Graph) -> int:
    nodes = (node for _, level in graph.walk() for node in level.nodes)
    return sum(node.op == Functional("outer") for node in nodes)
