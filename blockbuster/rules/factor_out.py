"""factor-out: a factor that all iterations of a fold share waits until after the fold.

before   p = map N (e in !E, r = r, k in !K, v in !V) {   after   p = map N (e in !E, ...) {
           s = row_scale(e, r)                                      t = mul(e, k)
           t = mul(s, k)                                            d = dot(t, v)
           d = dot(t, v)                                            yield +d
           yield +d                                               }
         }                                                        z = row_scale(p, r)

The rows ``MOVES`` of the table of laws say what leaves which folds, and through what:

- A factor leaves sums, through what is linear: products, quotients, where, row sums and dots
  (dropout after a softmax). Nothing may be added: digits would cancel behind the sum.
- A factor that is not negative leaves maxima and minima (the largest weight of a softmax). It is
  an exponential, or the reciprocal of what sums and products make of exponentials.
- Of absolute values, |r| leaves the largest: a root waits, so the scale by which a normed row is
  quantized is found in the pass that sums its squares.

Applies only if a node makes the factor and another map over the dim shares a list: the two maps can
then become one. Lists that contain the factor stay, in a map of their own if another map iterates
over them.

Equations hold for any factor, but floats have a largest number, and NaN. So a factor leaves an
extremum only if:

- It keeps values in range. Where |r| was applied, v becomes v / |r|. A root of a normal float32 is
  between 2^-64 and 2^64, so v / r overflows only if |v| is above 2^64, and loses digits only if |v|
  is below 2^-62. 1 / max |x| and exp(-x), however, may be what keeps v in range.
- No ``where`` selects a value with the factor. rsqrt(0) is infinite: in a row that is masked
  entirely, where(b, r x, 0) is 0, but r * 0 is NaN.
- It is no smallest absolute value. rsqrt(inf) is 0, and the infinite elements of such a row are
  NaN; r times the smallest |e| would be 0.
- Nothing else in the map waits for the loop that the factor waits for.

Termination: the factor moves one level out. Only extensions move a factor in, and they terminate.
Source: ours; sum r e = r sum e, max r e = r max e for r >= 0, and max |r e| = |r| max |e|.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from blockbuster.ir.builder import rebuild
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.origin import Origin
from blockbuster.ir.ports import results_at, select_results
from blockbuster.rules.base import Match, label, name_of
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.laws import MOVES, Law
from blockbuster.rules.legality import map_at
from blockbuster.rules.separate import expression
from blockbuster.rules.shared_factor import (
    UNTOUCHED,
    MoveOut,
    folds,
    made_beside,
    out_of_range,
    results_with,
    why_it_stays,
)
from blockbuster.rules.unscaled import Term, Unscaled


class FactorOut(MoveOut):
    """Maps with an operand whose factor can leave the folds that it goes into."""

    name = "factor-out"
    in_place = True
    rows: ClassVar[tuple[Law, ...]] = MOVES

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        node, said = graph.nodes[position], dict[int, str]()
        for found, law, reason in _tried(graph, position, Origin(), self.rows):
            if not reason:
                yield name_of(graph, node.operands[found.port]), ""
                return
            if found.port not in said or reason not in (UNTOUCHED, out_of_range(law)):
                said[found.port] = reason  # the last that is about what the operand is in
        for port, reason in said.items():
            factor = name_of(map_at(graph, position).body, Value(-1, port))
            stays = f"{factor} stays in {label(node)}: {reason}"
            yield name_of(graph, node.operands[port]), stays

    def apply(self, match: Match) -> Graph:
        tried = _tried(match.graph, match.nodes["map"], match.origin(), self.rows)
        found, law = next((found, law) for found, law, reason in tried if not reason)
        return _taken_out(match, found, [*results_with(found, law)])


def _tried(
    graph: Graph, position: int, origin: Origin, rows: Sequence[Law]
) -> Iterator[tuple[Unscaled, Law, str]]:
    """The operands of a map with what has their factor, by each row, and why the factor stays."""
    op = map_at(graph, position)
    for law in rows:
        if any(folds(result, law) for result in op.results):
            for port in made_beside(graph, position):
                found = Unscaled(op, port, origin, law.passes, law.exponential)
                yield found, law, why_it_stays(graph, position, found, law)


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
