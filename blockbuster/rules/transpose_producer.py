"""transpose-producer: a transposed list is computed in the order in which it is read.

before   S = map M (q in !Q, K = !K) {        after   T = map N (k in !K, Q = !Q) {
           s = map N (q2 = q, k in !K) {                t = map M (k2 = k, q in !Q) {
             d = dot(q2, k)                               d = dot(k2, q)
             yield d }                                    yield d }
           yield s }                                    yield t }
         T = transpose N,M[N,M] (!S)

The maps change places, and the operators inside compute transposed blocks: a dot exchanges its
operands, and an operator by rows becomes one by columns. So a transposed product costs nothing, and
the maps over N meet those of the readers. A list that is read over several of the maps, or whose
blocks have to be transposed, is itself transposed: at an input that is addressing; elsewhere the
rule applies there next.
Termination: each application moves a transpose nearer to the inputs.
Source: ours; lowering does the same if all readers of a value ask for one order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Map, Transpose
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type
from blockbuster.rules.base import Match, Note, Rule, label, unheard
from blockbuster.rules.legality import first_iteration_gone, used_elsewhere
from blockbuster.rules.turned import Turning, cannot_turn


class TransposeProducer(Rule):
    """A site is the producer of a list and the operator that transposes it."""

    name = "transpose-producer"
    kind = "companion"
    needs = (Map, Transpose)

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        for at, op in graph.of_type(Transpose):
            (operand,) = graph.nodes[at].operands
            if operand.node < 0 or not isinstance(graph.nodes[operand.node].op, Map):
                continue
            nest, turns = _nest(graph, operand), _turns(graph, operand, op)
            reason = (
                used_elsewhere(graph, operand, at)
                or _several_results(graph, operand.node)
                or (nest if isinstance(nest, str) else cannot_turn(nest.body, turns))
            )
            yield from self.judged(graph, {"producer": operand.node, "transpose": at}, reason, note)

    def apply(self, match: Match) -> Graph:
        graph, node = match.graph, match.node("transpose")
        assert isinstance(node.op, Transpose)
        (operand,) = node.operands
        nest = _nest(graph, operand)
        assert isinstance(nest, _Nest)
        turning = Turning(nest.body, _turns(graph, operand, node.op), match.origin())
        edit = match.edit()
        reads = [
            _read(edit, graph, nest, port, turned, node.op.lists, match.origin())
            for port, turned in turning.ports
        ]
        made = _maps(edit, node.op.lists, reads, turning.body, match)
        edit.redirect(match.value("transpose"), made)
        return edit.finish()

    def describe(self, match: Match) -> str:
        (type,) = match.node("transpose").types
        return f"make {label(match.node('producer'))} in the order of {type}"


@dataclass(frozen=True)
class _Nest:
    """Maps over ``dims``, one inside the other, around ``body``; ``given`` says for each input of
    the body which operand of the outermost map it is, and over which of the dims it is read."""

    dims: tuple[Dim, ...]
    body: Graph
    given: tuple[tuple[Value, tuple[Dim, ...]], ...]


def _nest(graph: Graph, value: Value) -> _Nest | str:
    """The maps that list ``value``, each of which just runs the next and lists its results.

    Other maps do not change places; then the reason in words.
    """
    position, level = value.node, graph
    node = graph.nodes[position]
    given: tuple[tuple[Value, tuple[Dim, ...]], ...] = tuple((v, ()) for v in node.operands)
    dims = graph.type_of(value).lists
    for depth, dim in enumerate(dims):
        if depth:
            position, node = len(level.nodes) - 1, level.nodes[-1]
            given = tuple(given[operand.port] for operand in node.operands)
        if not isinstance(node.op, Map):
            return f"{label(node)} makes a list, and is no map"
        if reason := first_iteration_gone(level, position):
            return reason
        if not isinstance(node.op.results[0], Collect):
            return f"{label(node)} accumulates a list"
        given = tuple(
            (read, (*over, dim) if walks else over)
            for (read, over), walks in zip(given, node.op.iterated, strict=True)
        )
        level = node.op.body
        if level.type_of(level.outputs[0].value).buffered and len(level.nodes) != 1:
            return f"the map over {dim} does more than run the next map"
    return _Nest(dims, level, given)


def _turns(graph: Graph, value: Value, op: Transpose) -> bool:
    """Whether blocks are to be transposed, not only lists."""
    return graph.type_of(value).axes != op.axes


@dataclass(frozen=True)
class _Operand:
    """An operand of the new maps: the dims over which it is read, and what enters the body."""

    value: Value
    over: tuple[Dim, ...]
    type: Type
    hint: str

    def type_over(self, dims: tuple[Dim, ...]) -> Type:
        """The type of what enters the maps over ``dims``, the innermost ones."""
        lists = tuple(dim for dim in dims if dim in self.over)
        return Type((*lists, *self.type.lists), self.type.axes)


def _read(
    edit: Builder,
    graph: Graph,
    nest: _Nest,
    port: int,
    turned: bool,
    order: tuple[Dim, ...],
    origin: Origin,
) -> _Operand:
    """What input ``port`` of the old body reads, with its lists in the order of the new maps."""
    value, read_over = nest.given[port]
    over = tuple(dim for dim in order if dim in read_over)
    type = graph.type_of(value)
    wanted = Type((*over, *type.lists[len(over) :]), type.axes[::-1] if turned else type.axes)
    if wanted != type:
        (value,) = edit.add(Transpose(wanted.lists, wanted.axes), value, origin=origin)
    inside = Type(wanted.lists[len(over) :], wanted.axes)
    return _Operand(value, over, inside, nest.body.inputs[port].hint)


def _maps(
    edit: Builder, dims: tuple[Dim, ...], reads: list[_Operand], body: Graph, match: Match
) -> Value:
    """Maps over ``dims`` around ``body``, added to ``edit``; the innermost is made first."""
    origin, hints = match.origin(), match.node("producer").hints
    for depth in reversed(range(len(dims))):
        dim, inner = dims[depth], dims[depth + 1 :]
        iterated = tuple(dim in read.over for read in reads)
        op = Map(dim, body, iterated, (Collect(),))
        if not depth:
            return edit.add(op, *(read.value for read in reads), hints=hints, origin=origin)[0]
        around = Builder()
        args = [around.input(read.type_over((dim, *inner)), hint=read.hint) for read in reads]
        body = around.finish(*around.add(op, *args, hints=hints, origin=origin))
    raise AssertionError("a transposed list has dims")


# Side conditions: each returns "" where it is met, else the reason in words ----------------------


def _several_results(graph: Graph, at: int) -> str:
    """Other results would have to be computed a second time, in the old order."""
    count = len(graph.nodes[at].types)
    return f"{label(graph.nodes[at])} has {count} results" if count > 1 else ""
