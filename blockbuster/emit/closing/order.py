"""The order of the passes that the compiler applies by itself, after each move and before printing.

``tidied`` brings a draft into its normal form after every move; ``closed`` makes the program that
is printed.

Before printing, running maxima are folded before the sums that depend on them, lanes past the end
of a dim get values that change nothing, sums of dots in loops in loops become one sum, workspaces
take the dtype of the dots that read them, and rows that begin where wide copies can; the outer
loops of each nest go onto the launch grid, factors that several sums share are computed once, and
loads begin before lanes are reduced. Then facts for the printer are recorded: how tiles lie in
registers, which sums the matrix units add to, how exact functions are, workarounds for a compiler's
faults, and which loops are one. Last, masks of rows and columns go behind loops, and loads in
programs that take several places, waits are placed where kernels overlap, folds of folds are made
one, and sums are paired that need not wait for each other. A schedule cannot change any of this.
"""

from __future__ import annotations

from functools import lru_cache

from blockbuster.emit.closing.accumulate import accumulate
from blockbuster.emit.closing.accurate_functions import accurate_functions
from blockbuster.emit.closing.begin_loads import begin_loads
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.cancel_exactly import cancel_exactly
from blockbuster.emit.closing.drop_unit_folds import drop_unit_folds
from blockbuster.emit.closing.flatten import flatten
from blockbuster.emit.closing.fold_together import fold_together
from blockbuster.emit.closing.guard import guard_nests
from blockbuster.emit.closing.hoist import hoisted
from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.closing.load_columns import load_columns
from blockbuster.emit.closing.load_late import load_late
from blockbuster.emit.closing.merge_repeats import merged
from blockbuster.emit.closing.narrow_workspaces import narrow_workspaces
from blockbuster.emit.closing.pad_pitches import pad_pitches
from blockbuster.emit.closing.pair_accesses import pair_accesses
from blockbuster.emit.closing.place_waits import place_waits
from blockbuster.emit.closing.round_products import round_products
from blockbuster.emit.closing.share_factors import share_factors
from blockbuster.emit.closing.sum_on import sum_on
from blockbuster.emit.closing.sum_together import sum_together
from blockbuster.emit.closing.work_around_locality import work_around_locality
from blockbuster.emit.tile.alike import first_alike
from blockbuster.emit.tile.dataflow import conflicts, with_parts
from blockbuster.emit.tile.each_nest import KEPT, Body, Same, names_in
from blockbuster.emit.tile.other_arrays import accessed_in
from blockbuster.emit.tile.program import Buffer, Nest, TileProgram
from blockbuster.emit.tile.typed import retyped, typed_sums
from blockbuster.ir.types import Dim

REWRITES = (
    lead_first, guard_nests, sum_on, narrow_workspaces, pad_pitches, bind, share_factors,
    begin_loads,
)  # fmt: skip
FACTS = (
    load_columns, accumulate, round_products, cancel_exactly, work_around_locality,
    accurate_functions, flatten,
)  # fmt: skip
CLOSING = (*REWRITES, *FACTS, load_late, place_waits, pair_accesses, fold_together, sum_together)


def tidied(program: TileProgram, before: TileProgram | None = None) -> TileProgram:
    """``program`` with what does not change moved out of loops, nothing made twice, and no fold of
    single elements.

    Dtypes follow up: a move may have left a tile loaded that was computed, or read before it is
    folded, and need not say what becomes of what is computed from it.
    A nest that loads what it stores is left with its repeats: where it is split, a tile that two
    parts make again needs no workspace. ``before``: a program in normal form, of which ``program``
    was made. Nests that have the same statements as there are in that form already: neither blocks
    nor warps make a difference to it.
    """
    if before and _says_the_same(program, before):  # as of most moves: warps, stages
        return program
    if before and (made := _one_by_one(program, before)):
        return made
    program = _first_alike(drop_unit_folds(program), before)
    if before and _says_the_same(program, before):
        return program
    program, known = retyped(program, before), _bodies(before)
    nests = tuple(
        nest if id(nest.body) in known else with_parts(nest, body=_tidied_body(Same(nest.body)))
        for nest in program.nests
    )
    return _first_alike(with_parts(program, nests=nests), before)


def _one_by_one(program: TileProgram, before: TileProgram) -> TileProgram | None:
    """``program`` in normal form, each nest that differs from those of ``before`` by itself; None
    where nests depend on each other: arrays without dtypes take that of what nests store, sums of
    one name have one dtype, and casts get names that no nest has.
    """
    arrays = {*program.inputs, *program.outputs, *program.workspaces}
    same = (program.dtype, program.units) == (before.dtype, before.units)
    if not (same and {*before.inputs, *before.outputs, *before.workspaces} <= arrays):
        return None
    known, nests, sums = _bodies(before), list[Nest](), frozenset[tuple[str, str]]()
    around = Same(program.inputs), Same(program.outputs), program.units, program.dtype
    for nest in program.nests:
        if id(nest.body) not in known:
            body = Same(first_alike(nest.body, program.inputs))
            held = accessed_in(body)
            typed = arrays.issuperset(held) and all(buffer.dtype for buffer in held)
            made = _tidied_alone(body, *around) if typed else None
            if made is None:
                return None
            nest = with_parts(nest, body=made)
        sums |= typed_sums(Same(nest.body))
        nests.append(nest)
    if len({name for name, _ in sums}) < len(sums):
        return None
    return with_parts(program, nests=tuple(nests))


@lru_cache(maxsize=KEPT)
def _tidied_alone(
    body: Same[Body],
    inputs: Same[tuple[Buffer, ...]],
    outputs: Same[tuple[Buffer, ...]],
    units: tuple[Dim, ...],
    dtype: str,
) -> Body | None:
    """The normal form of a body whose arrays have dtypes; None if it has tiles of other names."""
    nests, held = (Nest(body.one),), accessed_in(body)
    program = TileProgram(inputs.one, outputs.one, held, nests, units, dtype=dtype)
    (nest,) = retyped(drop_unit_folds(program)).nests
    if not names_in(Same(nest.body)) <= names_in(body):
        return None
    return first_alike(_tidied_body(Same(nest.body)), inputs.one)


def _first_alike(program: TileProgram, before: TileProgram | None) -> TileProgram:
    """``program`` with bodies that are the same objects where programs before it had such, as
    those of ``before`` are.
    """
    known = _bodies(before if before and before.inputs is program.inputs else None)

    def of(nest: Nest) -> Nest:
        same = id(nest.body) in known
        return nest if same else with_parts(nest, body=first_alike(nest.body, program.inputs))

    return with_parts(program, nests=tuple(map(of, program.nests)))


def _bodies(program: TileProgram | None) -> frozenset[int]:
    """The bodies of a program's nests, by ``id``."""
    return frozenset(id(nest.body) for nest in program.nests) if program else frozenset()


def _says_the_same(program: TileProgram, before: TileProgram) -> bool:
    bodies = zip(program.nests, before.nests, strict=False)
    return (
        len(program.nests) == len(before.nests)
        and all(nest.body is other.body for nest, other in bodies)
        and _arrays(program) == _arrays(before)
    )


@lru_cache(maxsize=KEPT)
def _tidied_body(body: Same[Body]) -> Body:
    nest = hoisted(Nest(body.one))
    return nest.body if conflicts(nest.body) else merged(nest).body


def _arrays(program: TileProgram) -> tuple[object, ...]:
    arrays = (program.inputs, program.outputs, program.workspaces)
    return *arrays, program.units, program.dtype


def closed(program: TileProgram) -> TileProgram:
    """The program that is printed."""
    for closing in CLOSING:
        program = closing(program)
    return program
