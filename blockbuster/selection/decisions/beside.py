"""Which kernels run beside the next one, by few programs: statistics of what a product reads.

A product that needs the statistics of rows behind its loop alone (``closing/place_waits.py``) may
begin with the kernel that makes them, if that takes a part of each processor: its programs all run
at once, two to a processor, and take the rows in turn. Otherwise the product's programs begin where
those of the rows have ended.

On an H200 RMSNorm and a product of 2048 x 4096 x 1024 took 26.5 microseconds instead of 29.9 (the
product alone: 24.1), of 8192 x 4096 x 1024 99.4 instead of 111 (91.9), of 4096 x 2048 x 2048 51.5
instead of 56.0 (47.3), of 8192 x 1024 x 1024 32.4 instead of 34.3 (25.9), of 2048 x 4096 x 4096
93.0 instead of 95.5 (90.2). With 132 programs LayerNorm and a product of 2048 x 4096 x 1024 took
29.5 instead of 27.3, for the rows took longer than the product; with 528 27.6, with 1056 31.7.

Not where the rows take longer than the first round of the product: LayerNorm and a product of 8192
x 4096 x 1024 by tiles of 128 x 128 took 131 instead of 122, by tiles of 128 x 256 110 instead of
115 (where sums of the weight's columns are kept). Nor where programs of the product share a
processor: gated networks of 512 features and 8192 rows took 4 to 6% longer. Nor where the rows'
programs meet more often than a short product takes: LayerNorm, three sums for each place, and a
product of 2048 x 1024 x 1024 took 11.9 instead of 11.4, RMSNorm, one sum, 10.3 instead of 10.9.
"""

from __future__ import annotations

from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.program import For, Issue, Let, statements
from blockbuster.emit.tile.room import leaving_room
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.ops import Functional
from blockbuster.ir.types import size_class
from blockbuster.selection.decisions.combining import programs, widest
from blockbuster.selection.decisions.persistent import is_alone, loops_before_it_waits

PERSIST = Persist()

BESIDE = 2
"""Programs to a processor that run beside a product."""

DEPTH, ELEMENTS, RESULTS = 256, 4096, 128 * 128
"""Lanes that the product sums over, at least, for each ``ELEMENTS`` that a program of the rows
reads, if a program of the product has so many ``RESULTS``.
"""

FOLD = 96
"""The same for each sum, or maximum, of a row: the warps of a program meet there."""


def beside(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with few programs for kernels that can run beside the next one."""
    nests, processors = scheduled.program.nests, scheduled.target.processors
    kept = kept_nests(scheduled.program)
    running = [at for at in range(len(nests)) if at not in kept]
    rooms = leaving_room([nests[at] for at in running])
    pairs = zip(running, running[1:], rooms, strict=False)
    for at, after in [(at, after) for at, after, room in pairs if room]:
        count, site = BESIDE * processors, Site(at + 1)
        places = programs(scheduled, scheduled.draft.nests[at])
        lanes = -(-places // count) * _lanes(scheduled, at) * RESULTS
        if places <= count or lanes > _work_before_it_waits(scheduled, after):
            continue
        if not PERSIST.why_not(scheduled, site, programs=count):
            scheduled = PERSIST.apply(scheduled, site, programs=count)
    return scheduled


def _lanes(scheduled: Scheduled, at: int) -> int:
    """The lanes of a product that take as long as a place of a nest of rows."""
    nest = scheduled.draft.nests[at]
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
    folds = sum(isinstance(let.op, Functional) for let in lets)
    return max(DEPTH * widest(scheduled.draft, nest) // ELEMENTS, FOLD * folds)


def _work_before_it_waits(scheduled: Scheduled, at: int) -> int:
    """Multiplications of a program in the loop whose loads run ahead, before its nest waits.

    0 if there is none, or if programs that take several rounds share a processor.
    """
    nest, count = scheduled.program.nests[at], programs(scheduled, scheduled.draft.nests[at])
    at_once = count <= scheduled.target.processors
    loops = loops_before_it_waits(nest)
    ahead = [loop for loop in loops if any(isinstance(s, Issue) for s in statements(loop.body))]
    if not ahead or not (at_once or is_alone(scheduled, at + 1)):
        return 0
    tiling = tiling_of(scheduled.program, nest)
    return max(scheduled.sizes[size_class(loop.dim)] * _results(loop, tiling) for loop in ahead)


def _results(loop: For, tiling: Tiling) -> int:
    """The results of all dots of a loop, in a program."""
    lets = (stmt for stmt in statements(loop.body) if isinstance(stmt, Let))
    dots = (let.target for let in lets if is_matrix_dot(let, tiling))
    return sum(map(tiling.elements, dots))
