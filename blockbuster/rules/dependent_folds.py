"""Folds that wait for results of the loop that they could run in, as functions g(r, c).

r are the *leads*: results that another map folds over the same dim. c are elements, which differ
from iteration to iteration; what is neither is a parameter. Operators between the two maps, such as
c = 1 / sqrt(s / n + eps), are taken into g, so a fold may wait for several leads at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blockbuster.ir.builder import rebuild
from blockbuster.ir.expr import Arg, Expr, arguments
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Collect
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import label, map_of, name_of
from blockbuster.rules.element_formulas import Formulas, entering, folded_of, scalar_of
from blockbuster.rules.laws import Question
from blockbuster.rules.legality import different_dims, first_iteration_gone, map_at
from blockbuster.rules.separate import ANY, signs_of
from blockbuster.rules.shared_factor import sharing
from blockbuster.rules.signs import signs_of_fold

MOST_LEADS = 3
"""For how many results a fold may wait: each stays in a register of the loop."""


EXTREMA = (Accumulate("max"), Accumulate("min"))


class NotDependentError(ValueError):
    """Why a fold is no function of leads and elements, as the rest of a sentence about it."""


@dataclass(frozen=True)
class Dependent:
    """Result ``port`` of a map, which the map ``alone`` makes alone, waits for ``leads``.

    ``first`` is the map of the leads, ``between`` are the nodes from the leads to the operands of
    ``alone`` that depend on them. ``question`` asks how the fold is repaired; argument i of its
    function is ``leaves[i]``: the value outside of the loop for leads and parameters, and None for
    elements. ``folded`` is what each lead is folded from.
    """

    first: int
    port: int
    alone: Node
    leads: tuple[Value, ...]
    between: tuple[int, ...]
    question: Question
    leaves: Mapping[int, Value | None]
    folded: tuple[Expr, ...]


def dependents(graph: Graph, position: int) -> Iterator[Dependent | str]:
    """The folds of a map that wait for a map with which it shares a list, or why they are none."""
    for first in dict.fromkeys(sharing(graph, position)):
        if not graph.reaches(first, position):
            continue
        apart = different_dims(graph, first, position)
        if reason := apart or first_iteration_gone(graph, first, position):
            yield reason
            continue
        for port, result in enumerate(map_at(graph, position).results):
            if not isinstance(result, Accumulate) or result.monoid == "prod":
                continue
            if map_at(graph, position).group_of(port) != (port,):
                continue
            alone = select_results(graph.nodes[position], (port,), rebuild)[0]
            try:
                found = _Read(graph, first, alone, result.monoid).dependent(port)
            except NotDependentError as reason:
                yield f"{name_of(graph, Value(position, port))} {reason}"
                continue
            if found is not None:
                yield found


@dataclass
class _Read:
    """What one fold, that of the map ``alone``, reads of the map ``first``."""

    graph: Graph
    first: int
    alone: Node
    monoid: str

    def dependent(self, port: int) -> Dependent | None:
        """The fold as a function of its leads; None if it waits for none."""
        graph, formulas = self.graph, Formulas()
        late = tuple(value for value in self.alone.operands if self._is_late(value))
        if not late:
            return None
        leads, between = self._followed(late)
        self._check_axes(leads)
        first = graph.nodes[self.first]
        known = formulas.of(map_at(graph, self.first).body, entering(formulas, first, {}))
        outputs = map_at(graph, self.first).body.outputs
        made = {Value(self.first, at): known[end.value] for at, end in enumerate(outputs)}
        made |= {lead: formulas.leaf(("lead", lead)) for lead in leads}
        for node in between:
            made[Value(node)] = formulas.applied(
                graph.nodes[node],
                [made.get(v) or formulas.leaf((v, False)) for v in graph.nodes[node].operands],
            )
        inside = formulas.of(map_of(self.alone).body, entering(formulas, self.alone, made))
        g = folded_of(self.alone, 0, inside)
        numbers = tuple(formulas.leaf(("lead", lead)).index for lead in leads)
        g = self._summand(g, formulas, numbers)
        leaves = self._leaves(g, formulas, numbers, leads)
        elements = tuple(index for index, value in leaves.items() if value is None)
        folded = tuple(folded_of(first, lead.port, known) for lead in leads)
        signs = {n: self._signs(lead, f) for n, lead, f in zip(numbers, leads, folded, strict=True)}
        extrema = {
            n: f
            for n, lead, f in zip(numbers, leads, folded, strict=True)
            if map_at(graph, self.first).results[lead.port] in EXTREMA
        }
        question = Question(g, numbers, elements, self.monoid, signs, extrema)
        return Dependent(self.first, port, self.alone, leads, between, question, leaves, folded)

    def _is_late(self, value: Value) -> bool:
        if value.node == self.first:
            return not isinstance(map_at(self.graph, self.first).results[value.port], Collect)
        return value.node >= 0 and self.graph.reaches(self.first, value.node)

    def _followed(self, late: tuple[Value, ...]) -> tuple[tuple[Value, ...], tuple[int, ...]]:
        """The leads of ``late``, and the nodes from those to these, in order."""
        leads: dict[Value, None] = {}
        between: dict[int, None] = {}

        def follow(value: Value) -> None:
            if value.node in between:
                return
            if value.node == self.first:
                leads.setdefault(value)
                return
            node = self.graph.nodes[value.node]
            if scalar_of(node) is None:
                raise NotDependentError(f"waits for {label(node)}, which depends on the same loop")
            for operand in node.operands:
                if self._is_late(operand):
                    follow(operand)
                elif operand.node == self.first or self.graph.type_of(operand).buffered:
                    raise NotDependentError(f"waits for lists that {label(node)} reads")
            between.setdefault(value.node)

        walks = dict(zip(self.alone.operands, map_of(self.alone).iterated, strict=True))
        for value in late:
            if walks[value]:
                raise NotDependentError(f"walks {name_of(self.graph, value)}, which is made later")
            follow(value)
        for value, iterated in walks.items():
            if value.node == self.first and value not in late and not iterated:
                raise NotDependentError(f"reads all of {name_of(self.graph, value)}")
        if len(leads) > MOST_LEADS:
            raise NotDependentError(f"waits for {len(leads)} results of one loop")
        return tuple(leads), tuple(between)

    def _check_axes(self, leads: tuple[Value, ...]) -> None:
        for lead in leads:
            if not set(self.graph.type_of(lead).axes) <= set(self.alone.types[0].axes):
                raise NotDependentError(f"lacks an axis of {name_of(self.graph, lead)}")

    def _summand(self, g: Expr, formulas: Formulas, leads: tuple[int, ...]) -> Expr:
        """A sum may be a dot: it is linear in the operand that waits."""
        if self.monoid != "+":
            return g
        waiting = [Arg(lead) for lead in leads if formulas.reads(g, Arg(lead))]
        found = {formulas.summand(g, lead): None for lead in waiting}
        return next(iter(found)) if len(found) == 1 else g

    def _leaves(
        self, g: Expr, formulas: Formulas, numbers: tuple[int, ...], leads: tuple[Value, ...]
    ) -> dict[int, Value | None]:
        """What the arguments of g are outside of the loop; None for elements."""
        found: dict[int, Value | None] = {}
        place = dict(zip(numbers, leads, strict=True))
        dim, axes = map_of(self.alone).dim, self.alone.types[0].axes
        for index in arguments(g):
            if index in place:
                found[index] = place[index]
                continue
            if any(formulas.reads(Arg(index), Arg(lead)) for lead in numbers):
                raise NotDependentError("combines elements that wait")
            found[index] = None
            match formulas.key(index):
                case (Value() as value, False):
                    type = self.graph.type_of(value)
                    if not type.buffered and dim not in type.axes and {*type.axes} <= {*axes}:
                        found[index] = value
        return found

    def _signs(self, lead: Value, folded: Expr) -> str:
        """The signs of a lead, from those of what it is folded from."""
        result = map_at(self.graph, self.first).results[lead.port]
        if not isinstance(result, Accumulate):
            return ANY
        return signs_of_fold(result.monoid, signs_of(folded, {}))
