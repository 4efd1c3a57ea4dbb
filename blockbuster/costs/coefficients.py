"""The coefficients of the closed form, which hold for all machines of a kind.

They state how near our emitter's kernels come to a machine's rates, and how long a program waits
for its own results. ``python -m bench.costs.fit`` fits them to measured times: these to 255
schedules of 13 programs, those that do not spill, on one NVIDIA H200, cold and warm
(bench/results/2026-11-22-h200-costs). The fit starts where every rate is reached; its result is
rounded. ``spill`` is that of those of their schedules which want more registers than there are
(``SPARE`` in tiered.py). Instructions besides those of statements (phases.py) came later, fitted to
binaries; with them a second fit of the coefficients ranked the judging programs no better. ``turn``
came later, too: eight chains of products on an H200 are ranked better by 70 cycles than by 33 or
50, and better still by 90, which ranks the judging programs worse. ``between`` is that of
fourteen products on an H200 whose programs take their places in turn, one or two to a processor
(bench/results/2026-11-24-h200-pairs). ``held`` came last: sums over the middle axis of
64 x 511 x 1024 took an H100 36 microseconds with 256 bytes to a thread and 48 with 512, the largest
of columns of 4095 x 3000 23 with 128 and 46 with 512 (bench/results/2026-11-26-h100-space); sums of
32 x 4096 x 4095, loaded element by element, 410 with 8 or 16 elements to a thread, 461 with 32, 508
and 540 with 64 (bench/results/2026-11-28-h100-outside, schedules_of_rows.jsonl). ``place`` is that
of 27 schedules of three convolutions on an H100, whose times it tells 1.10 times too long or too
short on average; without it they are 1.28 times too short (schedules_of_convolutions.jsonl there).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Coefficients:
    """How near kernels come to a machine's rates, and how long they wait, in cycles.

    Rates. ``matrix``: of the rate of matrix units where four warps multiply together; ``apart``:
    where each warp multiplies alone. ``memory``, ``cache``: of the bandwidth of global memory and
    of the cache, which serves processors that read the same lines at once. ``issue``: of issue
    slots. ``burst``: how many times its share of the memory's bandwidth one processor takes while
    others are idle. ``overlap``: how well what takes place at once overlaps: the exponent of the
    mean by which its times are added up; ``streams``: the same in loops of dots whose results
    nothing waits for, with loads that run ahead.

    Waits. ``queue``: how many times longer a load takes than on an idle machine. In cycles:
    ``request``, in which a processor asks for a line of memory; ``begin``, of a program besides its
    work; ``alone``, from one instruction of a warp to its next; ``dot``, from a dot's operands to
    its result, where that is read at once; ``turn``, from one matrix instruction of a warp that
    multiplies alone to the next that adds to the same result, with the reads of its operands;
    ``place``, of an instruction that finds places of windows between two dots of a program;
    ``fold``, of a shuffle by which lanes fold what they have; ``exchange``, of what passes from
    warp to warp through shared memory; ``between``, from the last dot of a place to the first of
    the next one, in which the matrix units of a processor with one program stand still.
    ``held``: bytes of registers for which a thread has loads under way at once where tiles lie
    across the rows of memory: what it loads beyond them waits for the first. ``unrolled``:
    iterations without dots that wait for their loads together. ``start``: seconds of a kernel
    beyond those of its launch. ``spill``: how many times longer a kernel takes for each time that
    it wants the registers that there are once more.
    """

    matrix: float = 1.0
    apart: float = 0.56
    memory: float = 0.89
    cache: float = 1.57
    issue: float = 1.0
    burst: float = 3.9
    overlap: float = 2.4
    streams: float = 5.6
    queue: float = 1.76
    request: float = 1.57
    begin: float = 1000.0
    alone: float = 0.9
    dot: float = 20.0
    turn: float = 70.0
    place: float = 3.0
    fold: float = 18.0
    exchange: float = 196.0
    between: float = 1700.0
    held: float = 64.0
    unrolled: float = 3.1
    start: float = 5e-7
    spill: float = 5.0


FITTED = Coefficients()
