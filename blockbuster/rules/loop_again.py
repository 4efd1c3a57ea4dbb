"""A second loop over the lists of a map, which computes other sums.

The passes of numerical safety use it where one loop has to become two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Node, Output, Value
from blockbuster.ir.ops import Accumulate, Map
from blockbuster.ir.origin import Origin
from blockbuster.rules.emitter import Emitter

Ends = Callable[[Emitter, Sequence[Value], Sequence[Value]], list[Value]]
"""A function that makes what the body sums, from its ``wanted`` values and its ``vectors``."""


def summed_again(
    edit: Builder,
    node: Node,
    wanted: Sequence[Value],
    vectors: Sequence[tuple[Value, str]],
    ends: Ends,
    hints: tuple[str, ...],
    origin: Origin,
) -> list[Value]:
    """A new map over the lists of the map ``node`` that sums ``ends``.

    Its body computes the ``wanted`` values of the old body; it is given ``vectors`` of the level
    around it, each with a hint.
    """
    op = node.op
    assert isinstance(op, Map)
    body = Builder()
    inputs = [body.input(i.type, hint=i.hint) for i in op.body.inputs]
    given = [body.input(edit.type_of(value), hint=hint) for value, hint in vectors]
    computed = body.inline(replace(op.body, outputs=tuple(map(Output, wanted))), inputs)
    made = ends(Emitter(body, origin), computed, given)
    results = (Accumulate("+"),) * len(made)
    iterated = (*op.iterated, *(False for _ in vectors))
    again = Map(op.dim, body.finish(*made), iterated, results)
    operands = (*node.operands, *(value for value, _ in vectors))
    return list(edit.add(again, *operands, hints=hints, origin=origin))
