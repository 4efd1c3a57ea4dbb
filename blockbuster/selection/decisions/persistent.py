"""Which kernels have a fixed number of programs: products of which a processor runs one or two.

Of a product with large tiles, one program fills a processor's memory. While it stores its results
and waits for its first loads, its matrix units stand still, unless the loads of the next place run
ahead meanwhile. Two programs begin at once, so both store at once, and both wait. If they take
their places in turn, one computes while the other stores.

Not where a product waits behind its loop for the kernel before: Triton 3.9 lets no loads run ahead
in a loop over places with a wait in it, Triton 3.6 did. The kernel before runs beside it then
(``beside.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.costs.work import Work, is_product, loops_before_it_waits, repeating, work
from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.layouts import ROWS
from blockbuster.emit.tile.program import Issue, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.machines import Machine
from blockbuster.selection.decisions.combining import blocks, programs
from blockbuster.selection.priors import PRIORS

PERSIST = Persist()


def persistent(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with as many programs as run at once for products that take several rounds."""
    for number in range(1, len(scheduled.draft.nests) + 1):
        side = residents(scheduled, number)
        if _takes_turns(scheduled, number, side):
            count = side * scheduled.target.processors
            made = PERSIST.apply(scheduled, Site(number), programs=count)
            scheduled = made if residents(made, number) == side else scheduled
    return scheduled


def may_take_turns(one: Work, machine: Machine) -> bool:
    """True if a kernel may get a fixed number of programs, as far as its work tells."""
    side = one.footprint.resident(machine)
    several = side <= PRIORS.most_in_turn and one.programs > side * machine.processors
    return several and any(phase.ahead and phase.dots == 1 for phase in one.phases)


def may_run_in_pairs(works: Sequence[Work], machine: Machine) -> bool:
    """True if two programs of one of these kernels share a processor, and may take turns."""
    pairs = (w for w in works if w.footprint.resident(machine) == PRIORS.most_in_turn)
    return any(may_take_turns(one, machine) for one in pairs)


def _takes_turns(scheduled: Scheduled, number: int, side: int) -> bool:
    """True for a loop of described loads in a grid of more programs than run at a time, which are
    ``side`` on a processor.
    """
    nest, count = scheduled.draft.nests[number - 1], side * scheduled.target.processors
    if not 1 <= side <= PRIORS.most_in_turn:
        return False
    if PERSIST.why_not(scheduled, Site(number), programs=count):
        return False
    if programs(scheduled, nest) <= count:
        return False
    program = scheduled.program
    closed = program.nests[number - 1]
    if not is_product(program, closed) or loops_before_it_waits(closed):
        return False
    if side == PRIORS.most_in_turn:
        (loop,) = repeating(closed)
        short = blocks(scheduled, nest, loop.dim) <= PRIORS.in_turn_blocks
        return short and _ahead(closed) >= PRIORS.in_turn_ahead
    return _has_rows_at_once(program, closed)


def _ahead(nest: Nest) -> int:
    """How many iterations ahead the loads of a product's loop run."""
    return min(stmt.ahead for stmt in statements(nest.body) if isinstance(stmt, Issue))


def _has_rows_at_once(program: TileProgram, nest: Nest) -> bool:
    """True if each four warps multiply no more rows than they do at once.

    With twice the rows, 256 x 128 results, a product of 2048 x 4096 x 4096 took an H200 110
    microseconds instead of 104; with 128 x 256 results 99.7 instead of 101.4.
    """
    return Uses(nest, tiling_of(program, nest)).fewest_rows() <= ROWS * nest.warps


def residents(scheduled: Scheduled, number: int) -> int:
    """How many programs of a nest a processor has room for; 0 if one does not fit."""
    machine, room = scheduled.target.machine, work(scheduled)[number - 1].footprint
    return 0 if room.misfit(machine) else room.resident(machine)
