"""Which kernels run beside the next one, by few programs: statistics of what a product reads.

A product that needs the statistics of rows behind its loop alone (``closing/place_waits.py``) may
begin with the kernel that makes them, if that takes a part of each processor: its programs all run
at once, two to a processor, and take the rows in turn. Otherwise the product's programs begin where
those of the rows have ended. Warps that meet several times a row may have the next rows on their
way meanwhile.

Not where the rows take longer than the first round of the product, by the closed form: LayerNorm
and a product of 8192 x 4096 x 1024 by 128 x 128 results to a program took an H200 131 microseconds
instead of 122, one of 2048 x 1024 x 1024 11.9 instead of 11.4. It draws the line where it was
measured: RMSNorm and a product of 2048 x 4096 x 1024 took 26.5 instead of 29.9, of 8192 x 4096 x
1024 99.4 instead of 111, of 8192 x 1024 x 1024 32.4 instead of 34.3. Nor where programs of the
product share a processor: gated networks of 512 features and 8192 rows took 4 to 6% longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.costs import known_time
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.work import Work, loops_before_it_waits
from blockbuster.emit.schedule.persist import STAGES, Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.program import Issue, Let, Nest, statements
from blockbuster.emit.tile.room import leaving_room
from blockbuster.ir.ops import Functional
from blockbuster.machines import Machine
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.combining import programs
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

PERSIST = Persist()


def beside(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with few programs for kernels that can run beside the next one."""
    nests = scheduled.program.nests
    kept = kept_nests(scheduled.program)
    running = [at for at in range(len(nests)) if at not in kept]
    rooms = leaving_room([nests[at] for at in running])
    for at, after, room in zip(running, running[1:], rooms, strict=False):
        early = room and _computes_before_it_waits(nests[after])
        tried = [*_by_few(scheduled, at, after)] if early else []
        scheduled = min(tried, key=_microseconds, default=scheduled)
    return scheduled


def _computes_before_it_waits(nest: Nest) -> bool:
    """True if a loop whose loads run ahead stands before the wait of ``nest``."""
    loops = loops_before_it_waits(nest)
    return any(isinstance(stmt, Issue) for loop in loops for stmt in statements(loop.body))


def _by_few(scheduled: Scheduled, rows: int, product: int) -> Iterator[Scheduled]:
    """``scheduled`` with few programs for the rows, where these end with the product's first round:
    with the next rows on their way, if warps meet several times, and without.
    """
    nest, count = scheduled.draft.nests[rows], PRIORS.programs_beside * scheduled.target.processors
    if programs(scheduled, nest) <= count:
        return
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
    meetings = sum(isinstance(let.op, Functional) for let in lets)  # of warps, at each place
    for stages in (STAGES, 0) if meetings >= PRIORS.meetings_ahead else (0,):
        ahead = {"stages": stages} if stages else {}
        _, made = PERSIST.tried(scheduled, Site(rows + 1), programs=count, **ahead)
        if made is not None and _end_early(priced(made), rows, product):
            yield made


def _end_early(cost: Cost, rows: int, product: int) -> bool:
    """True if the rows take no longer than the first round of the product, whose programs share no
    processor.
    """
    machine, (few, one) = cost.machine, (cost.works[at] for at in (rows, product))
    at_once = machine.processors * one.footprint.resident(machine)
    rounds = max(-(-one.programs // at_once), 1)
    first = FITTED.start + (_seconds(one, machine) - FITTED.start) / rounds
    alone = one.programs <= machine.processors or one.footprint.resident(machine) == 1
    return alone and _seconds(few, machine) <= first


def _seconds(one: Work, machine: Machine) -> float:
    return known_time(one, machine).seconds


def _microseconds(scheduled: Scheduled) -> float:
    return priced(scheduled).microseconds
