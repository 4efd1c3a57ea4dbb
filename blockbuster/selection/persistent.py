"""Which kernels have a fixed number of programs: products whose programs find no others at work.

Of a product with large tiles, one program fills a processor's memory. While it stores its results
and waits for its first loads, its matrix units stand still, unless the loads of the next place run
ahead meanwhile. Where two programs are side by side, one computes while the other stores: there a
fixed number costs time.
"""

from __future__ import annotations

from blockbuster.costs.footprint import footprint
from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.program import For, Issue, Nest, statements
from blockbuster.machines import machine_of
from blockbuster.selection.combining import programs

PERSIST = Persist()


def persistent(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with as many programs as processors for products that take several rounds."""
    for number in range(1, len(scheduled.draft.nests) + 1):
        if _takes_turns(scheduled, number):
            made = PERSIST.apply(scheduled, Site(number), programs=scheduled.target.processors)
            scheduled = made if _is_alone(made, number) else scheduled
    return scheduled


def _takes_turns(scheduled: Scheduled, number: int) -> bool:
    """True for a loop of described loads in a grid of more programs than run at a time."""
    nest, processors = scheduled.draft.nests[number - 1], scheduled.target.processors
    if PERSIST.why_not(scheduled, Site(number), programs=processors):
        return False
    several = programs(scheduled, nest) > processors
    return several and _is_product(scheduled.program.nests[number - 1])


def _is_product(nest: Nest) -> bool:
    """True if all that the programs of a closed nest repeat is one loop of described loads."""
    loops = [stmt for stmt in statements(nest.body) if isinstance(stmt, For)]
    issues = [stmt for stmt in statements(nest.body) if isinstance(stmt, Issue)]
    return len(loops) == 1 and bool(issues) and all(issue.described for issue in issues)


def _is_alone(scheduled: Scheduled, number: int) -> bool:
    """True if a processor has room for one program, and no more."""
    program, target = scheduled.program, scheduled.target.name
    room = footprint(layouts_of(program, program.nests[number - 1], target))
    machine = machine_of(target)
    return not room.misfit(machine) and room.resident(machine) == 1
