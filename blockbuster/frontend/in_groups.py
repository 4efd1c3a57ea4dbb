"""Numbers that are repeated side by side, beside numbers in turn: computed for each place in turn.

    x * repeat(c, 2) + stack([-b, a], -1).reshape(n) * repeat(d, 2)
                                   stack([x[0::2] * c - b * d, x[1::2] * c + a * d], -1).reshape(n)

Rotary positions are written like that. Neither the repeated numbers nor those in turn are arrays in
memory then, and each number of a pair is computed from views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from blockbuster.frontend.array import TracedArray, apply, array_at, operand_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.limits import DEPTH, PLACES_OF_A_GROUP
from blockbuster.frontend.operation import Operation
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE

SUMS = ("add", "sub")
_TERMS = ("mul", "neg", *SUMS)
Parts = tuple[TracedArray, ...]


def in_groups(asked: Operation) -> TracedArray | None:
    """A sum of products as those of each place of a group, joined; None for other sums."""
    trace, op, operands = asked[:3]
    if not all(isinstance(x, TracedArray) and x.kind == FLOAT and x.ndim for x in operands):
        return None
    leaves = [leaf for x in operands for leaf in _leaves(x, DEPTH)]
    groups = [parts for leaf in leaves if (parts := _parts(leaf)) is not None]
    counts = {len(parts) for parts in groups}
    in_turn = [any(part.value != parts[0].value for part in parts) for parts in groups]
    if len(counts) != 1 or all(in_turn) or not any(in_turn):
        return None
    (count,) = counts
    rank = max(x.ndim for x in operands)
    total = trace.dims.length(next(leaf for leaf in leaves if _parts(leaf) is not None).axes[-1])
    lengths = [trace.dims.length(leaf.axes[-1]) for leaf in leaves if leaf.ndim]
    whole_one = next((x for x in operands if x.ndim == rank and _spans(x, operands)), None)
    if whole_one is None or any(length not in (total, ONE) for length in lengths):
        return None
    places = [apply(op, *(_at(x, at, count, DEPTH) for x in operands)) for at in range(count)]
    joined = apply("concat", *(place[..., None] for place in places), axis=rank)
    trace.replaced |= {node: None for x in operands for node in _nodes(x)}
    made: TracedArray = joined.reshape(whole_one.shape)
    return made


def _spans(x: TracedArray, operands: Sequence[TracedArray]) -> bool:
    """True if an operand has all elements of the sum: the others have its axes, or units."""
    length = x.trace.dims.length
    return all(
        length(axis) in (ONE, length(mine))
        for other in operands
        for axis, mine in zip(reversed(other.axes), reversed(x.axes), strict=False)
    )


def _leaves(x: Any, depth: int) -> Iterator[TracedArray]:
    """The arrays that products and sums are made of."""
    equation = equation_of(x)
    if equation is None or equation.op not in _TERMS or not depth:
        yield x
        return
    for operand in equation.operands:
        if isinstance(operand, Value):
            yield from _leaves(array_at(x.trace, operand), depth - 1)


def _parts(x: TracedArray) -> Parts | None:
    """The array at each place of a group, if ``x`` has groups along its last axis: of equal numbers
    or of numbers of several arrays.
    """
    merged = equation_of(x)
    if merged is None or merged.op != "reshape" or not isinstance(merged.operands[0], Value):
        return None
    base = array_at(x.trace, merged.operands[0])
    made, length = equation_of(base), x.trace.dims.length
    if made is None or base.ndim != x.ndim + 1:
        return None
    if [*map(length, base.axes[:-2])] != [*map(length, x.axes[:-1])]:
        return None
    count = length(base.axes[-1]).constant
    if made.op == "concat" and made.param("axis") % base.ndim == base.ndim - 1:
        found = made.operands
    elif made.op == "where" and made.operands[1] == made.operands[2] and count:
        found = (made.operands[1],) * min(count, PLACES_OF_A_GROUP + 1)
    else:
        return None
    parts = [array_at(x.trace, one) for one in found if isinstance(one, Value)]
    is_short = all(part.ndim == base.ndim and part.axes[-1] == 1 for part in parts)
    if not is_short or len(parts) != count or not 2 <= count <= PLACES_OF_A_GROUP:
        return None
    return tuple(parts)


def _at(x: Any, at: int, count: int, depth: int) -> Any:
    """The numbers at one place of each group."""
    equation = equation_of(x)
    if equation is not None and equation.op in _TERMS and depth:
        trace = x.trace
        given = [operand_at(trace, operand) for operand in equation.operands]
        return trace.record(equation.op, [_at(one, at, count, depth - 1) for one in given])
    if not isinstance(x, TracedArray) or not x.ndim or x.axes[-1] == 1:
        return x
    parts = _parts(x)
    return x[..., at::count] if parts is None else parts[at][..., 0]


def _nodes(x: TracedArray) -> Iterator[int]:
    """The equations of products and sums, and of the groups that they read."""
    left = [(x, DEPTH)]
    while left:
        one, depth = left.pop()
        equation = equation_of(one)
        if equation is None:
            continue
        is_term = equation.op in _TERMS and depth
        if is_term or _parts(one) is not None:
            yield one.value.node
            left += [(array_at(x.trace, o), depth - 1 if is_term else 0)
                     for o in equation.operands if isinstance(o, Value)]  # fmt: skip
        elif equation.op in ("concat", "where", "ge", "expand", "arange") and depth <= 0:
            yield one.value.node
            left += [(array_at(x.trace, o), 0) for o in equation.operands if isinstance(o, Value)]
