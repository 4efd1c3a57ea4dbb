"""Whole blocks: blocks of a loop in which a mask has the same value at every point.

A comparison holds in all of a block if the block lies outside the range where its opposite is true
in some row (mask_ranges.py). Most comparisons fail on one side of some position: j <= i behind the
first row of a block, i - j < 256 before its last row. So the blocks between two such positions are
whole. A mask is split at each "and"; the opposite of "a or b" is a range, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from blockbuster.emit.schedule.bounds import Range
from blockbuster.emit.schedule.conditions import Formulas, conditions
from blockbuster.emit.schedule.mask_ranges import MIRRORED, MaskRanges, either, negated
from blockbuster.emit.schedule.span_tiles import SpanWriter
from blockbuster.emit.tile.program import For
from blockbuster.ir.expr import Call, Expr

Truth = tuple[Expr, float]
"""A formula, and the truth value that it is asked to have."""


@dataclass(frozen=True)
class WholeBlocks:
    """``known``: formulas that have one truth value at all points of the blocks between.

    ``others``: outside, up to its ``high`` and from its ``low`` on, some may have the opposite one.
    """

    known: Mapping[Expr, float]
    others: Range


def whole_blocks(loop: For, formulas: Formulas, writer: SpanWriter) -> WholeBlocks:
    """The blocks of ``loop`` in which masks leave all points, as far as known before the loop."""
    solver = MaskRanges(formulas, loop.dim)
    known: dict[Expr, float] = {}
    lows, highs = list[Range](), list[Range]()
    for mask in conditions(loop, formulas):
        for formula, truth in joined(mask.formula, 1.0 - mask.dead):
            others = [_one_sided(solver, part, writer) for part in sides(formula, truth)]
            if all(side.bounded for side in others):
                known.setdefault(formula, truth)
                lows += [side for side in others if side.low is not None]
                highs += [side for side in others if side.low is None]
    low, high = (reduce(either, found, found[0]) if found else Range() for found in (lows, highs))
    return WholeBlocks(known, Range(low.low, high.high))


def joined(formula: Expr, truth: float) -> Iterator[Truth]:
    """The parts of ``formula`` that all have to be as they are asked for it to be ``truth``."""
    match formula:
        case Call("not", (inner,)):
            yield from joined(inner, 1.0 - truth)
        case Call("and" | "or" as fn, parts) if (fn == "and") == bool(truth):
            for part in parts:
                yield from joined(part, truth)
        case _:
            yield formula, truth


def sides(formula: Expr, truth: float) -> Iterator[Truth]:
    """``formula``, or the two comparisons that |x| < b consists of: each fails on one side."""
    match formula:
        case Call(fn, (bound, Call("abs", (x,)))) if fn in MIRRORED:
            fn, held = MIRRORED[fn], x
        case Call(fn, (Call("abs", (x,)), bound)) if fn in MIRRORED:
            held = x
        case _:
            yield formula, truth
            return
    if fn in (("lt", "le") if truth else ("gt", "ge")):
        yield Call(fn, (held, bound)), truth
        yield Call(MIRRORED[fn], (held, negated(bound))), truth
    else:
        yield formula, truth


def _one_sided(solver: MaskRanges, wanted: Truth, writer: SpanWriter) -> Range:
    """Where a comparison may be otherwise: a bound of one side, from below if there is one."""
    formula, truth = wanted
    found = solver.of(formula, not truth)
    low = writer.known(found.low)
    return Range(low=low) if low is not None else Range(high=writer.known(found.high))
