"""Which kernels have a fixed number of programs: products whose programs find no others at work.

Of a product with large tiles, one program fills a processor's memory. While it stores its results
and waits for its first loads, its matrix units stand still, unless the loads of the next place run
ahead meanwhile. Where two programs are side by side, one computes while the other stores: there a
fixed number costs time.

Not where a product waits behind its loop for the kernel before: Triton 3.9 lets no loads run ahead
in a loop over places with a wait in it, Triton 3.6 did. The kernel before runs beside it then
(``beside.py``).
"""

from __future__ import annotations

from blockbuster.costs.footprint import footprint
from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.program import For, Issue, Let, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.emit.tile.waits import Wait
from blockbuster.machines import machine_of
from blockbuster.selection.decisions.combining import programs
from blockbuster.selection.decisions.default_tiles import ROWS

PERSIST = Persist()


def persistent(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with as many programs as processors for products that take several rounds."""
    for number in range(1, len(scheduled.draft.nests) + 1):
        if _takes_turns(scheduled, number):
            made = PERSIST.apply(scheduled, Site(number), programs=scheduled.target.processors)
            scheduled = made if is_alone(made, number) else scheduled
    return scheduled


def loops_before_it_waits(nest: Nest) -> list[For]:
    """The loops that a closed nest runs before it waits for the nest before; none if it does not
    wait.
    """
    kinds = [type(stmt) for stmt in nest.body]
    early = nest.body[: kinds.index(Wait)] if Wait in kinds else ()
    return [stmt for stmt in early if isinstance(stmt, For)]


def _takes_turns(scheduled: Scheduled, number: int) -> bool:
    """True for a loop of described loads in a grid of more programs than run at a time."""
    nest, processors = scheduled.draft.nests[number - 1], scheduled.target.processors
    if PERSIST.why_not(scheduled, Site(number), programs=processors):
        return False
    program = scheduled.program
    if programs(scheduled, nest) <= processors or not is_alone(scheduled, number):
        return False
    closed = program.nests[number - 1]
    return _is_product(program, closed) and not loops_before_it_waits(closed)


def _is_product(program: TileProgram, nest: Nest) -> bool:
    """True if all that the programs of a closed nest repeat is one loop of described loads and
    one dot, and each four warps multiply as many rows as they do at once.

    With twice the rows, 256 x 128 results, a product of 2048 x 4096 x 4096 took an H200 110
    microseconds instead of 104; with 128 x 256 results 99.7 instead of 101.4.
    """
    tiling = tiling_of(program, nest)
    if Uses(nest, tiling).fewest_rows() > ROWS * nest.warps:
        return False
    loops = [stmt for stmt in statements(nest.body) if isinstance(stmt, For)]
    inside = tuple(statements(loops[0].body)) if len(loops) == 1 else ()
    issues = [stmt for stmt in inside if isinstance(stmt, Issue)]
    described = bool(issues) and all(issue.described for issue in issues)
    lets = [stmt for stmt in inside if isinstance(stmt, Let)]
    return described and len(lets) == 1 and is_matrix_dot(lets[0], tiling)


def is_alone(scheduled: Scheduled, number: int) -> bool:
    """True if a processor has room for one program, and no more."""
    program, target = scheduled.program, scheduled.target.name
    room = footprint(layouts_of(program, program.nests[number - 1], target))
    machine = machine_of(target)
    return not room.misfit(machine) and room.resident(machine) == 1
