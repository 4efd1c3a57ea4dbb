"""work-around-locality: folds are changed where Triton's pass OptimizeThreadLocality breaks them.

before   for n in range(N):               after   for n in range(N):
          t2 = load(X[m,n])                        t2 = load(X[m,n])
          t3 = row_sum(t2)                         t3 = row_sum(t2)
          t1 += t3                                 t1 += t3        in two operations
         t4 = t1 * t1                             t1 read once more
                                                  t4 = t1 * t1

The pass moves a reduction out of a loop. It has two faults, at least up to Triton 3.6. First, it
exchanges rows of a tile if a thread holds several blocks along the kept axis (exchanged_rows.py).
The pass looks for a reduction of a loaded value that a single operation folds into a value carried
by the loop, so the fold is written as two operations; so is one that a scan in the loop reads,
which the pass does not look for. Second, it fails to compile a loop whose sum
is not read exactly once behind it (an assertion), so the sum is read once by an addition of zero.
Both workarounds keep every value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Guard,
    Init,
    Let,
    Nest,
    Stmt,
    Store,
    Tile,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.scans import carries
from blockbuster.emit.tile.tiling import tiling_in
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.emit.tile.workarounds import CARRIED, TWO_STEPS
from blockbuster.ir.ops import Cast, Relabel

THREADS, WARPS = 32, 4  # of a warp; the most that are counted on


@each_body("blocks", "warps")
def work_around_locality(nest: Nest, around: Around) -> Nest:
    """A nest with the folds and loops marked that the pass would break."""
    uses = Uses(nest, tiling_in(nest, around.units))
    return with_parts(nest, body=_marked(nest.body, uses))


def not_exchanged(fold: Fold, uses: Uses) -> str:
    """Why the pass does not exchange rows of what ``fold`` reduces, or "".

    How many elements in a row a thread loads is known at launch only:
    one is assumed.
    """
    made = {s.target: s for s in statements(uses.nest.body) if isinstance(s, Let | Guard)}
    reduction = made.get(fold.value)
    if fold.members or fold.ahead or fold.onto is not None:
        return f"{fold.target.name} is rescaled"
    if not isinstance(reduction, Let):
        return f"{fold.value.name} is no reduction"
    if not reduces(reduction, uses):
        return f"{fold.value.name} keeps all lanes"
    kept = math.prod(uses.tiling.blocks[d] for d in uses.tiling.lanes(fold.value))
    if kept <= THREADS * min(uses.nest.warps or WARPS, WARPS):
        return f"{kept} rows of {fold.value.name} are one for each thread"
    loaded_from = {tile: view.buffer for tile, view in arrivals(uses.nest.body)}
    source = reduction.args[0]
    while source not in loaded_from:
        match made.get(source):
            case Guard(value=value) | Let(op=Relabel() | Cast(), args=(value,)):
                source = value
            case _:
                return f"{source.name} is computed, not loaded"
    buffer = loaded_from[source]
    return "" if buffer.dtype == FLOAT else f"{buffer.name} is converted after it is loaded"


def not_settled(tile: Tile, uses: Uses) -> str:
    """Why the sum ``tile`` of a loop needs no further read, or ""."""
    readers = [type(stmt) for stmt, _ in uses.of(tile)]
    return f"{tile.name} is stored, and not read otherwise" if readers == [Store] else ""


def reduces(stmt: Let, uses: Uses) -> bool:
    """True if ``stmt`` has fewer lanes than an operand, and the matrix units do not make it."""
    lanes = len(uses.tiling.lanes(stmt.target))
    fewer = any(len(uses.tiling.lanes(arg)) > lanes for arg in stmt.args)
    return fewer and not is_matrix_dot(stmt, uses.tiling)


def _marked(body: tuple[Stmt, ...], uses: Uses) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            carried = {carry.fold for carry in carries(stmt)}
            tiles = tuple(_settled(stmt, uses, {fold.target for fold in carried}))
            inner = tuple(changed(s, apart=CARRIED) if s in carried else s for s in stmt.body)
            stmt = with_parts(stmt, body=_marked(inner, uses), settled=tiles)
        elif isinstance(stmt, Fold) and stmt.apart == CARRIED:
            pass
        elif isinstance(stmt, Fold) and (_multiplies(stmt, uses) or not not_exchanged(stmt, uses)):
            stmt = changed(stmt, apart=TWO_STEPS)
        out.append(stmt)
    return same_or(body, tuple(out))


def _multiplies(fold: Fold, uses: Uses) -> bool:
    """True if ``fold`` multiplies by a row's product: a product that is read in another way than
    once cannot be read by an addition of zero, which would lose the sign of a zero.
    """
    made = (s for s in statements(uses.nest.body) if isinstance(s, Let) and s.target == fold.value)
    return fold.monoid == "prod" and any(reduces(let, uses) for let in made)


def _settled(loop: For, uses: Uses, carried: set[Tile]) -> Iterator[Tile]:
    """The sums that ``loop`` carries, not those that begin anew in each of its iterations.

    Nor those ``carried`` from block to block of a scan, which the pass does not find.
    """
    if loop.parallel:
        return
    begun = carried | {s.target for s in loop.body if isinstance(s, Init)}
    rows = {s.target for s in loop.body if isinstance(s, Let) and reduces(s, uses)}
    for stmt in loop.body:
        match stmt:
            case Fold(target, "+", value, members=(), ahead=False, onto=None):
                if target in begun or value not in rows:
                    continue
                if not not_settled(target, uses):
                    yield target
