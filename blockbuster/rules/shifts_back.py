"""shifts_back: rows that a rule shifts after a product are shifted before it again.

before   p, t = map K {                     after   z = map K (c = c, r = r) {
           yield +dot(x, w)                           yield +dot((x + c) * r, w)
           yield +row_sum(w)                        }
         }
         y = add(outer(c, t), p)
         z = row_scale(y, r)

Rule 5 of the paper lets products run in the loop that sums the rows whose mean c is. It loses
digits with |c| / |x + c|: x near -c cancels in y, not in x + c. The products read the scaled rows,
if they are scaled: in float16, x + c alone would be rounded alike in many elements, and such errors
add up. If c was stored by another kernel, the program stays: it was chosen for narrow operands,
whose products lose fewer digits than they have (selection/candidates/apart.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import call
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Functional, Map
from blockbuster.ir.origin import Origin
from blockbuster.rules.base import hint_of, maker_of
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.loop_again import summed_again


@dataclass(frozen=True)
class _Shifted:
    """``result`` = outer(shift, row sums of factor) + sum of rows . factor, times ``scale``.

    The map at ``position`` sums the product.
    """

    result: Value
    position: int
    rows: Value
    factor: Value
    shift: Value
    scale: Value | None
    hint: str


def with_shifts_back(graph: Graph, local: Sequence[bool] | None = None) -> Graph:
    """``graph`` with products of shifted rows; the same values but for rounding.

    ``local`` says which inputs of a body the kernel around it computes.
    """
    known = local or [False] * len(graph.inputs)
    edit = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, Map):
            given = zip(node.operands, node.op.iterated, strict=False)
            inside = [not walks and _is_local(graph, v, known) for v, walks in given]
            body = with_shifts_back(node.op.body, inside)
            if body is not node.op.body:
                edit.replace_op(position, replace(node.op, body=body))
    inner = edit.finish()
    graph = graph if inner == graph else inner
    found = [s for s in _all_shifted(graph) if _is_local(graph, s.shift, known)]
    return _taken_back(graph, found) if found else graph


def _is_local(graph: Graph, value: Value, known: Sequence[bool]) -> bool:
    computed = value.node >= 0 or known[value.port]
    return computed and not graph.type_of(value).buffered


def _all_shifted(graph: Graph) -> list[_Shifted]:
    found: list[_Shifted] = []
    for position, node in enumerate(graph.nodes):
        if node.op != Functional("add"):
            continue
        for shift, product in (node.operands, node.operands[::-1]):
            outer, at = maker_of(graph, shift), product.node
            if outer is None or outer.op != Functional("outer") or outer.operands[1].node != at:
                continue
            dot = _summed(graph, product, "dot")
            if dot and _summed(graph, outer.operands[1], "row_sum") == dot[1:]:
                result, scale = _scaled(graph, Value(position))
                hint = hint_of(graph, product) or "x"
                rows, factor = dot
                found.append(_Shifted(result, at, rows, factor, outer.operands[0], scale, hint))
                break
    return found


def _summed(graph: Graph, value: Value, name: str) -> tuple[Value, ...]:
    """The operands, in a map's body, of the functional that the map adds up to ``value``."""
    node = maker_of(graph, value)
    if node is None or not isinstance(node.op, Map) or node.op.start:
        return ()
    if node.op.results[value.port] != Accumulate("+"):
        return ()
    inner = maker_of(node.op.body, node.op.body.outputs[value.port].value)
    return inner.operands if inner and inner.op == Functional(name) else ()


def _scaled(graph: Graph, value: Value) -> tuple[Value, Value | None]:
    """``value`` with the scale of its rows, if nothing else reads it."""
    readers = [p for p, node in enumerate(graph.nodes) if value in node.operands]
    leaves = any(output.value == value for output in graph.outputs)
    if len(readers) == 1 and not leaves:
        node = graph.nodes[readers[0]]
        if node.op == Functional("row_scale") and node.operands[0] == value:
            return Value(readers[0]), node.operands[1]
    return value, None


def _taken_back(graph: Graph, found: Sequence[_Shifted]) -> Graph:
    """The level with the products of each map and shift in one loop."""
    edit = Builder(graph)
    for key in dict.fromkeys((each.position, each.shift) for each in found):
        alike = [each for each in found if (each.position, each.shift) == key]
        for each, product in zip(alike, _products(edit, graph, alike), strict=True):
            edit.redirect(each.result, product)
    return edit.finish()


def _products(edit: Builder, graph: Graph, alike: Sequence[_Shifted]) -> list[Value]:
    node, shift = graph.nodes[alike[0].position], alike[0].shift
    scales = list(dict.fromkeys(each.scale for each in alike if each.scale is not None))
    rows = list(dict.fromkeys(each.rows for each in alike))
    wanted = [*rows, *(each.factor for each in alike)]

    def ends(to: Emitter, computed: Sequence[Value], given: Sequence[Value]) -> list[Value]:
        by = dict(zip(scales, given[1:], strict=True))
        made: dict[tuple[Value, Value | None], Value] = {}
        for each in alike:
            shifted = call("add", to.leaf(computed[rows.index(each.rows)]), to.leaf(given[0]))
            scaled = call("mul", shifted, to.leaf(by[each.scale])) if each.scale else shifted
            made[each.rows, each.scale] = to.emit(scaled, hint="y" if each.scale else "d")
        pairs = zip(alike, computed[len(rows) :], strict=True)
        return [
            to.apply(Functional("dot"), made[each.rows, each.scale], factor)
            for each, factor in pairs
        ]

    vectors = [(shift, "c"), *((scale, "r") for scale in scales)]
    hints, origin = tuple(each.hint for each in alike), Origin("shifts_back", (node.origin,))
    return summed_again(edit, node, wanted, vectors, ends, hints, origin)
