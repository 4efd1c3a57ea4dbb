"""The positive factor of a tile: x = c * y, where c depends on no element.

t7 = dot(q,k); t8 = t7 * |D| ** -0.5; t9 = where(i >= j, t8, -inf) is where(i >= j, t7, -inf) times
|D| ** -0.5: a positive factor keeps infinities, and the order of all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from blockbuster.emit.tile.program import Let, Tile
from blockbuster.ir.base_two import is_positive
from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call, substitute
from blockbuster.ir.ops import Pointwise

Factors = tuple[tuple[str, Expr], ...]
"""Multiplications and divisions by positive numbers, in the order in which they are carried out."""
IsPrivate = Callable[[Tile], bool]


@dataclass(frozen=True)
class Scaled:
    """``expr`` over ``args``, and the positive ``factors`` that it is to be scaled by."""

    expr: Expr
    args: tuple[Tile, ...]
    factors: Factors

    def scaling(self, value: Expr) -> Expr:
        """``value`` times all factors."""
        for fn, factor in self.factors:
            value = call(fn, value, factor)
        return value


def scaled_of(
    expr: Expr, args: tuple[Tile, ...], lets: Mapping[Tile, Let], is_private: IsPrivate
) -> Scaled:
    """``expr`` without its positive factors, which may stand in the statements before.

    ``lets``: how tiles are made. A tile is looked into only if it ``is_private``: nothing else
    reads it.
    """
    pool: dict[Tile, int] = {}
    found, factors = _taken_apart(_pooled(expr, args, pool), pool, lets, is_private)
    return Scaled(*compacted(found, tuple(pool)), factors)


def reading_once(let: Let, op: Pointwise) -> Let:
    """``let``, whose operator is ``op``, with each operand once, though it may be read twice."""
    pool: dict[Tile, int] = {}
    expr = _pooled(op.expr, let.args, pool)
    return replace(let, op=replace(op, expr=expr), args=tuple(pool))


def compacted(expr: Expr, tiles: tuple[Tile, ...]) -> tuple[Expr, tuple[Tile, ...]]:
    """``expr`` over those of ``tiles`` that it reads, in their order, and these."""
    used = sorted(arguments(expr))
    places = [Arg(used.index(at) if at in used else 0) for at in range(len(tiles))]
    return substitute(expr, places), tuple(tiles[at] for at in used)


def _pooled(expr: Expr, args: tuple[Tile, ...], pool: dict[Tile, int]) -> Expr:
    """``expr`` with the numbers that ``pool`` gives its operands."""
    return substitute(expr, [Arg(pool.setdefault(tile, len(pool))) for tile in args])


def _taken_apart(
    expr: Expr, pool: dict[Tile, int], lets: Mapping[Tile, Let], is_private: IsPrivate
) -> tuple[Expr, Factors]:
    match expr:
        case Arg(index):
            tile = list(pool)[index]
            let = lets.get(tile)
            if let is not None and isinstance(let.op, Pointwise) and is_private(tile):
                inner = _pooled(let.op.expr, let.args, pool)
                found, factors = _taken_apart(inner, pool, lets, is_private)
                return (found, factors) if factors else (expr, ())
        case Call("mul" | "div" as fn, (value, factor)) if is_positive(factor):
            found, factors = _taken_apart(value, pool, lets, is_private)
            return found, (*factors, (fn, factor))
        case Call("mul", (factor, value)) if is_positive(factor):
            found, factors = _taken_apart(value, pool, lets, is_private)
            return found, (*factors, ("mul", factor))
        case Call("where", (mask, value, Const(other))) if math.isinf(other):
            found, factors = _taken_apart(value, pool, lets, is_private)
            return call("where", mask, found, other), factors
        case Call("where", (mask, Const(other), value)) if math.isinf(other):
            found, factors = _taken_apart(value, pool, lets, is_private)
            return call("where", mask, other, found), factors
    return expr, ()
