"""A factor that all iterations of a map share, taken out of the folds it enters: use "move out".

The rules for it say by which folds, behind which functions, and which factors stay because floats
have a largest number. Lists that contain the factor stay, in a map of their own if another map
iterates over them:

    e, s = map K (x in !X, c = c) { .. yield e yield +s }    s1 = map K (x in !X) { .. yield +s }
    y = map K (e in !e, s = s) { .. }                        s = mul(s1, c)
                                                             e = map K (x in !X, c = c) { .. }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from blockbuster.ir.builder import rebuild
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import Accumulate, Map, Op, Result
from blockbuster.ir.origin import Origin
from blockbuster.ir.ports import results_at, select_results
from blockbuster.rules.base import LocalRule, Match, Note, label, name_of, unheard
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.laws import SCALES
from blockbuster.rules.legality import first_iteration_gone, leads_others, map_at
from blockbuster.rules.separate import expression
from blockbuster.rules.unscaled import Term, Unscaled


class MoveOut(LocalRule):
    """A rule for what all iterations of a map share, and that can wait until after the map."""

    kind = "companion"
    needs: ClassVar[tuple[type[Op], ...]] = (Map,)

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        """What could leave the map at ``position``, in words, and why it stays, or ""."""
        raise AssertionError(f"{self.name} finds nothing")

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        """The first that can leave."""
        if not isinstance(graph.nodes[position].op, Map):
            return
        for name, reason in self.sites(graph, position):
            yield from self.judged(graph, {"map": position}, reason, note, name)
            if not reason:
                return

    def describe(self, match: Match) -> str:
        return f"{match.detail} leaves {label(match.node('map'))}"


class LeavingFactor(MoveOut):
    """A rule for maps with an operand whose factor can leave the folds that it goes into."""

    monoids: ClassVar[tuple[str, ...]] = ("+",)
    passed: ClassVar[tuple[str, ...]] = SCALES[0].passes
    exponential: ClassVar[bool] = False

    def ports(self, graph: Graph, position: int) -> Iterator[int]:
        """The ports of the operands of a map that the rule looks at."""
        return made_here(graph, position) if shares_a_pass(graph, position) else iter(())

    def unfit(self, graph: Graph, position: int, found: Unscaled) -> str:
        """Why a factor stays although an equation lets it leave, or ""."""
        return ""

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        op, node = map_at(graph, position), graph.nodes[position]
        if not any(_folds(result, self.monoids) for result in op.results):
            return
        for port in [*self.ports(graph, position)]:
            found = Unscaled(op, port, Origin(), self.passed, self.exponential)
            reason = self._why_it_stays(graph, position, found)
            factor = name_of(op.body, Value(-1, port))
            stays = reason and f"{factor} stays in {label(node)}: {reason}"
            yield name_of(graph, node.operands[port]), stays

    def apply(self, match: Match) -> Graph:
        graph, position = match.graph, match.nodes["map"]
        for port in self.ports(graph, position):
            op, origin = match.map("map"), match.origin()
            found = Unscaled(op, port, origin, self.passed, self.exponential)
            if not self._why_it_stays(graph, position, found):
                return _taken_out(match, found, [*self._staying(op, found)])
        raise AssertionError(f"nothing leaves at {match}")

    def _why_it_stays(self, graph: Graph, position: int, found: Unscaled) -> str:
        """Why a factor stays in all folds, or "": in lists it may stay where that costs no pass."""
        reason = first_iteration_gone(graph, position) or self.unfit(graph, position, found)
        if reason:
            return reason
        op = map_at(graph, position)
        staying = self._staying(op, found)
        leaving = [o for p, o in enumerate(op.body.outputs) if p not in staying]
        if not any(output.value in found.factors for output in leaving):
            return next(iter(staying.values()), "no sum depends on it")
        return next(iter(staying.values())) if staying and _costs(graph, position, staying) else ""

    def _staying(self, op: Map, found: Unscaled) -> dict[int, str]:
        """The results that need the factor in the map, and why: all of a group, or none."""
        staying: dict[int, str] = {}
        for port, output in enumerate(op.body.outputs):
            reason = _why_it_needs_it(op, port, found, self.monoids)
            if reason:
                reason = f"{name_of(op.body, output.value)} {reason}"
                staying |= {beside: reason for beside in op.group_of(port) if beside not in staying}
        return {port: staying[port] for port in sorted(staying)}


# Conditions: which maps and operands, and why a factor stays ---------------------------


def made_here(graph: Graph, position: int) -> Iterator[int]:
    """The ports of a map's local operands that nodes at its level make: no inputs, no lists."""
    node = graph.nodes[position]
    for port, value in enumerate(map_at(graph, position).entering(node.operands)):
        if value.node >= 0 and not graph.type_of(value).buffered:
            yield port


def shares_a_pass(graph: Graph, position: int) -> bool:
    """True if another map over the same dim makes, or walks, a list that the map walks.

    The two would be one map, were it not for what the one waits for.
    """
    return any(True for _ in sharing(graph, position))


def sharing(graph: Graph, position: int) -> Iterator[int]:
    """The other maps over the same dim that make, or walk, a list that the map walks."""
    op, node = map_at(graph, position), graph.nodes[position]
    for value, walks in zip(node.operands, op.iterated, strict=False):
        for other in (value.node, *graph.consumers(value)) if walks else ():
            if other not in (-1, position) and _runs_over(graph, other, op.dim):
                yield other


def waiting(graph: Graph, position: int) -> Iterator[int]:
    """The ports of local operands that wait for another map over the dim that shares a list."""
    others = tuple(dict.fromkeys(sharing(graph, position)))
    for port in made_here(graph, position) if others else ():
        if any(waits(graph, graph.nodes[position].operands[port], other) for other in others):
            yield port


def waits(graph: Graph, value: Value, other: int) -> bool:
    """True if a node makes a value, or what it is made of."""
    return value.node == other or graph.reaches(other, value.node)


def _runs_over(graph: Graph, position: int, dim: str) -> bool:
    op = graph.nodes[position].op
    return isinstance(op, Map) and op.dim == dim


def _folds(result: Result, monoids: tuple[str, ...]) -> bool:
    return isinstance(result, Accumulate) and result.monoid in monoids


def _why_it_needs_it(op: Map, port: int, found: Unscaled, monoids: tuple[str, ...]) -> str:
    """Why a result needs the factor in the map, or ""."""
    value = op.body.outputs[port].value
    if value in found.refused:
        return f"is no multiple of it: a value {found.refused[value]}"
    if value not in found.factors:
        return ""
    if not _folds(op.results[port], monoids):
        return f"is not summed over {op.dim}"
    if found.factors[value] != found.leaving:
        return "is a multiple of another power of it, or of its size"
    rest = found.rests[value]
    if not isinstance(rest, Value):
        return "is a number times it"
    shown = (*found.axes, *found.builder.type_of(rest).axes)
    lost = [dim for dim in op.body.type_of(value).axes if dim not in shown]
    return f"would lose its axis {lost[0]}" if lost else leads_others(op, port)


def _costs(graph: Graph, position: int, staying: dict[int, str]) -> bool:
    """True unless what stays has a reader, which may wait for the sums, and no loop runs twice."""
    op = map_at(graph, position)
    read = any(graph.consumers(Value(position, port)) for port in staying)
    return not read or any(isinstance(node.op, Map) for node in op.body.nodes)


# Rewriting -------------------------------------------------------------------------------


def _taken_out(match: Match, found: Unscaled, staying: list[int]) -> Graph:
    """The graph in which the factor is applied to folds, after the map."""
    op, node, origin = match.map("map"), match.node("map"), match.origin()
    edit = match.edit()
    if staying:
        kept, ports = select_results(node, staying, rebuild)
        for port, value in zip(
            ports, edit.add(kept.op, *kept.operands, hints=kept.hints, origin=origin), strict=True
        ):
            edit.redirect(match.value("map", port), value)
    free = [port for port in range(len(op.results)) if port not in staying]
    rests = [found.rests.get(op.body.outputs[port].value) for port in free]
    outputs = [_unscaled(op.body.outputs[p], rest) for p, rest in zip(free, rests, strict=True)]
    changed = replace(op, body=found.builder.finish(*outputs), results=results_at(op, free))
    hints = tuple(node.hints[port] for port in free)
    new = edit.add(changed, *node.operands, hints=hints, origin=origin)
    assert found.leaving is not None
    factor, given = expression(found.leaving), dict(enumerate(node.operands))
    if found.exponential:  # once for all
        given[-1], factor = by_dim(edit, factor, given, found.axes, origin), Arg(-1)
    for value, port, rest in zip(new, free, rests, strict=True):
        total = value
        if rest is not None:
            product, axes = call("mul", Arg(-2), factor), node.types[port].axes
            total = by_dim(edit, product, {**given, -2: value}, axes, origin)
        edit.redirect(match.value("map", port), total)
    return edit.finish()


def _unscaled(output: Output, rest: Term | None) -> Output:
    """An output without the factor, if it has it."""
    assert rest is None or isinstance(rest, Value)
    return output if rest is None else replace(output, value=rest)
