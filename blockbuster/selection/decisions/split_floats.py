"""Which dots of float32 are split for the matrix units by default: those with long enough sums.

A split product is rounded to fewer digits than float32 has, but a long sum of split products is
rounded less often (emit/schedule/split_float.py). From ``split_sum_elements`` summands on, the
error is about that of one float32 sum if summands are alike in magnitude; for shorter sums it may
be several times as large. Sums go on from loop to loop: a convolution sums its channels once for
each tap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.split_float import SplitFloat, is_whole
from blockbuster.emit.tile.program import Fold, For, Init, Let, Nest, Stmt, TileProgram
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS

SPLIT_FLOAT = SplitFloat()


def split_floats(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the float32 dots of those kernels split in which all sums are long."""
    program = scheduled.draft
    for number, nest in enumerate(program.nests, start=1):
        sums = list(_summands(program, nest, scheduled))
        are_long = sums and min(sums) >= PRIORS.split_sum_elements
        if are_long and not SPLIT_FLOAT.why_not(scheduled, Site(number)):
            scheduled = SPLIT_FLOAT.apply(scheduled, Site(number))
    return scheduled


def _summands(program: TileProgram, nest: Nest, scheduled: Scheduled) -> Iterator[int]:
    """How many elements the sum of each dot of a nest has, over all blocks and loops."""
    walked = list(_walked(nest.body, ()))
    sums = {s.value: s.target for s, _ in walked if isinstance(s, Fold) and s.monoid == "+"}
    begun = {s.target: len(loops) for s, loops in walked if isinstance(s, Init)}
    for stmt, loops in walked:
        if not isinstance(stmt, Let) or not is_whole(stmt, program):
            continue
        last = stmt.target
        while last in sums:  # a sum of sums goes on where the first one ends
            last = sums[last]
        dims = dict.fromkeys((*_summed(stmt, program), *loops[begun.get(last, len(loops)) :]))
        yield prod(scheduled.sizes[size_class(dim)] for dim in dims)


def _walked(body: Sequence[Stmt], loops: tuple[Dim, ...]) -> Iterator[tuple[Stmt, tuple[Dim, ...]]]:
    """The statements of a body with the loops around them."""
    for stmt in body:
        if isinstance(stmt, For):
            yield from _walked(stmt.body, (*loops, stmt.dim))
        else:
            yield stmt, loops


def _summed(dot: Let, program: TileProgram) -> list[Dim]:
    left, right = dot.args
    both = [dim for dim in left.axes if dim in right.axes]
    return [d for d in both if d not in dot.target.axes and size_class(d) not in program.units]
