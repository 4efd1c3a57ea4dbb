"""Which kernels run beside the next one, by few programs: statistics of what a product reads.

A product that needs the statistics of rows behind its loop alone (``closing/place_waits.py``) may
begin with the kernel that makes them, if that takes a part of each processor: its programs all run
at once, two to a processor, and take the rows in turn. Otherwise the product's programs begin where
those of the rows have ended.

Warps that meet several times a row have the next rows on their way meanwhile, if that leaves the
product its shared memory.

Not where the rows take longer than the first round of the product. Nor where programs of the
product share a processor: gated networks of 512 features and 8192 rows took an H200 4 to 6% longer.
Nor where the rows' programs meet more often than a short product takes. The times are in
priors.toml.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.costs.footprint import footprint
from blockbuster.costs.work import loops_before_it_waits
from blockbuster.emit.schedule.base import Args
from blockbuster.emit.schedule.persist import STAGES, Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.program import For, Issue, Let, Nest, statements
from blockbuster.emit.tile.room import leaving_room
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.ops import Functional
from blockbuster.ir.types import size_class
from blockbuster.selection.decisions.combining import programs as places_of
from blockbuster.selection.decisions.combining import widest
from blockbuster.selection.decisions.persistent import is_alone
from blockbuster.selection.priors import PRIORS

PERSIST = Persist()


def beside(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with few programs for kernels that can run beside the next one."""
    nests = scheduled.program.nests
    kept = kept_nests(scheduled.program)
    running = [at for at in range(len(nests)) if at not in kept]
    rooms = leaving_room([nests[at] for at in running])
    pairs = zip(running, running[1:], rooms, strict=False)
    for at, after in [(at, after) for at, after, room in pairs if room]:
        tried = (_by_few(scheduled, at, after, **args) for args in _arguments(scheduled, at))
        scheduled = next(filter(None, tried), scheduled)
    return scheduled


def _arguments(scheduled: Scheduled, at: int) -> Iterator[Args]:
    """How few programs may take the places of a nest, the best way first."""
    count = PRIORS.programs_beside * scheduled.target.processors
    if _folds(scheduled.draft.nests[at]) >= PRIORS.meetings_ahead:
        yield {"programs": count, "stages": STAGES}
    yield {"programs": count}


def _by_few(
    scheduled: Scheduled, rows: int, product: int, *, programs: int, **ahead: int
) -> Scheduled | None:
    """``scheduled`` with so many programs for the rows; None if they do not run beside the product,
    or longer than it does before it waits.
    """
    site, places = Site(rows + 1), places_of(scheduled, scheduled.draft.nests[rows])
    rounds, lanes = -(-places // programs), _lanes(scheduled, rows, ahead=bool(ahead))
    terms = rounds * lanes * PRIORS.beside_results
    if places <= programs or terms > _work_before_it_waits(scheduled, product):
        return None
    if PERSIST.why_not(scheduled, site, programs=programs, **ahead):
        return None
    made = PERSIST.apply(scheduled, site, programs=programs, **ahead)
    return made if not ahead or _have_room(made, rows, product) else None


def _have_room(scheduled: Scheduled, rows: int, product: int) -> bool:
    """True if a program of the product fits a processor beside those of the rows."""
    program, target = scheduled.program, scheduled.target
    nests = (program.nests[at] for at in (rows, product))
    few, one = (footprint(layouts_of(program, nest, target.name)) for nest in nests)
    return one.fits_beside(few, PRIORS.programs_beside, target.machine)


def _lanes(scheduled: Scheduled, at: int, *, ahead: bool) -> int:
    """The lanes of a product that take as long as a place of a nest of rows."""
    nest = scheduled.draft.nests[at]
    loads = PRIORS.beside_depth * widest(scheduled.draft, nest) // PRIORS.beside_elements
    hidden = loads // PRIORS.beside_ahead_part if ahead else 0
    return max(loads, PRIORS.beside_fold_lanes * _folds(nest) - hidden)


def _folds(nest: Nest) -> int:
    """Sums and maxima along the rows of a place."""
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
    return sum(isinstance(let.op, Functional) for let in lets)


def _work_before_it_waits(scheduled: Scheduled, at: int) -> int:
    """Multiplications of a program in the loop whose loads run ahead, before its nest waits.

    0 if there is none, or if programs that take several rounds share a processor.
    """
    nest, count = scheduled.program.nests[at], places_of(scheduled, scheduled.draft.nests[at])
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
