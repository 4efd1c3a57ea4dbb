"""Which exponentials, and which tanh, are computed in base 2.

Exponentials: all where results have 16 bits. Of 49 pairs of schedules for rows and columns, with
and without the move, an H100 took at most 1% longer with it, and up to 3.9 times as long without:
the log of the sum of exponentials of 4096 x 50257 numbers 179 microseconds and 235, of 64 x 1023 x
257 along the middle axis 24 and 42 (bench/results/2026-11-28-h100-outside). In float32 a scale that
is folded in adds a rounding: attention had 1.53 times eager's error with it, 0.42 without. tanh:
those beside dots whose values only maxima and exponentials read, such as scores of attention with a
soft cap. There an absolute error of a unit in the last place of 1 is as small as the rounding of
the scores themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.spell import Spell, tanhs_of
from blockbuster.emit.tile.dataflow import readers_of
from blockbuster.emit.tile.program import Let, Nest, Stmt, Tile, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.typed import is_accurate
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.ir.expr import Const, Expr, arguments, calls_in, replaced
from blockbuster.ir.ops import Functional, Pointwise

FACTOR, SPELL = Factor(), Spell()


def in_base_two(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with its exponentials in base 2, where results have 16 bits."""
    if is_accurate(scheduled.draft):
        return scheduled
    for move in (SPELL, FACTOR):
        for site in [site for site in move.sites(scheduled) if site.nest]:
            nest = scheduled.draft.nests[site.nest - 1]
            if move is SPELL and not (_has_dots(scheduled, nest) and feeds_exponentials(nest)):
                continue
            scheduled = move.apply(scheduled, site)
    return scheduled


def _has_dots(scheduled: Scheduled, nest: Nest) -> bool:
    tiling = tiling_of(scheduled.draft, nest)
    return bool(matrix_dots(nest.body, tiling))


def feeds_exponentials(nest: Nest) -> bool:
    """True if exponentials and maxima alone read what the tanh of ``nest`` make."""
    readers = readers_of(nest.body)
    return all(
        _is_exponent(stmt.target, readers)
        for stmt in statements(nest.body)
        if isinstance(stmt, Let) and tanhs_of(stmt)
    )


def _is_exponent(tile: Tile, readers: Mapping[Tile, Sequence[Stmt]]) -> bool:
    """True if ``tile``, and what is computed of it, is read up to exponentials and maxima."""
    waiting, seen = [tile], {tile}
    while waiting:
        tile = waiting.pop()
        if not readers.get(tile):
            return False
        for stmt in readers[tile]:
            match stmt:
                case Let(op=Functional("row_max")):
                    pass
                case Let(target, Pointwise(expr), args):
                    if target not in seen and _outside(expr, args, tile):
                        seen.add(target)
                        waiting.append(target)
                case _:
                    return False
    return True


def _outside(expr: Expr, args: Sequence[Tile], tile: Tile) -> bool:
    """True if ``expr`` reads ``tile`` elsewhere than in exponents."""
    exponentials = (part for part in calls_in(expr) if part.fn == "exp")
    powers: dict[Expr, Expr] = {part: Const(0.0) for part in exponentials}
    return any(args[at] == tile for at in arguments(replaced(expr, powers)))
