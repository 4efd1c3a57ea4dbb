"""Which dots of float32 are split for the matrix units by default: those with long enough sums.

A split product is rounded to fewer digits than float32 has, but a long sum of split products is
rounded less often (emit/schedule/split_float.py). From ``split_sum_elements`` summands on, the
error is about that of one float32 sum if summands are alike in magnitude; for shorter sums it may
be several times as large.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.split_float import SplitFloat, is_whole
from blockbuster.emit.tile.program import Let, Nest, TileProgram, statements
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
    """How many elements each dot of a nest sums over all blocks."""
    for stmt in statements(nest.body):
        if isinstance(stmt, Let) and is_whole(stmt, program):
            yield _elements(_summed(stmt, program), scheduled)


def _summed(dot: Let, program: TileProgram) -> list[Dim]:
    left, right = dot.args
    both = [dim for dim in left.axes if dim in right.axes]
    return [d for d in both if d not in dot.target.axes and size_class(d) not in program.units]


def _elements(dims: list[Dim], scheduled: Scheduled) -> int:
    found = 1
    for dim in dims:
        found *= scheduled.sizes[size_class(dim)]
    return found
