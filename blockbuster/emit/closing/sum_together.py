"""sum-together: two sums across lanes that do not need each other are exchanged together.

before   t3 = row_sum(t2)                 after   t4 = square(t2)
         t4 = square(t2)                          t3 = row_sum(t2)   beside
         t5 = row_sum(t4)                         t5 = row_sum(t4)

The warps of a program meet to add up what each of them has: for both sums at once, they meet once.
Only sums behind loops: in a loop, Triton has passes of its own for a sum. Sums of integers have
other dtypes than what is exchanged.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.dataflow import operands, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import Guard, Iota, Let, Load, Nest, Stmt
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.ir.ops import Functional

SUM = Functional("row_sum")
PURE = (Let, Load, Guard, Iota)


def not_together(first: Stmt, second: Stmt, between: tuple[Stmt, ...]) -> str:
    """Why two sums, with statements between them, cannot be exchanged together, or ""."""
    if not (isinstance(first, Let) and isinstance(second, Let) and first.op == second.op == SUM):
        return "one of them is no sum"
    (a,), (b,) = first.args, second.args
    left, right = first.target, second.target
    if (a.axes, a.per_lane, left.axes) != (b.axes, b.per_lane, right.axes):
        return f"{a.name} and {b.name} have other lanes"
    if any(let.target.dtype not in ("", FLOAT) for let in (first, second)):
        return "not both are in float32"
    made = {first.target}
    for stmt in (*between, second):
        if not isinstance(stmt, PURE):
            return "what stands between them has an order of its own"
        if not made.isdisjoint(operands(stmt)):
            return f"{first.target.name} is needed before {second.target.name}"
    return ""


@each_body()
def sum_together(nest: Nest, _: Around) -> Nest:
    """A nest with sums of its programs, outside loops, that are exchanged in pairs."""
    body, at = list(nest.body), 0
    while at < len(body):
        behind = body[at + 1 :]
        ends = (i for i, stmt in enumerate(behind) if isinstance(stmt, Let) and stmt.op == SUM)
        end = next(ends, None)
        if end is None or not_together(body[at], behind[end], tuple(behind[:end])):
            at += 1
            continue
        first, second = body[at], behind[end]
        assert isinstance(first, Let)
        first = replace(first, beside=True)
        body[at:] = [*behind[:end], first, second, *behind[end + 1 :]]
        at += end + 2
    return with_parts(nest, body=same_or(nest.body, tuple(body)))
